"""One connection to a server, TLS or not, that carries one request after the other.

The socket is the event loop's, without a transport in between: a request is one write to the kernel in the turn of the
loop in which it is made, and its answer mostly one read and one wake-up. OpenSSL works on the socket itself.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum

from lastcall.client.http1 import Answer, Malformed

READ_SIZE = 1 << 16
_TLS_RECORD = 1 << 14
_READS_IN_A_ROW = 64
MOST_UNREAD = 1 << 18
"""Bytes of a streamed answer that may wait here; whoever sends more waits."""

SILENCE_SECONDS = 15
"""After so long without an acknowledgement from a peer its connections are given up, idle watches too.

What HTTP/2's pings are for in client-go (ReadIdleTimeout 30 s, PingTimeout 15 s): a network that was cut tells nobody.
"""


class Until(IntEnum):
    """What a request waits for."""

    HEAD = 1
    PIECE = 2
    WHOLE = 3


class Connection:
    """`connect` makes one. `on_closed(connection)` is called once, when it is of no use any more."""

    def __init__(self, sock: socket.socket, on_closed: "Callable[[Connection], None]") -> None:
        """`sock` is connected and does not block; a TLS socket has shaken hands."""
        self.answer: Answer | None = None
        self.idle_since = 0.0
        self._sock = sock
        self._fd = sock.fileno()
        self._loop = asyncio.get_running_loop()
        self._on_closed = on_closed
        self._pending: Callable[[], int] = sock.pending if isinstance(sock, ssl.SSLSocket) else int
        self._out = memoryview(b"")
        self._writing = False
        self._reading = True
        self._until = Until.WHOLE
        self._waiter: asyncio.Future[None] | None = None
        self._error: OSError | None = None
        self._loop.add_reader(self._fd, self._readable)

    @property
    def closed(self) -> bool:
        return self._error is not None

    async def exchange(self, method: str, request: bytes, until: Until) -> Answer:
        """Send a request; the answer when its head, or all of it, is there. Raises OSError, and is closed then.

        Cancelled, it is closed, too.
        """
        if self._error is not None:
            raise self._error
        self.answer = Answer(method)
        self._until = until
        self._out = memoryview(request)
        self._write()
        return await self._wait(until)

    async def piece(self) -> bytes:
        """What comes next of the body, b"" at its end. Raises OSError when that does not come."""
        answer = await self._wait(Until.PIECE)
        data = answer.take()
        if not self._reading and self._error is None:
            self._reading = True
            self._loop.add_reader(self._fd, self._readable)
            self._loop.call_soon(self._readable)  # OpenSSL may hold what the kernel does not tell of any more
        return data

    async def _wait(self, until: Until) -> Answer:
        answer = self.answer
        assert answer is not None
        self._until = until
        while not self._is_there(answer):
            if self._error is not None:
                raise self._error
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.close()
                raise
            finally:
                self._waiter = None
        return answer

    def _is_there(self, answer: Answer) -> bool:
        if answer.done:
            return True
        if self._until is Until.HEAD:
            return answer.status != 0
        return self._until is Until.PIECE and answer.unread > 0

    # -- the socket --------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        try:
            while self._out:
                self._out = self._out[self._sock.send(self._out) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._fd, self._write)
            return
        except ssl.SSLWantReadError:
            return  # goes on when something has been read
        except OSError as error:
            self.abort(error)
            return
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)

    def _readable(self) -> None:
        try:
            for _ in range(_READS_IN_A_ROW):
                if not self._reading:
                    break
                data = self._sock.recv(READ_SIZE)
                self._received(data)
                if not data or (len(data) < _TLS_RECORD and not self._pending()):
                    break
            else:
                self._loop.call_soon(self._readable)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as error:
            self.abort(error)
            return
        if self._out:
            self._write()
        if self._waiter is not None and self.answer is not None and self._is_there(self.answer):
            self._wake()

    def _received(self, data: bytes) -> None:
        """Raises Malformed for what is no answer, ConnectionError for the end of a connection."""
        answer = self.answer
        if answer is None or (answer.done and data):
            raise Malformed("the server sent what nobody asked for" if data else "the server closed the connection")
        if not data:
            answer.end()
            self.abort(ConnectionResetError("the server closed the connection"))
            return
        answer.feed(data)
        if answer.unread > MOST_UNREAD and self._until is not Until.WHOLE:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def abort(self, error: OSError) -> None:
        """Close; whoever waits gets `error`, unless the answer is whole. Idempotent."""
        if self._error is not None:
            return
        self._error = error
        self._out = memoryview(b"")
        self._reading = False
        self._loop.remove_reader(self._fd)
        if self._writing:
            self._loop.remove_writer(self._fd)
        if isinstance(self._sock, ssl.SSLSocket):
            with suppress(OSError, ValueError):
                self._sock.unwrap()  # says goodbye and does not wait for an answer
        self._sock.close()
        self._on_closed(self)
        self._wake()

    def close(self) -> None:
        self.abort(ConnectionAbortedError("the connection was closed here"))


async def connect(
    host: str,
    port: int,
    context: ssl.SSLContext | None,
    server_hostname: str,
    on_closed: Callable[[Connection], None],
) -> Connection:
    """To the first address of `host` that takes it; `context` None is no TLS. Raises OSError (ssl.SSLError)."""
    loop = asyncio.get_running_loop()
    last: OSError | None = None
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_SECONDS * 1000)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_SECONDS // 3)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, SILENCE_SECONDS // 3)
            await loop.sock_connect(sock, address)
            if context is not None:
                sock = context.wrap_socket(sock, server_hostname=server_hostname, do_handshake_on_connect=False)
                await _shake_hands(loop, sock)
        except OSError as error:
            sock.close()
            last = error
        except BaseException:
            sock.close()
            raise
        else:
            return Connection(sock, on_closed)
    raise last or OSError(f"{host} has no address")


async def _shake_hands(loop: asyncio.AbstractEventLoop, sock: ssl.SSLSocket) -> None:
    fd = sock.fileno()
    while True:
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            watch, unwatch = loop.add_reader, loop.remove_reader
        except ssl.SSLWantWriteError:
            watch, unwatch = loop.add_writer, loop.remove_writer
        else:
            return
        ready: asyncio.Future[None] = loop.create_future()
        watch(fd, _set, ready)
        try:
            await ready
        finally:
            unwatch(fd)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
