"""Which endpoint a connection of this network namespace led to: asked of the kernel's connection tracking.

A client of a Service sees the Service's address only. The entry is there while the connection is, and for ten seconds
after a reset.
"""

import struct
from contextlib import suppress
from ipaddress import IPv4Address
from socket import AF_INET, IPPROTO_TCP

from lastcall.world.netlink import NETLINK_NETFILTER, Message, NetlinkError, NetlinkSocket, attribute, attributes

_GET, _DELETE = (1 << 8) | 1, (1 << 8) | 2
_HEADER = struct.pack(">BBH", AF_INET, 0, 0)
_ORIGINAL, _REPLY = 1, 2
_IP, _PROTOCOL = 1, 2
_SOURCE, _DESTINATION = 1, 2
_NUMBER, _SOURCE_PORT, _DESTINATION_PORT = 1, 2, 3
_NESTED = 0x8000

Address = tuple[str, int]


class Connections:
    """One netlink socket, kept open."""

    def __init__(self) -> None:
        """Raises OSError where the kernel has no connection tracking."""
        self._netlink = NetlinkSocket(NETLINK_NETFILTER)

    def endpoint(self, source: Address, destination: Address) -> str:
        """Return the address that answers the TCP connection from `source` to `destination`; "" if none is known."""
        try:
            body = self._netlink.ask("look at a connection", _GET, _original(source, destination))
        except NetlinkError:
            return ""
        reply = attributes(attributes(body, len(_HEADER)).get(_REPLY, b""))
        answered_by = attributes(reply.get(_IP, b"")).get(_SOURCE, b"")
        return str(IPv4Address(answered_by)) if len(answered_by) == 4 else ""

    def forget(self, source: Address, destination: Address) -> None:
        """Make the kernel forget the connection from `source` to `destination`; do nothing if it knows none.

        For a SYN that nobody answered, the kernel keeps for two minutes where it was sent: the next connection from
        that port goes there, too, whatever the rules say by then. Many clients do not use one port again so soon, as
        a generator does that plays them all from one address.
        """
        with suppress(NetlinkError):
            self._netlink.transact([Message("forget a connection", _DELETE, _original(source, destination))])

    def close(self) -> None:
        self._netlink.close()


def _original(source: Address, destination: Address) -> bytes:
    """The header and the tuple of a TCP connection as its client sees it."""
    addresses = attribute(_SOURCE, IPv4Address(source[0]).packed)
    addresses += attribute(_DESTINATION, IPv4Address(destination[0]).packed)
    protocol = attribute(_NUMBER, bytes([IPPROTO_TCP])) + attribute(_SOURCE_PORT, struct.pack(">H", source[1]))
    protocol += attribute(_DESTINATION_PORT, struct.pack(">H", destination[1]))
    original = attribute(_IP | _NESTED, addresses) + attribute(_PROTOCOL | _NESTED, protocol)
    return _HEADER + attribute(_ORIGINAL | _NESTED, original)


def connections() -> Connections | None:
    """Return the kernel's connections; None if it tracks none: then the endpoint of a lost connection is unknown."""
    try:
        return Connections()
    except OSError:
        return None
