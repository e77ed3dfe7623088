"""CIDR blocks (apiserver pkg/cel/library/cidr.go)."""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any, ClassVar

from lastcall.kube.api.field import go_quote
from lastcall.kube.cel.bounds import Bounds, Operand
from lastcall.kube.cel.libraries.addresses import parse_prefix
from lastcall.kube.cel.libraries.ip import IP
from lastcall.kube.cel.libraries.ip import read as read_ip
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import TRAVERSAL, always, first_traversed, for_all, one, read_once, traversal
from lastcall.kube.cel.operations import no_such_overload
from lastcall.kube.cel.types import opaque
from lastcall.kube.cel.values import EvaluationError
from lastcall.world.dataclass import dataclass

ROWS = """
cidr          string_to_cidr             (string) -> CIDR
containsIP    cidr_contains_ip_string    CIDR.(string) -> bool
containsIP    cidr_contains_ip_ip        CIDR.(IP) -> bool
containsCIDR  cidr_contains_cidr_string  CIDR.(string) -> bool
containsCIDR  cidr_contains_cidr         CIDR.(CIDR) -> bool
ip            cidr_ip                    CIDR.() -> IP
prefixLength  cidr_prefix_length         CIDR.() -> int
masked        cidr_masked                CIDR.() -> CIDR
isCIDR        is_cidr                    (string) -> bool
string        cidr_to_string             (CIDR) -> string
"""

FAILED = "network address parse error during conversion from string: "


@dataclass(frozen=True, slots=True)
class CIDR:
    block: IPv4Interface | IPv6Interface
    cel_type: ClassVar[str] = "net.CIDR"
    cel_unit: ClassVar[bool] = True

    @property
    def bits(self) -> int:
        return self.block.network.prefixlen

    @property
    def cel_size(self) -> int:
        return -(-self.bits // 8)


def read(text: str) -> CIDR:
    try:
        block = parse_prefix(text)
    except ValueError as error:
        raise EvaluationError(f"{FAILED}{FAILED}{error}") from None
    if isinstance(block, IPv6Interface) and block.ip.ipv4_mapped:
        raise EvaluationError(f"{FAILED}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return CIDR(block)


def is_cidr(text: str) -> bool:
    try:
        read(text)
    except EvaluationError:
        return False
    return True


def contains_ip(cidr: CIDR, ip: IP) -> bool:
    return ip.address in cidr.block.network


def contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        ip = read_ip(text)
    except EvaluationError:
        raise no_such_overload() from None
    return contains_ip(cidr, ip)


def contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    ours, theirs = cidr.block.network, other.block.network
    return ours.version == theirs.version and cidr.bits <= other.bits and theirs.network_address in ours


def masked(cidr: CIDR) -> CIDR:
    return CIDR(ip_interface(cidr.block.network))


def ip_cost(parsed: bool) -> Callable[[Sequence[Any]], int]:
    def cost(arguments: Sequence[Any]) -> int:
        return traversal(arguments[0], 2 * TRAVERSAL) + (traversal(arguments[1]) if parsed else 0)

    return cost


def cidr_cost(parsed: bool) -> Callable[[Sequence[Any]], int]:
    base = ip_cost(parsed)
    return lambda arguments: base(arguments) + traversal(arguments[0]) + 1


def ip_estimate(parsed: bool) -> Callable[[Sequence[Operand]], tuple[Bounds, Bounds | None]]:
    def estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
        cost = Bounds(8, 32).times(TRAVERSAL)
        return cost + operands[1].size.times(TRAVERSAL) if parsed else cost, None

    return estimate


def cidr_estimate(parsed: bool) -> Callable[[Sequence[Operand]], tuple[Bounds, Bounds | None]]:
    base = ip_estimate(parsed)

    def estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
        return base(operands)[0] + Bounds(4, 16).times(TRAVERSAL) + Bounds(1, 1), None

    return estimate


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_to_cidr": read,
    "cidr_contains_ip_string": contains_ip_text,
    "cidr_contains_ip_ip": contains_ip,
    "cidr_contains_cidr_string": lambda cidr, text: contains_cidr(cidr, read(text)),
    "cidr_contains_cidr": contains_cidr,
    "cidr_ip": lambda cidr: IP(cidr.block.ip),
    "cidr_prefix_length": lambda cidr: cidr.bits,
    "cidr_masked": masked,
    "is_cidr": is_cidr,
    "cidr_to_string": lambda cidr: cidr.block.with_prefixlen,
}
READS = ("string_to_cidr", "is_cidr")
LIBRARY = Library(
    "cidr",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={
        **for_all(IMPLEMENTATIONS, one),
        **for_all(READS, first_traversed()),
        "cidr_contains_ip_string": ip_cost(True),
        "cidr_contains_ip_ip": ip_cost(False),
        "cidr_contains_cidr_string": cidr_cost(True),
        "cidr_contains_cidr": cidr_cost(False),
    },
    estimates={
        **dict.fromkeys(IMPLEMENTATIONS, always(1)),
        **dict.fromkeys(READS, read_once()),
        "cidr_contains_ip_string": ip_estimate(True),
        "cidr_contains_ip_ip": ip_estimate(False),
        "cidr_contains_cidr_string": cidr_estimate(True),
        "cidr_contains_cidr": cidr_estimate(False),
    },
    types={"net.CIDR": opaque("net.CIDR")},
)
