"""What other API servers write to the same store, where this one keeps something of it in mind: which kinds are
declared, which group versions others answer, which Pods a node has.

Each is brought in step by the object as it is now, so what this server wrote itself may come by once more.
"""

from collections.abc import Awaitable, Callable, Mapping

from lastcall.kube.api.apiservices.routes import Routes
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import APISERVICES, CUSTOMRESOURCEDEFINITIONS, PODS, Resource
from lastcall.kube.apiserver.registry.definitions import Definitions
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.strategies.pod import PodsOfNodes
from lastcall.kube.store.api import Change, Compacted, Store
from lastcall.world import crash_guard


class StoreWatch:
    def __init__(
        self,
        store: Store,
        kinds: Mapping[Resource, GenericStore],
        definitions: Definitions,
        routes: Routes,
        of_nodes: PodsOfNodes,
    ) -> None:
        self._store, self._kinds = store, kinds
        self._definitions, self._routes, self._of_nodes = definitions, routes, of_nodes

    def followers(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """Return (name, what runs until cancelled)."""
        return [
            ("definitions", self._follow_definitions),
            ("API services", self._follow_services),
            ("Pods", self._follow_pods),
        ]

    async def _follow_definitions(self) -> None:
        kind = self._kinds[CUSTOMRESOURCEDEFINITIONS]

        async def learn(key: str, old: Object | None, new: Object | None) -> None:
            await self._definitions.follow(key.removeprefix(kind.prefix))

        await self._follow(kind, learn)

    async def _follow_services(self) -> None:
        async def learn(key: str, old: Object | None, new: Object | None) -> None:
            if new is not None:
                self._routes.put(new)
            elif old is not None:
                self._routes.remove(old)

        await self._follow(self._kinds[APISERVICES], learn)

    async def _follow_pods(self) -> None:
        async def learn(key: str, old: Object | None, new: Object | None) -> None:
            for pod, gone in ((old, True), (new, False)):
                if pod is not None and pod["spec"].get("nodeName"):
                    self._of_nodes.discard(pod)
                    if not gone:
                        self._of_nodes.add(pod)

        await self._follow(self._kinds[PODS], learn)

    async def _follow(
        self, kind: GenericStore, learn: Callable[[str, Object | None, Object | None], Awaitable[None]]
    ) -> None:
        """Call `learn` with (key, what it was, what it is) for all that is there, and for each change."""
        known: dict[str, None] = {}
        while True:
            entries, revision, _ = await self._store.list(kind.prefix)
            there = {entry.key: entry for entry in entries}
            for key in [each for each in known if each not in there]:
                with crash_guard.Turn("API server others", key):
                    await learn(key, None, None)
            known = dict.fromkeys(there)
            for entry in entries:
                with crash_guard.Turn("API server others", entry.key):
                    await learn(entry.key, None, kind.decode(entry.value))
            try:
                async with self._store.watch(kind.prefix, revision) as changes:
                    async for change in changes:
                        with crash_guard.Turn("API server others", change.key):
                            await self._change(kind, change, learn)
                return
            except Compacted:
                continue

    async def _change(
        self,
        kind: GenericStore,
        change: Change,
        learn: Callable[[str, Object | None, Object | None], Awaitable[None]],
    ) -> None:
        if change.type == "DELETED":
            await learn(change.key, kind.decode(change.value), None)
        else:
            old = None if change.previous is None else kind.decode(change.previous)
            await learn(change.key, old, kind.decode(change.value))
