"""What became of one request, stream or WebSocket. Pure.

`Lost` are the classes of a request that its client did not get a good answer to. A connection that the server closed
while it was idle is not a loss: no request was on it. `Moved` are the classes of those that a well-behaved client
carries on elsewhere without anything lost, because the server said goodbye: reported, and never counted as lost.
"""

# check: pure

from dataclasses import fields
from operator import attrgetter
from typing import Any, Literal, Self, get_args

from lastcall.records.said import tell
from lastcall.world.dataclass import dataclass

Kind = Literal["fresh", "keep-alive", "slow", "tcp", "stream", "websocket", "http2"]
"""A connection each · connections that are used again · a connection each, and an answer that takes a while · a line
of raw TCP and its echo · an answer that goes on for seconds (chunked, server-sent events) · a WebSocket that is held
for seconds and whose messages are echoed · requests of HTTP/2 (prior knowledge), many at a time on few connections."""
KINDS: tuple[Kind, ...] = get_args(Kind)
LONG_LIVED: tuple[Kind, ...] = ("stream", "websocket")
"""They outlive any hook: the application has to end them."""
REUSED: tuple[Kind, ...] = ("keep-alive", "http2")
"""Requests that come on connections that others were on before."""

Lost = Literal[
    "refused",
    "unreachable",
    "connect timeout",
    "reset before bytes",
    "closed before bytes",
    "reset after bytes",
    "truncated",
    "timeout",
    "5xx",
    "not upgraded",
    "not HTTP/2",
    "no TLS",
    "no close frame",
    "closed with an error",
    "unanswered",
]
LOST: tuple[Lost, ...] = get_args(Lost)
TIMEOUTS: tuple[Lost, ...] = ("connect timeout", "timeout")
NEVER_CONNECTED: tuple[Lost, ...] = ("refused", "unreachable", "connect timeout")
BEFORE_BYTES: tuple[Lost, ...] = ("reset before bytes", "closed before bytes")
NEW_SECONDS = 0.01
"""A connection no older than this was opened for the request."""

HELD_UP_SECONDS = 0.5
"""A client that runs so late cannot say whether an answer was late, or only read late."""

LOST_MEANS: dict[Lost, str] = {
    "refused": tell("the connection was refused"),
    "unreachable": tell("the address was unreachable"),
    "connect timeout": tell("no answer to the SYN"),
    "reset before bytes": tell("reset (RST, or HTTP/2's RST_STREAM) before a byte of the answer"),
    "closed before bytes": tell("closed (FIN) before a byte of the answer"),
    "reset after bytes": tell("reset within the answer, the stream or the WebSocket"),
    "truncated": tell("closed within the answer or the stream, before its announced end (last chunk, Content-Length)"),
    "timeout": tell("no whole answer, no echo of a message, within --request-timeout"),
    "5xx": tell("answered with an error"),
    "not upgraded": tell("the WebSocket's handshake was answered with something else than 101"),
    "not HTTP/2": tell("what answered does not speak HTTP/2, or not with prior knowledge (h2c)"),
    "no TLS": tell("the TLS handshake failed: its certificate is not trusted, or what answered does not speak TLS"),
    "no close frame": tell("the WebSocket's connection was closed (FIN) without a close frame (code 1006 in browsers)"),
    "closed with an error": tell(
        "a close frame with a code that no client carries on from (1002, 1011, …), or no WebSocket"
    ),
    "unanswered": tell("the server closed the WebSocket by the book, with a message that it had had time to echo"),
}

Moved = Literal["going away", "ended early", "closed early", "retried"]
"""A WebSocket that the server closed with a close frame (1000, 1001, 1012, 1013): the client connects again · a stream
that the server ended as a stream is ended (last chunk) before the client had enough: it asks again · the same where
only the close of the connection showed an end (account.py makes a loss or nothing of it) · a request of HTTP/2 that
the server said it had not begun (GOAWAY with a lower last stream id, REFUSED_STREAM), good when sent once more."""
MOVED: tuple[Moved, ...] = get_args(Moved)

MOVED_MEANS: dict[Moved, str] = {
    "going away": "closed with a close frame, every message echoed: the client connects again",
    "ended early": "ended by the server as a stream is ended: the client asks again",
    "closed early": "ended with the connection",
    "retried": "not begun, as the server said (GOAWAY, REFUSED_STREAM), and answered when sent again",
}


@dataclass(slots=True)  # one for each request: a frozen one takes four times as long to make
class Answer:
    """What became of a request on its connection; the fields mean what they do in `Outcome`."""

    status: int = 0
    lost: Lost | Literal[""] = ""
    moved: Moved | Literal[""] = ""
    messages: int = 0
    unanswered: str = ""


@dataclass(slots=True)  # as above; nobody changes one
class Outcome:
    """Times are seconds of the monotonic clock. `planned`: when the rate wanted it sent; `sent`: when it was begun.

    `connection` counts the client's connections, `age` is the connection's when the request went out, in seconds.
    `served_by` is the address of the Pod that the connection led to, "" when it led nowhere. `lost` is "" for a good
    answer. `held_up` is the longest that the client itself was held up meanwhile, in seconds: its machine was too
    busy, or stood still. `messages` are the echoed ones of a
    WebSocket, and `unanswered` is the id of the first one that was not (`lc-7.3`). `port` is the client's of the
    connection, 0 where there was none. `behind`: how a published port failed to reach its target, which the client saw
    as a reset.
    """

    id: int
    kind: Kind
    planned: float
    sent: float
    finished: float
    connection: int
    age: float
    status: int
    served_by: str
    lost: Lost | Literal[""]
    held_up: float = 0.0
    moved: Moved | Literal[""] = ""
    messages: int = 0
    unanswered: str = ""
    port: int = 0
    behind: Lost | Literal[""] = ""

    @property
    def measured(self) -> bool:
        """Return False where a client that was held up cannot say whose loss it is.

        That time ran out: the answer may have been there. Such a timeout counts only where a Pod's end explains it.
        That a new connection was closed before an answer: between connecting and sending, the client may have stood
        still until the Pod's end.
        """
        if self.lost in TIMEOUTS:
            return max(self.held_up, self.sent - self.planned) < HELD_UP_SECONDS
        if self.lost in BEFORE_BYTES and self.age < NEW_SECONDS:
            return self.held_up < HELD_UP_SECONDS
        return True

    def to_wire(self) -> list[Any]:
        return list(_VALUES(self))

    @classmethod
    def from_wire(cls, values: list[Any]) -> Self:
        return cls(*values)


_VALUES = attrgetter(*(each.name for each in fields(Outcome)))


def never_connected(outcome: Outcome) -> bool:
    """Return True if it connected to no Pod: a published port takes every connection."""
    return outcome.lost in NEVER_CONNECTED or outcome.behind in NEVER_CONNECTED
