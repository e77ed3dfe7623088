"""What init sees of the cluster's own processes. These records are of no Pod."""

from typing import Annotated, TypedDict

from lastcall.records.definitions.parts import WhyItDied
from lastcall.records.said import tell
from lastcall.records.sentences import NOISE, STEP, Words, fixed, row, sentences
from lastcall.records.signal_names import signal_name

ACTOR = "init"


class ProcessDied(WhyItDied):
    """A process of the cluster has ended."""

    role: Annotated[str, "control-plane, node-1, shim-1 … or orphan"]
    pid: int
    exitCode: int | None
    signal: Annotated[int | None, "number of the signal that ended it"]


def process_died(facts: ProcessDied) -> Words:
    name = signal_name(facts.get("signal"))
    level = NOISE if facts.get("role") == "orphan" else STEP
    who = {"role": facts.get("role"), "pid": facts.get("pid")}
    if "hung" in facts:
        time = f"{facts['hung']['seconds']:.0f}"
        text = tell("$role (pid $pid) hung and was ended: its event loop did not turn for $time s", time=time, **who)
        return Words(text, level, "bad")
    if name:
        return Words(tell("$role (pid $pid) killed by $signal", signal=name, **who), level, "bad")
    return Words(tell("$role (pid $pid) exited with $code", code=facts.get("exitCode"), **who), level, "bad")


class ProcessRestarted(TypedDict):
    """A process of the cluster is started again."""

    role: Annotated[str, "control-plane, node-1, shim-1 …"]
    pid: int


SENTENCES = sentences(
    row(ProcessDied, process_died),
    row(ProcessRestarted, fixed("$role started again (pid $pid)", STEP)),
)
"""The words for each kind."""
