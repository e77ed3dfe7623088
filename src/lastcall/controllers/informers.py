"""One cache for each kind, shared by all controllers of a process.

Source: client-go informers.SharedInformerFactory. The indexes are those that controllers ask by.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from lastcall.api.meta import Object, namespace_of
from lastcall.api.resources import PODS, Resource
from lastcall.client.api import Client
from lastcall.client.informer import Informer
from lastcall.controllers.owned_pods import PodsByOwner
from lastcall.controllers.ownership import orphans_of, owner_value
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

NAMESPACE = "namespace"
CONTROLLER = "controller"
"""By the uid of the controlling owner; objects without one stand under ""."""
NODE = "node"


def by_namespace(obj: Object) -> Iterable[str]:
    return (namespace_of(obj),)


def by_controller(obj: Object) -> Iterable[str]:
    return (owner_value(obj),)


def by_node(pod: Object) -> Iterable[str]:
    node = (pod.get("spec") or {}).get("nodeName")
    return (node,) if node else ()


_INDEXES: Mapping[str, Callable[[Object], Iterable[str]]] = {NAMESPACE: by_namespace, CONTROLLER: by_controller}
_POD_INDEXES: Mapping[str, Callable[[Object], Iterable[str]]] = {**_INDEXES, NODE: by_node}


class Informers:
    """Every controller that asks gets the same cache."""

    def __init__(self, world: World, client: Client) -> None:
        self._world = world
        self._client = client
        self._informers: dict[Resource, Informer] = {}
        self._tasks: Tasks | None = None
        self._running: dict[Resource, asyncio.Task[None]] = {}
        self._pods_by_owner: PodsByOwner | None = None

    def get(self, resource: Resource) -> Informer:
        """The cache of one kind, with the indexes `namespace` and `controller` (Pods: `node` too)."""
        informer = self._informers.get(resource)
        if informer is None:
            indexes = _POD_INDEXES if resource == PODS else _INDEXES
            informer = self._informers[resource] = Informer(self._client, resource, indexes=indexes, world=self._world)
            if self._tasks is not None:
                self._start(resource)
        return informer

    @property
    def pods_by_owner(self) -> PodsByOwner:
        """The Pods of each owner, counted."""
        if self._pods_by_owner is None:
            self._pods_by_owner = PodsByOwner(self.get(PODS))
        return self._pods_by_owner

    def spawn(self, tasks: Tasks) -> None:
        """Run all caches: those asked for so far, and later ones when they are."""
        self._tasks = tasks
        for resource in list(self._informers):
            self._start(resource)

    def _start(self, resource: Resource) -> None:
        assert self._tasks is not None
        run = self._informers[resource].run()
        self._running[resource] = self._tasks.spawn(run, name=f"informer {resource.plural}")

    def drop(self, resource: Resource) -> Informer | None:
        """Forget the cache of a kind that is no longer served; what it held."""
        if (task := self._running.pop(resource, None)) is not None:
            task.cancel()
        return self._informers.pop(resource, None)


def owned_and_orphans(informer: Informer, owner_uid: str, namespace: str) -> list[Object]:
    """The objects that an owner may have to claim or release: its own, and those in its namespace that nobody owns."""
    return [*informer.by_index(CONTROLLER, owner_uid), *informer.by_index(CONTROLLER, orphans_of(namespace))]
