"""Accepts connections, and bounds those whose clients have not shown yet that they speak TLS."""

import asyncio
import functools
import resource
import socket
import ssl
from collections.abc import Callable

from lastcall.world import crash_guard
from lastcall.world.clock import Clock
from lastcall.world.tasks import Tasks

HANDSHAKE_SECONDS = 32.0
"""A connection whose handshake takes longer is closed, as by kube-apiserver (net/http server.go: tlsHandshakeTimeout,
which is the least timeout of a server; apiserver secure_serving.go: ReadHeaderTimeout)."""
MOST_HANDSHAKES = 512
"""Of a listener at a time: more than all connections that a user may have. Each takes 55 kB until it has ended."""
_REST_SECONDS = 0.5
"""After an accept that failed because a resource ran out: it would fail again at once."""


def allow_most_connections() -> None:
    """Raise this process's limit of descriptors: the usual 1024 is for programs that use select()."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def accept_each(listening: socket.socket, clock: Clock, take: Callable[[socket.socket], object]) -> None:
    """Hand each connection to `take`, non-blocking, until cancelled. Wait as long as no descriptors are left.

    The loop watches the socket all the time: `sock_accept` would have it watched anew for each connection, with ten
    system calls. An error of `take` ends it.
    """
    loop = asyncio.get_running_loop()
    listening.setblocking(False)
    while True:
        refused: asyncio.Future[None] = loop.create_future()
        loop.add_reader(listening, _accept, listening, take, refused)
        try:
            await refused
        finally:
            loop.remove_reader(listening)
        await clock.sleep(_REST_SECONDS)


def _accept(listening: socket.socket, take: Callable[[socket.socket], object], refused: asyncio.Future[None]) -> None:
    """Take one connection; the loop calls again if there are more."""
    if refused.done():
        return
    try:
        accepted, _ = listening.accept()
    except (BlockingIOError, InterruptedError, ConnectionError):
        return
    except OSError:
        refused.set_result(None)
        return
    accepted.setblocking(False)
    try:
        take(accepted)
    except Exception as error:
        accepted.close()
        refused.set_exception(error)


class TLSListener:
    """Give each connection of a listening socket a protocol of `protocols`, after its handshake. `run` until cancelled.

    One handshake more than `MOST_HANDSHAKES` takes the place of the oldest one, whose connection is closed.
    """

    def __init__(
        self, protocols: Callable[[], asyncio.BaseProtocol], listening: socket.socket, tls: ssl.SSLContext, clock: Clock
    ) -> None:
        self._protocols, self._listening, self._tls, self._clock = protocols, listening, tls, clock
        self._unfinished: dict[asyncio.Task[None], None] = {}
        """Handshakes, in the order in which they began."""

    async def run(self) -> None:
        async with Tasks() as tasks:
            await accept_each(self._listening, self._clock, functools.partial(self._begin, tasks))

    def _begin(self, tasks: Tasks, accepted: socket.socket) -> None:
        if len(self._unfinished) >= MOST_HANDSHAKES:
            oldest = next(iter(self._unfinished))
            self._forget(oldest)
            oldest.cancel()
        guarded = crash_guard.guarded("TLS listener", "", self._shake_hands(accepted))
        handshake = tasks.spawn(guarded, name="handshake")
        self._unfinished[handshake] = None
        handshake.add_done_callback(self._forget)

    async def _shake_hands(self, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocols, accepted, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except OSError:  # the client's fault, or it has gone; the loop has closed the connection
            accepted.close()

    def _forget(self, handshake: asyncio.Task[None]) -> None:
        self._unfinished.pop(handshake, None)
