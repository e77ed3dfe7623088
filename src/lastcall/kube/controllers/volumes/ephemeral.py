"""The ephemeral-volume controller: makes the claims of Pods' ephemeral volumes.

Source: pkg/controller/volume/ephemeral/controller.go. A claim belongs to its Pod and goes with it, by the garbage
collector. A claim of the same name that another client made is never taken.
"""

from lastcall.kube.api.claims import not_made_for
from lastcall.kube.api.errors import StatusError, is_already_exists
from lastcall.kube.api.meta import Object, is_terminating, name_of, namespace_of
from lastcall.kube.api.pods.spec import pod_key
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PODS
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.ownership import controller_reference
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

COMPONENT = "ephemeral-volume-controller"
EVENTS_FROM = "ephemeral_volume"


def ephemeral_volumes(pod: Object) -> list[Object]:
    return [each for each in pod["spec"].get("volumes") or () if each.get("ephemeral") is not None]


def ephemeral_claim(pod: Object, volume: Object) -> Object:
    """Make the claim of one volume, owned by the Pod. (`handleVolume`)"""
    template = volume["ephemeral"]["volumeClaimTemplate"]
    given = template.get("metadata") or {}
    meta = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
    meta |= {"name": f"{name_of(pod)}-{volume['name']}", "namespace": namespace_of(pod)}
    meta["ownerReferences"] = [controller_reference(pod, PODS)]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}


class EphemeralVolumeController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._events = EventRecorder(client, world, EVENTS_FROM)
        self._pods, self._claims = informers.get(PODS), informers.get(PERSISTENTVOLUMECLAIMS)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._pods.add_handler(self._seen)
        self._claims.add_handler(None, None, self._claim_gone)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._pods, self._claims]), name=COMPONENT)

    def _seen(self, pod: Object) -> None:
        if ephemeral_volumes(pod) and not is_terminating(pod):
            self._worker.queue.add(pod_key(pod))

    def _claim_gone(self, claim: Object) -> None:
        """A claim that was in a Pod's way, or its own: the Pod is looked at again. (`onPVCDelete`)"""
        for owner in claim["metadata"].get("ownerReferences") or ():
            if owner["kind"] == "Pod":
                self._worker.queue.add(f"{namespace_of(claim)}/{owner['name']}")

    async def _sync(self, key: str) -> None:
        """(`syncHandler`)"""
        pod = self._pods.get(*split_key(key))
        if pod is None or is_terminating(pod):
            return
        for volume in ephemeral_volumes(pod):
            try:
                await self._ensure(pod, ephemeral_claim(pod, volume))
            except (StatusError, Retry) as error:
                said = error.message if isinstance(error, StatusError) else str(error)
                self._events.event(pod, "Warning", "FailedBinding", f"ephemeral volume {volume['name']}: {said}")
                raise

    async def _ensure(self, pod: Object, claim: Object) -> None:
        known = self._claims.get(namespace_of(pod), name_of(claim))
        if known is None:
            try:
                await self._client.create(PERSISTENTVOLUMECLAIMS, claim, namespace_of(pod))
                return
            except StatusError as error:
                if not is_already_exists(error):
                    raise
                known = await self._client.get(PERSISTENTVOLUMECLAIMS, name_of(claim), namespace_of(pod))
        if why := not_made_for(pod, known):
            raise Retry(why)
