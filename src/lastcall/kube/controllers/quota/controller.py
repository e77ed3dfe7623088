"""The resourcequota controller: keeps in each quota's status what is used.

Admission adds what a new object uses (`kube/apiserver/admission/quota.py`). Here everything is counted: for a new or
changed quota, when something goes or frees what it used, and every five minutes. It is counted on the objects as they
are at the server, after the quota was read: a charge that comes meanwhile makes the write fail, and it is counted
again. An object whose charge came before, and which is itself being stored just now, must not be counted away: less
than before is counted twice, and whatever has come is looked at once more a second later.

Source: pkg/controller/resourcequota/{resource_quota_controller,resource_quota_monitor}.go.
"""

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, name_of, namespace_of
from lastcall.kube.api.quota.counting import concerned, gives_back
from lastcall.kube.api.resources import CONVERTED, RESOURCEQUOTAS, SERVED, Resource
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.controllers.informers import NAMESPACE, Informers
from lastcall.kube.controllers.kinds.declared import DeclaredKinds
from lastcall.kube.controllers.quota.status import counted_kinds, lessens, status_of
from lastcall.kube.controllers.worker import Worker, split_key
from lastcall.world import crash_guard
from lastcall.world.clock import now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

COMPONENT = "resourcequota-controller"
RESYNC_SECONDS = 300.0
"""--resource-quota-sync-period"""
SETTLE_SECONDS = 0.05
"""How long the API server may take from a charge to the object: before less is written, it is counted again."""
CONFLICT_SECONDS = 0.1
RECOUNT_SECONDS = 1.0
"""How long after an object has come it is looked at whether it was counted."""


class ResourceQuotaController:
    def __init__(self, world: World, client: Client, informers: Informers) -> None:
        self._world, self._client, self._informers = world, client, informers
        self._events = EventRecorder(client, world, COMPONENT)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._watched: set[Resource] = set()
        self._quotas = informers.get(RESOURCEQUOTAS)
        # Last, as all handlers: what the caches hold already is reported at once.
        self._declared = DeclaredKinds(informers, self._kind_added, self._watched.discard)
        self._quotas.add_handler(self._enqueue, self._quota_changed)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._quotas]), name=COMPONENT)
            tasks.spawn(self._resync(), name=f"{COMPONENT} resync")

    async def _resync(self) -> None:
        while True:
            await self._world.clock.sleep(RESYNC_SECONDS)
            for quota in self._quotas.items():
                self._enqueue(quota)

    # -- when --------------------------------------------------------------------------------------------------------

    def _enqueue(self, quota: Object, after: float = 0.0) -> None:
        key = f"{namespace_of(quota)}/{name_of(quota)}"
        if after:
            self._worker.queue.add_after(key, after)
        else:
            self._worker.queue.add(key)

    def _quota_changed(self, old: Object, new: Object) -> None:
        if old.get("spec") != new.get("spec"):
            self._enqueue(new)

    def _kind_added(self, kind: Resource, stored: bool) -> None:
        if stored:
            for quota in self._quotas.items():
                with crash_guard.Turn(COMPONENT, f"{namespace_of(quota)}/{name_of(quota)}"):
                    if concerned(kind, _hard(quota)):
                        self._enqueue(quota)

    def _changed(self, kind: Resource, namespace: str, after: float = 0.0) -> None:
        for quota in self._quotas.by_index(NAMESPACE, namespace):
            with crash_guard.Turn(COMPONENT, f"{namespace}/{name_of(quota)}"):
                if concerned(kind, _hard(quota)):
                    self._enqueue(quota, after)

    async def _watch(self, kind: Resource) -> None:
        """Watch from now on when an object of this kind comes and goes."""
        informer = self._informers.get(kind)
        if kind not in self._watched:
            self._watched.add(kind)

            def updated(old: Object, new: Object) -> None:
                if gives_back(kind, old, new, now(self._world.clock)):
                    self._changed(kind, namespace_of(new))

            informer.add_handler(
                lambda obj: self._changed(kind, namespace_of(obj), RECOUNT_SECONDS),
                updated,
                lambda obj: self._changed(kind, namespace_of(obj)),
            )
        await informer.synced()

    # -- what --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        namespace, name = split_key(key)
        cached = self._quotas.get(namespace, name)
        if cached is None:
            return
        served = (*(kind for kind in SERVED if kind not in CONVERTED), *self._declared.resources())
        for kind in counted_kinds(_hard(cached), served):
            await self._watch(kind)
        quota = self._quotas.get(namespace, name)
        if quota is None:
            return
        try:
            kinds = [kind for kind in counted_kinds(_hard(quota), served) if kind in self._watched]
            status = await self._counted(quota, kinds)
            if status is not None and lessens(quota, status):
                await self._world.clock.sleep(SETTLE_SECONDS)
                status = await self._counted(quota, kinds)
            if status is not None:
                await self._client.update(RESOURCEQUOTAS, {**quota, "status": status}, namespace, subresource="status")
        except StatusError as error:
            if is_conflict(error):
                self._enqueue(cached, CONFLICT_SECONDS)  # charged meanwhile: no error that asks for a back-off
            elif not is_not_found(error):
                raise

    async def _counted(self, quota: Object, kinds: list[Resource]) -> Object | None:
        namespace = namespace_of(quota)
        objects = {kind: (await self._client.list(kind, namespace)).items for kind in kinds}
        return status_of(quota, objects, now(self._world.clock))


def _hard(quota: Object) -> list[str]:
    return list((quota.get("spec") or {}).get("hard") or ())
