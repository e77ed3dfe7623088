"""Run one WebSocket on an open connection, held for a while, its messages echoed. The protocol is wsproto's (RFC 6455).

A client cannot know whether a message was handled that crossed the server's close frame on the wire: it hears
nothing of it, and sends it again. Such a message counts as lost only where the server had had time to echo it.
"""

# check: many attributes _Socket because it is the state of one connection of the protocol

import asyncio
from collections.abc import Callable
from typing import Literal

import wsproto
import wsproto.events
import wsproto.utilities

from lastcall.traffic.http1 import read_in_turn, wait_until_sent
from lastcall.traffic.outcome import Answer, Lost, Moved
from lastcall.traffic.stay import Stay
from lastcall.world.clock import Clock

GRACEFUL = (1000, 1001, 1012, 1013)
"""Close codes after which clients connect again: normal, going away, service restart, try again later (RFC 6455 7.4.1
and IANA's registry)."""
CROSSING_SECONDS = 0.25
"""A message that was sent so shortly before the server's close frame came may have crossed it."""
LONGEST_MESSAGE = 1024
"""Characters of a message that are looked at: the echo of a client's message has fewer."""
CLOSE_SECONDS = 2.0
"""How long the answer to the client's own close frame is waited for; not to get it is not a loss."""


async def hold(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    host: str,
    path: str,
    request_id: str,
    stay: Stay,
    every: float,
    timeout: float,
    clock: Clock,
    late: Callable[[], float] = lambda: 0.0,
) -> Answer:
    """Hold a WebSocket: send a message at once and one `every` so many seconds, close it once `stay` is over.

    Never raises for what the server does. `late` is how late, in seconds, this client may have read what has come just
    now.
    """
    at = asyncio.get_running_loop().time
    held = _Socket(request_id, stay, every, timeout, at(), late)
    try:
        writer.write(held.handshake(host, path))
        while True:
            found = held.due(at())
            writer.write(held.take_output())
            if found is not None:
                return found
            try:
                async with asyncio.timeout_at(held.wake) as stay.waits:
                    await wait_until_sent(writer)
                    data = await read_in_turn(reader, clock)
            except TimeoutError:
                continue
            found = held.received(data, at())
            writer.write(held.take_output())
            if found is not None:
                return found
    except (ConnectionError, OSError):
        return held.reset()


class _Socket:
    """What was sent when, and what came back; no I/O. Times are the loop's, in seconds."""

    def __init__(
        self, request_id: str, stay: Stay, every: float, limit: float, began: float, late: Callable[[], float]
    ) -> None:
        self._protocol = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self._id, self._stay, self._every, self._limit = request_id, stay, every, limit
        self._phase: Literal["handshake", "open", "closing"] = "handshake"
        self._began = began
        self._late = late
        self._seen = False
        self._status = self._sent = self._echoed = 0
        self._waiting: dict[str, float] = {}
        self._text = ""
        self._output = b""
        self.wake = began + limit
        """When `due` has something to do."""

    def handshake(self, host: str, path: str) -> bytes:
        headers = [(b"X-Request-ID", self._id.encode()), (b"User-Agent", b"lastcall")]
        return self._protocol.send(wsproto.events.Request(host=host, target=path, extra_headers=headers))

    def take_output(self) -> bytes:
        """What is to be sent."""
        output, self._output = self._output, b""
        return output

    def due(self, at: float) -> Answer | None:
        """What the time brings: the next message, the close, or the end of patience."""
        if self._phase != "open":
            if at < self.wake:
                return None
            return self._held("" if self._phase == "closing" else "timeout")
        oldest = next(iter(self._waiting.values()), at)
        if at - oldest >= self._limit:
            return self._held("timeout")
        end = self._began + self._stay.seconds
        if at >= end and not self._waiting:
            self._say(wsproto.events.CloseConnection(code=1000))
            self._phase, self.wake = "closing", at + CLOSE_SECONDS
            return None
        if at < end and at >= self._began + self._sent * self._every:
            name = f"{self._id}.{self._sent}"
            self._say(wsproto.events.TextMessage(data=name))
            self._waiting[name] = at
            self._sent += 1
        times = [each + self._limit for each in list(self._waiting.values())[:1]]
        if at < end:
            times += [end, self._began + self._sent * self._every]
        self.wake = min(times)
        return None

    def received(self, data: bytes, at: float) -> Answer | None:
        """What the server did; `data` is b"" for a FIN."""
        if not data:
            return self._held(self._fin())
        self._seen = True
        try:
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                if found := self._take(event, at):
                    return found
        except (wsproto.utilities.RemoteProtocolError, UnicodeDecodeError):
            return self._held("closed with an error" if self._phase != "handshake" else "truncated")
        return None

    def reset(self) -> Answer:
        if self._phase == "closing":
            return self._held("")
        return self._held("reset after bytes" if self._seen else "reset before bytes")

    def _take(self, event: wsproto.events.Event, at: float) -> Answer | None:
        match event:
            case wsproto.events.AcceptConnection():
                self._status, self._phase, self._began = 101, "open", at
            case wsproto.events.RejectConnection():
                self._status = event.status_code
                return self._held("5xx" if event.status_code >= 500 else "not upgraded")
            case wsproto.events.TextMessage():
                self._text = (self._text + event.data)[:LONGEST_MESSAGE]
                if event.message_finished:
                    self._echoed += self._waiting.pop(self._text, None) is not None
                    self._text = ""
            case wsproto.events.Ping() if self._phase == "open":  # nothing follows the client's own close frame
                self._say(event.response())
            case wsproto.events.CloseConnection():
                return self._goodbye(event, at)
        return None

    def _goodbye(self, event: wsproto.events.CloseConnection, at: float) -> Answer:
        """The server's close frame: of its own accord, or the answer to the client's."""
        if self._phase == "closing":
            return self._held("")
        self._say(event.response())
        if event.code not in GRACEFUL:
            return self._held("closed with an error")
        if any(at - sent >= CROSSING_SECONDS + self._late() for sent in self._waiting.values()):
            return self._held("unanswered")
        return self._held("", "going away")

    def _fin(self) -> Lost | Literal[""]:
        """What a FIN without a close frame is."""
        if self._phase == "handshake":
            return "truncated" if self._seen else "closed before bytes"
        return "" if self._phase == "closing" else "no close frame"

    def _say(self, event: wsproto.events.Event) -> None:
        self._output += self._protocol.send(event)

    def _held(self, lost: Lost | Literal[""], moved: Moved | Literal[""] = "") -> Answer:
        return Answer(self._status, lost, moved, self._echoed, next(iter(self._waiting), "") if lost else "")
