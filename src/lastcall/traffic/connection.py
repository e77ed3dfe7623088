"""Connections of the load generator: opened, or how that failed, and which endpoint they led to."""

import asyncio
import errno
import select
import socket
from collections.abc import Mapping

from lastcall.traffic.outcome import Lost
from lastcall.traffic.ports import SourcePorts
from lastcall.traffic.secured import HTTP1, Secured, lost_in_handshake
from lastcall.world.clock import Clock, monotonic
from lastcall.world.conntrack import Address, Connections
from lastcall.world.dataclass import dataclass

CONNECT_SECONDS = 3.0
"""A first SYN that is lost is sent again after 1 s, then after 2 s."""

_REFUSED: Mapping[int, Lost] = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.ETIMEDOUT: "connect timeout",
    errno.ECONNRESET: "refused",
}


@dataclass(slots=True)
class Connection:
    """`number` counts them; `opened` is seconds of the monotonic clock; `port` is the client's; `served_by` is known
    once `Dialler.served_by` was asked."""

    number: int
    opened: float
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    target: Address
    port: int
    served_by: str = ""
    idle_since: float = 0.0

    def is_good(self) -> bool:
        """Return whether an idle connection takes a request, by what has arrived of the server until now.

        The kernel is asked, too: a loop that was held up may not have read yet that the server closed it.
        """
        if self.writer.is_closing() or self.reader.at_eof() or self.reader.exception() is not None:
            return False
        return not self._has_arrived(select.POLLIN | select.POLLRDHUP)

    def is_closed(self) -> bool:
        """Return whether the server has closed it, by what the kernel knows."""
        return self.writer.is_closing() or self._has_arrived(select.POLLRDHUP)

    def _has_arrived(self, events: int) -> bool:
        arrived = select.poll()
        arrived.register(self.writer.get_extra_info("socket").fileno(), events)
        return bool(arrived.poll(0))


@dataclass(frozen=True, slots=True)
class Failed:
    """No connection: how, the endpoint that refused it where the kernel still knows, and the client's port."""

    lost: Lost
    served_by: str
    port: int


class Dialler:
    """`balanced`: targets are endpoints themselves, nothing between translates addresses. With `secured` a
    connection is one when its TLS handshake is over; `ports` are its source ports, by default the kernel's choice."""

    def __init__(
        self,
        clock: Clock,
        tracking: Connections | None,
        secured: Secured | None = None,
        ports: SourcePorts | None = None,
    ) -> None:
        self._clock = clock
        self._tracking = tracking
        self._secured = secured
        self._ports = ports
        self._last = 0
        self.balanced = False

    async def connect(self, target: Address, protocol: str = HTTP1) -> Connection | Failed:
        """Connect to a target; `protocol` is what a TLS handshake asks for (ALPN)."""
        local: Address | None = None
        self._last += 1
        number = self._last
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        is_open = False
        try:
            async with asyncio.timeout(CONNECT_SECONDS) as limit:
                if self._ports is not None:
                    self._ports.bind(sock, monotonic(self._clock))
                try:
                    await loop.sock_connect(sock, target)
                finally:
                    local = sock.getsockname()
                is_open = True
                if self._secured is not None:
                    limit.reschedule(loop.time() + self._secured.seconds)
                reader, writer = await self._over(sock, protocol)
        except TimeoutError:
            sock.close()
            failed = self._failed("timeout" if is_open else "connect timeout", local, target)
            if self._tracking is not None and local is not None:
                self._tracking.forget(local, target)
            return failed
        except OSError as error:
            sock.close()
            lost = lost_in_handshake(error) if is_open else _REFUSED.get(error.errno or 0, "refused")
            return self._failed(lost, local, target)
        return Connection(number, monotonic(self._clock), reader, writer, target, local[1])

    async def _over(self, sock: socket.socket, protocol: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        secured = self._secured
        if secured is None:
            return await asyncio.open_connection(sock=sock)
        return await asyncio.open_connection(sock=sock, ssl=secured.context(protocol), server_hostname=secured.name)

    def served_by(self, connection: Connection) -> str:
        """Return the address of the endpoint that it leads to; "" when nobody knows."""
        if not connection.served_by:
            local = connection.writer.get_extra_info("sockname")
            connection.served_by = self._endpoint(local, connection.target)
        return connection.served_by

    def _failed(self, lost: Lost, local: Address | None, target: Address) -> Failed:
        return Failed(lost, self._endpoint(local, target), local[1] if local is not None else 0)

    def _endpoint(self, local: Address | None, target: Address) -> str:
        if self.balanced:
            return target[0]
        if self._tracking is None or local is None:
            return ""
        return self._tracking.endpoint(local, target)
