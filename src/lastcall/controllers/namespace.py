"""Ends terminating namespaces: Pods first, then everything else, then the namespace itself.

Source: pkg/controller/namespace/deletion/namespaced_resources_deleter.go (OrderedNamespaceDeletion). Pods are deleted
gracefully and awaited before anything else goes; finalizers hold the namespace as they hold their objects. The status
conditions of a namespace that cannot end are not written.
"""

from lastcall.api.errors import StatusError, is_not_found
from lastcall.api.meta import Object, copy_object, is_terminating, name_of
from lastcall.api.resources import BINDINGS, EVENTS_V1, NAMESPACES, PODS, SERVED, Resource
from lastcall.client.api import Client, ConnectionLost
from lastcall.client.informer import Informer
from lastcall.client.workqueue import WorkQueue
from lastcall.world.world import World

RETRY_SECONDS = 0.25
"""How soon a namespace with something left is looked at again; a Pod's removal is noticed at once."""

CONTENT = tuple(each for each in SERVED if each.namespaced and each not in (BINDINGS, EVENTS_V1, PODS))


class NamespaceController:
    """Reads `namespaces` and `pods` (which has the index `namespace`)."""

    def __init__(self, *, world: World, client: Client, namespaces: Informer, pods: Informer) -> None:
        self._client = client
        self._namespaces = namespaces
        self._pods = pods
        self._queue: WorkQueue[str] = WorkQueue(world)
        namespaces.add_handler(self._changed, lambda _, namespace: self._changed(namespace))
        pods.add_handler(None, None, lambda pod: self._queue.add(pod["metadata"]["namespace"]))

    def _changed(self, namespace: Object) -> None:
        if is_terminating(namespace):
            self._queue.add(name_of(namespace))

    async def run(self) -> None:
        """Work until cancelled; starts when the caches are filled."""
        await self._namespaces.synced()
        await self._pods.synced()
        while True:
            name = await self._queue.get()
            try:
                if not await self._sync(name):
                    self._queue.add_after(name, RETRY_SECONDS)
            except (StatusError, ConnectionLost):
                self._queue.add_rate_limited(name)
            else:
                self._queue.forget(name)
            finally:
                self._queue.done(name)

    async def _sync(self, name: str) -> bool:
        """True when there is nothing left to do."""
        namespace = self._namespaces.get("", name)
        if namespace is None or not is_terminating(namespace):
            return True
        if await self._delete_all(PODS, name):
            return False
        left = 0
        for resource in CONTENT:
            left += await self._delete_all(resource, name)
        if left:
            return False
        await self._finalize(namespace)
        return True

    async def _delete_all(self, resource: Resource, namespace: str) -> int:
        """Ask for the deletion of what is not terminating yet; how many objects there still are."""
        objects = (await self._client.list(resource, namespace)).items
        for obj in objects:
            if is_terminating(obj):
                continue
            try:
                await self._client.delete(
                    resource, name_of(obj), namespace, uid=obj["metadata"]["uid"], propagation_policy="Background"
                )
            except StatusError as error:
                if not is_not_found(error):
                    raise
        return len((await self._client.list(resource, namespace)).items) if objects else 0

    async def _finalize(self, namespace: Object) -> None:
        """Take Kubernetes's own finalizer off; the API server then removes the object."""
        if "kubernetes" not in (namespace.get("spec") or {}).get("finalizers", []):
            return  # the rest is up to those who hold it
        done = copy_object(namespace)
        done["spec"]["finalizers"] = [each for each in done["spec"]["finalizers"] if each != "kubernetes"]
        try:
            await self._client.update(NAMESPACES, done, subresource="finalize")
        except StatusError as error:
            if not is_not_found(error):
                raise
