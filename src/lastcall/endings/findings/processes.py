"""Rows about the processes beside PID 1: who was not signalled, who does not hear, who was not reaped. Pure."""

# check: pure

from collections.abc import Mapping, Sequence

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.pid1 import SHELLS, by_name, forwards, number_of
from lastcall.endings.findings.changes import NOTHING, Remedy, in_container, in_pod, in_program
from lastcall.endings.findings.kills import STOPPED_IN_TURN
from lastcall.endings.findings.observed import (
    ALL_DEAF,
    ALL_HANDLE,
    CHILD_KILLED,
    DEAF_CHILD,
    ENDED_WELL,
    FORWARDS,
    HANDLED,
    LEFT_AT_KILL,
    NO_SHELL,
    NOT_LEFT_AT_KILL,
    OLDER_PROCESSES,
    ONLY_SLEEPS,
    OOM_COUNTED,
    SHELL,
    SIGNALLED,
    STRANGER,
    TRAP_ENDS_SHELL,
    ZOMBIES,
    killed_children,
    knows_signal_state,
    of_run,
    older_processes,
    once_ended,
)
from lastcall.endings.findings.signals import TRAP_WAITS, WHY_NOT_ENDED
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row, every
from lastcall.endings.findings.words import process, processes
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.node_facts import ChildEnd, ProcessAtStop, ProcessesLeft, ProcessLeft
from lastcall.endings.shell_script import pipeline_fix, place_of, script_of, shape_of
from lastcall.endings.story import Change, ContainerEnding, Finding, ProgramChange, Severity
from lastcall.records import kinds
from lastcall.records.said import joined, tell

PASS_ON = Change(program="passSignalOn")
_HEAR: Mapping[str, ProgramChange] = {"ignored": "stopIgnoringSignal", "blocked": "unblockSignal"}
"""What a program has to do to get its stop signal, by its disposition."""
_TRAP_LEAVES_CHILDREN: Fact[RunSubject] = Fact(
    TRAP_ENDS_SHELL.name,
    every(SHELL, TRAP_ENDS_SHELL, NOT_LEFT_AT_KILL),
    (kinds.PROCESS_STARTED, kinds.PROCESS_SIGNAL_STATE),
)
_TRAP_ENDED_WELL: Fact[RunSubject] = Fact(
    "how the shell ended",
    every(HANDLED, NOT_LEFT_AT_KILL, ONLY_SLEEPS, ENDED_WELL),
    (*HANDLED.kinds, *ONLY_SLEEPS.kinds, kinds.PROCESS_EXITED),
)
"""The trap of a shell ended it with 0 while it waited for a `sleep` of its own."""
_SIGNAL_ENDED = of_run(
    "how the shell ended", once_ended(lambda c: c.exit.signal == c.stop.signal), kinds.PROCESS_EXITED
)
_ENDED_IN_SLEEP: Fact[RunSubject] = Fact(
    _SIGNAL_ENDED.name, every(_SIGNAL_ENDED, ONLY_SLEEPS), (*_SIGNAL_ENDED.kinds, *ONLY_SLEEPS.kinds)
)
"""The signal itself ended a shell while it waited for a `sleep` of its own: nobody missed it."""
_MAY_BE_PASSED_ON: Fact[RunSubject] = Fact(
    ALL_HANDLE.name, every(HANDLED, ALL_HANDLE), (*HANDLED.kinds, *ALL_HANDLE.kinds)
)
"""What a process with a handler got is not known."""
_MAY_HAVE_TRAP = of_run(
    LEFT_AT_KILL.name,
    lambda c: not (script := script_of(c.process.argv)) or "trap" in script,
    kinds.PROCESS_STARTED,
)
_AT_KILL = every(SHELL, TRAP_ENDS_SHELL, LEFT_AT_KILL, _MAY_HAVE_TRAP)
_TRAP_AT_KILL: Fact[RunSubject] = Fact(
    LEFT_AT_KILL.name,
    lambda s: False if TRAP_WAITS.holds(s) else _AT_KILL(s),
    (*TRAP_ENDS_SHELL.kinds, *LEFT_AT_KILL.kinds, *HANDLED.kinds),
)
"""A shell with a trap that would end it, or pass the signal on, still ran at SIGKILL: it may well have passed it on."""


def shell_between(c: ContainerEnding) -> ProcessAtStop | None:
    """Return the shell below a PID 1 that is none, on which the stop signal has its default action, and below which all
    processes were that PID 1 left behind: none of them can get the signal through it."""
    there = {each.container_pid: each for each in c.seen.processes_at_stop}
    older, found = older_processes(c), set()
    for each in older:
        pid = each.container_pid
        while pid in there and not _keeps_signal(there[pid]):
            pid = there[pid].parent
        found.add(pid)
    shell = there.get(found.pop()) if len(found) == 1 else None
    alone = shell is not None and all(each.container_pid == shell.container_pid for each in older)
    left = c.seen.processes_left
    return None if alone or left is None or left.more else shell


def _keeps_signal(process: ProcessAtStop) -> bool:
    return process.name in SHELLS and process.disposition == "default"


_SHELL_BETWEEN = of_run(
    LEFT_AT_KILL.name,
    lambda c: shell_between(c) is not None or (False if knows_signal_state(c) else None),
    kinds.PROCESSES_AT_STOP,
    kinds.PROCESSES_LEFT,
)
_DIED_OF_GROUP = of_run(
    CHILD_KILLED.name,
    lambda c: ended_by_group(c) is not None or (False if knows_signal_state(c) else None),
    kinds.PROCESSES_AT_STOP,
    kinds.CHILD_ENDED,
)


def _left(s: RunSubject) -> ProcessesLeft:
    assert s.run.seen.processes_left is not None
    return s.run.seen.processes_left


def _deaf(s: RunSubject) -> Finding:
    """PID 1 is an init: its child got the signal, and does nothing on it."""
    those = [each for each in _left(s).processes if each.deaf and each.child and not each.after_signal]
    return _ignores(s, those, "")


def _waits_for_deaf(s: RunSubject) -> Finding:
    """PID 1 handles the signal, and waited for processes that do nothing on it, no matter who passes it on."""
    return _ignores(s, [each for each in _left(s).processes if each.deaf and not each.after_signal], "waits")


def _ignores(s: RunSubject, deaf: Sequence[ProcessLeft], variant: str) -> Finding:
    c = s.run
    how = said("childIgnoresSignal", deaf[0].disposition, signal=c.stop.signal)
    text = said("childIgnoresSignal", variant, **_facts(c), names=processes(deaf), how=how, seconds=_s(c.drain_seconds))
    advice = fix("childIgnoresSignal", deaf[0].disposition, signal=c.stop.signal, name=deaf[0].name)
    change = Change(program=_HEAR[deaf[0].disposition])
    return Finding("childIgnoresSignal", "problem", text, c.name, advice, change=change)


def _strangers(s: RunSubject) -> Finding:
    """PID 1 is an init: what others got is known of those that the signal would have ended."""
    c, killed = s.run, bool(LEFT_AT_KILL.holds(s))
    missed = [
        each
        for each in _left(s).processes
        if each.disposition == "default" and each.child is False and not each.after_signal
    ]
    to = forwards(c)
    text = said(
        "childrenNotSignalled", to, **_facts(c), names=processes(missed), until=_until(c, killed, len(missed) > 1)
    )
    severity: Severity = "problem" if killed else "warning"
    return Finding("childrenNotSignalled", severity, text, c.name, fix("childrenNotSignalled", to), change=PASS_ON)


def _trap_leaves(s: RunSubject) -> Finding:
    text = said("shellKeepsSignal", "left", **_all(s))
    return Finding("shellKeepsSignal", "warning", text, s.run.name, fix("shellKeepsSignal", "left"), change=PASS_ON)


def _shell(s: RunSubject) -> Finding:
    ended_on_it = s.run.exit.signal == s.run.stop.signal and not ONLY_SLEEPS.holds(s)
    severity: Severity = "problem" if LEFT_AT_KILL.holds(s) else "warning" if ended_on_it else "info"
    text = said("shellKeepsSignal", **_all(s))
    remedy = _shell_remedy(s.run, _left(s))
    return Finding("shellKeepsSignal", severity, text, s.run.name, remedy.advice, change=remedy.change)


def _trap_at_kill(s: RunSubject) -> Finding:
    c, facts = s.run, _all(s)
    older = [each for each in _left(s).processes if not each.after_signal]
    text = said("shellKeepsSignal", "trap", **facts)
    deaf = next((each for each in older if each.deaf), None)
    untold = next((each for each in older if each.disposition == "default"), None)
    if deaf is not None:
        advice = fix("childIgnoresSignal", deaf.disposition, signal=c.stop.signal, name=deaf.name)
    elif untold is not None:
        advice = fix("shellKeepsSignal", "trapOther", signal=c.stop.signal, name=untold.name)
    else:
        advice = fix("shellKeepsSignal", "trap", signal=c.stop.signal)
    return Finding("shellKeepsSignal", "problem", text, c.name, advice, change=PASS_ON)


def _children(s: RunSubject) -> Finding:
    severity: Severity = "problem" if LEFT_AT_KILL.holds(s) else "warning"
    text = said("childrenNotSignalled", **_all(s))
    return Finding("childrenNotSignalled", severity, text, s.run.name, fix("childrenNotSignalled"), change=PASS_ON)


def _below_a_shell(s: RunSubject) -> Finding:
    """PID 1 may have passed the signal on to the shell, which ends on it, or waits for its command."""
    c, shell = s.run, shell_between(s.run)
    assert shell is not None
    those = [each for each in older_processes(c) if each.container_pid != shell.container_pid]
    killed = bool(LEFT_AT_KILL.holds(s))
    facts = {**_facts(c), "shell": process(shell), "names": processes(those)}
    text = said("childrenNotSignalled", "shell", **facts, until=_until(c, killed, len(those) > 1))
    severity: Severity = "problem" if killed else "warning"
    advice = fix("childrenNotSignalled", "shell", signal=c.stop.signal)
    return Finding("childrenNotSignalled", severity, text, c.name, advice, change=Change(program="useExec"))


def _children_that_handle(s: RunSubject) -> Finding:
    """PID 1 may have passed the signal on, and killed them itself when its own timeout was over."""
    c, killed, several = s.run, bool(LEFT_AT_KILL.holds(s)), len(older_processes(s.run)) > 1
    facts = {**_facts(c), "names": processes(older_processes(c)), "until": _until(c, killed, several, handled=True)}
    text = said("childrenNotSignalled", "handleIt" if several else "handles", **facts)
    severity: Severity = "problem" if killed else "warning"
    advice = fix("childrenNotSignalled", "handlesAtKill" if killed else "handles")
    return Finding("childrenNotSignalled", severity, text, c.name, advice, change=PASS_ON)


def _killed_inside(s: RunSubject) -> Finding:
    """Its grace period was not over: the sender of SIGKILL was in the container."""
    c, those = s.run, killed_children(s.run)
    after = _s(those[0].at - (c.stop.signal_at or 0.0))
    text = said("childKilledInside", **_facts(c), names=processes(those), after=after)
    remedy = Change(program="raiseOwnTimeout")
    return Finding("childKilledInside", "warning", text, c.name, fix("childKilledInside"), change=remedy)


def ended_by_group(c: ContainerEnding) -> tuple[ProcessAtStop, list[ChildEnd]] | None:
    """Return a process that handles the stop signal, and its children that died of it, as PID 1 sends it to all of
    their process group. A shell's children are what it waits for: it lets nobody finish."""
    there = {each.container_pid: each for each in c.seen.processes_at_stop}
    for parent in there.values() if forwards(c) == "group" else ():
        ends = [
            each
            for each in c.seen.children_ended
            if each.signal == c.stop.signal and each.disposition == "default" and each.container_pid in there
            and there[each.container_pid].parent == parent.container_pid
        ]  # fmt: skip
        if ends and parent.disposition == "handled" and parent.name not in SHELLS:
            return parent, ends
    return None


def _group(s: RunSubject) -> Finding:
    """Whether they had work in hand nobody saw."""
    c, found = s.run, ended_by_group(s.run)
    assert found is not None
    parent, ends = found
    facts = {"signal": c.stop.signal, "parent": process(parent)}
    after = _s(max(0.0, ends[0].at - (c.stop.signal_at or 0.0)))
    text = said("signalEndsPool", container=c.name, by_name=by_name(c), names=processes(ends), after=after, **facts)
    advice = fix("signalEndsPool", parent=facts["parent"])
    return Finding("signalEndsPool", "info", text, c.name, advice, change=Change(program="signalChildAlone"))


def _zombies(s: RunSubject) -> Finding:
    """Children that had ended and that nobody waited for."""
    left = _left(s)
    count = tell("a child that had ended")
    if left.zombies > 1:
        count = tell("$count children that had ended", count=left.zombies)
    text = said("zombies", **_facts(s.run), count=count)
    reaper = Change(patch={"shareProcessNamespace": True}, program="reapChildren")
    return Finding("zombies", "info", text, s.run.name, fix("zombies"), change=reaper)


ROWS = (
    Row("signalEndsPool", (SIGNALLED, _DIED_OF_GROUP), _group),
    Row("childKilledInside", (SIGNALLED, CHILD_KILLED), _killed_inside, refuted_by=(OOM_COUNTED,)),
    Row(
        "childIgnoresSignal",
        (SIGNALLED, FORWARDS, OLDER_PROCESSES, DEAF_CHILD, LEFT_AT_KILL),
        _deaf,
        answers=WHY_NOT_ENDED,
    ),
    Row(
        "childIgnoresSignal",
        (SIGNALLED, HANDLED, NO_SHELL, ALL_DEAF, LEFT_AT_KILL),
        _waits_for_deaf,
        refuted_by=(FORWARDS,),
        variant="waits",
        answers=WHY_NOT_ENDED,
    ),
    Row(
        "childrenNotSignalled",
        (SIGNALLED, FORWARDS, OLDER_PROCESSES, STRANGER),
        _strangers,
        refuted_by=(_SHELL_BETWEEN,),
        variant="init",
    ),
    Row(
        "childrenNotSignalled",
        (SIGNALLED, NO_SHELL, _SHELL_BETWEEN),
        _below_a_shell,
        refuted_by=(ALL_DEAF,),
        variant="shell",
        answers=WHY_NOT_ENDED,
    ),
    Row(
        "shellKeepsSignal",
        (SIGNALLED, SHELL, OLDER_PROCESSES, _TRAP_LEAVES_CHILDREN),
        _trap_leaves,
        refuted_by=(FORWARDS, ONLY_SLEEPS),
        variant="left",
    ),
    Row(
        "shellKeepsSignal",
        (SIGNALLED, SHELL, OLDER_PROCESSES),
        _shell,
        refuted_by=(FORWARDS, _TRAP_LEAVES_CHILDREN, _TRAP_ENDED_WELL, TRAP_WAITS, _TRAP_AT_KILL, _ENDED_IN_SLEEP),
        answers=WHY_NOT_ENDED,
    ),
    Row(
        "shellKeepsSignal",
        (SIGNALLED, OLDER_PROCESSES, _TRAP_AT_KILL),
        _trap_at_kill,
        refuted_by=(FORWARDS,),
        variant="trap",
        answers=WHY_NOT_ENDED,
    ),
    Row(
        "childrenNotSignalled",
        (SIGNALLED, NO_SHELL, OLDER_PROCESSES),
        _children,
        refuted_by=(FORWARDS, ALL_DEAF, _MAY_BE_PASSED_ON, _SHELL_BETWEEN),
        answers=WHY_NOT_ENDED,
    ),
    Row(
        "childrenNotSignalled",
        (SIGNALLED, NO_SHELL, HANDLED, ALL_HANDLE),
        _children_that_handle,
        refuted_by=(FORWARDS, _SHELL_BETWEEN, STOPPED_IN_TURN),
        variant="handles",
        answers=WHY_NOT_ENDED,
    ),
)
ZOMBIE_ROWS = (Row("zombies", (ZOMBIES,), _zombies, refuted_by=(FORWARDS,)),)


# -- advice and words ------------------------------------------------------------------------------------------------


def _shell_remedy(c: ContainerEnding, left: ProcessesLeft) -> Remedy:
    """Return what lets the signal reach the program, and what is needed beside that if it ignores or blocks it."""
    missed = [each for each in left.processes if each.child and not each.after_signal]
    remedy = _way_of_the_signal(c, missed)
    deaf = next((each for each in missed if each.deaf), None)
    if deaf is None or not remedy.advice:
        return remedy
    alone = fix("shellKeepsSignal", deaf.disposition, name=deaf.name, signal=c.stop.signal)
    return in_program(joined([remedy.advice, alone]), _HEAR[deaf.disposition])


def _way_of_the_signal(c: ContainerEnding, missed: Sequence[ProcessLeft]) -> Remedy:
    """Return the same command with `exec`, so that the program takes the shell's place, or what else is needed."""
    script, shape = script_of(c.process.argv), shape_of(script_of(c.process.argv))
    if missed and {c.process.disposition, *(each.disposition for each in missed)} == {"default"}:
        advice = fix("shellKeepsSignal", "noHandler", name=missed[0].name, signal=c.stop.signal)
        return in_pod(advice, shareProcessNamespace=True)
    if shape == "plain" and len(c.process.argv) == 3 and not script.startswith("exec "):
        advice = fix("shellKeepsSignal", "command", command=f'["{c.process.argv[0]}", "-c", "exec {script}"]')
        return in_container(advice, c.name, c.kind, command=[c.process.argv[0], "-c", f"exec {script}"], args=None)
    if shape == "pipeline":
        return in_program(pipeline_fix(c.process.argv), "useExec")
    if shape == "loop" and not c.exit.sigkilled:
        return NOTHING  # it ends on the signal, as it should
    if shape in ("jobs", "loop"):
        return in_program(fix("shellKeepsSignal", shape), "passSignalOn")
    if not shape and len(missed) > 1:
        return in_program(fix("shellKeepsSignal", "several"), "passSignalOn")
    place = place_of(script, missed[0].name) if len(missed) == 1 else ""
    facts = {"name": missed[0].name} if place == "before" else {}
    return in_program(fix("shellKeepsSignal", place, **facts), "useExec")


def _facts(c: ContainerEnding) -> Mapping[str, object]:
    return {"container": c.name, "main": number_of(c), "by_name": by_name(c), "signal": c.stop.signal}


def _all(s: RunSubject) -> Mapping[str, object]:
    left = _left(s)
    names, several = processes(left.processes, left.more), left.alive > 1
    until = _until(s.run, bool(LEFT_AT_KILL.holds(s)), several)
    return {**_facts(s.run), "names": names, "until": until, "untold": _never_got_it(s.run, left)}


def _never_got_it(c: ContainerEnding, left: ProcessesLeft) -> str:
    missed = [each for each in left.processes if each.disposition == "default" and not each.after_signal]
    if len(missed) != left.alive:
        return ""
    if left.alive > 1:
        return tell(", so they never got $signal (inferred)", signal=c.stop.signal)
    return tell(", so it never got $signal (inferred)", signal=c.stop.signal)


def _until(c: ContainerEnding, killed: bool, several: bool, *, handled: bool = False) -> str:
    """Return what became of processes that PID 1 had not signalled, or not as far as is known: then it may have killed
    them itself.

    (pid_namespaces(7): the kernel ends a namespace with its PID 1; containerd's shim ends what a container whose PID
    namespace is shared leaves behind, `ShouldKillAllOnExit`)
    """
    if killed:
        return tell("still ran at SIGKILL")
    if handled and several:
        return tell("were ended by SIGKILL when PID 1 ended, or right before")
    if handled:
        return tell("was ended by SIGKILL when PID 1 ended, or right before")
    if c.process.container_pid != 1:
        return tell("were killed with it by the runtime") if several else tell("was killed with it by the runtime")
    if several:
        return tell("were killed with it by the kernel when PID 1 ended")
    return tell("was killed with it by the kernel when PID 1 ended")
