"""What only the node could see of a container's end, from its records. Pure.

The shapes are in `endings/node_facts.py`.
"""

# check: pure

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.endings.node_facts import (
    AtExit,
    ChildEnd,
    FirstReaction,
    Listener,
    ListenerClosed,
    Peer,
    PodListener,
    ProcessAtStop,
    ProcessesLeft,
    ProcessLeft,
    ProcessWaiting,
    Reaction,
    Sockets,
    ThreadsWaiting,
    WaitsAtKill,
)
from lastcall.endings.story import Entry
from lastcall.records import kinds

if TYPE_CHECKING:
    from lastcall.records.definitions import parts
    from lastcall.records.definitions.runtime import ProcessExited
    from lastcall.records.definitions.witness import SocketsAtExit, SocketsAtStop


def sockets_of(entries: Sequence[Entry], term_at: float | None) -> Sockets | None:
    """Return what became of a container's sockets; None when it had none, or nobody looked."""
    by_kind: dict[str, Entry] = {entry.record.kind: entry for entry in entries}
    stop, end = by_kind.get(kinds.SOCKETS_AT_STOP), by_kind.get(kinds.SOCKETS_AT_EXIT)
    if stop is None and end is None:
        return None
    last = end.facts_as(kinds.SOCKETS_AT_EXIT) if end else None
    facts: SocketsAtStop | SocketsAtExit | None = stop.facts_as(kinds.SOCKETS_AT_STOP) if stop else last
    first = stop or end
    assert facts is not None
    assert first is not None
    drained = by_kind.get(kinds.CONNECTIONS_CLOSED)
    zero = term_at if term_at is not None else first.at
    return Sockets(
        listeners=_listeners(facts),
        connections=_number(facts.get("connections")),
        scope=str(facts.get("scope") or "container"),
        closed=tuple(
            ListenerClosed(
                str(closed.get("address") or ""),
                _number(closed.get("port")),
                zero + float(closed.get("seconds") or 0.0),
                zero + float(closed.get("notBefore") or 0.0),
            )
            for closed in (
                entry.facts_as(kinds.LISTENER_CLOSED) for entry in entries if entry.record.kind == kinds.LISTENER_CLOSED
            )
        ),
        connections_closed_at=zero + float(drained.facts_as(kinds.CONNECTIONS_CLOSED).get("seconds") or 0.0)
        if drained
        else None,
        at_exit=_at_exit(last) if last else None,
    )


def closed_in_hook_of(entries: Sequence[Entry]) -> tuple[ListenerClosed, ...]:
    """Return the ports that a container closed while its preStop hook ran."""
    found = ((each.at, each.facts_as(kinds.LISTENER_CLOSED_IN_HOOK)) for each in entries
             if each.record.kind == kinds.LISTENER_CLOSED_IN_HOOK)  # fmt: skip
    return tuple(
        ListenerClosed(
            str(closed.get("address") or ""),
            _number(closed.get("port")),
            at,
            at - float(closed.get("seconds") or 0.0) + float(closed.get("notBefore") or 0.0),
        )
        for at, closed in found
    )


def _seconds_of(drained: Entry) -> float:
    return float(drained.facts_as(kinds.CONNECTIONS_CLOSED).get("seconds") or 0.0)


def _at_exit(facts: "SocketsAtExit") -> AtExit:
    return AtExit(
        listeners=_listeners(facts),
        connections=_number(facts.get("connections")),
        unread=_number(facts.get("unread")),
        unread_bytes=_number(facts.get("unreadBytes")),
        backlog=_number(facts.get("backlog")),
        resets=_number(facts.get("resets")),
        closed_unread=_number(facts.get("closedUnread")),
        seconds_before=float(facts.get("secondsBefore") or 0.0),
        peers=tuple(
            Peer(
                str(each.get("address") or ""),
                _number(each.get("port")),
                each.get("accepted") is not False,
                _number(each.get("unreadBytes")),
                _number(each.get("ownPort")),
            )
            for each in facts.get("peers") or ()
        ),
    )


def _listeners(facts: "SocketsAtStop | SocketsAtExit") -> tuple[Listener, ...]:
    return tuple(
        Listener(str(each.get("address") or ""), _number(each.get("port")), _number(each.get("backlog")))
        for each in facts.get("listeners") or ()
    )


def pod_listeners_of(facts: "ProcessExited") -> tuple[PodListener, ...] | None:
    """Return who listened in the Pod right after a crash; None when nobody looked."""
    found = facts.get("podListeners")
    if found is None:
        return None
    return tuple(
        PodListener(str(each.get("address") or ""), _number(each.get("port")), str(each.get("container") or ""))
        for each in found
    )


def refused_in_pod_of(facts: "ProcessExited") -> bool | None:
    """Return whether the Pod itself refused its connections before a crash; None when that is unclear.

    The namespace that owns a port without a listener answers with a reset, over loopback where the program is in the
    same Pod. If fewer resets were sent than attempts failed, at least one was refused elsewhere.
    """
    counts = facts.get("podResets")
    if counts is None:
        return None
    sent, failed = _number(counts.get("sent")), _number(counts.get("attemptsFailed"))
    loopback = _number(counts.get("loopbackPackets"))
    if not sent or not loopback:
        return False
    answered = sent - _number(counts.get("aborted"))
    return True if answered >= failed > 0 and loopback >= 2 * failed else None


def processes_at_stop_of(entries: Sequence[Entry]) -> tuple[ProcessAtStop, ...]:
    """Return the processes beside PID 1 that ran at the stop signal; none when nobody looked."""
    found = next((e for e in entries if e.record.kind == kinds.PROCESSES_AT_STOP), None)
    facts = found.facts_as(kinds.PROCESSES_AT_STOP) if found else None
    return tuple(
        ProcessAtStop(
            _number(each.get("containerPid")),
            _number(each.get("parent")),
            str(each.get("name") or ""),
            str(each.get("disposition") or ""),
        )
        for each in (facts.get("processes") if facts else None) or ()
    )


def waits_of(entries: Sequence[Entry]) -> WaitsAtKill | None:
    """Return what a container waited for when SIGKILL came; None when that was not sent, or nobody looked."""
    found = next((e for e in reversed(entries) if e.record.kind == kinds.WAITS_AT_KILL), None)
    if found is None:
        return None
    facts = found.facts_as(kinds.WAITS_AT_KILL)
    processes = tuple(
        ProcessWaiting(
            _number(each.get("containerPid")),
            str(each.get("name") or ""),
            tuple(_threads_waiting(wait) for wait in each.get("waits") or ()),
            bool(each.get("afterSignal")),
            tuple(str(name) for name in each["caught"]) if "caught" in each else None,
        )
        for each in facts.get("processes") or ()
    )
    return WaitsAtKill(
        float(facts.get("seconds") or 0.0),
        float(facts.get("cpuSeconds") or 0.0),
        processes,
        facts.get("switches"),
    )


def _threads_waiting(facts: "parts.ThreadsWaiting") -> ThreadsWaiting:
    return ThreadsWaiting(
        str(facts.get("call") or ""),
        _number(facts.get("threads")),
        facts.get("limited"),
        bool(facts.get("own")),
        facts.get("wakesIn"),
    )


def processes_left_of(entries: Sequence[Entry]) -> ProcessesLeft | None:
    """Return who was left with PID 1; None when nobody was, or nobody looked."""
    found = next((e.record for e in reversed(entries) if e.record.kind == kinds.PROCESSES_LEFT), None)
    if found is None:
        return None
    facts = found.facts_as(kinds.PROCESSES_LEFT)
    processes = tuple(
        ProcessLeft(
            _number(each.get("pid")),
            _number(each.get("containerPid")),
            str(each.get("name") or ""),
            str(each.get("disposition") or ""),
            bool(each.get("afterSignal")),
            each.get("child"),
        )
        for each in facts.get("processes") or ()
    )
    more, zombies = _number(facts.get("more")), _number(facts.get("zombies"))
    return ProcessesLeft(str(facts.get("when") or "exit"), found.evidence, processes, more, zombies)


def children_ended_of(entries: Sequence[Entry]) -> tuple[ChildEnd, ...]:
    """Return the processes beside PID 1 that ended while it lived."""
    ends = ((e.at, e.facts_as(kinds.CHILD_ENDED)) for e in entries if e.record.kind == kinds.CHILD_ENDED)
    return tuple(
        ChildEnd(
            container_pid=_number(each.get("containerPid")),
            name=str(each.get("name") or ""),
            at=at - float(each.get("secondsBefore") or 0.0),
            disposition=str(each.get("disposition") or ""),
            exit_code=each.get("exitCode"),
            signal=each.get("signal"),
        )
        for at, each in ends
    )


def first_reaction_of(entries: Sequence[Entry], term_at: float | None, exited_at: float | None) -> FirstReaction | None:
    """Return what the program was first seen to do about the stop signal; None if it did nothing, or none was sent."""
    if term_at is None:
        return None
    found: list[tuple[float, Reaction]] = []
    for entry in entries:
        kind = entry.record.kind
        if kind == kinds.OUTPUT and entry.at >= term_at:
            found.append((entry.at - term_at, "output"))
        elif kind == kinds.LISTENER_CLOSED:
            closed = entry.facts_as(kinds.LISTENER_CLOSED)
            found.append((float(closed.get("seconds") or 0.0), "listenerClosed"))
        elif kind == kinds.CONNECTIONS_CLOSED:
            found.append((_seconds_of(entry), "connectionsClosed"))
    if exited_at is not None and exited_at >= term_at:
        found.append((exited_at - term_at, "exit"))
    if not found:
        return None
    seconds, what = min(found)
    return FirstReaction(what, seconds)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
