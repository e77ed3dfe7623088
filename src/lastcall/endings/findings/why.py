"""Findings that answer the three questions: why does this Pod take so long to end, why 137, why are requests dropped?

Each is a condition on what was seen, a sentence, and the smallest change of the manifest that would help. Pure.
"""

# check: pure

from collections.abc import Iterator

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.pid1 import forwards, is_shell
from lastcall.endings.findings.restarts import times_and_when
from lastcall.endings.findings.words import at as _at
from lastcall.endings.findings.words import connections as _connections
from lastcall.endings.findings.words import exit_code
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import ContainerEnding, Ending, Finding
from lastcall.records.said import joined, tell

_SOON_SECONDS = 1.0
"""An endpoint's change has not reached every proxy and client of a real cluster before this."""


# -- why does it take so long ----------------------------------------------------------------------------------------


def held_by_connections(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """It handles the signal, and was killed while connections were open."""
    sockets = c.seen.sockets
    if not c.exit.sigkilled or c.process.disposition != "handled" or sockets is None or sockets.at_exit is None:
        return
    end = sockets.at_exit
    connections = end.connections - end.backlog  # those in a backlog are the kernel's alone
    if connections <= 0:
        return
    listening = "listening" if end.listeners else ""
    text = said("connectionsOpenAtKill", listening, container=c.name, connections=_connections(connections))
    seconds = ending.grace_seconds
    advice = fix("connectionsOpenAtKill", "grace" if seconds is not None else "", grace=seconds)
    yield Finding("connectionsOpenAtKill", "warning", text, c.name, advice)


def stop_signal_advice(c: ContainerEnding, version: str) -> str:
    """What to do about a PID 1 that does not get the stop signal."""
    if (
        c.process.disposition == "default"
        and is_shell(c)
        and c.seen.processes_left is not None
        and c.seen.processes_left.alive
    ):
        return ""  # not_signalled says it
    if c.process.disposition == "ignored":
        return fix("stopSignalNotHandled", "ignored", signal=c.stop.signal)
    if c.process.disposition == "blocked":
        return fix("stopSignalNotHandled", "blocked", signal=c.stop.signal)
    others = [name for name in ("SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1") if name in c.process.caught]
    if c.process.disposition == "default" and others and not is_shell(c):  # a shell has one for its own use
        return fix("stopSignalNotHandled", "otherSignal", other=others[0])
    if c.process.disposition == "default":
        return fix("stopSignalNotHandled", "default", signal=c.stop.signal)
    return ""


# -- why 137 ---------------------------------------------------------------------------------------------------------


def out_of_memory(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """The kernel's counter has moved: PID 1 was killed for it, or one of its children."""
    limit = _bytes(c.seen.memory_limit)
    if c.exit.killed_by == "out of memory":
        group = said("outOfMemory", "limit" if c.seen.memory_limit else "noLimit", limit=limit)
        seen = said("outOfMemory", "counted" if c.seen.oom_kills else "inferred")
        when = times_and_when(c, ending) or _when(c)
        together = said("outOfMemory", "together") if c.seen.ended_together else ""
        others = said("outOfMemory", "others", peak=_mebibytes(c.seen.peak_rss or 0)) if _others_used_it(c) else ""
        text = said("outOfMemory", container=c.name, when=when, group=group, seen=seen, together=together, who=others)
        advice = fix("outOfMemory", limit=limit) if c.seen.memory_limit else ""
        yield Finding("outOfMemory", "problem", text, c.name, advice)
    elif c.seen.oom_kills:
        count = tell("a process") if c.seen.oom_kills == 1 else tell("$count processes", count=c.seen.oom_kills)
        of = tell(" (limit $limit)", limit=limit) if c.seen.memory_limit else ""
        text = said("childOutOfMemory", container=c.name, count=count, limit=of, end=_end(c))
        advice = fix("childOutOfMemory", limit=limit) if c.seen.memory_limit else ""
        yield Finding("childOutOfMemory", "problem", text, c.name, advice)


def _others_used_it(c: ContainerEnding) -> bool:
    """Whether PID 1, also with a child that it waited for, never had more than half of the limit."""
    return bool(c.seen.peak_rss and c.seen.memory_limit and c.seen.peak_rss * 2 <= c.seen.memory_limit)


def _mebibytes(value: int) -> str:
    return f"{-(-value >> 20)}Mi"


def exit_code_137(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """137 without a SIGKILL: PID 1 passed on how a child of it ended."""
    if c.exit.code != 137 or c.exit.signal is not None or c.exit.at is None:
        return
    reporter = said("exitCode137OfItsOwn", "shell" if is_shell(c) else "program")
    memory = said("exitCode137OfItsOwn", "memory") if c.seen.oom_kills else ""
    text = said("exitCode137OfItsOwn", container=c.name, reporter=reporter, memory=memory)
    yield Finding("exitCode137OfItsOwn", "warning", text, c.name)


def killed_advice(c: ContainerEnding, ending: Ending) -> str:
    """For a PID 1 that handles its stop signal and still ran when its time was over."""
    left = c.seen.processes_left
    if c.process.disposition != "handled" or (left is not None and left.alive and is_shell(c)):
        return ""
    if forwards(c) and left is not None and any(each.deaf and each.child for each in left.processes):
        return ""  # findings_children.not_signalled says it
    if waiting := _waiting_for_a_stuck_program(c):
        return fix("killed", "stuck", connections=_connections(waiting), signal=c.stop.signal)
    if ending.grace_seconds is None:
        return ""
    variant = "hookTookTime" if c.hook and c.stop.deducted else ""
    return fix("killed", variant, grace=ending.grace_seconds)


def _waiting_for_a_stuck_program(c: ContainerEnding) -> int:
    """Connections that a killed program had not accepted although it listened to its end; 0 for one that did accept.

    It had neither closed its port nor gone on to serve: nothing shows that it would have ended with more time.
    """
    end = c.seen.sockets.at_exit if c.seen.sockets else None
    return end.backlog if c.exit.sigkilled and end is not None and end.listeners else 0


# -- why are requests dropped ----------------------------------------------------------------------------------------


def listener_closed_early(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """Its port was closed before, or hardly after, its endpoint turned not ready."""
    closed = _closed_listening_at(c)
    if closed is None or closed[0] < 0:
        return
    at, port, how = closed
    turned = min((each.at for each in ending.endpoints if each.removed or not each.ready), default=None)
    if not ending.endpoints:
        return
    if turned is None or at < turned:
        kind = "listenerClosedBeforeEndpoint"
        later = said(kind, "never") if turned is None else said(kind, "turned", seconds=_s(turned - at))
        text = said(kind, container=c.name, closed=how, at=_s(at), later=later)
        yield Finding("listenerClosedBeforeEndpoint", "warning", text, c.name, _pause_advice(kind, c, port))
    elif at - turned < _SOON_SECONDS and not (c.hook and c.hook.outcome != "skipped"):
        text = said("listenerClosedSoon", container=c.name, closed=how, seconds=_s(at - turned))
        yield Finding("listenerClosedSoon", "info", text, c.name, _pause_advice("listenerClosedSoon", c, port))


def connections_cut(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """Connections that ended with the process: by a reset, with requests unread or never accepted."""
    end = c.seen.sockets.at_exit if c.seen.sockets else None
    if end is None or c.seen.sockets is None or c.exit.at is None:
        return
    whose = tell("The Pod of $container", container=c.name) if c.seen.sockets.scope == "pod" else c.name
    cut = end.connections or end.resets or end.closed_unread
    if end.backlog:
        text = said("backlogNeverAccepted", container=c.name, connections=_connections(end.backlog))
        advice = "" if _waiting_for_a_stuck_program(c) else _pause_advice("backlogNeverAccepted", c, None)
        yield Finding("backlogNeverAccepted", "warning", text, c.name, advice)
    if not cut:
        return
    parts = [said("connectionsCut", "open", whose=whose, connections=_connections(end.connections))]
    if end.resets:
        parts.append(said("connectionsCut", "reset", count=end.resets))
    if end.unread:
        size = tell("1 byte") if end.unread_bytes == 1 else tell("$count bytes", count=end.unread_bytes)
        parts.append(said("connectionsCut", "unread", count=end.unread, bytes=size))
    elif end.closed_unread:
        parts.append(said("connectionsCut", "closedUnread", count=end.closed_unread))
    text = said("connectionsCut", parts=joined(parts, ", "), before=_s(end.seconds_before))
    lost = bool(end.resets or end.unread or end.closed_unread)
    yield Finding("connectionsCut", "warning" if lost else "info", text, c.name, fix("connectionsCut") if lost else "")


def _closed_listening_at(c: ContainerEnding) -> tuple[float, int, str] | None:
    """When its first port was closed, which, and how it is said."""
    sockets = c.seen.sockets
    if sockets is None:
        return None
    if sockets.closed:
        first = min(sockets.closed, key=lambda each: each.at)
        return first.at, first.port, tell("closed its port $port", port=first.port)
    still = sockets.at_exit.listeners if sockets.at_exit else sockets.listeners
    if still and c.exit.at is not None:
        return c.exit.at, still[0].port, tell("ended, and with it its port $port,", port=still[0].port)
    return None


def _pause_advice(kind: str, c: ContainerEnding, port: int | None) -> str:
    if c.hook and c.hook.outcome != "skipped":
        return ""
    while_ = tell(" (port $port stays open while proxies hear of it)", port=port) if port else ""
    return fix(kind, port=while_)


# -- words -----------------------------------------------------------------------------------------------------------


def _when(c: ContainerEnding) -> str:
    return "" if c.exit.at is None else _at(c.exit.at)


def _end(c: ContainerEnding) -> str:
    return f"{c.exit.signal}" if c.exit.signal else exit_code(c)


def _bytes(value: int | None) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)
