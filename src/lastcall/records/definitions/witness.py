"""What the runtime sees of a container's sockets and other processes from its stop signal on."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from lastcall.records.definitions.parts import (
    BetweenLooks,
    Bytes,
    Disposition,
    Listener,
    Peer,
    ProcessAtStop,
    ProcessLeft,
    ProcessWaiting,
    Scope,
    Seconds,
)
from lastcall.records.said import joined, tell
from lastcall.records.sentences import DETAIL, STEP, Facts, Words, row, sentences
from lastcall.records.text import seconds

ACTOR = "runtime"


class SocketsAtStop(TypedDict):
    """The TCP sockets at the stop signal."""

    signal: str
    listeners: list[Listener]
    connections: Annotated[int, "established ones, of either direction"]
    scope: Scope


def _connections_open(count: Any) -> str:
    return tell("1 connection open") if count == 1 else tell("$count connections open", count=count or 0)


def sockets_at_stop(facts: SocketsAtStop) -> Words:
    listeners = facts.get("listeners") or ()
    ports = ", ".join(f"{each.get('address')}:{each.get('port')}" for each in listeners)
    count = _connections_open(facts.get("connections"))
    has = tell("the Pod has $count", count=count) if facts.get("scope") == "pod" else count
    text = joined([tell("listens on $ports", ports=ports) if ports else "", has], "; ")
    waiting = sum(int(each.get("backlog") or 0) for each in listeners)
    return Words(joined([text, tell("$count not accepted", count=waiting)], ", ") if waiting else text)


class ListenerClosed(BetweenLooks):
    """A listener has closed, between two looks."""

    address: str
    port: int


def _between(facts: Facts) -> str:
    late = seconds(facts.get("seconds"))
    if not facts.get("notBefore"):
        return tell("within $late of the stop signal", late=late)
    return tell("$early to $late after the stop signal", early=seconds(facts.get("notBefore")), late=late)


def listener_closed(facts: ListenerClosed) -> Words:
    return Words(tell("closed its port $port, $when", port=facts.get("port"), when=_between(facts)))


class ConnectionsClosed(BetweenLooks):
    """No listener and no connection is left, and the container still runs."""

    scope: Scope


def connections_closed(facts: ConnectionsClosed) -> Words:
    return Words(tell("its last connection is closed, $when", when=_between(facts)))


class SocketsAtExit(TypedDict):
    """The TCP sockets at the last look before the exit, and what ended by a reset since."""

    listeners: list[Listener]
    connections: Annotated[int, "established ones, of either direction"]
    unread: Annotated[int, "connections with data that the program had not read"]
    unreadBytes: Bytes
    backlog: Annotated[int, "connections that the program had not accepted"]
    resets: Annotated[int, "connections that ended by a reset since that look"]
    closedUnread: Annotated[int, "closed with data not read, since the stop signal"]
    secondsBefore: Annotated[Seconds, "age of that look"]
    scope: Scope
    peers: NotRequired[Annotated[list[Peer], "the other sides of connections, those that were listed"]]


def sockets_at_exit(facts: SocketsAtExit) -> Words:
    parts = [tell("ended with $count", count=_connections_open(facts.get("connections")))]
    if facts.get("backlog"):
        parts.append(tell("$count never accepted", count=facts["backlog"]))
    if facts.get("unread"):
        count, amount = facts["unread"], facts.get("unreadBytes")
        parts.append(tell("$count with data not read ($bytes bytes)", count=count, bytes=amount))
    if facts.get("resets"):
        parts.append(tell("$count reset", count=facts["resets"]))
    lost = any(facts.get(key) for key in ("resets", "backlog", "unread"))
    level = STEP if lost or facts.get("connections") else DETAIL
    return Words(joined(parts, ", "), level, "bad" if lost else "")


class ProcessesAtStop(TypedDict):
    """The processes beside PID 1 that ran when the stop signal was sent, or, on a node that is only watched, when the
    end of the Pod began."""

    signal: str
    processes: list[ProcessAtStop]
    more: Annotated[int, "processes that are not listed"]


def _meets(disposition: Any, signal: Any) -> str:
    if disposition == "handled":
        return tell("handles $signal", signal=signal)
    if disposition == "ignored":
        return tell("ignores $signal", signal=signal)
    if disposition == "blocked":
        return tell("blocks $signal", signal=signal)
    return tell("has no handler for $signal", signal=signal)


def processes_at_stop(facts: ProcessesAtStop) -> Words:
    parts: list[str] = []
    for each in facts.get("processes") or ():
        does = _meets(each.get("disposition"), facts.get("signal"))
        who = {"name": each.get("name"), "pid": each.get("containerPid"), "parent": each.get("parent"), "does": does}
        parts.append(tell("$name (pid $pid, child of $parent) $does", **who))
    if facts.get("more"):
        parts.append(tell("$count more", count=facts["more"]))
    return Words(tell("beside PID 1: $processes", processes=joined(parts, ", ")))


class WaitsAtKill(TypedDict):
    """What the processes of a container did from the stop signal until SIGKILL."""

    signal: str
    seconds: Annotated[Seconds, "since the stop signal"]
    cpuSeconds: Annotated[Seconds, "CPU time in that time, of PID 1 and the processes beside it"]
    idleSeconds: Annotated[Seconds, "for how long none of it had been used"]
    processes: Annotated[list[ProcessWaiting], "PID 1 first"]
    switches: NotRequired[Annotated[int, "how often the first thread of PID 1 had begun to wait in that time"]]


def waits_at_kill(facts: WaitsAtKill) -> Words:
    used, over = seconds(facts.get("cpuSeconds")), seconds(facts.get("seconds"))
    parts: list[str] = []
    for each in facts.get("processes") or ():
        calls = ", ".join(
            (wait.get("call") or "-") + (f" x{wait['threads']}" if wait.get("threads", 1) > 1 else "")
            for wait in each.get("waits") or ()
        )
        parts.append(tell("$name waits in $calls", name=each.get("name"), calls=calls))
    waits = joined(parts, ", ")
    return Words(tell("used $used of CPU time in $over; $waits", used=used, over=over, waits=waits), DETAIL)


class ProcessesLeft(TypedDict):
    """Other processes of the container at its end."""

    when: Annotated[
        Literal["SIGKILL", "exit"], "SIGKILL: they lived right before it; exit: the kernel killed them with PID 1"
    ]
    signal: str
    processes: list[ProcessLeft]
    more: Annotated[int, "processes that are not listed"]
    zombies: Annotated[int, "children of PID 1 that it has not reaped"]
    secondsBefore: Annotated[Seconds, "age of that look; for SIGKILL it is right before it"]


def processes_left(facts: ProcessesLeft) -> Words:
    names: list[str] = [f"{each.get('name')} (pid {each.get('containerPid')})" for each in facts.get("processes") or ()]
    if facts.get("more"):
        names.append(tell("$count more", count=facts["more"]))
    zombies = facts.get("zombies")
    dead = tell("1 zombie") if zombies == 1 else tell("$count zombies", count=zombies) if zombies else ""
    when = facts.get("when")
    if not names:
        return Words(tell("at $when: $what", when=when, what=dead or tell("no other process")), DETAIL)
    who = joined([*names, dead], ", ")
    if when == "SIGKILL":
        return Words(tell("still alive: $who", who=who), STEP, "bad")
    # What ends with PID 1 may be a program or the `sleep` of a loop: a finding says where something was lost.
    return Words(tell("killed with PID 1: $who", who=who), STEP)


class ChildEnded(TypedDict):
    """Another process of the container ended while PID 1 lived and its container was to stop."""

    pid: int
    containerPid: int
    name: str
    disposition: Annotated[Disposition, "what it did with the stop signal, at the last look"]
    exitCode: Annotated[int | None, "null where the kernel does not show it: before Linux 6.15, or not reaped yet"]
    signal: Annotated[str | None, "that ended it"]
    secondsBefore: Annotated[Seconds, "how long before this record"]


def child_ended(facts: ChildEnded) -> Words:
    who = tell("$name (pid $pid)", name=facts.get("name"), pid=facts.get("containerPid"))
    if facts.get("signal"):
        return Words(tell("$who was ended by $signal", who=who, signal=facts["signal"]), STEP, "bad")
    if facts.get("exitCode") is None:
        return Words(tell("$who ended", who=who), DETAIL)
    level = STEP if facts["exitCode"] else DETAIL  # a shell's loop begins and ends programs all the time
    return Words(tell("$who ended with exit code $code", who=who, code=facts["exitCode"]), level)


SENTENCES = sentences(
    row(SocketsAtStop, sockets_at_stop),
    row(ListenerClosed, listener_closed),
    row(ConnectionsClosed, connections_closed),
    row(SocketsAtExit, sockets_at_exit),
    row(ProcessesAtStop, processes_at_stop),
    row(WaitsAtKill, waits_at_kill),
    row(ProcessesLeft, processes_left),
    row(ChildEnded, child_ended),
)
"""The words for each kind."""
