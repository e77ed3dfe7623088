"""What the runtime sees of a container's sockets and other processes from its stop signal on."""

from typing import Annotated, Literal, TypedDict

from lastcall.records.fields.parts import BetweenLooks, Bytes, Listener, ProcessLeft, Scope, Seconds

ACTOR = "runtime"


class SocketsAtStop(TypedDict):
    """The TCP sockets right after the stop signal."""

    signal: str
    listeners: list[Listener]
    connections: Annotated[int, "established ones, of either direction"]
    scope: Scope


class ListenerClosed(BetweenLooks):
    """A listener has closed, between two looks."""

    address: str
    port: int


class ConnectionsClosed(BetweenLooks):
    """No listener and no connection is left, and the container still runs."""

    scope: Scope


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
