"""Rows about what PID 1 does with its stop signal. Pure."""

# check: pure

import posixpath

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.pid1 import by_name, is_shell, number_of
from lastcall.endings.findings.changes import NOTHING, Remedy, in_pod, in_program
from lastcall.endings.findings.observed import (
    DROPPED,
    ENDED,
    GRACE_OVER,
    HANDLED,
    KILLED,
    LEFT_AT_KILL,
    NEW_PROCESSES,
    NOT_HANDLED,
    NOT_KILLED,
    OLDER_PROCESSES,
    SHELL,
    SIGNALLED,
    STILL_LISTENED,
    knows_signal_state,
    of_run,
)
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Question, Row, every
from lastcall.endings.findings.words import exit_code, listed
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.outcome import SOON_SECONDS
from lastcall.endings.shell_script import script_of, shape_of
from lastcall.endings.story import Change, ContainerEnding, Finding, Severity
from lastcall.records import kinds
from lastcall.records.said import tell

_TRAP_DELAY_SECONDS = 0.1
"""A shell that was free to run its trap prints within this time of the signal."""
_STARTING_SECONDS = 0.5
"""A program that has run for no longer than this may not have come to its handlers yet: nothing is known of them."""

WHY_NOT_ENDED: Question[RunSubject] = Question(
    (KILLED, SIGNALLED, GRACE_OVER),
    lambda s: tell("Why $container did not end on $signal", container=s.run.name, signal=s.run.stop.signal),
)


def _heard(c: ContainerEnding) -> bool:
    """A blocked signal may have been taken after the look; one that is dropped, or ignored, is so for good."""
    if c.exit.at is None or c.exit.sigkilled:
        return False
    return c.process.disposition == "blocked" or c.exit.signal == c.stop.signal or c.drain_seconds < SOON_SECONDS


def _age(c: ContainerEnding) -> float:
    if c.started_at is None or c.stop.signal_at is None:
        return _STARTING_SECONDS
    return c.stop.signal_at - c.started_at


def _trap_delay(s: RunSubject) -> float:
    c = s.run
    after = [line.at for line in s.ending.output if line.container == c.name and line.at >= (c.stop.signal_at or 0.0)]
    return after[0] - (c.stop.signal_at or 0.0) if after else 0.0


_HEARD = of_run("when it ended", _heard, kinds.PROCESS_EXITED)
_YOUNG = of_run(
    "when it was started",
    lambda c: _age(c) < _STARTING_SECONDS if c.started_at is not None and c.stop.signal_at is not None else None,
    kinds.PROCESS_STARTED,
)
_STARTING: Fact[RunSubject] = Fact(
    _YOUNG.name,
    every(DROPPED, ENDED, NOT_KILLED, _YOUNG),
    (kinds.PROCESS_STARTED, kinds.PROCESS_SIGNAL_STATE, kinds.PROCESS_EXITED),
)
_LATE_TRAP: Fact[RunSubject] = Fact(
    "what it printed", lambda s: _trap_delay(s) >= _TRAP_DELAY_SECONDS, (kinds.OUTPUT, kinds.SIGNAL_SENT)
)


def _still_waits(s: RunSubject) -> bool | None:
    """Return whether the shell had done nothing since the signal: it printed nothing, began nothing, and nothing that
    it had begun has ended. A process with the signal's default action that lives did not get it from the trap either.
    """
    c, left = s.run, s.run.seen.processes_left
    if left is None:
        return False if knows_signal_state(c) else None
    signalled = c.stop.signal_at or 0.0
    printed = any(line.container == c.name and line.at >= signalled for line in s.ending.output)
    ended = any(each.at >= signalled for each in c.seen.children_ended)
    older = not left.more and not any(each.after_signal for each in left.processes)
    return older and not printed and not ended and any(each.disposition == "default" for each in left.processes)


_SHELL_STILL_WAITS: Fact[RunSubject] = Fact(LEFT_AT_KILL.name, _still_waits, (kinds.PROCESSES_LEFT, kinds.CHILD_ENDED))
_MAY_WAIT = of_run(
    "what the script of the shell does",
    lambda c: not (script := script_of(c.process.argv)) or ("trap" in script and shape_of(script) != "jobs"),
    kinds.PROCESS_STARTED,
)
TRAP_WAITS: Fact[RunSubject] = Fact(
    _SHELL_STILL_WAITS.name,
    every(HANDLED, SHELL, LEFT_AT_KILL, _SHELL_STILL_WAITS, _MAY_WAIT),
    (*LEFT_AT_KILL.kinds, *HANDLED.kinds, kinds.PROCESS_STARTED),
)
"""A shell that has a trap still waited, when SIGKILL came, for what it had begun before the signal."""


def _starting(s: RunSubject) -> Finding:
    c = s.run
    text = said(
        "stopSignalNotHandled",
        "starting",
        container=c.name,
        main=number_of(c),
        program=_program(c),
        age=_s(_age(c)),
        signal=c.stop.signal,
        seconds=_s(c.drain_seconds),
    )
    return Finding("stopSignalNotHandled", "info", text, c.name)


def _not_handled(s: RunSubject) -> Finding:
    c, until = s.run, _until(s.run)
    text = said(
        "stopSignalNotHandled",
        until,
        container=c.name,
        main=number_of(c),
        program=_program(c),
        disposition=said("stopSignalNotHandled", c.process.disposition, signal=c.stop.signal),
        seconds=_s(c.drain_seconds),
        exit=exit_code(c),
    )
    remedy = _remedy(s)
    severity: Severity = "warning" if until in ("untilMemory", "untilOther") else "problem"
    return Finding("stopSignalNotHandled", severity, text, c.name, remedy.advice, change=remedy.change)


def _until(c: ContainerEnding) -> str:
    """Return the variant of the sentence: what ended the container that its stop signal did not end."""
    if c.exit.at is None:
        return ""
    if not c.exit.sigkilled:
        return "untilExit"
    if c.exit.killed_by == "out of memory":
        return "untilMemory"
    return "untilKill" if c.exit.killed_by_grace else "untilOther"


def _program(c: ContainerEnding) -> str:
    program = (
        c.process.exe
        if not c.process.command or c.process.exe.endswith(f"/{c.process.command}")
        else f"{c.process.command}, {c.process.exe}".rstrip(", ")
    )
    return f" ({program})" if program else ""


def _remedy(s: RunSubject) -> Remedy:
    """Return what to do about a PID 1 that does not get the stop signal."""
    c = s.run
    if c.process.disposition == "default" and is_shell(c) and OLDER_PROCESSES.holds(s):
        return NOTHING  # shellKeepsSignal says it
    if c.process.disposition in ("ignored", "blocked"):
        advice = fix("stopSignalNotHandled", c.process.disposition, signal=c.stop.signal)
        return in_program(advice, "stopIgnoringSignal" if c.process.disposition == "ignored" else "unblockSignal")
    others = [name for name in ("SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1") if name in c.process.caught]
    advice = fix("stopSignalNotHandled", "default", signal=c.stop.signal)
    if others and not is_shell(c):  # a shell has one for its own use
        advice = fix("stopSignalNotHandled", "otherSignal", signal=c.stop.signal, other=others[0])
    return in_pod(advice, shareProcessNamespace=True)


def _trap(s: RunSubject) -> Finding:
    c = s.run
    text = said("shellRunsTrapLate", container=c.name, seconds=_s(_trap_delay(s)), signal=c.stop.signal)
    return Finding("shellRunsTrapLate", "info", text, c.name)


def _trap_waits(s: RunSubject) -> Finding:
    """Its children from before the signal still ran at SIGKILL, and nothing shows that the trap had begun."""
    c, left = s.run, s.run.seen.processes_left
    names = [f"{each.name} (pid {each.container_pid})" for each in (left.processes[:4] if left else ())]
    facts = {
        "container": c.name,
        "main": number_of(c),
        "by_name": by_name(c),
        "signal": c.stop.signal,
        "names": listed(names),
    }
    text = said("shellRunsTrapLate", "waits", **facts)
    advice = fix("shellRunsTrapLate", "waits")
    return Finding("shellRunsTrapLate", "problem", text, c.name, advice, change=Change(program="passSignalOn"))


def _reloads(s: RunSubject) -> Finding:
    """It handles the signal, and at SIGKILL it still listened and all of its children were younger than the signal."""
    c, left = s.run, s.run.seen.processes_left
    name = c.process.command or posixpath.basename(c.process.argv[0] if c.process.argv else c.process.exe)
    names = ", ".join(f"{each.name} (pid {each.container_pid})" for each in (left.processes[:4] if left else ()))
    facts = {"container": c.name, "main": number_of(c), "by_name": f" ({name})" if name else ""}
    text = said("reloadsOnSignal", **facts, signal=c.stop.signal, names=names)
    variant = "uwsgi" if "uwsgi" in name else ""
    advice = fix("reloadsOnSignal", variant, signal=c.stop.signal)
    return Finding("reloadsOnSignal", "problem", text, c.name, advice, change=Change(program="endOnStopSignal"))


ROWS = (
    Row("stopSignalNotHandled", (SIGNALLED, _STARTING), _starting, refuted_by=(_HEARD,), variant="starting"),
    Row(
        "stopSignalNotHandled",
        (SIGNALLED, NOT_HANDLED),
        _not_handled,
        refuted_by=(_HEARD, _STARTING),
        answers=WHY_NOT_ENDED,
    ),
)
TRAP_ROWS = (
    Row("shellRunsTrapLate", (SIGNALLED, HANDLED, SHELL, _LATE_TRAP), _trap),
    Row("shellRunsTrapLate", (SIGNALLED, TRAP_WAITS), _trap_waits, variant="waits", answers=WHY_NOT_ENDED),
)
RELOAD_ROWS = (
    Row(
        "reloadsOnSignal",
        (KILLED, HANDLED, NEW_PROCESSES, STILL_LISTENED),
        _reloads,
        answers=WHY_NOT_ENDED,
    ),
)
