"""IP addresses (apiserver pkg/cel/library/ip.go)."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar

from lastcall.kube.api.field import go_quote
from lastcall.kube.cel.libraries.addresses import parse_address
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import TRAVERSAL, always, first_traversed, for_all, one, read_once
from lastcall.kube.cel.types import opaque
from lastcall.kube.cel.values import EvaluationError
from lastcall.world.dataclass import dataclass

ROWS = """
ip                    string_to_ip                (string) -> IP
family                ip_family                   IP.() -> int
ip.isCanonical        ip_is_canonical             (string) -> bool
isUnspecified         ip_is_unspecified           IP.() -> bool
isLoopback            ip_is_loopback              IP.() -> bool
isLinkLocalMulticast  ip_is_link_local_multicast  IP.() -> bool
isLinkLocalUnicast    ip_is_link_local_unicast    IP.() -> bool
isGlobalUnicast       ip_is_global_unicast        IP.() -> bool
isIP                  is_ip                       (string) -> bool
string                ip_to_string                (IP) -> string
"""


@dataclass(frozen=True, slots=True)
class IP:
    address: IPv4Address | IPv6Address
    cel_type: ClassVar[str] = "net.IP"
    cel_unit: ClassVar[bool] = True

    @property
    def cel_size(self) -> int:
        return self.address.max_prefixlen // 8


def read(text: str) -> IP:
    try:
        address, zone = parse_address(text)
    except ValueError as error:
        raise EvaluationError(
            f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        ) from None
    if zone:
        raise EvaluationError(f"IP address {go_quote(text)} with zone value is not allowed")
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        raise EvaluationError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IP(address)


def is_ip(text: str) -> bool:
    try:
        read(text)
    except EvaluationError:
        return False
    return True


def is_link_local_multicast(ip: IP) -> bool:
    packed = ip.address.packed
    return packed[:3] == b"\xe0\0\0" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def is_global_unicast(ip: IP) -> bool:
    address = ip.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address.packed == b"\xff\xff\xff\xff"
    )


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_to_ip": read,
    "ip_family": lambda ip: ip.address.version,
    "ip_is_canonical": lambda text: str(read(text).address) == text,
    "ip_is_unspecified": lambda ip: ip.address.is_unspecified,
    "ip_is_loopback": lambda ip: ip.address.is_loopback,
    "ip_is_link_local_multicast": is_link_local_multicast,
    "ip_is_link_local_unicast": lambda ip: ip.address.is_link_local,
    "ip_is_global_unicast": is_global_unicast,
    "is_ip": is_ip,
    "ip_to_string": lambda ip: str(ip.address),
}
READS = ("string_to_ip", "is_ip")
LIBRARY = Library(
    "ip",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={
        **for_all(IMPLEMENTATIONS, one),
        **for_all(READS, first_traversed()),
        "ip_is_canonical": first_traversed(2 * TRAVERSAL),
    },
    estimates={
        **dict.fromkeys(IMPLEMENTATIONS, always(1)),
        **dict.fromkeys(READS, read_once()),
        "ip_is_canonical": read_once(2 * TRAVERSAL),
    },
    types={"net.IP": opaque("net.IP")},
)
