"""Which range of the Pod network a node gets. Pure.

Source: pkg/controller/nodeipam/ipam/cidrset/cidr_set.go (AllocateNext, Occupy), range_allocator.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.api.types.node import Node


@dataclass(frozen=True, slots=True)
class NodeRanges:
    """`cluster_cidr` is divided into ranges of `mask_size` bits. `spared` are networks that no node gets, as the
    Services'. `own` are nodes whose ranges are known beforehand."""

    cluster_cidr: str
    mask_size: int = 24
    spared: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return 1 << (self.mask_size - IPv4Network(self.cluster_cidr).prefixlen)

    def at(self, number: int) -> IPv4Network:
        """The range `number`, from 0."""
        network = IPv4Network(self.cluster_cidr)
        return IPv4Network((int(network.network_address) + (number << (32 - self.mask_size)), self.mask_size))


def checked_ranges(
    cluster_cidr: str, mask_size: int = 24, spared: tuple[str, ...] = (), own: Mapping[str, str] | None = None
) -> NodeRanges:
    """Raises ValueError for what is not a network, and for a mask that does not divide the network."""
    for text in (cluster_cidr, *spared):
        try:
            IPv4Network(text)
        except ValueError:
            raise ValueError(f"{text!r} is not an IPv4 network") from None
    length = IPv4Network(cluster_cidr).prefixlen
    if not length <= mask_size <= min(32, length + 16):
        raise ValueError(f"a node's mask of {mask_size} bits does not divide {cluster_cidr}")
    return NodeRanges(cluster_cidr, mask_size, spared, own or {})


def next_range(ranges: NodeRanges, taken: Iterable[str], start: int = 0) -> tuple[str, int] | None:
    """The first free range from number `start` on, round and round, and the number behind it; None when none is free.

    What is `taken` and no IPv4 network takes nothing.
    """
    networks = [*_networks(taken), *_networks(ranges.spared), *_networks(ranges.own.values())]
    occupied = _numbers(ranges, networks)
    for step in range(ranges.count):
        number = (start + step) % ranges.count
        if number not in occupied:
            return str(ranges.at(number)), (number + 1) % ranges.count
    return None


def range_for(name: str, ranges: NodeRanges, taken: Collection[str], start: int) -> tuple[str, int] | None:
    """As `next_range`, for the node `name`: the range in `own`, unless another node has it."""
    own = ranges.own.get(name)
    if own is not None and not any(IPv4Network(own).overlaps(each) for each in _networks(taken)):
        return own, start
    return next_range(ranges, taken, start)


def pod_cidrs(node: Node) -> list[str]:
    """The ranges that a Node has."""
    spec = node.get("spec") or {}
    one = spec.get("podCIDR")
    return list(spec.get("podCIDRs") or []) or ([one] if one else [])


def _networks(texts: Iterable[str]) -> list[IPv4Network]:
    found = []
    for text in texts:
        try:
            found.append(IPv4Network(text, strict=False))
        except ValueError:
            continue
    return found


def _numbers(ranges: NodeRanges, networks: Iterable[IPv4Network]) -> set[int]:
    """The numbers of all ranges that one of the networks touches."""
    whole, shift = IPv4Network(ranges.cluster_cidr), 32 - ranges.mask_size
    base = int(whole.network_address)
    found: set[int] = set()
    for network in networks:
        if network.overlaps(whole):
            first = max(0, int(network.network_address) - base) >> shift
            last = min(int(whole.broadcast_address), int(network.broadcast_address)) - base >> shift
            found.update(range(first, last + 1))
    return found
