"""Decide when a role that died is started again, and what is reported of its deaths. Pure.

The first death costs no time. A role that dies again and again soon after its start waits 10 ms, 20 ms … at most 10 s;
one that had lived for 10 s starts over.
"""

# check: pure

import signal
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lastcall.records.signal_names import signal_name
from lastcall.world.crash_guard import REQUEST
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.init import ProcessDied
    from lastcall.records.definitions.parts import Turn

FIRST_DELAY = 0.01
MAX_DELAY = 10.0
STEADY_SECONDS = 10.0


def restart_delay(early_deaths: int) -> float:
    """Return the seconds to wait after the death that follows `early_deaths` deaths in a row."""
    if early_deaths <= 0:
        return 0.0
    return float(min(FIRST_DELAY * 2 ** min(early_deaths - 1, 30), MAX_DELAY))


@dataclass(slots=True)
class RestartBackoff:
    """One role's deaths."""

    early_deaths: int = 0

    def died(self, lived_seconds: float) -> float:
        """Note a death; return the seconds until the role may be started again."""
        if lived_seconds >= STEADY_SECONDS:
            self.early_deaths = 0
        delay = restart_delay(self.early_deaths)
        self.early_deaths += 1
        return delay


AGAIN = 2
"""How many deaths with one object are reported: one may have been chance."""
_MOST_OBJECTS = 64
_SHOWN_CALLS = 15

OWN_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP)
"""What a program ends of by what it does itself. SIGKILL comes from outside: from a person, or for lack of memory."""


FIRST_ALONE = 15.0
MAX_ALONE = 120.0


def serves_alone(role: str, working_on: "Turn | None", deaths: int) -> float:
    """Return for how many seconds the next control plane answers requests without controllers and scheduler.

    One of these ended it `deaths` times while it worked on the same object. In these seconds the user, who is warned,
    can delete that object. A request does not count: its client would send it again.
    """
    if role != "control-plane" or deaths < AGAIN or not working_on or working_on["component"] == REQUEST:
        return 0.0
    return float(min(FIRST_ALONE * 2 ** min(deaths - AGAIN, 30), MAX_ALONE))


def is_its_own_fault(exit_code: int | None, number: int | None) -> bool:
    """Return whether a role's end has to do with what it was working on."""
    return number in OWN_SIGNALS if number else bool(exit_code)


def how(facts: "ProcessDied") -> str:
    """Say how a role ended, by the facts of ProcessDied: `killed by SIGKILL`, `exited with 70`, `hung: …`."""
    if "hung" in facts:
        return f"hung: its event loop did not turn for {facts['hung']['seconds']:.0f} s"
    number = facts.get("signal")
    return f"killed by {signal_name(number)}" if number else f"exited with {facts.get('exitCode')}"


def where(facts: "ProcessDied") -> str:
    """Return where the event loop of a hung role stood, innermost call first: the part of the stack that shows it."""
    stack = str(facts["hung"]["stack"])
    loop = stack[max(0, stack.find("Current thread")) :].split("\n\n", 1)[0]
    return "\n".join(loop.splitlines()[1 : 1 + _SHOWN_CALLS])


def at_work(working_on: "Mapping[str, str] | Turn | None") -> str:
    """Return ` while working on default/x (job-controller)`; "" if it is unknown."""
    if not working_on:
        return ""
    component, key = working_on["component"], working_on["key"]
    if component == REQUEST:
        return f" while answering {key}"
    return f" while working on {key} ({component})" if key else f" in {component}"


@dataclass(slots=True)
class Deaths:
    """Count the deaths of one role since the cluster was started, as they are reported."""

    restarts: int = 0
    hangs: int = 0
    alone: float = 0.0
    """`serves_alone`, since the last death."""
    last: str = ""
    at: str = ""
    _objects: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, facts: "ProcessDied", at: str) -> int:
        """Add a death by the facts of ProcessDied; return how often the role has died of this object, 0 if unknown."""
        self.hangs += "hung" in facts
        self.last, self.at = how(facts) + at_work(facts.get("workingOn")), at
        turn = facts.get("workingOn")
        self.alone = float(facts.get("servesAlone", 0.0))
        if not turn:
            return 0
        identity = (turn["component"], turn["key"])
        count = self._objects.pop(identity, 0) + 1
        self._objects[identity] = count
        if len(self._objects) > _MOST_OBJECTS:
            del self._objects[min(self._objects, key=lambda each: self._objects[each])]
        return count

    def again_and_again(self) -> list[dict[str, Any]]:
        """Return component, key and deaths of each object that the role died of more than once, the worst first."""
        found = [
            {"component": component, "key": key, "deaths": count}
            for (component, key), count in self._objects.items()
            if count >= AGAIN
        ]
        return sorted(found, key=lambda each: -each["deaths"])


def died_of(role: str, found: Mapping[str, Any]) -> str:
    """Return a sentence for one of `again_and_again`."""
    return f"{role} died {found['deaths']} times{at_work(found)}"


def way_out(alone: float) -> str:
    """Return what to do about it; "" where nobody knows."""
    return f"fix: delete that object within {alone:g} s of a start, its controllers begin only then" if alone else ""
