"""Rows that answer: why 137? Pure."""

# check: pure

import math
from dataclasses import replace

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.pid1 import is_shell
from lastcall.endings.findings.changes import NOTHING, Remedy, container_change, in_pod, in_program
from lastcall.endings.findings.in_turn import stopped_in_turn
from lastcall.endings.findings.observed import (
    BY_PROBE,
    ENDED,
    GRACE_OVER,
    HANDLED,
    KILLED,
    LOCKED,
    NEW_PROCESSES,
    NOT_KILLED,
    OOM_COUNTED,
    OUT_OF_MEMORY,
    STILL_LISTENED,
    knows_signal_state,
    of_run,
    once_ended,
    open_connections,
)
from lastcall.endings.findings.refused_signals import needs_refused_signal
from lastcall.endings.findings.restarts import times_and_when
from lastcall.endings.findings.sidecar_connections import HELD_BY_SIDECAR
from lastcall.endings.findings.sockets import waiting_for_a_stuck_program
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row, judge
from lastcall.endings.findings.waiting_inside import Wait, kind_of_wait, remedy_of_wait, wakes_in
from lastcall.endings.findings.words import at, exit_code, listed, process, processes
from lastcall.endings.findings.words import connections as _connections
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.node_facts import ProcessesLeft
from lastcall.endings.story import PAUSE_ENDED, Change, ContainerEnding, Finding
from lastcall.records import kinds
from lastcall.records.said import joined, tell

_UNKNOWN_SENDER = of_run(GRACE_OVER.name, once_ended(lambda c: c.exit.killed_by == "unknown sender"), kinds.SIGNAL_SENT)
_PAUSE_ENDED = of_run(GRACE_OVER.name, once_ended(lambda c: c.exit.killed_by == PAUSE_ENDED), kinds.PAUSE_ENDED)
_CODE_137 = of_run(
    "its exit code", once_ended(lambda c: c.exit.code == 137 and c.exit.signal is None), kinds.PROCESS_EXITED
)


DEFAULT_GRACE_SECONDS = 30
"""What a Pod has that states none. How long a program needs that was killed nobody has seen: so much at least costs
nothing, as it ends when it is done."""


def _when_killed(c: ContainerEnding) -> str:
    moment = c.stop.kill_at if c.stop.kill_at is not None else c.exit.at
    if c.exit.at is not None and c.exit.before_delete:
        moment = c.exit.at
    return at(moment) if moment is not None else ""


def _by_other(s: RunSubject) -> Finding:
    c = s.run
    text = said("killedByOther", "status" if c.exit.from_status else "", container=c.name, when=_when_killed(c))
    change = Change(program="stopKilling")
    return Finding("killedByOther", "problem", text, c.name, fix("killedByOther"), change=change)


def _by_pause(s: RunSubject) -> Finding:
    inferred = all(entry.record.evidence == "inferred" for entry in s.entries((kinds.PAUSE_ENDED,)))
    text = said("pauseEnded", "inferred" if inferred else "", container=s.run.name, when=_when_killed(s.run))
    change = Change(program="stopKilling")
    return Finding("pauseEnded", "problem", text, s.run.name, fix("pauseEnded"), change=change)


def _time_over(s: RunSubject) -> Finding:
    c, when = s.run, _when_killed(s.run)
    if c.stop.signal_at is None or c.stop.timeout is None:
        text = said("killed", "timeOver", container=c.name, when=when)
    else:
        facts = {"container": c.name, "when": when, "timeout": f"{c.stop.timeout:g}", "signal": c.stop.signal}
        if c.hook and c.stop.deducted:
            text = said("killed", "hookTookTime", **facts, hook=_s(c.hook.seconds))
        else:
            text = said("killed", "stillRan", **facts)
    remedy = _time_remedy(s)
    return Finding("killed", "problem", text, c.name, remedy.advice, change=remedy.change)


def _time_remedy(s: RunSubject) -> Remedy:
    """Return what to do about a PID 1 that handles its stop signal and still ran when its time was over."""
    c, ending = s.run, s.ending
    left = c.seen.processes_left
    if c.process.disposition != "handled":
        return NOTHING
    if left is not None and NEW_PROCESSES.holds(s):
        return _went_on(c, left, ending.grace_seconds, reloads=bool(STILL_LISTENED.holds(s)))
    if _is_said_elsewhere(s):
        return NOTHING
    if ending.pod.holds_connections:
        return in_program(fix("staleConnection"), "closeIdleConnections")
    if ending.pod.holds_streams:
        return in_program(fix("killed", "streams", signal=c.stop.signal), "endStreams")
    if c.hook and c.hook.outcome == "failed":
        return Remedy(fix("killed", "hookFailed"), Change(program="fixHook"))
    if needs_refused_signal(c, ending):
        return Remedy(fix("killed", "hookRefused"), Change(program="fixHook"))
    if waiting := waiting_for_a_stuck_program(c):
        return Remedy(fix("killed", "stuck", connections=_connections(waiting), signal=c.stop.signal))
    if ending.grace_seconds is None:
        return NOTHING
    variant = "hookTookTime" if c.hook and c.stop.deducted else ""
    if open_connections(s) and not _listened_to_the_end(c):
        variant = "connections"
    wait = kind_of_wait(c)
    wanted = max(DEFAULT_GRACE_SECONDS, 2 * ending.grace_seconds)
    if wait is not None and not variant:
        return remedy_of_wait(c, wait, wanted)
    if wait is Wait.SLEEPS and variant == "hookTookTime":
        variant = "hookTookTimeOfSleep"
    facts = {
        "grace": ending.grace_seconds,
        "signal": c.stop.signal,
        "seconds": _s(c.drain_seconds),
        "left": _s(wakes_in(c)),
        "wanted": wanted,
    }
    return in_pod(fix("killed", variant, **facts), terminationGracePeriodSeconds=wanted)


def _is_said_elsewhere(s: RunSubject) -> bool:
    """Return whether another finding says what to do."""
    c, left = s.run, s.run.seen.processes_left
    if left is not None and left.alive and is_shell(c):
        return True
    if left is not None and any(each.deaf and not each.after_signal for each in left.processes):
        return True  # childIgnoresSignal
    # hookOutlived; deadlocked; sidecarHoldsConnection
    return bool(c.stop.floor or LOCKED.holds(s) or HELD_BY_SIDECAR.holds(s))


def _went_on(c: ContainerEnding, left: ProcessesLeft, grace: int | None, *, reloads: bool) -> Remedy:
    """Return what to do about a PID 1 that only began other processes on its stop signal."""
    if reloads or grace is None:
        return NOTHING  # reloadsOnSignal says it: no time is long enough
    names = processes(left.processes[:4])
    return in_program(fix("killed", "wentOn", names=names, signal=c.stop.signal, grace=grace), "endOnStopSignal")


def _listened_to_the_end(c: ContainerEnding) -> bool:
    end = c.seen.sockets.at_exit if c.seen.sockets else None
    return end is not None and bool(end.listeners)


def _in_turn(s: RunSubject) -> Finding:
    """Programs of one parent ended seconds apart until the time was over: it may have stopped them one after another,
    or some of them take longer."""
    c, found, grace = s.run, stopped_in_turn(s.run), s.ending.grace_seconds
    assert found is not None
    assert grace is not None
    signalled = c.stop.signal_at or 0.0
    ended = [said("killed", "endedAfter", who=process(e), after=_s(e.at - signalled)) for e in found.ended[:4]]
    if more := len(found.ended) - len(ended):
        ended.append(tell("$count more", count=more))
    facts = {"parent": found.parent, "signal": c.stop.signal, "ended": listed(ended), "names": processes(found.left)}
    finding = _time_over(s)
    wanted = grace + math.ceil(found.needed - c.drain_seconds)
    advice = fix(
        "killed",
        "inTurn",
        **facts,
        each=_s(found.longest),
        needed=_s(found.needed),
        grace=wanted,
        seconds=_s(c.drain_seconds),
    )
    change = Change({"terminationGracePeriodSeconds": max(DEFAULT_GRACE_SECONDS, 2 * wanted)})
    return replace(
        finding, text=joined([finding.text, said("killed", "inTurn", **facts)]), advice=advice, change=change
    )


def _ends_apart(s: RunSubject) -> bool | None:
    if s.ending.grace_seconds is not None and stopped_in_turn(s.run) is not None:
        return True
    return False if knows_signal_state(s.run) else None


def _waits_for_something_else(s: RunSubject) -> bool:
    """Return whether more is known of why it was not done in time."""
    c = s.run
    hook_failed = c.hook is not None and c.hook.outcome == "failed"
    hook_failed = hook_failed or needs_refused_signal(c, s.ending)
    known = LOCKED.holds(s) or HELD_BY_SIDECAR.holds(s) or c.stop.floor or hook_failed
    pod = s.ending.pod
    return bool(known or pod.holds_connections or pod.holds_streams or waiting_for_a_stuck_program(c))


def _for_another_reason(s: RunSubject) -> Finding:
    c = s.run
    why = tell("the shim died") if c.exit.killed_by == "the shim died" else c.exit.killed_by
    text = said("killed", "other", container=c.name, when=_when_killed(c), why=why)
    return Finding("killed", "problem", text, c.name)


def _out_of_memory(s: RunSubject) -> Finding:
    """The kernel's counter has moved: PID 1 was killed for it."""
    c, limit = s.run, _bytes(s.run.seen.memory_limit)
    ranged = c.seen.limit_reached is True and any(
        each.memory_by_range for each in s.ending.pod.containers if each.name == c.name
    )
    group = said("outOfMemory", "limitRange" if ranged and c.seen.memory_limit else _whose_memory(c), limit=limit)
    seen = said("outOfMemory", "counted" if c.seen.oom_kills else "inferred")
    when = times_and_when(c, s.ending) or ("" if c.exit.at is None else at(c.exit.at))
    together = said("outOfMemory", "together") if c.seen.ended_together else ""
    others = ""
    if _files_used_it(c):
        others = said("outOfMemory", "files", files=_mebibytes(c.seen.files_in_memory or 0))
    elif _others_used_it(c):
        others = said("outOfMemory", "others", peak=_mebibytes(c.seen.peak_rss or 0))
    text = said("outOfMemory", container=c.name, when=when, group=group, seen=seen, together=together, who=others)
    remedy = _more_memory(c, "outOfMemory")
    if ranged and remedy is not NOTHING and not (_others_used_it(c) or _files_used_it(c)):
        remedy = replace(remedy, advice=fix("outOfMemory", "limitRange", container=c.name, limit=limit))
    return Finding("outOfMemory", "problem", text, c.name, remedy.advice, change=remedy.change)


def _child_out_of_memory(s: RunSubject) -> Finding:
    """The kernel's counter has moved, and PID 1 lived on."""
    c, limit = s.run, _bytes(s.run.seen.memory_limit)
    count = tell("a process") if c.seen.oom_kills == 1 else tell("$count processes", count=c.seen.oom_kills)
    of = tell(" (limit $limit)", limit=limit) if c.seen.memory_limit and c.seen.limit_reached else ""
    end = f"{c.exit.signal}" if c.exit.signal else exit_code(c)
    text = said("childOutOfMemory", container=c.name, count=count, limit=of, end=end)
    remedy = _more_memory(c, "childOutOfMemory")
    return Finding("childOutOfMemory", "problem", text, c.name, remedy.advice, change=remedy.change)


def _whose_memory(c: ContainerEnding) -> str:
    """Return the variant of the sentence: whose memory ran out."""
    if not c.seen.memory_limit:
        return "noLimit"
    return {True: "limit", False: "limitAbove", None: "limitOrAbove"}[c.seen.limit_reached]


def _more_memory(c: ContainerEnding, id_: str) -> Remedy:
    if not c.seen.memory_limit or not c.seen.limit_reached:
        return NOTHING
    advice = fix(id_, "files" if _others_used_it(c) or _files_used_it(c) else "", limit=_bytes(c.seen.memory_limit))
    larger = container_change(c.name, c.kind, resources={"limits": {"memory": str(2 * c.seen.memory_limit)}})
    return Remedy(advice, replace(larger, program="useLessMemory"))


def _others_used_it(c: ContainerEnding) -> bool:
    """Return whether PID 1, also with a child that it waited for, never had more than half of the limit."""
    limit = c.seen.memory_limit if c.seen.limit_reached else None
    return bool(c.seen.peak_rss and limit and c.seen.peak_rss * 2 <= limit)


def _files_used_it(c: ContainerEnding) -> bool:
    """Return whether files in memory were at least half of what the container may have."""
    limit = c.seen.memory_limit if c.seen.limit_reached else None
    return bool(c.seen.files_in_memory and limit and c.seen.files_in_memory * 2 >= limit)


def _own_137(s: RunSubject) -> Finding:
    """137 without a SIGKILL: PID 1 passed on how a child of it ended."""
    c = s.run
    reporter = said("exitCode137OfItsOwn", "shell" if is_shell(c) else "program")
    memory = said("exitCode137OfItsOwn", "memory") if c.seen.oom_kills else ""
    text = said("exitCode137OfItsOwn", container=c.name, reporter=reporter, memory=memory)
    return Finding("exitCode137OfItsOwn", "warning", text, c.name)


_ENDS_APART: Fact[RunSubject] = Fact(
    "how its processes ended",
    _ends_apart,
    (kinds.PROCESSES_AT_STOP, kinds.CHILD_ENDED, kinds.PROCESSES_LEFT),
)
_ELSE: Fact[RunSubject] = Fact("what else it waited for", _waits_for_something_else)
_IN_TURN = Row(
    "killed",
    (KILLED, GRACE_OVER, HANDLED, _ENDS_APART),
    _in_turn,
    refuted_by=(BY_PROBE, OUT_OF_MEMORY, _ELSE),
    variant="inTurn",
)
STOPPED_IN_TURN: Fact[RunSubject] = Fact("when its programs ended", lambda s: judge(_IN_TURN, s)[0], _IN_TURN.kinds)
"""Their sum may be what was too long."""
ROWS = (
    Row("killedByOther", (KILLED, _UNKNOWN_SENDER), _by_other, refuted_by=(BY_PROBE, OUT_OF_MEMORY)),
    Row("pauseEnded", (KILLED, _PAUSE_ENDED), _by_pause, refuted_by=(BY_PROBE, OUT_OF_MEMORY)),
    _IN_TURN,
    Row("killed", (KILLED, GRACE_OVER), _time_over, refuted_by=(BY_PROBE, OUT_OF_MEMORY, STOPPED_IN_TURN)),
    Row(
        "killed",
        (KILLED,),
        _for_another_reason,
        refuted_by=(BY_PROBE, OUT_OF_MEMORY, _UNKNOWN_SENDER, _PAUSE_ENDED, GRACE_OVER),
        variant="other",
    ),
)
MEMORY_ROWS = (
    Row("outOfMemory", (OUT_OF_MEMORY,), _out_of_memory),
    Row("childOutOfMemory", (OOM_COUNTED,), _child_out_of_memory, refuted_by=(OUT_OF_MEMORY,)),
)
CODE_ROWS = (Row("exitCode137OfItsOwn", (ENDED, NOT_KILLED, _CODE_137), _own_137),)


# -- words -----------------------------------------------------------------------------------------------------------


def _mebibytes(value: int) -> str:
    return f"{-(-value >> 20)}Mi"


def _bytes(value: int | None) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)
