"""Where rules go: the kernel, or in the virtual world a list."""

from collections.abc import Mapping
from typing import Protocol

from lastcall.kube.nftables.conntrack import UDPFrontend
from lastcall.kube.nftables.objects import (
    AddChain,
    AddElements,
    Chain,
    DeleteChain,
    DeleteElements,
    SetKey,
    SetValue,
    Transaction,
)
from lastcall.kube.proxy.rules import Backend, Target


class RuleError(Exception):
    """The kernel refused a transaction: nothing of it is in force."""


class RuleSink(Protocol):
    async def apply(self, transaction: Transaction) -> None:
        """Apply the transaction: then the kernel follows it. Raises RuleError."""
        ...

    async def exists(self) -> bool:
        """Return whether there is a table, of an earlier process as a rule. Raises RuleError."""
        ...

    async def forget_udp_flows(self, frontends: Mapping[UDPFrontend, frozenset[str]]) -> int:
        """End the flows to these addresses that other endpoints than the named ones answer. Raises RuleError."""
        ...

    async def close(self) -> None: ...


class RecordingSink:
    """Keeps what it is given, and knows where a connection would go by it: for tests and the virtual world."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.forgotten: list[Mapping[UDPFrontend, frozenset[str]]] = []
        self._elements: dict[str, dict[SetKey, SetValue]] = {}
        self._chains: dict[str, Chain] = {}

    async def apply(self, transaction: Transaction) -> None:
        self.transactions.append(transaction)
        if transaction.replace:
            self._elements, self._chains = {}, {}
        for command in transaction.commands:
            match command:
                case AddElements(name, elements):
                    self._elements.setdefault(name, {}).update(elements)
                case DeleteElements(name, keys):
                    for key in keys:
                        del self._elements[name][key]
                case AddChain(chain):
                    self._chains[chain.name] = chain
                case DeleteChain(name):
                    del self._chains[name]

    def target(self, address: str, protocol: str, port: int, *, outside: bool = False) -> Target | None:
        """Return where a new connection goes, or how it is refused; None if no Service has this address and port.

        `outside`: it comes neither from a Pod nor from the node. Among several backends the kernel takes any.
        """
        key = (address, protocol, port)
        if key in self._elements.get("no-endpoints", ()):
            return Target(refusal="reject")
        if key in self._elements.get("no-local-endpoints", ()):
            return Target(refusal="drop")
        if outside and key in self._elements.get("no-local-endpoints-outside", ()):
            return Target(refusal="drop")
        for prefix in ("outside-", "") if outside else ("",):
            verdict = self._elements.get("affinity-outside" if prefix else "affinity", {}).get(key)
            if isinstance(verdict, str):
                return Target(self._sticky(verdict.removeprefix("goto ")))
            for name, elements in self._elements.items():
                if name.startswith(f"{prefix}endpoints-") and (*key, 0) in elements:
                    slots = range(int(name.rpartition("-")[2]))
                    return Target(tuple(_backend(elements[*key, slot]) for slot in slots))
        return None

    def _sticky(self, chain: str) -> tuple[Backend, ...]:
        """The endpoints of a Service with sessionAffinity: each has a chain that ends with its address."""
        found: dict[Backend, None] = {}
        for rule in self._chains[chain].rules:
            endpoint = self._chains[rule[-1].text.removeprefix("goto ")]
            address, _, port = endpoint.rules[-1][-1].text.rpartition(" ")[2].partition(":")
            found[address, int(port)] = None
        return tuple(found)

    async def exists(self) -> bool:
        return bool(self.transactions)

    async def forget_udp_flows(self, frontends: Mapping[UDPFrontend, frozenset[str]]) -> int:
        self.forgotten.append(frontends)
        return 0

    async def close(self) -> None:
        pass


def _backend(value: SetValue) -> Backend:
    if not isinstance(value, tuple):
        raise TypeError(f"{value!r} is not an endpoint")
    return value
