"""Watch the roles from init: end one whose event loop does not turn any more, and report its stack.

`decide.py` has the rule, `heartbeat.py` what is shared with the role.

A role that hangs by that rule is asked for its stack. A role that writes it can run, so it is not stopped or
frozen; when its heart still does not beat then, it is killed, and its death is that of any other role. A role that does
not write it is left alone, and watched anew.

The shim has no event loop of this kind and is never watched: it holds the containers.
"""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.cluster.health.decide import LOOK_SECONDS, Evidence, Look, hangs, share_of
from lastcall.kube.cluster.health.heartbeat import Heartbeat, WorkingOn
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.parts import Hang as HangFacts

HEALTHY_LOOK_SECONDS = 4.0
"""Between two looks while all hearts beat: they cost init a wake-up. Then it looks as often as the rule wants."""
STACK_WITHIN_SECONDS = 5.0
"""How long a role has for its stack, on a machine that may be busy."""
STACK_IS_WHOLE_SECONDS = 0.3
"""After its first line: every thread's comes with it, and so does the note of whose turn it is."""
_POLL_SECONDS = 0.05
_STACK_LINES = 60
_PROCESSORS = os.cpu_count() or 1
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Hang:
    """Why a role was ended. `seconds` of own time had passed without a turn of its loop, `cpu` of them on a processor.

    `takes_longer` is what it had asked that time for, "" for no more than usual.
    """

    seconds: float
    cpu: float
    stack: str
    working_on: WorkingOn | None
    takes_longer: str

    def text(self) -> str:
        """Describe the hang in one line."""
        work = f" while it worked on {self.working_on}" if self.working_on is not None else ""
        busy = f" ({self.takes_longer})" if self.takes_longer else ""
        return (
            f"the event loop has not turned for {self.seconds:.0f} s{busy}{work} ({self.cpu:.1f} s on a processor): "
            "this process is ended. Where it stood:"
        )

    def facts(self) -> "HangFacts":
        """Return the facts of the record ProcessDied."""
        return {
            "seconds": round(self.seconds, 3),
            "cpuSeconds": round(self.cpu, 3),
            "takesLonger": self.takes_longer,
            "stack": self.stack,
        }


@dataclass(slots=True)
class _Watched:
    pid: int
    page: Heartbeat
    beats: int = -1
    evidence: Evidence = field(default_factory=Evidence)
    cpu_before: float = 0.0
    """When the evidence begins."""
    asked_at: float = 0.0
    wrote_at: float = 0.0
    hang: Hang | None = None


class Watchdog:
    """`watch` a role that was forked, `look` when that is due, and ask `died` about the dead."""

    def __init__(self, pages: Mapping[str, Heartbeat], clock: Clock) -> None:
        """`pages` of the roles that are to be watched."""
        self._pages = pages
        self._clock = clock
        self._watched: dict[str, _Watched] = {}
        self._due = monotonic(clock)

    def watch(self, role: str, pid: int) -> None:
        """Watch a process from now on; do nothing for a role without a page."""
        if role in self._pages:
            self._watched[role] = _Watched(pid, self._pages[role])

    def died(self, role: str) -> Hang | None:
        """Stop watching a role; return why it was ended here, None if something else ended it."""
        watched = self._watched.pop(role, None)
        return watched.hang if watched is not None else None

    def seconds_to_wait(self) -> float | None:
        """Return the seconds until `look` is due; None if no role is watched."""
        return max(0.0, self._due - monotonic(self._clock)) if self._watched else None

    def look(self) -> list[tuple[str, Hang]]:
        """Look at all roles, if it is due; return those that hang, which have been killed."""
        at = monotonic(self._clock)
        if at < self._due:
            return []
        hung = []
        for role, watched in self._watched.items():
            hang = self._look_at(watched, at)
            if hang is not None:
                watched.hang = hang
                hung.append((role, hang))
                with suppress(ProcessLookupError):
                    os.kill(watched.pid, signal.SIGKILL)
        if any(each.asked_at for each in self._watched.values()):
            self._due = at + _POLL_SECONDS
        else:
            doubtful = any(each.evidence.last is not None for each in self._watched.values())
            self._due = at + (LOOK_SECONDS if doubtful else HEALTHY_LOOK_SECONDS)
        return hung

    def _look_at(self, watched: _Watched, at: float) -> Hang | None:
        if watched.hang is not None:
            return None  # the kernel has yet to end it
        page, evidence = watched.page, watched.evidence
        beats = page.beats
        if beats != watched.beats:
            # The usual: nothing is asked of the kernel. What passes before the next look is given away.
            watched.beats, watched.asked_at = beats, 0.0
            evidence.forget()
            return None
        if watched.asked_at:
            return self._stack(watched, at)
        try:
            look = look_at(watched.pid, at, beats)
        except (OSError, ValueError, IndexError):
            evidence.forget()  # it is ending
            return None
        if evidence.last is None:
            watched.cpu_before = look.cpu
        if hangs(evidence.add(look), page.allowed):
            with suppress(ProcessLookupError):
                page.ask_for_stack(watched.pid)
                watched.asked_at, watched.wrote_at = at, 0.0
        return None

    def _stack(self, watched: _Watched, at: float) -> Hang | None:
        page = watched.page
        stack = page.stack
        if not stack:
            if at - watched.asked_at >= STACK_WITHIN_SECONDS:
                watched.asked_at = 0.0
                watched.evidence.forget()
            return None
        watched.wrote_at = watched.wrote_at or at
        if at - watched.wrote_at < STACK_IS_WHOLE_SECONDS:
            return None
        last = watched.evidence.last
        cpu = last.cpu - watched.cpu_before if last is not None else 0.0
        lines = stack.strip().splitlines()
        more = [f"… {len(lines) - _STACK_LINES} more lines"] if lines[_STACK_LINES:] else []
        stack = "\n".join([*lines[:_STACK_LINES], *more])
        return Hang(watched.evidence.own, cpu, stack, page.working_on, page.takes_longer)


def look_at(pid: int, at: float, beats: int) -> Look:
    """Return what /proc shows. Raises OSError, ValueError or IndexError for a process that ends meanwhile."""
    fields = _stat(f"/proc/{pid}")
    # Of the thread with the loop what it ran; of all of them how long they waited, because it may wait for one of them.
    ran = _schedstat(f"/proc/{pid}")
    if ran is not None:
        cpu = ran[0] / 1e9
        waited = sum((_schedstat(f"/proc/{pid}/task/{each}") or (0, 0))[1] for each in os.listdir(f"/proc/{pid}/task"))
    else:  # a kernel without CONFIG_SCHED_INFO
        of_thread = _stat(f"/proc/{pid}/task/{pid}")
        cpu, waited = (int(of_thread[11]) + int(of_thread[12])) / _TICK, 0
    with open("/proc/stat") as file:
        idle = int(file.readline().split()[4]) / _TICK
    with open("/proc/loadavg") as file:
        runnable = int(file.read().split()[3].partition("/")[0])
    return Look(at, beats, fields[0], cpu, waited / 1e9, idle, share_of(_PROCESSORS, runnable))


def _stat(path: str) -> list[str]:
    """The fields behind the name: the state is the first."""
    with open(f"{path}/stat") as file:
        return file.read().rpartition(")")[2].split()


def _schedstat(path: str) -> tuple[int, int] | None:
    """Return nanoseconds on a processor, and waiting for one; None where they are unknown, or the thread has ended."""
    try:
        with open(f"{path}/schedstat") as file:
            ran, waited, _ = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(ran), int(waited)
