"""A kernel for the service proxy's transactions: takes and refuses them as nf_tables would. Also as a RuleSink."""

from collections.abc import Mapping
from typing import Any

from lastcall.kube.nftables.objects import (
    AddChain,
    AddElements,
    AddRule,
    AddSet,
    DeleteChain,
    DeleteElements,
    DeleteSet,
    FlushChain,
    SetKey,
    SetValue,
    Transaction,
)
from lastcall.kube.nftables.statements import text_of
from lastcall.kube.proxy.sink import RuleError
from lastcall.world.world import World


class Kernel:
    """Takes transactions as nf_tables would: names must be there when they are used and unused when they go."""

    def __init__(self) -> None:
        self.sets: dict[str, dict[SetKey, SetValue]] = {}
        self.chains: dict[str, list[str]] = {}

    def apply(self, transaction: Transaction) -> None:
        if transaction.replace:
            self.sets, self.chains = {}, {}
        for command in transaction.commands:
            match command:
                case AddSet(set_):
                    assert set_.name not in self.sets
                    self.sets[set_.name] = {}
                case AddChain(chain):
                    assert chain.name not in self.chains
                    self.chains[chain.name] = []
                case DeleteElements(name, keys):
                    for key in keys:
                        del self.sets[name][key]
                case FlushChain(name):
                    self.chains[name].clear()
                case AddRule(name, rule):
                    text = text_of(rule)
                    for word, following in zip(text.split(), text.split()[1:], strict=False):
                        assert not word.startswith("@") or word[1:] in self.sets, text
                        assert word not in ("jump", "goto") or following in self.chains, text
                    self.chains[name].append(text)
                case AddElements(name, elements):
                    for key, value in elements:
                        assert key not in self.sets[name], (name, key)
                        assert not isinstance(value, str) or value.split()[1] in self.chains, value
                        self.sets[name][key] = value
                case DeleteChain(name):
                    assert not self.chains.pop(name), "it has rules"
                    assert not any(
                        t.endswith((f"jump {name}", f"goto {name}")) for r in self.chains.values() for t in r
                    )
                    verdicts = [v for s in self.sets.values() for v in s.values() if isinstance(v, str)]
                    assert all(v.split()[1] != name for v in verdicts)
                case DeleteSet(name):
                    assert not self.sets.pop(name), "it has elements"
                    assert not any(f"@{name}" in t.split() for rules in self.chains.values() for t in rules)

    def holds(self) -> tuple[Any, Any]:
        return self.sets, self.chains

    def backends(self, address: str, port: int = 80) -> list[str]:
        """Where new connections to this address go, sorted."""
        found = [
            value[0]
            for name, elements in self.sets.items()
            if name.startswith("endpoints-")
            for key, value in elements.items()
            if key[:3] == (address, "TCP", port) and isinstance(value, tuple)
        ]
        return sorted(found)


class KernelSink:
    """`failures` are raised by the next transactions, which change nothing then; each takes `seconds`.

    One that names the address `refused` is refused, as one that cannot even be encoded.
    """

    def __init__(self, world: World, seconds: float = 0.0) -> None:
        self.kernel = Kernel()
        self.written: list[tuple[float, Transaction]] = []
        self.failures: list[str] = []
        self.refused = ""
        self.forgotten: list[Mapping[tuple[str, int], frozenset[str]]] = []
        self.stands = False
        self._world = world
        self._seconds = seconds

    async def apply(self, transaction: Transaction) -> None:
        await self._world.clock.sleep(self._seconds)
        if self.failures:
            raise RuleError(self.failures.pop(0))
        if self.refused and self.refused in repr(transaction):
            raise OverflowError("int too large to convert")
        self.kernel.apply(transaction)
        self.stands = True
        self.written.append((self._world.clock.monotonic_ns() / 1e9, transaction))

    async def exists(self) -> bool:
        return self.stands

    async def forget_udp_flows(self, frontends: Mapping[tuple[str, int], frozenset[str]]) -> int:
        self.forgotten.append(frontends)
        return 0

    async def close(self) -> None:
        pass
