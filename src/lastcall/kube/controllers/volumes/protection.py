"""The pvc-protection and pv-protection controllers: what is in use is not removed.

Sources: pkg/controller/volume/{pvcprotection,pvprotection}. A claim that was deleted stays, marked by its finalizer,
until the last Pod that uses it is gone; a volume until it is bound no more.
"""

# check: observes because it records its own decision

from typing import TYPE_CHECKING

from lastcall.kube.api.claims import CLAIM_PROTECTION, VOLUME_PROTECTION, claims_used_by, not_made_for
from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import Object, copy_object, is_terminating, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import is_pod_terminal
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, Resource
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.volumes.claim_users import ClaimUsers, Key
from lastcall.kube.controllers.worker import Worker, split_key
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.records.definitions.controllers import ClaimHeld

CLAIM_COMPONENT = "persistentvolumeclaim-protection-controller"
VOLUME_COMPONENT = "persistentvolume-protection-controller"
_NOT_VALID = (400, 422)


def is_held(obj: Object, finalizer: str) -> bool:
    """Return whether the object is deleted, and kept by this finalizer. (`IsDeletionCandidate`)"""
    return is_terminating(obj) and finalizer in (obj["metadata"].get("finalizers") or ())


def needs(obj: Object, finalizer: str) -> bool:
    """Return True if an object that is not being deleted lacks the finalizer. (`NeedToAddFinalizer`)"""
    return not is_terminating(obj) and finalizer not in (obj["metadata"].get("finalizers") or ())


def uses(pod: Object, claim: Object) -> bool:
    """Return whether the Pod may have the claim mounted: one without a node cannot, one that has ended still counts.

    (`podUsesPVC`)
    """
    if not pod["spec"].get("nodeName"):
        return False
    for use in claims_used_by(pod):
        if use.claim == name_of(claim) and (
            not use.ephemeral or (not _is_shut_down(pod) and not not_made_for(pod, claim))
        ):
            return True
    return False


def _is_shut_down(pod: Object) -> bool:
    """Ended by the kubelet; it stays only for its dependents. (`podIsShutDown`)"""
    return is_terminating(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def with_finalizer(obj: Object, finalizer: str) -> Object:
    made = copy_object(obj)
    made["metadata"]["finalizers"] = [*(made["metadata"].get("finalizers") or ()), finalizer]
    return made


def without_finalizer(obj: Object, finalizer: str) -> Object:
    made = copy_object(obj)
    made["metadata"]["finalizers"] = [each for each in made["metadata"]["finalizers"] if each != finalizer]
    return made


async def write_finalizers(client: Client, resource: Resource, obj: Object) -> None:
    """Update the finalizers; an object that went meanwhile needs none. Raise StatusError on a conflict.

    An update, as Kubernetes gives these controllers no right to patch. An object that is stored and is not valid any
    more cannot be updated: of that one only the finalizers are sent, so that it can go.
    """
    try:
        try:
            await client.update(resource, obj, namespace_of(obj))
        except StatusError as error:
            if error.code not in _NOT_VALID:
                raise
            meta = obj["metadata"]
            patch = {key: meta.get(key) for key in ("uid", "resourceVersion", "finalizers")}
            await client.patch(resource, name_of(obj), {"metadata": patch}, namespace_of(obj))
    except StatusError as error:
        if not is_not_found(error):
            raise


class ClaimProtectionController:
    """Records, once for each Pod, whom a deleted claim waits for."""

    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder
        self._claims, self._pods = informers.get(PERSISTENTVOLUMECLAIMS), informers.get(PODS)
        self._worker = Worker(world, CLAIM_COMPONENT, self._sync, workers=1, client=client)
        self._recorded: dict[str, dict[str, None]] = {}
        self._users = ClaimUsers(self._pods, self._pod_changed)
        self._claims.add_handler(self._seen, lambda _, claim: self._seen(claim), self._gone)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run([self._claims, self._pods])

    def _seen(self, claim: Object) -> None:
        if is_held(claim, CLAIM_PROTECTION) or needs(claim, CLAIM_PROTECTION):
            self._worker.queue.add(f"{namespace_of(claim)}/{name_of(claim)}")

    def _gone(self, claim: Object) -> None:
        self._recorded.pop(uid_of(claim), None)

    def _pod_changed(self, key: Key, pod: Object, there: bool) -> None:
        """Only a Pod that has ended, gone or never had a node can let a claim go. (`podAddedDeletedUpdated`)"""
        if not there or is_pod_terminal(pod) or not pod["spec"].get("nodeName"):
            claim = self._claims.get(*key)
            if claim is not None:
                self._seen(claim)

    async def _sync(self, key: str) -> None:
        """(`processPVC`)"""
        claim = self._claims.get(*split_key(key))
        if claim is None:
            return
        if needs(claim, CLAIM_PROTECTION):
            await write_finalizers(self._client, PERSISTENTVOLUMECLAIMS, with_finalizer(claim, CLAIM_PROTECTION))
        elif is_held(claim, CLAIM_PROTECTION):
            users = await self._used_by(claim)
            if users:
                self._tell(claim, users)
            else:
                await write_finalizers(self._client, PERSISTENTVOLUMECLAIMS, without_finalizer(claim, CLAIM_PROTECTION))

    async def _used_by(self, claim: Object) -> list[Object]:
        """The Pods that use it, by the cache; when that knows of none, by the API. (`askInformer`, `askAPIServer`)"""
        found = [pod for pod in self._users.of((namespace_of(claim), name_of(claim))) if uses(pod, claim)]
        if found:
            return found
        return [pod for pod in (await self._client.list(PODS, namespace_of(claim))).items if uses(pod, claim)]

    def _tell(self, claim: Object, users: list[Object]) -> None:
        recorded = self._recorded.setdefault(uid_of(claim), {})
        for pod in users:
            if uid_of(pod) not in recorded:
                recorded[uid_of(pod)] = None
                facts: ClaimHeld = {"claim": name_of(claim), "finalizer": CLAIM_PROTECTION, "pod": name_of(pod)}
                self._recorder.record(kinds.CLAIM_HELD, pod_uid=uid_of(pod), rule=rules.PROCESS_PVC, facts=facts)


class VolumeProtectionController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._client = client
        self._volumes = informers.get(PERSISTENTVOLUMES)
        self._worker = Worker(world, VOLUME_COMPONENT, self._sync, workers=1, client=client)
        self._volumes.add_handler(self._seen, lambda _, volume: self._seen(volume))

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run([self._volumes])

    def _seen(self, volume: Object) -> None:
        if is_held(volume, VOLUME_PROTECTION) or needs(volume, VOLUME_PROTECTION):
            self._worker.queue.add(name_of(volume))

    async def _sync(self, name: str) -> None:
        """(`processPV`)"""
        volume = self._volumes.get("", name)
        if volume is None:
            return
        if needs(volume, VOLUME_PROTECTION):
            await write_finalizers(self._client, PERSISTENTVOLUMES, with_finalizer(volume, VOLUME_PROTECTION))
        elif is_held(volume, VOLUME_PROTECTION) and (volume.get("status") or {}).get("phase") != "Bound":
            await write_finalizers(self._client, PERSISTENTVOLUMES, without_finalizer(volume, VOLUME_PROTECTION))
