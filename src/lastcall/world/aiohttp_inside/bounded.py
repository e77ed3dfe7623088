"""A server that bounds its connections, and what waits in each of them."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lastcall.world.aiohttp_inside.methods import take_any_method
from lastcall.world.aiohttp_inside.server import BaseRequest, Server

FIRST_REQUEST_SECONDS = 32.0
"""A connection that has sent no request until then is closed (apiserver secure_serving.go: ReadHeaderTimeout)."""
IDLE_SECONDS = 90.0
"""A connection that has been idle for so long is closed (secure_serving.go: IdleTimeout)."""


READ_BYTES = 64 << 10
"""Bytes that are read of a connection at once."""

take_any_method()


class ReadsInto(asyncio.BufferedProtocol):
    """A protocol that reads into the buffer that all connections of a server share.

    For other protocols uvloop makes room for 256 KiB at each read of a TLS connection: where malloc maps such blocks,
    that costs a sixth of the control plane's CPU; where it takes them from the heap, the heap grows.
    """

    def __init__(self, protocol: asyncio.Protocol, buffer: memoryview) -> None:
        self.protocol = protocol
        self._buffer = buffer
        self.connection_made = protocol.connection_made  # type: ignore[method-assign]
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the shared buffer: a loop calls `buffer_updated` before it asks for another connection."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.protocol.data_received(bytes(self._buffer[:nbytes]))


class BoundedServer(Server):
    """`aiohttp.web.Server` with at most `most` connections that wait for a request or are busy with one.

    When there are more, the oldest one that has sent no request is closed, or else the oldest one that waits for its
    next request. A connection takes `buffer` bytes before its writers wait, and keeps as many of a body for its reader;
    the kernel keeps four times as many of a body. `on_lost` hears of each connection that ends.
    """

    def __init__(
        self,
        handler: Any,
        *,
        most: int,
        buffer: int = READ_BYTES,
        on_lost: Callable[[object], None] = lambda connection: None,
        **options: Any,
    ) -> None:
        super().__init__(handler, read_bufsize=buffer, keepalive_timeout=IDLE_SECONDS, **options)
        self._make_any_request, self.request_factory = self.request_factory, self._make_first_request
        self._silent: dict[Any, None] = {}
        """Connections on which no request has come, in the order in which they were made."""
        self._most, self._buffer, self._on_lost = most, buffer, on_lost
        self._read_buffer = memoryview(bytearray(READ_BYTES))

    def __call__(self) -> Any:
        return ReadsInto(super().__call__(), self._read_buffer)

    def connection_made(self, handler: Any, transport: Any) -> None:
        transport.set_write_buffer_limits(self._buffer)
        if (limit := getattr(transport, "set_read_buffer_limits", None)) is not None:  # with TLS
            limit(self._buffer)
        if (sock := transport.get_extra_info("socket")) is not None:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * self._buffer)
        if len(self._connections) >= self._most:
            self._close_one()
        super().connection_made(handler, transport)
        self._silent[handler] = None
        self._loop.call_later(FIRST_REQUEST_SECONDS, self._close_silent, handler)

    def _make_first_request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> BaseRequest:
        self._silent.pop(protocol, None)
        return self._make_any_request(message, payload, protocol, writer, task)

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        self._silent.pop(handler, None)
        self._on_lost(handler)
        super().connection_lost(handler, exc)

    def _close_one(self) -> None:
        for handler in (*self._silent, *self._connections):
            if handler._waiter is not None and (transport := self._connections.get(handler)) is not None:
                self._silent.pop(handler, None)
                transport.abort()
                return

    def _close_silent(self, handler: Any) -> None:
        """Close a connection on which no request has come."""
        transport = self._connections.get(handler)
        if handler in self._silent and transport is not None:
            transport.abort()
