"""One cache for each kind, shared by all controllers of a process.

Source: client-go informers.SharedInformerFactory. The indexes are those that controllers ask by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.meta import AnyObject, Object, namespace_of
from lastcall.kube.api.resources import CONFIGMAPS, PODS, SERVICES, Resource
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import IndexFunction, Informer
from lastcall.kube.controllers.ownership import orphans_of, owner_value
from lastcall.kube.controllers.pods.owned import PodsByOwner
from lastcall.kube.controllers.pods.routes import PodRoutes
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.client.discovery import Discover
    from lastcall.kube.client.informer import T

OpenAPI = Callable[[str], Awaitable[bytes | None]]
Fetch = Callable[[str], Awaitable[Object]]
"""Gets a path of the API. Raises StatusError."""
NAMESPACE = "namespace"
CONTROLLER = "controller"
"""By the uid of the controlling owner; objects without one stand under ""."""
NODE = "node"
SELECTING = "selecting"
"""Of Services: by the namespace whose Pods they select; those without endpoints of ours stand nowhere."""


def by_namespace(obj: Object) -> tuple[str, ...]:
    return (namespace_of(obj),)


def by_controller(obj: Object) -> tuple[str, ...]:
    return (owner_value(obj),)


def by_node(pod: Object) -> tuple[str, ...]:
    node = (pod.get("spec") or {}).get("nodeName")
    return (node,) if node else ()


def is_managed(service: AnyObject) -> bool:
    """Return False for Services without a selector and ExternalName ones: their endpoints are left alone."""
    spec = service.get("spec", {})
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def by_selecting(service: Object) -> tuple[str, ...]:
    return (namespace_of(service),) if is_managed(service) else ()


_INDEXES: dict[str, IndexFunction] = {NAMESPACE: by_namespace, CONTROLLER: by_controller}
_MORE_INDEXES: dict[Resource, dict[str, IndexFunction]] = {
    PODS: {**_INDEXES, NODE: by_node},
    SERVICES: {**_INDEXES, SELECTING: by_selecting},
}


def _indexes_stay(old: Object, new: Object) -> bool:
    """Versions of an object share what a write left alone; all that the indexes read is in these two."""
    owners = old["metadata"].get("ownerReferences") is new["metadata"].get("ownerReferences")
    return owners and old.get("spec") is new.get("spec")


def only_metadata(obj: Object) -> Object:
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]}


def _is_content_unread(resource: Resource) -> bool:
    """Return True for a kind of which no controller reads more than metadata, and whose objects may be large.

    Kubernetes has another cache for these (metadatainformer).
    """
    return resource is CONFIGMAPS or isinstance(resource, CustomResource)


class Informers:
    """Every controller that asks gets the same cache.

    `discover` asks the server which kinds it serves; None where those are ours and what definitions declare.
    `openapi` gives the OpenAPI v3 document of a group-version (`apis/apps/v1`, `api/v1`), None for one without.
    """

    def __init__(
        self, world: World, client: Client, discover: Discover | None = None, openapi: OpenAPI | None = None
    ) -> None:
        self.discover = discover
        self.openapi = openapi
        self._world = world
        self._client = client
        self._informers: dict[Resource, Informer[Any]] = {}
        self._tasks: Tasks | None = None
        self._running: dict[Resource, asyncio.Task[None]] = {}
        self._pods_by_owner: PodsByOwner | None = None
        self._pod_routes: PodRoutes | None = None

    def get(self, resource: Resource) -> Informer[T]:
        """Return the cache of one kind. Its indexes are `namespace` and `controller`; Pods: `node`, Services:
        `selecting`.

        The caller's annotation says what its objects are: `self._pods: Informer[Pod] = informers.get(PODS)`.
        """
        informer = self._informers.get(resource)
        if informer is None:
            indexes = _MORE_INDEXES.get(resource, _INDEXES)
            informer = self._informers[resource] = Informer(
                self._client,
                resource,
                indexes=indexes,
                indexes_stay=_indexes_stay,
                keep=only_metadata if _is_content_unread(resource) else None,
                world=self._world,
            )
            if self._tasks is not None:
                self._start(resource)
        return informer

    def of(self, resource: Resource, namespace: str) -> Informer[T]:
        """Make a cache of one namespace alone. It is not shared: the caller runs it."""
        return Informer(self._client, resource, namespace, world=self._world)

    @property
    def pods_by_owner(self) -> PodsByOwner:
        """Return the Pods of each owner, counted."""
        if self._pods_by_owner is None:
            self._pods_by_owner = PodsByOwner(self.get(PODS))
        return self._pods_by_owner

    @property
    def pod_routes(self) -> PodRoutes:
        """Return the events of Pods for the controllers that own them."""
        if self._pod_routes is None:
            self._pod_routes = PodRoutes(self.get(PODS))
        return self._pod_routes

    def spawn(self, tasks: Tasks) -> None:
        """Run all caches: those asked for so far, and later ones when they are."""
        self._tasks = tasks
        for resource in list(self._informers):
            self._start(resource)

    def _start(self, resource: Resource) -> None:
        assert self._tasks is not None
        run = self._informers[resource].run()
        self._running[resource] = self._tasks.spawn(run, name=f"informer {resource.plural}")

    def drop(self, resource: Resource) -> Informer[Any] | None:
        """Forget the cache of a kind that is no longer served; what it held."""
        if (task := self._running.pop(resource, None)) is not None:
            task.cancel()
        return self._informers.pop(resource, None)


def owned_and_orphans(informer: Informer[T], owner_uid: str, namespace: str) -> list[T]:
    """Return the objects that an owner may have to claim or release: its own, and orphans in its namespace."""
    return [*informer.by_index(CONTROLLER, owner_uid), *informer.by_index(CONTROLLER, orphans_of(namespace))]
