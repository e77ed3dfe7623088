"""Binds the volumes of a Pod before the Pod itself. What goes where is decided in `volume_binding`.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go. It follows claims, volumes and classes only once there
was a Pod that names a claim. What was decided and is not written yet is assumed, as a Pod's node is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.claims import SELECTED_NODE, bound_volume, is_fully_bound
from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import (
    AnyObject,
    Object,
    annotations_of,
    copy_object,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, STORAGECLASSES
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.informer import Informer
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.filters import OF_VOLUMES
from lastcall.kube.scheduler.queue import SchedulingQueue
from lastcall.kube.scheduler.volume_binding import Bindings, Key, PodVolumes, not_bound_because, pod_volumes
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.storage import PersistentVolume

BIND_SECONDS = 600.0
"""How long a Pod waits for its volumes (`VolumeBindingArgs.BindTimeoutSeconds`)."""


LOOK_SECONDS = 1.0
"""Between two looks while nothing happens: whether the Pod is still there."""


class NotBound(Exception):
    """The Pod's volumes were not bound; it has to be looked at again. The text says why."""


class VolumeBinder:
    def __init__(self, world: World, client: Client, tasks: Tasks, cache: Cache, queue: SchedulingQueue) -> None:
        self._world, self._client, self._tasks = world, client, tasks
        self._cache, self._queue = cache, queue
        self._caches: tuple[Informer, ...] = ()
        self._assumed_volumes: dict[str, str] = {}
        """Volume → uid of the claim that is to get it."""
        self._assumed_nodes: dict[Key, str] = {}
        self._bindings: dict[str, Bindings] = {}
        """By the Pod's uid."""
        self._changed = asyncio.Event()

    async def look(self, pod: AnyObject) -> PodVolumes:
        """Return what is known of a Pod's claims now."""
        await self._start()
        claims = self._caches[0]
        missing: dict[Key, Object] = {}
        found = self._sorted(pod, missing)
        if found.conflict:
            # A claim that was made just before its Pod may be on its way to the cache.
            for use in pod["spec"].get("volumes") or ():
                name = (use.get("persistentVolumeClaim") or {}).get("claimName")
                if name and claims.get(namespace_of(pod), name) is None:
                    try:
                        missing[namespace_of(pod), name] = await self._client.get(
                            PERSISTENTVOLUMECLAIMS, name, namespace_of(pod)
                        )
                    except (StatusError, ConnectionLost):
                        continue
            if missing:
                found = self._sorted(pod, missing)
        return found

    def _sorted(self, pod: AnyObject, more: dict[Key, Object]) -> PodVolumes:
        claims, volumes, classes = self._caches
        free = [each for each in volumes.items() if name_of(each) not in self._assumed_volumes]
        return pod_volumes(
            pod,
            lambda key: claims.get(*key) or more.get(key),
            free,
            {name_of(each): each for each in classes.items()},
            self._assumed_nodes,
        )

    async def _start(self) -> None:
        if not self._caches:
            kinds = (PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, STORAGECLASSES)
            self._caches = tuple(Informer(self._client, each, world=self._world) for each in kinds)
            for informer, resource in zip(self._caches, kinds, strict=True):
                informer.add_handler(self._seen, lambda _, new: self._seen(new), self._seen)
                self._tasks.spawn(informer.run(), name=f"informer {resource.plural}")
        for informer in self._caches:
            await informer.synced()

    def _seen(self, obj: Object) -> None:
        self._changed.set()
        self._queue.move(OF_VOLUMES)

    # -- binding

    def assume(self, volumes: PodVolumes, node: str) -> None:
        """Reserve what this Pod is to have, so that no other Pod gets it. (`AssumePodVolumes`)"""
        found = volumes.bindings(node, self._cache.nodes[node].labels)
        assert found is not None, "the filter has looked at this node"
        self._bindings[uid_of(volumes.pod)] = found
        for claim, volume in found.static:
            self._assumed_volumes[name_of(volume)] = uid_of(claim)
        for claim in found.provisions:
            self._assumed_nodes[namespace_of(claim), name_of(claim)] = node

    async def bind(self, volumes: PodVolumes, node: str, wanted: Callable[[], bool]) -> None:
        """Write what was assumed and wait until every claim is bound. Raises NotBound. (`BindPodVolumes`)

        `wanted` says whether there is still a Pod to wait for.
        """
        bindings = self._bindings.pop(uid_of(volumes.pod))
        try:
            claims = await self._write(bindings, node)
            await self._wait(claims, bindings, node, wanted)
        except (StatusError, ConnectionLost) as error:
            raise NotBound(str(error)) from error
        finally:
            for _, volume in bindings.static:
                self._assumed_volumes.pop(name_of(volume), None)
            for claim in bindings.provisions:
                self._assumed_nodes.pop((namespace_of(claim), name_of(claim)), None)

    async def _write(self, bindings: Bindings, node: str) -> list[Object]:
        """The claims to wait for, as they are now."""
        claims: list[Object] = []
        for claim, volume in bindings.static:
            if (bound := bound_volume(cast("PersistentVolume", volume), claim)) is not None:
                await self._client.update(PERSISTENTVOLUMES, bound)
            claims.append(claim)
        for claim in bindings.provisions:
            chosen = claim
            if annotations_of(claim).get(SELECTED_NODE) != node:
                changed = copy_object(claim)
                changed["metadata"]["annotations"] = {**annotations_of(claim), SELECTED_NODE: node}
                chosen = await self._client.update(PERSISTENTVOLUMECLAIMS, changed, namespace_of(claim))
            claims.append(chosen)
        return claims

    async def _wait(self, claims: list[Object], bindings: Bindings, node: str, wanted: Callable[[], bool]) -> None:
        deadline = monotonic(self._world.clock) + BIND_SECONDS
        while claims:
            self._changed.clear()
            now = [(each, await self._newest(each)) for each in claims]
            if all(claim is not None and is_fully_bound(claim) for _, claim in now):
                return
            if why := not_bound_because(now, bindings.provisions, node):
                raise NotBound(why)
            if not wanted():
                raise NotBound("the Pod is gone")
            left = deadline - monotonic(self._world.clock)
            if left <= 0:
                raise NotBound("context deadline exceeded")
            try:
                async with asyncio.timeout(min(left, LOOK_SECONDS)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _newest(self, claim: Object) -> Object | None:
        """The cache need not show yet what was just written, or made."""
        cached = self._caches[0].get(namespace_of(claim), name_of(claim))
        if cached is None:
            return await self._live(claim)
        return claim if int(resource_version_of(claim)) > int(resource_version_of(cached)) else cached

    async def _live(self, claim: Object) -> Object | None:
        try:
            return await self._client.get(PERSISTENTVOLUMECLAIMS, name_of(claim), namespace_of(claim))
        except StatusError as error:
            if not is_not_found(error):
                raise
            return None
