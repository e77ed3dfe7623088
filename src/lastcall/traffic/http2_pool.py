"""A few connections of HTTP/2 for all requests, taken in turn, as gRPC's channels and HTTP clients' pools have them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from lastcall.traffic.connection import Connection, Dialler, Failed
from lastcall.traffic.http2 import Http2Connection
from lastcall.traffic.outcome import Answer
from lastcall.traffic.secured import HTTP2
from lastcall.world.clock import Clock, monotonic
from lastcall.world.conntrack import Address
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

Where = Connection | Failed | None
"""A connection, how there was none, or no target to connect to."""


@dataclass(slots=True)
class _Channel:
    connection: Connection
    http2: Http2Connection


class Http2Pool:
    """`request` any number of times at once, then `close`. Connections are tasks of `tasks`."""

    def __init__(
        self,
        clock: Clock,
        size: int,
        host: str,
        dialler: Dialler,
        next_target: Callable[[], Address | None],
        tasks: Tasks,
        scheme: str = "http",
    ) -> None:
        self._clock = clock
        self._host, self._scheme = host, scheme
        self._dialler = dialler
        self._next_target = next_target
        self._tasks = tasks
        self._turn = 0
        self._slots: list[asyncio.Task[_Channel | Failed | None] | None] = [None] * size
        self._channels: dict[int, _Channel] = {}

    async def request(self, path: str, request_id: str, seconds: float) -> tuple[Where, float, Answer]:
        """Send a request. Return where it was sent, the age of that connection then (seconds), and the answer.

        The answer is what became of it within `seconds`. What the server had not begun is sent once more, on another
        connection.
        """
        retried = False
        while True:
            channel = await self._channel()
            if not isinstance(channel, _Channel):
                return channel, 0.0, Answer(lost=channel.lost) if channel is not None else Answer(503, "5xx")
            age = monotonic(self._clock) - channel.connection.opened
            try:
                async with asyncio.timeout(seconds):
                    found = await channel.http2.request(path, request_id)
            except TimeoutError:
                found = Answer(lost="timeout")
            if isinstance(found, Answer):
                found = replace(found, moved="retried") if retried and not found.lost else found
                return channel.connection, age, found
            if retried:
                return channel.connection, age, Answer(lost="closed before bytes")
            retried = True

    def keep_to(self, targets: Sequence[Address]) -> None:
        """Close connections to other targets to new requests."""
        for channel in list(self._channels.values()):
            if channel.connection.target not in targets:
                channel.http2.close()

    def close(self) -> None:
        for channel in list(self._channels.values()):
            channel.http2.close()

    async def _channel(self) -> _Channel | Failed | None:
        """The next one in turn; it is opened where there is none that takes requests. Those who come meanwhile wait."""
        self._turn = (self._turn + 1) % len(self._slots)
        opening = self._slots[self._turn]
        if opening is None or (opening.done() and not _is_good(opening.result())):
            opening = self._tasks.spawn(self._connect(), name="connection of HTTP/2")
            self._slots[self._turn] = opening
        return await asyncio.shield(opening)

    async def _connect(self) -> _Channel | Failed | None:
        target = self._next_target()
        if target is None:
            return None
        opened = await self._dialler.connect(target, HTTP2)
        if isinstance(opened, Failed):
            return opened
        channel = _Channel(
            opened, Http2Connection(opened.reader, opened.writer, self._host, self._scheme, clock=self._clock)
        )
        self._dialler.served_by(opened)
        self._channels[opened.number] = channel
        self._tasks.spawn(self._run(channel), name=f"frames of connection {opened.number}")
        return channel

    async def _run(self, channel: _Channel) -> None:
        try:
            await channel.http2.run()
        finally:
            self._channels.pop(channel.connection.number, None)


def _is_good(found: _Channel | Failed | None) -> bool:
    return isinstance(found, _Channel) and found.http2.takes_requests and not found.connection.is_closed()
