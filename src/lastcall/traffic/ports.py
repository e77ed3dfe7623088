"""Source ports of a client whose connections nodes translate: none is used again while a node may remember it.

A node's connection tracking keeps where a connection led for two minutes after its end
(`nf_conntrack_tcp_timeout_time_wait`). A new one from the same port goes to the same Pod, which may be gone by then;
the kernel of the client takes a port again after one minute, or at once where the server closed first.
"""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

REMEMBERED_SECONDS = 125.0
TRIES = 20
"""Ports that others have are passed over."""
USUAL = (32768, 60999)


class SourcePorts:
    """Ports by the machine's clock, so that several runs after each other take different ones, too. More connections a
    second than the ports last for take the next ones, and those come back sooner."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._count = low, high - low + 1
        self._next = 0

    def take(self, at: float) -> Iterator[int]:
        """Yield ports to try at a moment, in seconds of the machine's monotonic clock."""
        slot = int(at * self._count / REMEMBERED_SECONDS)
        self._next = max(self._next, slot)
        for _ in range(TRIES):
            number, self._next = self._next, self._next + 1
            yield self._low + number % self._count

    def bind(self, sock: socket.socket, at: float) -> None:
        """Bind to one of the ports. Where every port that was tried is taken, the kernel chooses one."""
        for port in self.take(at):
            try:
                sock.bind(("", port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
            else:
                return


def source_ports() -> SourcePorts:
    """Return the ports that this machine gives to clients."""
    try:
        low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        low, high = USUAL
    return SourcePorts(low, high)
