"""Keep what is in the table now, who asked for it, and compute the transaction to what is wanted. Pure.

Several owners may ask for the same thing (endpoints shared by Services, a set for n endpoints): it stays until the
last one has gone. When two want different values under one key (two Services with one externalIP and port), the one
that came first has it, and the other one when that is gone.
"""

# check: pure

from collections.abc import Callable, Hashable, Iterable, Mapping

from lastcall.kube.nftables.objects import (
    AddChain,
    AddElements,
    AddRule,
    AddSet,
    Chain,
    Command,
    DeleteChain,
    DeleteElements,
    DeleteSet,
    FlushChain,
    NftSet,
    SetKey,
    SetValue,
    Transaction,
)

ElementKey = tuple[str, SetKey]
"""(name of the set, key)."""
Fragment = dict["NftSet | Chain | ElementKey", SetValue]
"""What one owner wants in the table: sets, chains (value None for both) and elements with their values.

Chains are compared whole: two of one name must be equal.
"""
Owner = Hashable
Key = NftSet | Chain | ElementKey

_ABSENT = object()


class TableState:
    """`change` answers the transaction and takes it as done; after one that failed use `everything`. A fragment belongs
    to the table from then on: the same object given again is one that has not changed.

    `chains_of` are the chains that follow from the sets there are, always as many.
    """

    def __init__(
        self, skeleton: Fragment, chains_of: Callable[[Iterable[NftSet]], tuple[Chain, ...]] = lambda sets: ()
    ) -> None:
        self._chains_of = chains_of
        self._claims: dict[Key, dict[Owner, SetValue]] = {}
        self._owned: dict[Owner, Fragment] = {}
        self._chains: tuple[Chain, ...] = ()
        """Those that follow from the maps there are."""
        self._sets: dict[NftSet, None] = {}
        self._skeleton = skeleton
        self._claim((), skeleton)
        self._chains = self._chains_of(self._sets)

    def change(self, fragments: Mapping[Owner, Fragment]) -> Transaction:
        """Replace what each of these owners asks for; {} removes an owner. Return the transaction."""
        before: dict[Key, object] = {}
        for owner, fragment in fragments.items():
            old = self._owned.get(owner, {})
            if old is fragment:
                continue
            for key in (*old, *(key for key in fragment if key not in old)):
                if (key in old) != (key in fragment) or old[key] != fragment[key]:
                    before.setdefault(key, self._value(key))
        for owner, fragment in fragments.items():
            if self._owned.get(owner) is not fragment:
                self._release(owner, fragment)
                self._claim(owner, fragment)
        changed = {key: (was, self._value(key)) for key, was in before.items()}
        chains = self._chains_of(self._sets) if any(isinstance(key, NftSet) for key in changed) else self._chains
        rewritten = tuple(chain for chain, was in zip(chains, self._chains, strict=True) if chain != was)
        self._chains = chains
        return _transaction({k: v for k, v in changed.items() if v[0] is _ABSENT or v[0] != v[1]}, rewritten)

    def owned(self) -> dict[Owner, Fragment]:
        """Return what each owner asks for, but for the skeleton."""
        return {owner: fragment for owner, fragment in self._owned.items() if owner != ()}

    def everything(self) -> Transaction:
        """Return the transaction that replaces the table, whatever it holds, by what is wanted now. Sorted."""
        present: dict[Key, tuple[object, object]] = {
            key: (_ABSENT, self._value(key)) for key in sorted(self._claims, key=_order)
        }
        present.update(dict.fromkeys(self._chains, (_ABSENT, None)))
        return Transaction(_transaction(present, ()).commands, replace=True)

    def _value(self, key: Key) -> object:
        claims = self._claims.get(key)
        return next(iter(claims.values())) if claims else _ABSENT

    def _claim(self, owner: Owner, fragment: Fragment) -> None:
        for key, value in fragment.items():
            self._claims.setdefault(key, {})[owner] = value
            if isinstance(key, NftSet):
                self._sets[key] = None
        if fragment:
            self._owned[owner] = fragment

    def _release(self, owner: Owner, kept: Fragment) -> None:
        for key in self._owned.pop(owner, {}):
            if key in kept:
                continue
            claims = self._claims[key]
            del claims[owner]
            if not claims:
                del self._claims[key]
                if isinstance(key, NftSet):
                    del self._sets[key]


def _order(key: Key) -> tuple[object, ...]:
    if isinstance(key, NftSet):
        return (0, key.name)
    if isinstance(key, Chain):
        return (1, key.name)
    name, parts = key
    return (2, name, *(str(p).zfill(10) if isinstance(p, int) else p for p in parts))


def _transaction(changed: Mapping[Key, tuple[object, object]], rewritten: Iterable[Chain]) -> Transaction:
    """In an order in which nothing is named before it is there, and nothing goes while it is named."""
    new_sets: list[Command] = []
    new_chains: list[Command] = []
    flushes: list[Command] = []
    rules: list[Command] = []
    gone_chains: list[Command] = []
    gone_sets: list[Command] = []
    removed: dict[str, list[SetKey]] = {}
    added: dict[str, list[tuple[SetKey, SetValue]]] = {}
    for key, (was, value) in changed.items():
        if isinstance(key, NftSet):
            if value is _ABSENT:
                gone_sets.append(DeleteSet(key.name))
            elif was is _ABSENT:
                new_sets.append(AddSet(key))
        elif isinstance(key, Chain):
            if value is _ABSENT:
                flushes.append(FlushChain(key.name))
                gone_chains.append(DeleteChain(key.name))
            elif was is _ABSENT:
                new_chains.append(AddChain(key))
                rules += [AddRule(key.name, rule) for rule in key.rules]
        else:
            name, parts = key
            if was is not _ABSENT:
                removed.setdefault(name, []).append(parts)
            if value is not _ABSENT:
                added.setdefault(name, []).append((parts, value))  # type: ignore[arg-type]
    for chain in rewritten:
        flushes.append(FlushChain(chain.name))
        rules += [AddRule(chain.name, rule) for rule in chain.rules]
    return Transaction(
        (
            *new_sets,
            *new_chains,
            *(DeleteElements(name, tuple(keys)) for name, keys in removed.items()),
            *flushes,
            *rules,
            *(AddElements(name, tuple(elements)) for name, elements in added.items()),
            *gone_chains,
            *gone_sets,
        )
    )
