"""Writes the Pods' tables to the kernel: in one transaction or, if that is refused, Pod by Pod, so that a Pod whose
rules the kernel does not take keeps no other from its own. It is closed until they are taken."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from lastcall.kube.nftables.objects import Transaction
from lastcall.kube.nftables.state import Fragment, Owner, TableState
from lastcall.kube.proxy.policies.pod_table import PodTable
from lastcall.kube.proxy.policies.policy import PodKey
from lastcall.kube.proxy.policies.table import skeleton
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

AGAIN_SECONDS = 30.0
"""After so long the kernel is asked again to take rules that it refused."""


class PolicySink(Protocol):
    """Makes transactions true; both raise RuleError."""

    async def apply(self, transaction: Transaction) -> None: ...

    async def remove(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Refused:
    table: PodTable
    error: Exception
    until: float


class PolicyWriter:
    """`refused` are the Pods whose rules the kernel did not take, and why."""

    def __init__(self, sink: PolicySink, clock: Clock, judged: Iterable[str]) -> None:
        self._sink = sink
        self._clock = clock
        self._state = TableState(skeleton(judged))
        self._whole = True
        """The next write replaces the table."""
        self._refused: dict[PodKey, _Refused] = {}

    @property
    def refused(self) -> dict[PodKey, Exception]:
        return {key: each.error for key, each in self._refused.items()}

    async def remove(self) -> None:
        """Remove the rules. Raises RuleError."""
        await self._sink.remove()

    async def write(self, tables: Mapping[PodKey, PodTable]) -> None:
        """Write the rules; wait until the kernel follows the tables of isolated Pods here, or has closed `refused`
        ones.

        Raises RuleError, or what else the sink raises, if it takes nothing at all.
        """
        now = monotonic(self._clock)
        self._refused = {
            key: each for key, each in self._refused.items() if tables.get(key) == each.table and now < each.until
        }
        wanted: dict[Owner, Fragment] = {}
        for key, table in tables.items():
            wanted |= {("pod", *key): table.closed} if key in self._refused else _fragments(key, table)
        stood = self._state.owned()
        transaction = self._state.change({owner: {} for owner in stood if owner not in wanted} | wanted)
        if self._whole:
            transaction = self._state.everything()
        if transaction:
            self._whole = True
            try:
                await self._sink.apply(transaction)
            except Exception:
                await self._write_one_by_one(stood, tables, now)
        self._whole = False

    async def _write_one_by_one(
        self, stood: Mapping[Owner, Fragment], tables: Mapping[PodKey, PodTable], now: float
    ) -> None:
        """First what stood, with what was open and is isolated now closed: others lose no connection by this."""
        pods = {("pod", *key): stood.get(("pod", *key), table.closed) for key, table in tables.items()}
        sets = {owner: fragment for owner, fragment in stood.items() if _is_set(owner)}
        nothing: dict[Owner, Fragment] = {owner: {} for owner in self._state.owned()}
        self._state.change(nothing | sets | pods)
        await self._sink.apply(self._state.everything())
        self._refused = {}
        needed: dict[Owner, None] = {}
        for key, table in tables.items():
            wanted = _fragments(key, table)
            before = self._state.owned()
            try:
                await self._apply(wanted)
            except Exception as error:
                self._state.change({owner: before.get(owner, {}) for owner in wanted})
                await self._apply({("pod", *key): table.closed})
                self._refused[key] = _Refused(table, error, now + AGAIN_SECONDS)
            else:
                needed |= dict.fromkeys(wanted)
        await self._apply({owner: {} for owner in self._state.owned() if _is_set(owner) and owner not in needed})

    async def _apply(self, wanted: Mapping[Owner, Fragment]) -> None:
        transaction = self._state.change(wanted)
        if transaction:
            await self._sink.apply(transaction)


def _fragments(key: PodKey, table: PodTable) -> dict[Owner, Fragment]:
    return {("pod", *key): table.chains} | {("set", name): each for name, each in table.sets.items()}


def _is_set(owner: Owner) -> bool:
    return isinstance(owner, tuple) and owner[0] == "set"
