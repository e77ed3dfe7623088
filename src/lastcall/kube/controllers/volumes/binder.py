"""The persistentvolume-binder: joins claims and volumes. What to do is decided in `decide`.

Source: pkg/controller/volume/persistentvolume/pv_controller.go, pv_controller_base.go. One worker for claims and
volumes together: of two claims that want one volume each sees what the other got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lastcall.kube.api.claims import (
    BETA_STORAGE_PROVISIONER,
    STORAGE_PROVISIONER,
    bound_volume,
    is_fully_bound,
)
from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import AnyObject, T, annotations_of, copy_object, is_terminating, name_of, namespace_of
from lastcall.kube.api.pods.spec import is_pod_terminal
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, STORAGECLASSES
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.volumes.claim_users import ClaimUsers, Key
from lastcall.kube.controllers.volumes.decide import (
    ClaimDecision,
    ClaimPhase,
    Said,
    VolumePhase,
    bound_claim,
    claim_key,
    claim_status,
    decide_claim,
    decide_reclaim,
    decide_volume,
    is_claim_of,
    unbound_volume,
    volume_status,
)
from lastcall.kube.controllers.worker import Synced, Worker
from lastcall.kube.controllers.written import Written
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

COMPONENT = "persistentvolume-binder-controller"
EVENTS_FROM = "persistentvolume-controller"
RESYNC_SECONDS = 15.0
"""After so long a claim without a volume is looked at again (PVClaimBinderSyncPeriod)."""


class PersistentVolumeBinder:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._events = EventRecorder(client, world, EVENTS_FROM)
        claims: Informer[PersistentVolumeClaim] = informers.get(PERSISTENTVOLUMECLAIMS)
        volumes: Informer[PersistentVolume] = informers.get(PERSISTENTVOLUMES)
        self._claim_cache = claims
        self._classes: Informer[StorageClass] = informers.get(STORAGECLASSES)
        self._caches: list[Synced] = [claims, volumes, self._classes]
        self._claims, self._volumes = Written(claims), Written(volumes)
        self._worker = Worker(world, COMPONENT, self._sync, workers=1, events=self._events)
        self._users = ClaimUsers(informers.get(PODS))
        claims.add_handler(self._claim_seen, lambda _, claim: self._claim_seen(claim), self._claim_gone)
        volumes.add_handler(self._volume_seen, lambda _, volume: self._volume_seen(volume), self._volume_gone)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._resync(), name=f"{COMPONENT} resync")
            tasks.spawn(self._worker.run(self._caches), name=COMPONENT)

    # -- what happened → what to look at -----------------------------------------------------------------------------

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        self._worker.queue.add(f"claim/{namespace_of(claim)}/{name_of(claim)}")

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        if claim["spec"].get("volumeName"):
            self._worker.queue.add(f"volume//{claim['spec']['volumeName']}")

    def _volume_seen(self, volume: PersistentVolume) -> None:
        self._worker.queue.add(f"volume//{name_of(volume)}")
        if not (volume["spec"].get("claimRef") or {}).get("uid"):
            self._look_at_waiting_claims()

    def _volume_gone(self, volume: PersistentVolume) -> None:
        if (key := claim_key(volume)) is not None:
            self._worker.queue.add(f"claim/{key[0]}/{key[1]}")

    async def _resync(self) -> None:
        while True:
            await self._world.clock.sleep(RESYNC_SECONDS)
            self._look_at_waiting_claims()

    def _look_at_waiting_claims(self) -> None:
        for claim in self._claim_cache.items():
            with crash_guard.Turn(COMPONENT, f"claim/{namespace_of(claim)}/{name_of(claim)}"):
                if not is_fully_bound(claim) and not is_terminating(claim):
                    self._claim_seen(claim)

    # -- sync --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        kind, namespace, name = key.split("/", 2)  # a claimRef may say any name
        try:
            if kind == "claim":
                claim = self._claims.get(namespace, name)
                if claim is not None:
                    await self._sync_claim(claim)
            else:
                volume = self._volumes.get("", name)
                if volume is not None:
                    await self._sync_volume(volume)
        except StatusError as error:
            if not is_not_found(error):
                raise  # gone meanwhile: its event reports it

    async def _sync_claim(self, claim: PersistentVolumeClaim) -> None:
        """(`syncClaim`)"""
        classes = {name_of(each): each for each in self._classes.items()}
        key = (namespace_of(claim), name_of(claim))
        decision = decide_claim(claim, self._volumes, classes, lambda: self._waiting_pods(key))
        if decision.verb == "lost" and (claim.get("status") or {}).get("phase") == "Lost":
            return
        self._say(claim, decision.said)
        if decision.verb == "bind":
            assert decision.volume is not None
            await self._bind(decision.volume, claim)
        elif decision.verb in ("pending", "lost"):
            await self._write_claim_status(claim, "Lost" if decision.verb == "lost" else "Pending", None)
        else:
            await self._prepare_claim(claim, decision)

    def _waiting_pods(self, key: Key) -> list[str]:
        """(`findNonScheduledPodsByPVC`)"""
        return [
            name_of(pod)
            for pod in self._users.of(key)
            if not pod["spec"].get("nodeName") and not is_pod_terminal(pod) and not is_terminating(pod)
        ]

    async def _prepare_claim(self, claim: PersistentVolumeClaim, decision: ClaimDecision) -> None:
        """Give it a class, or name who is to make its volume. (`assignDefaultStorageClass`, `setClaimProvisioner`)"""
        made = copy_object(claim)
        if decision.verb == "default":
            made["spec"]["storageClassName"] = decision.name
        elif decision.verb == "provision":
            marks = dict.fromkeys((BETA_STORAGE_PROVISIONER, STORAGE_PROVISIONER), decision.name)
            if marks.items() <= annotations_of(claim).items():
                return
            made["metadata"]["annotations"] = {**annotations_of(claim), **marks}
        else:
            return
        await self._update(self._claims, made)

    async def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Four writes; whichever was the last, the next look goes on after it. (`bind`)"""
        if (changed := bound_volume(volume, claim)) is not None:
            volume = await self._update(self._volumes, changed)
        await self._write_volume_status(volume, "Bound")
        if (marked := bound_claim(claim, volume)) is not None:
            claim = await self._update(self._claims, marked)
        await self._write_claim_status(claim, "Bound", volume)

    async def _sync_volume(self, volume: PersistentVolume) -> None:
        """(`syncVolume`)"""
        key = claim_key(volume)
        claim = None if key is None else self._claims.get(*key)
        known = claim is not None and is_claim_of(volume, claim)
        if key is not None and volume["spec"]["claimRef"].get("uid") and not known:
            claim = await self._live_claim(volume, key)
        decision = decide_volume(volume, claim)
        self._say(volume, decision.volume_said)
        if claim is not None:
            self._say(claim, decision.claim_said)
        if decision.phase:
            volume = await self._write_volume_status(volume, decision.phase)
        if decision.look_at_claim and claim is not None:
            self._claim_seen(claim)
        if decision.unbind:
            volume = await self._update(self._volumes, unbound_volume(volume))
            await self._write_volume_status(volume, "Available")
        if decision.reclaim:
            said = decide_reclaim(volume)
            if said is not None and (volume.get("status") or {}).get("phase") != "Failed":
                self._say(volume, said)
                await self._write_volume_status(volume, "Failed", said.message)

    async def _live_claim(self, volume: PersistentVolume, key: Key) -> PersistentVolumeClaim | None:
        """Asked of the API: a cache that is behind must not cost anybody data."""
        if (volume.get("status") or {}).get("phase") in ("Released", "Failed"):
            return None
        try:
            claim = cast("PersistentVolumeClaim", await self._client.get(PERSISTENTVOLUMECLAIMS, key[1], key[0]))
        except StatusError as error:
            if not is_not_found(error):
                raise
            return None
        return claim if is_claim_of(volume, claim) else None

    # -- writes ------------------------------------------------------------------------------------------------------

    async def _update(self, known: Written[T], obj: T, subresource: str = "") -> T:
        """Raise StatusError on a conflict; the queue tries again with what the cache has then."""
        resource = PERSISTENTVOLUMECLAIMS if cast(object, known) is self._claims else PERSISTENTVOLUMES
        try:
            answer = await self._client.update(resource, obj, namespace_of(obj), subresource=subresource)
            return known.remember(cast("T", answer))
        except StatusError:
            known.forget(obj)
            raise

    async def _write_claim_status(
        self, claim: PersistentVolumeClaim, phase: ClaimPhase, volume: PersistentVolume | None
    ) -> PersistentVolumeClaim:
        status = claim_status(claim, phase, volume)
        return claim if status is None else await self._update(self._claims, {**claim, "status": status}, "status")

    async def _write_volume_status(
        self, volume: PersistentVolume, phase: VolumePhase, message: str = ""
    ) -> PersistentVolume:
        status = volume_status(volume, phase, rfc3339(now(self._world.clock)), message)
        return volume if status is None else await self._update(self._volumes, {**volume, "status": status}, "status")

    def _say(self, obj: AnyObject, said: Said | None) -> None:
        if said is not None:
            self._events.event(obj, said.type, said.reason, said.message)
