"""Rows about a program that got its stop signal, handles it, and waits until it is killed. Pure.

Time helps a program that works, or sleeps. One whose threads wait for each other ends with no grace period.
"""

# check: pure

from enum import Enum

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.pid1 import by_name
from lastcall.endings.findings.changes import Remedy, in_program
from lastcall.endings.findings.observed import HANDLED, KILLED, LOCKED, SIGNALLED, locked_process
from lastcall.endings.findings.signals import WHY_NOT_ENDED
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Row
from lastcall.endings.findings.words import listed
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.node_facts import ProcessWaiting, WaitsAtKill
from lastcall.endings.story import Change, ContainerEnding, Finding
from lastcall.records.said import tell

_IDLE_SHARE = 0.01
"""A program that used less of a processor than this did not work: it waited."""
_LEAST_SECONDS = 1.0
"""After a shorter time nothing is concluded from what was used of a processor."""
_LONG_SLEEP_SECONDS = 0.5
"""A shorter sleep is a turn of a loop."""
_NO_WORK = ("futex", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "pause",
            "rt_sigsuspend", "rt_sigtimedwait", "accept", "accept4")  # fmt: skip
"""Calls in which a thread waits for another one, for a client or for a signal. A read may be of a disk, a peer that
answers late or a lock of a file: that may end."""


_SLEEPS = ("nanosleep", "clock_nanosleep")
_LEAST_TURNS = 5
"""So many waits are a loop, not steps one after another."""


class Wait(Enum):
    """How a program that was killed had waited."""

    SLEEPS = "sleeps"
    """In a sleep whose end is known, and not whether another one follows: it may be a turn of a loop."""
    ENDLESS = "endless"
    """No thread waits with a time limit."""
    LOOPS = "loops"
    """Its only thread slept again and again, and used no CPU time: it looks whether something has come."""
    THREADS = "threads"
    """Threads wait for others without a time limit, and those sleep in short turns."""
    IDLE = "idle"
    """It used no CPU time; some threads have time limits."""


def kind_of_wait(c: ContainerEnding) -> Wait | None:
    """Return how a program waited that nobody but itself kept from ending; None if it worked, and where nobody looked.

    Processes beside PID 1 that lived may be what it waited for.
    """
    seen = c.seen.waits
    if seen is None or len(seen.processes) != 1 or seen.seconds < _LEAST_SECONDS:
        return None
    (main,) = seen.processes
    idle = seen.cpu_seconds <= seen.seconds * _IDLE_SHARE
    if idle and _sleeps_alone(main) and (seen.switches or 0) >= _LEAST_TURNS:
        return Wait.LOOPS
    if wakes_in(c):
        return Wait.SLEEPS
    if idle and _wait_for_sleepers(main, seen):
        return Wait.THREADS
    if not idle or not all(each.call in _NO_WORK for each in main.waits):
        return None
    return Wait.IDLE if any(each.limited for each in main.waits) else Wait.ENDLESS


def _sleeps_alone(process: ProcessWaiting) -> bool:
    """Return whether the only thread of a process slept."""
    return process.threads == 1 and process.waits[0].call in _SLEEPS


def _wait_for_sleepers(process: ProcessWaiting, seen: WaitsAtKill) -> bool:
    """Return whether threads of a process wait for others of it, without a time limit, and all those sleep in turns of
    which the time since the signal had several. A first thread that takes such turns begins to wait more often."""
    turns = [each for each in process.waits if not (each.own and each.limited is False)]
    longest = seen.seconds / _LEAST_TURNS
    return (
        0 < len(turns) < len(process.waits)
        and all(each.call in _SLEEPS and each.wakes_in is not None and each.wakes_in < longest for each in turns)
        and seen.switches is not None
        and seen.switches < _LEAST_TURNS
    )


def wakes_in(c: ContainerEnding) -> float:
    """Return the seconds that a program of one thread would have slept on when SIGKILL came; 0 for any other."""
    seen = c.seen.waits
    sleeps = seen.processes[0].waits if seen is not None and len(seen.processes) == 1 else ()
    if len(sleeps) != 1 or sleeps[0].threads != 1 or (sleeps[0].wakes_in or 0.0) < _LONG_SLEEP_SECONDS:
        return 0.0
    return sleeps[0].wakes_in or 0.0


def remedy_of_wait(c: ContainerEnding, wait: Wait, longer: int) -> Remedy:
    """Return what to do about a program that waited until SIGKILL; `longer` is a grace period that may be enough."""
    seen = c.seen.waits
    assert seen is not None
    if wait is Wait.SLEEPS:
        return in_program(fix("killed", "sleeps", signal=c.stop.signal, left=_s(wakes_in(c))), "endOnStopSignal")
    if wait is Wait.LOOPS:
        advice = fix("killed", "loops", signal=c.stop.signal, count=seen.switches, used=_used(seen))
        return Remedy(advice, Change({"terminationGracePeriodSeconds": longer}, "endOnStopSignal"))
    facts = {"signal": c.stop.signal, "used": _used(seen), "calls": _calls(seen.processes[0])}
    if wait is Wait.THREADS:
        asleep = [each for each in seen.processes[0].waits if each.call in _SLEEPS]
        left = max(each.wakes_in or 0.0 for each in asleep)
        facts |= {"count": str(sum(each.threads for each in asleep)), "left": _s(left)}
    return in_program(fix("killed", wait.value, **facts), "endOnStopSignal")


def _used(seen: WaitsAtKill) -> str:
    if seen.cpu_seconds <= 0:
        return tell("no CPU time in $over", over=_s(seen.seconds))
    return tell("$used of CPU time in $over", used=_s(seen.cpu_seconds), over=_s(seen.seconds))


def _calls(process: ProcessWaiting) -> str:
    return listed(list(dict.fromkeys(each.call for each in process.waits)))


def _deadlocked(s: RunSubject) -> Finding:
    c, process, seen = s.run, locked_process(s.run), s.run.seen.waits
    assert process is not None
    assert seen is not None
    one = process.threads == 1
    who = by_name(c) if process is seen.processes[0] else f" ({process.name}, pid {process.container_pid})"
    facts = {"container": c.name, "by_name": who, "signal": c.stop.signal, "count": process.threads}
    text = said("deadlocked", "one" if one else "", **facts, used=_used(seen))
    advice = fix("deadlocked", signal=c.stop.signal)
    return Finding("deadlocked", "problem", text, c.name, advice, change=Change(program="endOnStopSignal"))


ROWS = (Row("deadlocked", (SIGNALLED, KILLED, HANDLED, LOCKED), _deadlocked, answers=WHY_NOT_ENDED),)
