"""Two connected sockets become one connection: bytes both ways, half-closes and resets as they come."""

import asyncio
import socket
import struct
from contextlib import suppress

from lastcall.world.tasks import Tasks

_PIECE = 64 * 1024


async def splice(one: socket.socket, other: socket.socket) -> None:
    """Join both sockets until both directions have ended, then close them. Both must be non-blocking.

    A sender waits for a receiver that reads slowly. What one end does not deliver any more (a reset) the other end
    gets as a reset.
    """
    try:
        for sock in (one, other):
            with suppress(OSError):  # no TCP
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with Tasks() as tasks:
            tasks.spawn(_pump(one, other), name="one direction")
            tasks.spawn(_pump(other, one), name="other direction")
    except* OSError:
        reset(one)
        reset(other)
    finally:
        one.close()
        other.close()


def reset(sock: socket.socket) -> None:
    """Reset the connection so that the peer learns at once that something is wrong."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


async def _pump(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, _PIECE):
        await loop.sock_sendall(sink, data)
    sink.shutdown(socket.SHUT_WR)
