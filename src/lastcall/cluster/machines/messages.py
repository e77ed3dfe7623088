"""What is said to the kernel of a machine: a VXLAN link and its neighbours, routes that are known again as ours."""

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from lastcall.world.netlink import Message, NetlinkError, NetlinkSocket, attribute, attributes

PROTOCOL = 108
"""`rtm_protocol` of our routes (`ip route show proto 108`): what nobody else uses (/etc/iproute2/rt_protos)."""

_CREATE, _REPLACE, _EXCL = 0x400, 0x100, 0x200
_NEWLINK, _GETLINK, _NEWROUTE, _DELROUTE, _GETROUTE, _NEWNEIGH, _DELNEIGH = 16, 18, 24, 25, 26, 28, 29
_GETADDR, _IFA_LOCAL = 22, 2
_IFF_UP = 1
_INFO = struct.Struct("=BxHiII")
_ROUTE = struct.Struct("=BBBBBBBBI")
_MAIN, _UNIVERSE, _LINK, _UNICAST, _ONLINK = 254, 0, 253, 1, 4
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO = 1, 3, 4, 18
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC = 1, 4, 5, 7
_AF_BRIDGE, _NTF_SELF, _PERMANENT = 7, 2, 0x80
_NDA_DST, _NDA_LLADDR = 1, 2


@dataclass(frozen=True, slots=True)
class Route:
    """Of the main table. `gateway` and `source` are "" when the route has none; `protocol` says whose it is."""

    network: str
    index: int
    gateway: str = ""
    source: str = ""
    protocol: int = PROTOCOL


def new_vxlan(name: str, hardware: bytes, mtu: int, *, vni: int, port: int, local: str) -> Message:
    """A VXLAN link that learns nothing by itself; the kernel chooses its index."""
    data = (
        attribute(1, struct.pack("=I", vni))
        + attribute(4, IPv4Address(local).packed)
        + attribute(7, b"\0")  # IFLA_VXLAN_LEARNING
        + attribute(15, struct.pack(">H", port))
    )
    info = attribute(1, b"vxlan") + attribute(2, data)
    body = _INFO.pack(0, 0, 0, _IFF_UP, _IFF_UP)
    body += attribute(_IFLA_IFNAME, name.encode() + b"\0") + attribute(_IFLA_ADDRESS, hardware)
    body += attribute(_IFLA_MTU, struct.pack("=I", mtu)) + attribute(_IFLA_LINKINFO, info)
    return Message(f"create the VXLAN link {name}", _NEWLINK, body, _CREATE | _EXCL)


def new_peer(address: str, index: int, hardware: bytes) -> list[Message]:
    """Which hardware address a machine has on VXLAN link `index`, and where that is."""
    return [_neighbour(socket.AF_INET, address, index, hardware), _neighbour(_AF_BRIDGE, address, index, hardware)]


def delete_peer(address: str, index: int, hardware: bytes) -> list[Message]:
    return [
        _neighbour(socket.AF_INET, address, index, hardware, delete=True),
        _neighbour(_AF_BRIDGE, address, index, hardware, delete=True),
    ]


def _neighbour(family: int, address: str, index: int, hardware: bytes, *, delete: bool = False) -> Message:
    flags = _NTF_SELF if family == _AF_BRIDGE else 0
    body = struct.pack("=BxxxiHBB", family, index, _PERMANENT, flags, 0)
    body += attribute(_NDA_DST, IPv4Address(address).packed) + attribute(_NDA_LLADDR, hardware)
    what = f"{'delete' if delete else 'add'} the way to {address}"
    if delete:
        return Message(what, _DELNEIGH, body, tolerate=(errno.ENOENT, errno.ENODEV))
    return Message(what, _NEWNEIGH, body, _CREATE | _REPLACE)


def new_route(route: Route, *, on_link: bool = False) -> Message:
    """An older route to the network is replaced. `on_link`: the gateway is on that link, whatever routes say."""
    what = f"add the route to {route.network}" + (f" through {route.gateway}" if route.gateway else "")
    return Message(what, _NEWROUTE, _route(route, _ONLINK if on_link else 0), _CREATE | _REPLACE)


def delete_route(route: Route) -> Message:
    """A route that is not found counts as deleted."""
    return Message(f"delete the route to {route.network}", _DELROUTE, _route(route, 0), tolerate=(errno.ESRCH,))


def _route(route: Route, flags: int) -> bytes:
    network = IPv4Network(route.network)
    scope = _UNIVERSE if route.gateway else _LINK
    body = _ROUTE.pack(
        socket.AF_INET, network.prefixlen, 0, 0, _MAIN, route.protocol, scope, _UNICAST, flags
    ) + attribute(_RTA_DST, network.network_address.packed)
    body += attribute(_RTA_OIF, struct.pack("=i", route.index))
    if route.gateway:
        body += attribute(_RTA_GATEWAY, IPv4Address(route.gateway).packed)
    if route.source:
        body += attribute(_RTA_PREFSRC, IPv4Address(route.source).packed)
    return body


def routes(kernel: NetlinkSocket) -> Iterator[Route]:
    """All of the main table but the default ones. Raises NetlinkError."""
    for body in kernel.dump("list routes", _GETROUTE, _ROUTE.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)):
        _, length, _, _, table, protocol, _, kind, _ = _ROUTE.unpack_from(body)
        found = attributes(body, _ROUTE.size)
        if table != _MAIN or kind != _UNICAST or not length or _RTA_DST not in found:
            continue
        network = str(IPv4Network((found[_RTA_DST], length)))
        index = struct.unpack("=i", found[_RTA_OIF])[0] if _RTA_OIF in found else 0
        yield Route(network, index, _text(found, _RTA_GATEWAY), _text(found, _RTA_PREFSRC), protocol)


def route_to(kernel: NetlinkSocket, address: str) -> Route:
    """How this machine reaches an address now. Raises NetlinkError when it does not."""
    body = _ROUTE.pack(socket.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0) + attribute(_RTA_DST, IPv4Address(address).packed)
    answer = kernel.ask(f"look for the way to {address}", _GETROUTE, body)
    found = attributes(answer, _ROUTE.size)
    (index,) = struct.unpack("=i", found[_RTA_OIF])
    return Route(f"{address}/32", index, _text(found, _RTA_GATEWAY), _text(found, _RTA_PREFSRC))


def _text(found: dict[int, bytes], key: int) -> str:
    return str(IPv4Address(found[key])) if key in found else ""


def link_named(kernel: NetlinkSocket, name: str) -> int:
    """The index of the link, 0 when it is not found. Raises NetlinkError."""
    body = _INFO.pack(0, 0, 0, 0, 0) + attribute(_IFLA_IFNAME, name.encode() + b"\0")
    try:
        answer = kernel.ask(f"look for link {name}", _GETLINK, body)
    except NetlinkError as error:
        if error.errno == errno.ENODEV:
            return 0
        raise
    index: int = _INFO.unpack_from(answer)[2]
    return index


def mtu_of(kernel: NetlinkSocket, index: int) -> int:
    """Raises NetlinkError."""
    answer = kernel.ask(f"look at link {index}", _GETLINK, _INFO.pack(0, 0, index, 0, 0))
    mtu: int = struct.unpack("=I", attributes(answer, _INFO.size)[_IFLA_MTU])[0]
    return mtu


def link_with(kernel: NetlinkSocket, address: str) -> int:
    """The link that has an address of this machine, not the loopback unless it is the only one. Raises OSError."""
    packed, found = IPv4Address(address).packed, 0
    body = struct.pack("=BBBBi", socket.AF_INET, 0, 0, 0, 0)
    for each in kernel.dump("list addresses", _GETADDR, body):
        (index,) = struct.unpack_from("=i", each, 4)
        if attributes(each, 8).get(_IFA_LOCAL) == packed and (not found or found == 1):
            found = index
    if not found:
        raise OSError(errno.EADDRNOTAVAIL, f"{address} is not an address of this machine; fix: name one (ip address)")
    return found
