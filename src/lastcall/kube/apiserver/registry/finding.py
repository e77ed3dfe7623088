"""How components of the API server find stored objects: of any kind, without the kind's store at hand."""

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.admission.reader import Kinds, Reader
from lastcall.kube.store.api import Store

if TYPE_CHECKING:
    from lastcall.kube.apiserver.registry.generic import GenericStore


class Finding:
    """`kinds` is filled when the stores of kinds are made; nothing is asked before."""

    def __init__(self, store: Store) -> None:
        self.kinds: dict[Resource, GenericStore] = {}
        self._store, self._cached = store, store.cached
        self._prefixes: dict[Kinds, tuple[str, ...]] = {}

    def reader(self) -> Reader:
        return Reader(self.find, self.all, self.holds)

    async def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        kind = self.kinds[resource]
        key = kind.key(namespace, name)
        entry = await self._cached.get(key)
        if entry is None and self._store.shared:
            entry = await self._store.get(key)  # another server may have written it just now
        return None if entry is None else kind.decode(entry.value)

    async def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        kind, cached = self.kinds[resource], self._cached
        if not cached.holds(kind.prefix):  # most of the kinds that each write is looked at by have no objects
            return []
        entries, _, _ = await cached.list(kind.collection(namespace))
        return [kind.decode(entry.value) for entry in entries]

    def holds(self, kinds: Kinds) -> bool:
        prefixes = self._prefixes.get(kinds)
        if prefixes is None:
            prefixes = self._prefixes[kinds] = tuple(self.kinds[each].prefix for each in kinds.resources)
        return self._cached.holds(*prefixes)
