"""Taking a connection over from the HTTP server: after the 101 both sides own a plain stream of bytes.

aiohttp knows only WebSocket as an upgrade; Kubernetes has SPDY/3.1 too, and an API server that passes either on without
looking into it. So the transport gets a new protocol, and the HTTP server hears only of its end.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from lastcall.world.aiohttp_inside import server as web

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

LONGEST_HEADER = 1 << 20
"""Bytes of a request line that servers take: a long command is part of the URL (Go's DefaultMaxHeaderBytes)."""
CHUNK = 64 << 10
"""Bytes read at once, and the most that waits unread per direction (twice as much is held back in the kernel)."""


class ByteStream(Protocol):
    """Two directions of bytes. A write waits for room; nothing is buffered without a limit."""

    async def read(self) -> bytes:
        """Return some bytes; b"" at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Write `data`. Raises ConnectionError when the other side is gone."""
        ...

    async def close(self) -> None: ...


class SocketStream:
    """A `ByteStream` on an asyncio reader and writer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except OSError:  # reset, or broken TLS: over as well
            return b""

    async def write(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError("the connection is closed")
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """Close the connection; what has been written is still sent."""
        self._writer.close()

    def abort(self) -> None:
        """Close the connection at once; nothing more is sent."""
        self._writer.transport.abort()

    async def linger(self, seconds: float) -> None:
        """Close, but first let the other side close, reading what it still sends.

        If a connection is closed while data waits to be read, it is reset, and what the other side has not read is
        lost.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self.read():
                    pass
        self._writer.close()


class _TakenOver(asyncio.StreamReaderProtocol):
    """Report the end to the HTTP server too, which otherwise would remember the connection forever."""

    def __init__(self, reader: asyncio.StreamReader, before: asyncio.BaseProtocol) -> None:
        super().__init__(reader)
        self._before = before

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._before.connection_lost(exc)


class HandedOver(web.Response):
    """What a handler returns whose connection has been taken over: nothing is written."""

    async def prepare(self, request: web.BaseRequest) -> "AbstractStreamWriter | None":
        self.force_close()
        return None

    async def write_eof(self, data: bytes | bytearray | memoryview = b"") -> None:
        return


def take_over(request: web.BaseRequest, head: bytes) -> SocketStream:
    """Answer `head` (a whole `HTTP/1.1 101 …` with its empty line) and take over the connection.

    Raises ConnectionResetError when the client is gone. The handler returns `HandedOver()` afterwards.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client is gone")
    reader = asyncio.StreamReader(limit=CHUNK)
    protocol = _TakenOver(reader, transport.get_protocol())
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    writer.write(head)
    return SocketStream(reader, writer)


def switching_protocols(headers: Mapping[str, str]) -> bytes:
    """Return the head of a 101 response."""
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
