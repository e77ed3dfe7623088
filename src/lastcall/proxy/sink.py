"""Where rules go: the kernel, or in the virtual world a list."""

from collections.abc import Mapping
from typing import Protocol

from lastcall.proxy.conntrack import UDPFrontend
from lastcall.proxy.nft_objects import Transaction


class RuleError(Exception):
    """The kernel refused a transaction: nothing of it is in force."""


class RuleSink(Protocol):
    async def apply(self, transaction: Transaction) -> None:
        """Return when the kernel goes by it. Raises RuleError."""
        ...

    async def exists(self) -> bool:
        """Whether a table stands there, of an earlier process as a rule. Raises RuleError."""
        ...

    async def forget_udp_flows(self, frontends: Mapping[UDPFrontend, frozenset[str]]) -> int:
        """End the flows to these addresses that others answer than those named. Raises RuleError."""
        ...

    async def close(self) -> None: ...


class RecordingSink:
    """Keeps what it is given: for tests and the virtual world."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.forgotten: list[Mapping[UDPFrontend, frozenset[str]]] = []

    async def apply(self, transaction: Transaction) -> None:
        self.transactions.append(transaction)

    async def exists(self) -> bool:
        return bool(self.transactions)

    async def forget_udp_flows(self, frontends: Mapping[UDPFrontend, frozenset[str]]) -> int:
        self.forgotten.append(frontends)
        return 0

    async def close(self) -> None:
        pass
