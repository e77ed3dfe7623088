"""Addresses of the node's podCIDR, handed out in turn. Pure.

An address that was freed is the last one to be handed out again, so that a client which still holds the address of a
Pod that is gone does not reach its successor (the rule of CNI's host-local plugin, which also keeps the first host
address for a gateway).
"""

# check: pure

from ipaddress import IPv4Address, IPv4Network


class AddressPoolError(Exception):
    """No address is free, or one does not belong here."""


class AddressPool:
    """Round robin over a network without its network address, first host and broadcast address."""

    def __init__(self, cidr: str) -> None:
        """Raises ValueError for anything but an IPv4 network of at least two usable addresses."""
        network = IPv4Network(cidr)
        self._first = int(network.network_address) + 2
        self._count = network.num_addresses - 3
        if self._count < 2:
            raise ValueError(f"{cidr} has room for fewer than two Pods; use a prefix length of 29 or less")
        self._next = 0
        self._used: set[int] = set()

    def __len__(self) -> int:
        """How many addresses are in use."""
        return len(self._used)

    @property
    def capacity(self) -> int:
        return self._count

    def allocate(self) -> str:
        """Return an address that nobody uses. Raises AddressPoolError if there is none."""
        for step in range(self._count):
            offset = (self._next + step) % self._count
            if offset not in self._used:
                self._used.add(offset)
                self._next = (offset + 1) % self._count
                return self._text(offset)
        raise AddressPoolError(
            f"no IP addresses available in range set: {self._text(0)}-{self._text(self._count - 1)} "
            f"(all {self._count} are in use by Pods)"
        )

    def reserve(self, address: str) -> None:
        """Mark an address as used that was handed out before a restart. Raises AddressPoolError for a foreign one."""
        offset = self._offset(address)
        if not 0 <= offset < self._count:
            raise AddressPoolError(f"{address} is not one of {self._text(0)}-{self._text(self._count - 1)}")
        self._used.add(offset)
        self._next = (offset + 1) % self._count

    def release(self, address: str) -> None:
        """Free an address; one that is free or foreign stays as it is."""
        self._used.discard(self._offset(address))

    def _offset(self, address: str) -> int:
        try:
            return int(IPv4Address(address)) - self._first
        except ValueError:
            return -1  # of a network of another kind

    def _text(self, offset: int) -> str:
        return str(IPv4Address(self._first + offset))
