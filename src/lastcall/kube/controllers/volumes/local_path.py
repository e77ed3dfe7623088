"""Makes volumes for the StorageClass `standard`: a directory for each claim, as local-path-provisioner does in kind.

Sources: sig-storage-lib-external-provisioner controller/controller.go, rancher local-path-provisioner provisioner.go.
Pure functions decide what is to be done; the one who runs the cluster says where directories are.
"""

from collections.abc import Mapping

from lastcall.kube.api.claims import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    class_of,
    is_delayed,
    mode_of,
    modes_of,
)
from lastcall.kube.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.kube.api.meta import Object, annotations_of, is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import NODES, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, STORAGECLASSES
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.volumes.storage_class import PROVISIONER, Directories
from lastcall.kube.controllers.worker import Retry, Worker
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

COMPONENT = "local-path-provisioner"
NODE_ANNOTATION = "local.path.provisioner/selected-node"
HOSTNAME = "kubernetes.io/hostname"
LONGEST_NAME = 255
"""Bytes of a directory's name."""
MODES = ("ReadWriteOnce", "ReadWriteOncePod")


class Refused(Exception):
    """The volume cannot be made; the text says why. `reschedule`: the node was the reason, another may do."""

    def __init__(self, text: str, *, reschedule: bool = False) -> None:
        super().__init__(text)
        self.reschedule = reschedule


def should_provision(claim: Object, classes: Mapping[str, Object]) -> bool:
    """Return whether the claim waits for us, and its node is chosen where its class says so. (`shouldProvision`)"""
    marks = annotations_of(claim)
    asked = marks.get(STORAGE_PROVISIONER, marks.get(BETA_STORAGE_PROVISIONER))
    if claim["spec"].get("volumeName") or is_terminating(claim) or asked != PROVISIONER:
        return False
    return bool(marks.get(SELECTED_NODE)) or not is_delayed(claim, classes.get(class_of(claim)))


def volume_name(claim: Object) -> str:
    return f"pvc-{uid_of(claim)}"


def directory_name(claim: Object) -> str:
    return f"{volume_name(claim)}_{namespace_of(claim)}_{name_of(claim)}"[:LONGEST_NAME]


def new_volume(claim: Object, storage_class: Object, node: Object | None, root: str) -> Object:
    """Make the PersistentVolume of a claim. Raises Refused. (`Provision`)"""
    if mode_of(claim) == "Block":
        raise Refused(f"{PROVISIONER} does not support block volume provisioning")
    if claim["spec"].get("selector") is not None:
        raise Refused("claim.Spec.Selector is not supported")
    if any(mode not in MODES for mode in modes_of(claim)):
        raise Refused("NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes")
    if node is None:
        raise Refused("configuration error, no node was specified")
    host = labels_of(node).get(HOSTNAME, name_of(node))
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [host]}]}
    spec: Object = {
        "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
        "accessModes": list(modes_of(claim)),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": name_of(storage_class),
        "volumeMode": mode_of(claim),
        "hostPath": {"path": f"{root}/{directory_name(claim)}", "type": "DirectoryOrCreate"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace_of(claim),
            "name": name_of(claim),
            "uid": uid_of(claim),
            "resourceVersion": claim["metadata"]["resourceVersion"],
        },
    }
    annotations = {NODE_ANNOTATION: name_of(node), PROVISIONED_BY: PROVISIONER}
    meta = {"name": volume_name(claim), "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec}


def should_delete(volume: Object) -> bool:
    """Return whether the volume is released, ours, and to be deleted. (`shouldDelete`)"""
    return (
        annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER
        and (volume.get("status") or {}).get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and not is_terminating(volume)
    )


def directory_of(volume: Object, root: str) -> str:
    """Return the name of the volume's directory below `root`. Raises Refused for a path that we did not give.

    A user who may write PersistentVolumes could name any directory of the node here. Only one that this volume got is
    removed.
    """
    path = str((volume["spec"].get("hostPath") or {}).get("path") or "")
    name = path.removeprefix(f"{root}/")
    if name == path or "/" in name or not name.startswith(f"{name_of(volume)}_"):
        raise Refused(f"{path or 'the volume'} is not a directory that {PROVISIONER} has made for {name_of(volume)}")
    return name


class LocalPathProvisioner:
    def __init__(
        self, world: World, client: Client, informers: Informers, recorder: Recorder, directories: Directories
    ) -> None:
        self._client = client
        self._directories = directories
        self._events = EventRecorder(client, world, PROVISIONER)
        kinds = (PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, STORAGECLASSES, NODES)
        self._caches = [informers.get(each) for each in kinds]
        self._claims, self._volumes, self._classes, self._nodes = self._caches
        self._worker = Worker(world, COMPONENT, self._sync, workers=4, events=self._events)
        self._claims.add_handler(self._claim_seen, lambda _, claim: self._claim_seen(claim))
        self._volumes.add_handler(self._volume_seen, lambda _, volume: self._volume_seen(volume))

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run(self._caches), name=COMPONENT)

    def _claim_seen(self, claim: Object) -> None:
        if annotations_of(claim).get(STORAGE_PROVISIONER) == PROVISIONER and not claim["spec"].get("volumeName"):
            self._worker.queue.add(f"claim/{namespace_of(claim)}/{name_of(claim)}")

    def _volume_seen(self, volume: Object) -> None:
        if should_delete(volume):
            self._worker.queue.add(f"volume//{name_of(volume)}")

    async def _sync(self, key: str) -> None:
        kind, namespace, name = key.split("/")
        if kind == "volume":
            volume = self._volumes.get("", name)
            if volume is not None and should_delete(volume):
                await self._delete(volume)
            return
        claim = self._claims.get(namespace, name)
        if claim is not None and should_provision(claim, {name_of(each): each for each in self._classes.items()}):
            await self._provision(claim)

    async def _provision(self, claim: Object) -> None:
        """(`provisionClaimOperation`)"""
        if self._volumes.get("", volume_name(claim)) is not None:
            return
        storage_class = self._classes.get("", class_of(claim))
        if storage_class is None or storage_class.get("provisioner") != PROVISIONER:
            return
        text = f'External provisioner is provisioning volume for claim "{namespace_of(claim)}/{name_of(claim)}"'
        self._events.event(claim, "Normal", "Provisioning", text)
        try:
            volume = new_volume(claim, storage_class, self._node_of(claim), self._directories.root)
            await self._directories.make(directory_name(claim))
        except (Refused, OSError) as error:
            await self._failed(claim, storage_class, error)
            return
        try:
            await self._client.create(PERSISTENTVOLUMES, volume)
        except StatusError as error:
            if not is_already_exists(error):
                raise
        text = f"Successfully provisioned volume {name_of(volume)}"
        self._events.event(claim, "Normal", "ProvisioningSucceeded", text)

    def _node_of(self, claim: Object) -> Object | None:
        """The chosen one. Raises Refused when it is gone."""
        name = annotations_of(claim).get(SELECTED_NODE)
        if not name:
            return None
        node = self._nodes.get("", name)
        if node is None:
            raise Refused(f'failed to get target node: node "{name}" not found', reschedule=True)
        return node

    async def _failed(self, claim: Object, storage_class: Object, error: Refused | OSError) -> None:
        text = f'failed to provision volume with StorageClass "{name_of(storage_class)}": {error}'
        if isinstance(error, Refused) and error.reschedule:
            text = str(error)
            marks = {SELECTED_NODE: None}
            patch = {"metadata": {"annotations": marks, "uid": uid_of(claim)}}
            await self._client.patch(PERSISTENTVOLUMECLAIMS, name_of(claim), patch, namespace_of(claim))
        self._events.event(claim, "Warning", "ProvisioningFailed", text)
        if not (isinstance(error, Refused) and error.reschedule):
            raise Retry(text)

    async def _delete(self, volume: Object) -> None:
        """The directory first: a volume that is gone has left nothing. (`deleteVolumeOperation`)"""
        try:
            await self._directories.remove(directory_of(volume, self._directories.root))
        except (Refused, OSError) as error:
            self._events.event(volume, "Warning", "VolumeFailedDelete", str(error))
            raise Retry(str(error)) from error
        try:
            await self._client.delete(PERSISTENTVOLUMES, name_of(volume), uid=uid_of(volume))
        except StatusError as error:
            if not is_not_found(error):
                raise
