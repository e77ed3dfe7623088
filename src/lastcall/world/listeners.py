"""Accepts connections, and bounds those whose clients have not shown yet that they speak TLS."""

import asyncio
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


async def accept(listening: socket.socket, clock: Clock) -> socket.socket:
    """Return the next connection, non-blocking. Wait as long as no descriptors are left."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return (await loop.sock_accept(listening))[0]
        except ConnectionError:
            continue
        except OSError:
            await clock.sleep(_REST_SECONDS)


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
        self._listening.setblocking(False)
        async with Tasks() as tasks:
            while True:
                accepted = await accept(self._listening, self._clock)
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
