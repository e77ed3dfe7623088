"""Netlink in process: as much of rtnetlink and nfnetlink as a Pod network and its probes need.

Standard library only, so that the small processes can use it too; one `sendmsg` carries a whole configuration.
Measured for one Pod's links, addresses, neighbours and routes: 0.6 ms here, 3.0 ms through pyroute2, whose import alone
takes 110 ms of a cluster's start.

A socket belongs to the network namespace of the thread that opened it, for as long as it lives.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from types import TracebackType
from typing import Self

from lastcall.world.dataclass import dataclass

NETLINK_ROUTE = 0
NETLINK_NETFILTER = 12

_NLM_F_REQUEST, _NLM_F_ACK = 0x1, 0x4
_NLM_F_REPLACE, _NLM_F_EXCL, _NLM_F_CREATE = 0x100, 0x200, 0x400
_NLM_F_DUMP = 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_SO_SNDBUFFORCE = 32
_RTM_NEWLINK, _RTM_DELLINK, _RTM_GETLINK, _RTM_NEWADDR = 16, 17, 18, 20
_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_NEWNEIGH = 24, 25, 28
_IFF_UP, _IFF_NOARP = 0x1, 0x80
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 18, 28
_IFLA_OPERSTATE, _IF_OPER_UP = 16, 6
_IFLA_GROUP = 27
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC = 1, 4, 5, 7
_RT_TABLE_MAIN, _RTPROT_BOOT, _RTN_UNICAST, _RTN_LOCAL = 254, 3, 1, 2
_RT_SCOPE_UNIVERSE, _RT_SCOPE_LINK, _RT_SCOPE_HOST = 0, 253, 254
_NDA_DST, _NDA_LLADDR, _NUD_PERMANENT = 1, 2, 0x80
_NLMSG_HEADER = struct.Struct("=IHHII")
_INFO = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change

LOOPBACK_INDEX = 1
"""`lo` is the first link of every network namespace."""


class NetlinkError(OSError):
    """The kernel refused one message; `errno` is its answer, the text says which message it was."""


@dataclass(frozen=True, slots=True)
class Message:
    """One request. `what` names it in errors; an answer in `tolerate` (errno numbers) counts as done."""

    what: str
    type: int
    body: bytes
    flags: int = 0
    tolerate: tuple[int, ...] = ()


MOST_BYTES = 0xFFFF
"""Of an attribute with its header: its length has 16 bits."""


def attribute(kind: int, payload: bytes) -> bytes:
    """Return a struct nlattr: length, type, payload, padded to four bytes.

    Raises NetlinkError (EMSGSIZE) for more than `MOST_BYTES`, as the kernel does for a message that is too long.
    """
    length = 4 + len(payload)
    if length > MOST_BYTES:
        raise NetlinkError(errno.EMSGSIZE, f"{length} bytes in one netlink attribute; {MOST_BYTES} is the most")
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def link_up(index: int) -> Message:
    return Message(f"set link {index} up", _RTM_NEWLINK, _INFO.pack(0, 0, index, _IFF_UP, _IFF_UP))


def link_down(index: int) -> Message:
    """Return the message that sets a link down; the kernel removes its routes and neighbour entries, too."""
    return Message(f"set link {index} down", _RTM_NEWLINK, _INFO.pack(0, 0, index, 0, _IFF_UP))


def delete_link(index: int) -> Message:
    """Return the message that deletes a link. Slow (the kernel waits for readers, 15 ms or more): only after errors."""
    return Message(f"delete link {index}", _RTM_DELLINK, _INFO.pack(0, 0, index, 0, 0), tolerate=(errno.ENODEV,))


def new_veth(
    name: str,
    index: int,
    hardware_address: bytes,
    peer_name: str,
    peer_index: int,
    peer_hardware_address: bytes,
    peer_netns: int,
    *,
    group: int = 0,
    arp: bool = True,
) -> Message:
    """Return the message for a veth pair; the peer, still down, is created in the namespace of fd `peer_netns`.

    The caller chooses both link indices, so that nobody has to look them up; they must differ (the kernel takes equal
    ones for a link without a lower one). `EEXIST` or `EBUSY` is the answer when a name or an index is taken.
    The near end is in a `group` of links; without `arp` it neither sends nor answers ARP, nor learns from it.
    """
    flags = _IFF_UP if arp else _IFF_UP | _IFF_NOARP
    peer = (
        _INFO.pack(0, 0, peer_index, 0, 0)
        + attribute(_IFLA_IFNAME, peer_name.encode() + b"\0")
        + attribute(_IFLA_ADDRESS, peer_hardware_address)
        + attribute(_IFLA_NET_NS_FD, struct.pack("=I", peer_netns))
    )
    kind = attribute(_IFLA_INFO_KIND, b"veth")
    body = (
        _INFO.pack(0, 0, index, flags, flags)
        + attribute(_IFLA_IFNAME, name.encode() + b"\0")
        + attribute(_IFLA_GROUP, struct.pack("=I", group))
        + attribute(_IFLA_ADDRESS, hardware_address)
        + attribute(_IFLA_LINKINFO, kind + attribute(_IFLA_INFO_DATA, attribute(_VETH_INFO_PEER, peer)))
    )
    return Message(f"create veth {name}", _RTM_NEWLINK, body, _NLM_F_CREATE | _NLM_F_EXCL)


def new_address(index: int, address: str) -> Message:
    """Return the message that adds `address`/32 to a link; if it is there already, that is no error."""
    packed = IPv4Address(address).packed
    body = struct.pack("=BBBBi", socket.AF_INET, 32, 0, _RT_SCOPE_UNIVERSE, index)
    body += attribute(_IFA_LOCAL, packed) + attribute(_IFA_ADDRESS, packed)
    flags = _NLM_F_CREATE | _NLM_F_EXCL
    return Message(f"add address {address}/32 to link {index}", _RTM_NEWADDR, body, flags, (errno.EEXIST,))


def new_link_route(destination: str, index: int, preferred_source: str = "") -> Message:
    """Return the message that routes `destination`/32 over link `index` without a gateway, replacing an older route."""
    kinds = (_RT_TABLE_MAIN, _RTPROT_BOOT, _RT_SCOPE_LINK, _RTN_UNICAST)
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, 0, 0, *kinds, 0)
    body += attribute(_RTA_DST, IPv4Address(destination).packed) + attribute(_RTA_OIF, struct.pack("=i", index))
    if preferred_source:
        body += attribute(_RTA_PREFSRC, IPv4Address(preferred_source).packed)
    return Message(f"add route to {destination}/32", _RTM_NEWROUTE, body, _NLM_F_CREATE | _NLM_F_REPLACE)


def new_default_route(gateway: str, index: int) -> Message:
    return new_gateway_route("0.0.0.0/0", gateway, index)


def new_gateway_route(destination: str, gateway: str, index: int, preferred_source: str = "") -> Message:
    """Return the message that routes `destination` (a CIDR) through `gateway` on link `index`; replaces older ones."""
    network = IPv4Network(destination)
    scope, kind = _RT_SCOPE_UNIVERSE, _RTN_UNICAST
    length = network.prefixlen
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, length, 0, 0, _RT_TABLE_MAIN, _RTPROT_BOOT, scope, kind, 0)
    if length:
        body += attribute(_RTA_DST, network.network_address.packed)
    body += attribute(_RTA_OIF, struct.pack("=i", index)) + attribute(_RTA_GATEWAY, IPv4Address(gateway).packed)
    if preferred_source:
        body += attribute(_RTA_PREFSRC, IPv4Address(preferred_source).packed)
    what = f"add the route to {destination} through {gateway}"
    return Message(what, _RTM_NEWROUTE, body, _NLM_F_CREATE | _NLM_F_REPLACE)


def new_local_network(network: str, preferred_source: str) -> Message:
    """Return the message that makes all addresses of a network this node's; packets it sends there have this source."""
    net = IPv4Network(network)
    header = struct.pack(
        "=BBBBBBBBI",
        *(socket.AF_INET, net.prefixlen, 0, 0, _RT_TABLE_MAIN, _RTPROT_BOOT, _RT_SCOPE_HOST, _RTN_LOCAL, 0),
    )
    body = header + attribute(_RTA_DST, net.network_address.packed)
    body += attribute(_RTA_OIF, struct.pack("=i", LOOPBACK_INDEX))
    body += attribute(_RTA_PREFSRC, IPv4Address(preferred_source).packed)
    return Message(f"add a local route to {network}", _RTM_NEWROUTE, body, _NLM_F_CREATE | _NLM_F_REPLACE)


def delete_link_route(destination: str) -> Message:
    """Return the message that deletes a route; a route that does not exist counts as deleted."""
    header = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, 0, 0, _RT_TABLE_MAIN, 0, _RT_SCOPE_LINK, 0, 0)
    body = header + attribute(_RTA_DST, IPv4Address(destination).packed)
    return Message(f"delete the route to {destination}/32", _RTM_DELROUTE, body, tolerate=(errno.ESRCH,))


def new_neighbour(address: str, index: int, hardware_address: bytes) -> Message:
    """Return the message for a permanent neighbour entry: the first packet needs no ARP."""
    body = struct.pack("=BxxxiHBB", socket.AF_INET, index, _NUD_PERMANENT, 0, _RTN_UNICAST)
    body += attribute(_NDA_DST, IPv4Address(address).packed) + attribute(_NDA_LLADDR, hardware_address)
    return Message(f"add neighbour {address}", _RTM_NEWNEIGH, body, _NLM_F_CREATE | _NLM_F_REPLACE)


def nftables_table(name: str) -> list[Message]:
    """Return the batch that makes one empty nftables table; send it with `acknowledged=1`."""
    generation = struct.pack(">BBH", 0, 0, 10)  # struct nfgenmsg: res_id NFNL_SUBSYS_NFTABLES
    table = struct.pack(">BBH", socket.AF_INET, 0, 0) + attribute(1, name.encode() + b"\0")
    return [
        Message("begin an nftables batch", 16, generation),
        Message(f"create nftables table {name}", (10 << 8) | 0, table, _NLM_F_CREATE),
        Message("end an nftables batch", 17, generation),
    ]


def has_nftables_table(name: str) -> bool:
    """Return whether this network namespace has such an IPv4 table. Raises OSError if it cannot be asked."""
    table = struct.pack(">BBH", socket.AF_INET, 0, 0) + attribute(1, name.encode() + b"\0")
    with NetlinkSocket(NETLINK_NETFILTER) as netfilter:
        try:
            netfilter.transact([Message(f"look for table {name}", (10 << 8) | 1, table)])
        except NetlinkError as error:
            if error.errno == errno.ENOENT:
                return False
            raise
    return True


class NetlinkSocket:
    """A netlink socket of one network namespace. Not for use by several threads at once."""

    def __init__(self, protocol: int = NETLINK_ROUTE) -> None:
        """Raises OSError when the kernel has no such protocol."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._socket.bind((0, 0))
        self._sequence = 0

    def transact(self, messages: Iterable[Message], *, acknowledged: int | None = None) -> None:
        """Send all messages at once and wait for every answer; the kernel works on them in this order.

        A refused message does not stop those behind it. Raises NetlinkError for the first one that was refused.
        `acknowledged` is how many answers come when not every message is to be acknowledged.
        """
        pending: dict[int, Message] = {}
        data = b""
        ask = _NLM_F_REQUEST | (_NLM_F_ACK if acknowledged is None else 0)
        for message in messages:
            self._sequence += 1
            pending[self._sequence] = message
            flags = ask | message.flags | (_NLM_F_ACK if acknowledged is not None and message.flags else 0)
            length = _NLMSG_HEADER.size + len(message.body)
            data += _NLMSG_HEADER.pack(length, message.type, flags, self._sequence, 0) + message.body
        self._socket.sendto(data, (0, 0))
        left = len(pending) if acknowledged is None else acknowledged
        failed: NetlinkError | None = None
        while left > 0:
            for sequence, code in _answers(self._socket.recv(65536)):
                answered = pending.get(sequence)
                if answered is None:
                    continue  # an answer to an older request
                left -= 1
                if code and code not in answered.tolerate and failed is None:
                    failed = NetlinkError(code, f"{answered.what}: {os.strerror(code)}")
        if failed is not None:
            raise failed

    def batch(self, subsystem: int, messages: Sequence[Message]) -> None:
        """Send messages of an nfnetlink subsystem (10: nf_tables) as one transaction: all of them happen, or none.

        Raises NetlinkError for the first one that was refused, and OSError (EMSGSIZE) for more than `largest` bytes.
        """
        generation = struct.pack(">BBH", 0, 0, subsystem)
        pending: dict[int, Message] = {}
        parts: list[bytes] = []
        for place, message in enumerate((Message("begin", 16, generation), *messages, Message("end", 17, generation))):
            self._sequence += 1
            pending[self._sequence] = message
            # Errors are always answered; one answer for the last message says that all of it is in force.
            flags = _NLM_F_REQUEST | message.flags | (_NLM_F_ACK if place == len(messages) else 0)
            length = _NLMSG_HEADER.size + len(message.body)
            parts.append(_NLMSG_HEADER.pack(length, message.type, flags, self._sequence, 0) + message.body)
        last = self._sequence - 1
        self._socket.sendto(b"".join(parts), (0, 0))
        while True:
            for sequence, code in _answers(self._socket.recv(65536)):
                answered = pending.get(sequence)
                if answered is not None and code:
                    raise NetlinkError(code, f"{answered.what}: {os.strerror(code)}")
                if sequence == last:
                    return

    def widen(self, size: int) -> int:
        """Let up to `size` bytes be sent at once, if the kernel allows it; return how many may be."""
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, size)
        except PermissionError:  # in a user namespace: no more than net.core.wmem_max
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) - 1024

    def dump(self, what: str, kind: int, body: bytes) -> Iterator[bytes]:
        """Yield the bodies of all messages that answer an NLM_F_DUMP request. Raises NetlinkError."""
        self._sequence += 1
        length = _NLMSG_HEADER.size + len(body)
        flags = _NLM_F_REQUEST | _NLM_F_DUMP
        self._socket.sendto(_NLMSG_HEADER.pack(length, kind, flags, self._sequence, 0) + body, (0, 0))
        while True:
            data = self._socket.recv(1 << 20)
            offset = 0
            while offset + _NLMSG_HEADER.size <= len(data):
                size, answer, _, sequence, _ = _NLMSG_HEADER.unpack_from(data, offset)
                start = offset + _NLMSG_HEADER.size
                offset += (size + 3) & ~3
                if sequence != self._sequence:
                    continue
                if answer == _NLMSG_DONE:
                    return
                if answer == _NLMSG_ERROR:
                    code = -struct.unpack_from("=i", data, start)[0]
                    raise NetlinkError(code, f"{what}: {os.strerror(code)}")
                yield data[start:offset]

    def link_operates(self, index: int) -> bool:
        """Return whether a link forwards packets now. The question makes the kernel (since 6.8) finish pending changes.

        Raises NetlinkError for an unknown link.
        """
        answer = self.ask(f"look at link {index}", _RTM_GETLINK, _INFO.pack(0, 0, index, 0, 0))
        return _attributes(answer, _INFO.size).get(_IFLA_OPERSTATE) == bytes([_IF_OPER_UP])

    def ask(self, what: str, kind: int, body: bytes) -> bytes:
        """Return the body of the one message that answers a request. Raises NetlinkError."""
        self._sequence += 1
        length = _NLMSG_HEADER.size + len(body)
        self._socket.sendto(_NLMSG_HEADER.pack(length, kind, _NLM_F_REQUEST, self._sequence, 0) + body, (0, 0))
        while True:
            data = self._socket.recv(65536)
            size, answer, _, sequence, _ = _NLMSG_HEADER.unpack_from(data)
            if sequence != self._sequence:
                continue
            if answer == _NLMSG_ERROR:
                code = -struct.unpack_from("=i", data, _NLMSG_HEADER.size)[0]
                raise NetlinkError(code, f"{what}: {os.strerror(code)}")
            return data[_NLMSG_HEADER.size : size]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def attributes(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """Return type → payload of the attributes from `offset` on, without the flags of nested ones."""
    return {kind & 0x3FFF: payload for kind, payload in _attributes(data, offset).items()}


def _attributes(data: bytes, offset: int) -> dict[int, bytes]:
    found = {}
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            break
        found[kind] = data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found


def _answers(data: bytes) -> Iterable[tuple[int, int]]:
    """(sequence, errno number) of each NLMSG_ERROR in a datagram; 0 is success."""
    offset = 0
    while offset + _NLMSG_HEADER.size <= len(data):
        length, kind, _, sequence, _ = _NLMSG_HEADER.unpack_from(data, offset)
        if length < _NLMSG_HEADER.size:
            break
        if kind == _NLMSG_ERROR and offset + _NLMSG_HEADER.size + 4 <= len(data):
            yield sequence, -struct.unpack_from("=i", data, offset + _NLMSG_HEADER.size)[0]
        offset += (length + 3) & ~3
