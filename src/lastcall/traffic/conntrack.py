"""Which endpoint a connection of this network namespace led to: asked of the kernel's connection tracking.

A client of a Service sees the Service's address only. The entry is there while the connection is, and for ten seconds
after a reset.
"""

import struct
from ipaddress import IPv4Address
from socket import AF_INET, IPPROTO_TCP

from lastcall.world.netlink import NETLINK_NETFILTER, NetlinkError, NetlinkSocket, attribute, attributes

_GET = (1 << 8) | 1
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
        """The address that answers the TCP connection from `source` to `destination`; "" when none is known."""
        addresses = attribute(_SOURCE, IPv4Address(source[0]).packed)
        addresses += attribute(_DESTINATION, IPv4Address(destination[0]).packed)
        protocol = attribute(_NUMBER, bytes([IPPROTO_TCP])) + attribute(_SOURCE_PORT, struct.pack(">H", source[1]))
        protocol += attribute(_DESTINATION_PORT, struct.pack(">H", destination[1]))
        original = attribute(_IP | _NESTED, addresses) + attribute(_PROTOCOL | _NESTED, protocol)
        try:
            body = self._netlink.ask("look at a connection", _GET, _HEADER + attribute(_ORIGINAL | _NESTED, original))
        except NetlinkError:
            return ""
        reply = attributes(attributes(body, len(_HEADER)).get(_REPLY, b""))
        answered_by = attributes(reply.get(_IP, b"")).get(_SOURCE, b"")
        return str(IPv4Address(answered_by)) if len(answered_by) == 4 else ""

    def close(self) -> None:
        self._netlink.close()


def connections() -> Connections | None:
    """None where the kernel does not track: then nobody knows which endpoint a lost connection led to."""
    try:
        return Connections()
    except OSError:
        return None
