"""Service addresses and node ports: who holds which, and a free one when none is asked for.

The allocators live in memory and are filled from the store when the server starts; the registry takes before a write
and gives back when the write fails or the Service goes.

Sources: pkg/registry/core/service/ipallocator, pkg/registry/core/service/portallocator.
"""

from ipaddress import IPv4Address, IPv4Network
from random import Random
from typing import Any, Protocol

NODE_PORT_FIRST, NODE_PORT_LAST = 30000, 32767


class AllocationError(Exception):
    """The asked value is taken or out of range, or nothing is free. The text is Kubernetes's own."""


class Allocator:
    """Hands out integers of [first, last]."""

    def __init__(self, first: int, last: int, random: Random) -> None:
        self._first = first
        self._last = last
        self._random = random
        self._taken: set[int] = set()

    def take(self, number: int) -> bool:
        """Take it; return False when it is taken already. Raises ValueError outside the range."""
        if not self._first <= number <= self._last:
            raise ValueError(f"{number} is not in {self._first}-{self._last}")
        if number in self._taken:
            return False
        self._taken.add(number)
        return True

    def take_any(self, first: int | None = None) -> int | None:
        """Take a free one that is not below `first`, None when all are taken."""
        start = self._first if first is None else first
        size = self._last - start + 1
        if size <= 0:
            return None
        offset = self._random.randrange(size)
        for step in range(size):
            number = start + (offset + step) % size
            if self.take(number):
                return number
        return None

    def give_back(self, number: int) -> None:
        self._taken.discard(number)


def out_of_range(address: str, network: IPv4Network, dry_run: bool) -> str:
    """Return the error for an address outside the ranges: a dry run names the first one, a write has looked in all.

    Source: ipallocator.go, cidrallocator.go:MetaAllocator.DryRun.
    """
    why = "the provided network does not match the current range"
    if dry_run:
        why = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"
    return f"failed to allocate IP {address}: {why}"


class AddressAllocator(Protocol):
    """Gives out cluster IPs. `take` and `take_any` raise AllocationError."""

    def take(self, value: str, /, *, dry_run: bool = False) -> None: ...

    def take_any(self) -> str: ...

    def give_back(self, value: str, /) -> None: ...


class PortAllocator(Protocol):
    """Gives out node ports. `take` and `take_any` raise AllocationError."""

    def take(self, value: int, /, *, dry_run: bool = False) -> None: ...

    def take_any(self) -> int: ...

    def give_back(self, value: int, /) -> None: ...


class ClusterIPAllocator:
    """Addresses of the Service CIDR, without its network and broadcast address."""

    def __init__(self, cidr: str, random: Random) -> None:
        self._network = IPv4Network(cidr)
        first, last = int(self._network.network_address) + 1, int(self._network.broadcast_address) - 1
        self._allocator = Allocator(first, last, random)
        self._upper_band = first + static_band(self._network.num_addresses)

    def take(self, address: str, *, dry_run: bool = False) -> None:
        """Take an address. Raises AllocationError, of a `dry_run` with another text."""
        try:
            taken = self._allocator.take(int(IPv4Address(address)))
        except ValueError:
            raise AllocationError(out_of_range(address, self._network, dry_run)) from None
        if not taken:
            raise AllocationError(f"failed to allocate IP {address}: provided IP is already allocated")

    def take_any(self) -> str:
        """Take one from the upper band while it lasts: the lower one is for addresses that users choose.

        Source: KEP-3070, ServiceIPStaticSubrange. Raises AllocationError when the range is full.
        """
        number = self._allocator.take_any(self._upper_band)
        number = self._allocator.take_any() if number is None else number
        if number is None:
            raise AllocationError("failed to allocate a serviceIP: range is full")
        return str(IPv4Address(number))

    def give_back(self, address: str) -> None:
        self._allocator.give_back(int(IPv4Address(address)))


def static_band(size: int) -> int:
    """Return how many of the lowest addresses are not handed out. (ipallocator.go:calculateRangeOffset)"""
    return 0 if size <= 16 else min(256, max(16, size // 16))


class NodePortAllocator:
    """Ports 30000-32767."""

    def __init__(self, random: Random) -> None:
        self._allocator = Allocator(NODE_PORT_FIRST, NODE_PORT_LAST, random)

    def take(self, port: int, *, dry_run: bool = False) -> None:
        """Take a port. Raises AllocationError, the same for a `dry_run`."""
        try:
            taken = self._allocator.take(port)
        except ValueError:
            raise AllocationError(
                f"provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORT_FIRST}-{NODE_PORT_LAST}"
            ) from None
        if not taken:
            raise AllocationError("provided port is already allocated")

    def take_any(self) -> int:
        """Take a free port. Raises AllocationError when the range is full."""
        port = self._allocator.take_any()
        if port is None:
            raise AllocationError("failed to allocate a nodePort: range is full")
        return port

    def give_back(self, port: int) -> None:
        self._allocator.give_back(port)


def why_not(allocator: AddressAllocator | PortAllocator, value: Any, dry_run: bool) -> str:
    """Return why a chosen address cannot be taken; "" when it can."""
    try:
        allocator.take(value, dry_run=dry_run)
    except AllocationError as error:
        return str(error)
    allocator.give_back(value)
    return ""
