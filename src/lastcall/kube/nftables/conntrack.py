"""UDP flows that the kernel still translates to an endpoint which no longer serves.

A UDP client that goes on sending from one port stays in its flow forever, and the rules are asked for new flows only.
Source: pkg/proxy/conntrack/cleanup.go:CleanStaleEntries. TCP connections are never touched.
"""

import errno
import struct
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from socket import AF_INET, IPPROTO_UDP

from lastcall.world.dataclass import dataclass
from lastcall.world.netlink import NETLINK_NETFILTER, Message, NetlinkSocket, attribute, attributes

_GET, _DELETE = (1 << 8) | 1, (1 << 8) | 2
_HEADER = struct.pack(">BBH", AF_INET, 0, 0)
_ORIGINAL, _REPLY = 1, 2

UDPFrontend = tuple[str, int]
"""(address, port) that clients send to."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One UDP flow: where its client sends to, and who answers."""

    destination: UDPFrontend
    answered_by: str
    tuple_bytes: bytes
    """Its original direction as the kernel wrote it."""


def stale(flows: Iterable[Flow], frontends: Mapping[UDPFrontend, frozenset[str]]) -> list[Flow]:
    """Return the flows to a Service that another address answers than one of its endpoints."""
    return [
        flow
        for flow in flows
        if (serving := frontends.get(flow.destination)) is not None and flow.answered_by not in serving
    ]


def read_udp_flows(netlink: NetlinkSocket) -> list[Flow]:
    """Read the kernel's UDP flows. Raises NetlinkError."""
    found = []
    for body in netlink.dump("look at connections", _GET, _HEADER):
        fields = attributes(body, len(_HEADER))
        original, reply = attributes(fields.get(_ORIGINAL, b"")), attributes(fields.get(_REPLY, b""))
        protocol = attributes(original.get(2, b""))
        if protocol.get(1) != bytes([IPPROTO_UDP]) or 3 not in protocol:
            continue
        destination = attributes(original.get(1, b"")).get(2)
        answered_by = attributes(reply.get(1, b"")).get(1)
        if destination is None or answered_by is None:
            continue  # IPv6
        port = struct.unpack(">H", protocol[3])[0]
        address = str(IPv4Address(destination))
        found.append(Flow((address, port), str(IPv4Address(answered_by)), fields[_ORIGINAL]))
    return found


def clean(frontends: Mapping[UDPFrontend, frozenset[str]]) -> int:
    """Delete the stale flows of these Services; return how many there were. Raises OSError."""
    if not frontends:
        return 0
    with NetlinkSocket(NETLINK_NETFILTER) as netlink:
        found = stale(read_udp_flows(netlink), frontends)
        if found:
            netlink.transact(
                Message(
                    f"delete the UDP flow to {flow.destination[0]}:{flow.destination[1]}",
                    _DELETE,
                    _HEADER + attribute(_ORIGINAL | 0x8000, flow.tuple_bytes),
                    tolerate=(errno.ENOENT,),
                )
                for flow in found
            )
    return len(found)
