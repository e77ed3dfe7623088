"""Sending large answers in pieces, and disconnecting clients that take nothing of them.

A piece is written when the client has taken most of the one before, so that what waits for a slow client is bounded.
"""

import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lastcall.world.aiohttp_inside import server as web
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

PIECE_BYTES = 256 << 10
"""Bytes of an answer that are written at once. Answers under way are bounded for each user (`shares.py`)."""
WATCH_PIECE_BYTES = 32 << 10
"""Bytes of a watch that are written at once: a user may have 300 that nobody reads."""
STALL_SECONDS = 30.0
"""A client that takes nothing for so long is disconnected: half of kube-apiserver's --request-timeout."""
LOOK_SECONDS = 5.0
BUFFER_BYTES = 16 << 10
"""Bytes that wait in this process for the reader of a connection, beside the piece that is written."""
SEND_BUFFER_BYTES = 128 << 10
"""Bytes that wait in the kernel for the reader of a watch; without this it is megabytes."""


@dataclass(slots=True, eq=False)
class Sending:
    """An answer on its way. `pieces` counts what was written."""

    transport: Any
    piece_bytes: int = PIECE_BYTES
    pieces: int = 0
    seen: tuple[int, int] = (0, 0)
    """(pieces, waiting bytes) at the last look that found a difference."""
    since: float = 0.0

    async def write(self, response: web.StreamResponse, data: bytes) -> None:
        """Write in pieces."""
        most = self.piece_bytes
        for start in range(0, len(data), most):
            await response.write(data if len(data) <= most else data[start : start + most])
            if self.transport is not None and self.transport.get_write_buffer_size() > BUFFER_BYTES:
                await web.drain(response)
            self.pieces += 1

    def is_stalled(self, waiting: int, now: float) -> bool:
        """Return True if `waiting` bytes have been waiting since STALL_SECONDS, and nothing was taken."""
        if not waiting or self.seen != (self.pieces, waiting):
            self.seen, self.since = (self.pieces, waiting), now
            return False
        return now - self.since >= STALL_SECONDS


class Sendings:
    """All answers on their way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[Sending, None] = {}

    @contextmanager
    def begun(self, request: web.BaseRequest, *, watch: bool = False) -> Iterator[Sending]:
        """Hold an answer that is written as long as the block runs. A `watch` has a bounded buffer in the kernel."""
        transport = request.transport
        sending = Sending(transport, WATCH_PIECE_BYTES if watch else PIECE_BYTES)
        if watch and transport is not None and (sock := transport.get_extra_info("socket")) is not None:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._open[sending] = None
        try:
            yield sending
        finally:
            del self._open[sending]

    async def send(
        self, request: web.BaseRequest, response: web.StreamResponse, pieces: Iterable[bytes] | AsyncIterator[bytes]
    ) -> web.StreamResponse:
        """Send a whole answer; others get their turn between two pieces.

        An answer whose later pieces cannot be made ends with its connection.
        """
        with self.begun(request) as sending, suppress(ConnectionResetError):
            await response.prepare(request)
            try:
                async for piece in self._in_turns(pieces):
                    await sending.write(response, piece)
            except Exception:
                if request.transport is not None:
                    request.transport.abort()
                raise
            await response.write_eof()
        return response

    async def _in_turns(self, pieces: Iterable[bytes] | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        if isinstance(pieces, AsyncIterator):
            async for piece in pieces:
                yield piece
            return
        for piece in pieces:
            yield piece
            await self._clock.sleep(0)

    async def in_pieces(self, request: web.BaseRequest, answer: web.StreamResponse) -> web.StreamResponse:
        """Send an answer whose body is large; leave a small one to the server."""
        body = answer.body if isinstance(answer, web.Response) else None
        if not isinstance(body, bytes) or len(body) <= PIECE_BYTES or answer.prepared or request.method == "HEAD":
            return answer
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=answer.headers)
        response.headers["Content-Length"] = str(len(body))
        return await self.send(request, response, (body,))

    async def disconnect_stalled(self) -> None:
        """Disconnect clients that take nothing, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            now = monotonic(self._clock)
            for sending in list(self._open):
                transport = sending.transport
                if transport is not None and sending.is_stalled(transport.get_write_buffer_size(), now):
                    transport.abort()
