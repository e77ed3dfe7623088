"""What one Pod's end adds to the metrics. Pure: the same story gives the same samples.

Only what the story knows is counted: a hook or a drain whose times nobody saw has no sample.
"""

# check: pure

from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

from lastcall.endings import ContainerEnding, Ending
from lastcall.trace.exporting.workload import Workload, clean, workload_of
from lastcall.world.dataclass import dataclass

Metric = Literal[
    "ends", "findings", "hooks", "sigkills", "exits137", "hookSeconds", "drainSeconds", "graceUsed", "endpointLost"
]

Cause137 = Literal["oom", "liveness", "startup", "grace", "itself", "other"]
"""oom: the kernel, for lack of memory. liveness, startup: that probe failed, and the node ended it. grace: it still ran
when its grace period was over. itself: it exited with 137, and no signal ended it. other: another process's SIGKILL, or
nobody knows whose."""

MOST_EXEMPLAR = 128
"""Characters of all names and values of an exemplar together (OpenMetrics 1.0, "Exemplars")."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`value` is added to a counter or observed by a histogram; `labels` come after namespace and workload."""

    metric: Metric
    value: float = 1.0
    labels: tuple[str, ...] = ()
    exemplar: tuple[tuple[str, str], ...] = ()


def measure(ending: Ending) -> tuple[Workload, list[Sample]]:
    """Return whose end it was, and everything that it adds."""
    return workload_of(ending), list(_samples(ending))


def _samples(ending: Ending) -> Iterator[Sample]:
    reason = ending.decided_by.reason if ending.decided_by is not None else "unknown"
    yield Sample("ends", labels=(ending.outcome, clean(reason)), exemplar=exemplar_of(ending))
    for identity in sorted({each.id for each in ending.findings if each.severity != "info"}):
        yield Sample("findings", labels=(identity,), exemplar=exemplar_of(ending))
    for run in (*ending.earlier, *ending.containers):
        yield from _of_run(ending, run)
    if (used := grace_used(ending)) is not None:
        container = ending.budget.container if ending.budget is not None else ""
        yield Sample("graceUsed", used, exemplar=exemplar_of(ending, container))
    for seconds in lost_endpoint_windows(ending):
        yield Sample("endpointLost", seconds, exemplar=exemplar_of(ending))


def _of_run(ending: Ending, run: ContainerEnding) -> Iterator[Sample]:
    exemplar = exemplar_of(ending, run.name)
    if run.hook is not None:
        yield Sample("hooks", labels=(run.hook.outcome,), exemplar=exemplar)
        if run.hook.outcome in ("succeeded", "failed", "outlived"):
            yield Sample("hookSeconds", max(0.0, run.hook.seconds), exemplar=exemplar)
    if run.stop.signal_at is not None and run.exit.at is not None:
        yield Sample("drainSeconds", run.drain_seconds, exemplar=exemplar)
    if run.exit.sigkilled:
        yield Sample("sigkills", exemplar=exemplar)
    if (cause := cause_of_137(run)) is not None:
        yield Sample("exits137", labels=(cause,), exemplar=exemplar)


def cause_of_137(run: ContainerEnding) -> Cause137 | None:
    """Return why it has the exit code 137, None when it has another one."""
    if run.exit.code != 137 and not run.exit.sigkilled:
        return None
    if run.exit.killed_by == "out of memory" or (
        run.exit.reason == "OOMKilled" and run.exit.killed_by in (None, "unknown sender")
    ):
        return "oom"
    if run.exit.ended_by == "livenessProbe":
        return "liveness"
    if run.exit.ended_by == "startupProbe":
        return "startup"
    if run.exit.killed_by_grace:
        return "grace"
    return "other" if run.exit.sigkilled else "itself"


def grace_used(ending: Ending) -> float | None:
    """Return hook, wait and drain of the container that ended last, as a part of the grace period.

    Above 1 when it was killed. None when nothing had to be stopped, or without a grace period.
    """
    budget = ending.budget
    if budget is None or budget.grace <= 0:
        return None
    return (budget.pre_stop + budget.waiting + budget.drain) / budget.grace


def lost_endpoint_windows(ending: Ending) -> list[float]:
    """Return the seconds until a Service no longer had the Pod as ready, for each that had it when it served no longer.

    It serves no longer when its first listener closes, where the node saw sockets, else when its last container has
    ended: then the window is at least this long.
    """
    stopped = _stopped_serving(ending)
    if stopped is None:
        return []
    left: dict[tuple[str, str], float] = {}
    for each in sorted(ending.endpoints, key=lambda each: each.at):
        if not each.ready:
            left.setdefault((each.service, each.address), each.at)
    return [at - stopped for _, at in sorted(left.items()) if at > stopped]


def _stopped_serving(ending: Ending) -> float | None:
    serving = [each for each in ending.containers if each.kind in ("container", "sidecar") and each.started]
    closed = [closing.at for each in serving if each.seen.sockets is not None for closing in each.seen.sockets.closed]
    if closed:
        return min(closed)
    exits = [each.exit.at for each in serving]
    known = [at for at in exits if at is not None]
    return max(known) if known and len(known) == len(exits) else None


def trace_id_of(ending: Ending) -> str:
    """Return 32 hexadecimal digits: the Pod's uid, by which a trace is found; a story exported twice is one trace."""
    bare = ending.pod.uid.replace("-", "").lower()
    if len(bare) == 32 and set(bare) <= set("0123456789abcdef") and bare.strip("0"):
        return bare
    return sha256(ending.pod.uid.encode("utf-8", "replace")).hexdigest()[:32]


def exemplar_of(ending: Ending, container: str = "") -> tuple[tuple[str, str], ...]:
    """Return which Pod it was: what no label says. Long names are cut off."""
    labels = [("trace_id", trace_id_of(ending))]
    room = MOST_EXEMPLAR - sum(len(name) + len(value) for name, value in labels)
    for name, value in (("pod", clean(ending.pod.name)), ("container", clean(container))):
        if value and room > len(name):
            labels.append((name, value[: room - len(name)]))
            room -= len(name) + len(labels[-1][1])
    return tuple(labels)
