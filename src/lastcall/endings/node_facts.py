"""What only the node could see of a container's end: who was left, what became of its sockets, what it did first. Pure.

Every fact may be missing: a Pod with hostNetwork has no sockets of its own, and another runtime tells nothing of these.
"""

# check: pure

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lastcall.records import kinds
from lastcall.records.record import Evidence

if TYPE_CHECKING:
    from lastcall.endings.story import Entry
    from lastcall.records.definitions.witness import SocketsAtExit, SocketsAtStop

Reaction = Literal["output", "listenerClosed", "connectionsClosed", "exit"]


@dataclass(frozen=True, slots=True)
class ProcessLeft:
    """`container_pid` is its number inside; `disposition` what it would do with the stop signal; `after_signal` whether
    it was begun only after that signal; `child` whether PID 1 is its parent (None: not known)."""

    pid: int
    container_pid: int
    name: str
    disposition: str
    after_signal: bool = False
    child: bool | None = None

    @property
    def deaf(self) -> bool:
        return self.disposition in ("ignored", "blocked")


@dataclass(frozen=True, slots=True)
class ProcessesLeft:
    """Other processes of a container that lived right before it was killed (`when` SIGKILL), or that the kernel killed
    when PID 1 exited (exit). `more` were too many to tell; `zombies` had ended already."""

    when: str
    evidence: Evidence
    processes: tuple[ProcessLeft, ...] = ()
    more: int = 0
    zombies: int = 0

    @property
    def alive(self) -> int:
        return len(self.processes) + self.more


@dataclass(frozen=True, slots=True)
class Listener:
    """`backlog`: connections that the kernel had accepted and the program had not."""

    address: str
    port: int
    backlog: int = 0


@dataclass(frozen=True, slots=True)
class ListenerClosed:
    """Between `not_before` and `at`, in the story's seconds."""

    address: str
    port: int
    at: float
    not_before: float


@dataclass(frozen=True, slots=True)
class AtExit:
    """Right before the exit (`seconds_before` it), except `resets`: connections cut by a reset with the exit, and
    `closed_unread`: those closed since the stop signal with data that the program never read."""

    listeners: tuple[Listener, ...]
    connections: int
    unread: int
    unread_bytes: int
    backlog: int
    resets: int
    closed_unread: int
    seconds_before: float


@dataclass(frozen=True, slots=True)
class Sockets:
    """`connections` at the stop signal, of either direction; with `scope` pod those of all its containers."""

    listeners: tuple[Listener, ...]
    connections: int
    scope: str
    closed: tuple[ListenerClosed, ...] = ()
    connections_closed_at: float | None = None
    at_exit: AtExit | None = None


@dataclass(frozen=True, slots=True)
class FirstReaction:
    """The first thing that was seen of the program after the stop signal, `seconds` after it."""

    what: Reaction
    seconds: float


def sockets_of(entries: "Sequence[Entry]", term_at: float | None) -> Sockets | None:
    """What became of a container's sockets; None when it had none, or nobody looked."""
    by_kind: dict[str, Entry] = {entry.record.kind: entry for entry in entries}
    stop, end = by_kind.get(kinds.SOCKETS_AT_STOP), by_kind.get(kinds.SOCKETS_AT_EXIT)
    if stop is None and end is None:
        return None
    last = end.told(kinds.SOCKETS_AT_EXIT) if end else None
    facts: SocketsAtStop | SocketsAtExit | None = stop.told(kinds.SOCKETS_AT_STOP) if stop else last
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
                entry.told(kinds.LISTENER_CLOSED) for entry in entries if entry.record.kind == kinds.LISTENER_CLOSED
            )
        ),
        connections_closed_at=zero + float(drained.told(kinds.CONNECTIONS_CLOSED).get("seconds") or 0.0)
        if drained
        else None,
        at_exit=_at_exit(last) if last else None,
    )


def _seconds_of(drained: "Entry") -> float:
    return float(drained.told(kinds.CONNECTIONS_CLOSED).get("seconds") or 0.0)


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
    )


def _listeners(facts: "SocketsAtStop | SocketsAtExit") -> tuple[Listener, ...]:
    return tuple(
        Listener(str(each.get("address") or ""), _number(each.get("port")), _number(each.get("backlog")))
        for each in facts.get("listeners") or ()
    )


def processes_left_of(entries: "Sequence[Entry]") -> ProcessesLeft | None:
    """Who was left with PID 1; None when nobody was, or nobody looked."""
    found = next((e.record for e in reversed(entries) if e.record.kind == kinds.PROCESSES_LEFT), None)
    if found is None:
        return None
    facts = found.told(kinds.PROCESSES_LEFT)
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


def first_reaction_of(
    entries: "Sequence[Entry]", term_at: float | None, exited_at: float | None
) -> FirstReaction | None:
    """What the program was first seen to do about the stop signal; None when that was not sent, or nothing was seen."""
    if term_at is None:
        return None
    found: list[tuple[float, Reaction]] = []
    for entry in entries:
        kind = entry.record.kind
        if kind == kinds.OUTPUT and entry.at >= term_at:
            found.append((entry.at - term_at, "output"))
        elif kind == kinds.LISTENER_CLOSED:
            closed = entry.told(kinds.LISTENER_CLOSED)
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
