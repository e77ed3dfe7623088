"""Claims and volumes: what binder, scheduler, kubelet and API server ask of them alike. Pure.

Sources: component-helpers storage/volume/{helpers,pv_helpers}.go, storage/ephemeral/ephemeral.go.
"""

# check: pure

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import (
    AnyObject,
    T,
    annotations_of,
    copy_object,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from lastcall.kube.api.quantity import Quantity, parse_quantity
from lastcall.kube.api.scheduling import matches_term
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.storage import PersistentVolume

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
ATTRIBUTES_CLASS_PROTECTION = "kubernetes.io/vac-protection"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes are all made by hand."""
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
YES = "yes"


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A Pod's volume that is a claim. `ephemeral`: the claim is made for the Pod, under the name `<pod>-<volume>`."""

    volume: str
    claim: str
    ephemeral: bool
    read_only: bool = False


def claims_used_by(pod: AnyObject) -> Iterator[ClaimUse]:
    """Yield the claims that a Pod names, in the order of its volumes."""
    for volume in pod["spec"].get("volumes") or ():
        source = volume.get("persistentVolumeClaim")
        if source is not None:
            yield ClaimUse(volume["name"], source["claimName"], False, bool(source.get("readOnly")))
        elif volume.get("ephemeral") is not None:
            yield ClaimUse(volume["name"], f"{name_of(pod)}-{volume['name']}", True)


def not_made_for(pod: AnyObject, claim: AnyObject) -> str:
    """Return why an ephemeral volume cannot be this claim, "" when it can. (`ephemeral.VolumeIsForPod`)"""
    owners = claim["metadata"].get("ownerReferences") or ()
    if any(owner.get("controller") and owner["uid"] == uid_of(pod) for owner in owners):
        return ""
    return (
        f"PVC {namespace_of(claim)}/{name_of(claim)} was not created for pod {namespace_of(pod)}/{name_of(pod)} "
        "(pod is not owner)"
    )


def class_of(obj: AnyObject) -> str:
    """Return the StorageClass of a claim or a volume, "" without one. (`GetPersistentVolumeClaimClass`)"""
    old = annotations_of(obj).get(BETA_STORAGE_CLASS)
    return str((obj.get("spec") or {}).get("storageClassName") or "") if old is None else old


def names_a_class(claim: AnyObject) -> bool:
    """Return whether its author has said which class, be it none. (`PersistentVolumeClaimHasClass`)"""
    return BETA_STORAGE_CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def default_class(classes: Iterable[T]) -> T | None:
    """Return the newest class that is marked as default; of equally old ones the first by name. (`GetDefaultClass`)"""
    marked = [
        each
        for each in classes
        if "true" in (annotations_of(each).get(DEFAULT_CLASS), annotations_of(each).get(BETA_DEFAULT_CLASS))
    ]
    marked.sort(key=name_of)
    return max(marked, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""), default=None)


def is_fully_bound(claim: AnyObject) -> bool:
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in annotations_of(claim)


def is_bound_to(volume: AnyObject, claim: AnyObject) -> bool:
    """Return whether the volume is the claim's, or reserved for one of its name. (`IsVolumeBoundToClaim`)"""
    reference = volume["spec"].get("claimRef")
    if not reference or (reference.get("name"), reference.get("namespace")) != (name_of(claim), namespace_of(claim)):
        return False
    return not reference.get("uid") or reference["uid"] == uid_of(claim)


def asked_size(claim: AnyObject) -> Quantity:
    return parse_quantity(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or 0)


def size_of(volume: AnyObject) -> Quantity:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage") or 0)


def mode_of(obj: AnyObject) -> str:
    """Return `Filesystem` or `Block`."""
    return str(obj["spec"].get("volumeMode") or "Filesystem")


def modes_of(obj: AnyObject) -> tuple[str, ...]:
    return tuple(obj["spec"].get("accessModes") or ())


def offers_modes(volume: AnyObject, claim: AnyObject) -> bool:
    return set(modes_of(claim)) <= set(modes_of(volume))


def reaches_node(volume: AnyObject, labels: Mapping[str, str]) -> bool:
    """Return whether the volume can be used on a node with these labels. (`volume.CheckNodeAffinity`)"""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    return any(matches_term(term, labels, "") for term in required.get("nodeSelectorTerms") or ())


def find_matching_volume(
    claim: AnyObject,
    volumes: Iterable[T],
    *,
    node_labels: Mapping[str, str] | None = None,
    excluded: Collection[str] = (),
    delayed: bool = False,
) -> T | None:
    """Find the volume that is reserved for the claim, else the smallest that is enough; of equals the first by name.

    With `node_labels` the scheduler asks. Without it and with `delayed` only a reserved one is found: the scheduler
    decides about the others. (`volume.FindMatchingVolume`)
    """
    asked, wanted, mode = asked_size(claim), class_of(claim), mode_of(claim)
    selector = claim["spec"].get("selector")
    matches = None if selector is None else selector_of_expressions(selector).matches
    best: tuple[Quantity, T] | None = None
    for volume in sorted(volumes, key=name_of):
        if name_of(volume) in excluded or is_terminating(volume):
            continue
        reserved = is_bound_to(volume, claim)
        if volume["spec"].get("claimRef") and not reserved:
            continue
        size = size_of(volume)
        if size < asked or mode_of(volume) != mode:
            continue
        reached = node_labels is None or reaches_node(volume, node_labels)
        if reserved:
            return volume if reached else None
        if (node_labels is None and delayed) or (volume.get("status") or {}).get("phase") != "Available":
            continue
        if matches is not None and not matches(labels_of(volume)):
            continue
        if class_of(volume) != wanted or not reached or not offers_modes(volume, claim):
            continue
        if best is None or size < best[0]:
            best = (size, volume)
    return None if best is None else best[1]


def bound_volume(volume: PersistentVolume, claim: AnyObject) -> PersistentVolume | None:
    """Return the volume with the claim in its claimRef, None when it is there already. (`GetBindVolumeToClaim`)"""
    reference = volume["spec"].get("claimRef") or {}
    named = (reference.get("namespace"), reference.get("name"), reference.get("uid"))
    reserved = is_bound_to(volume, claim)
    if reserved and named == (namespace_of(claim), name_of(claim), uid_of(claim)):
        return None
    made = copy_object(volume)
    made["spec"]["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
        "apiVersion": "v1",
        "resourceVersion": claim["metadata"]["resourceVersion"],
    }
    if not reserved:
        made["metadata"]["annotations"] = {**annotations_of(made), BOUND_BY_CONTROLLER: YES}
    return made


def is_delayed(claim: AnyObject, storage_class: AnyObject | None) -> bool:
    """Return whether the claim's class wants it bound only when a Pod has a node. (`IsDelayBindingMode`)"""
    return storage_class is not None and storage_class.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
