"""Whose the claims of a StatefulSet's Pods are, by its persistentVolumeClaimRetentionPolicy. Pure.

Source: pkg/controller/statefulset/stateful_set_utils.go (isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod). What a
claim's owner references say the garbage collector does: owned by the set it goes with the set, owned by a Pod that was
scaled away it goes with that Pod, owned by nobody it stays.
"""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.meta import name_of, uid_of
from lastcall.kube.api.resources import PODS, STATEFULSETS, Resource
from lastcall.kube.controllers.ownership import controller_reference

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import OwnerReference
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.storage import PersistentVolumeClaim
    from lastcall.kube.api.types.workloads import StatefulSet

Owner = Literal["", "set", "pod"]


def deletes(owner: StatefulSet, when: Literal["whenDeleted", "whenScaled"]) -> bool:
    return (owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when) == "Delete"


def wanted_owner(owner: StatefulSet, *, scaled_away: bool) -> Owner:
    """Return whom the claim of a Pod is to belong to; `scaled_away`: the Pod's ordinal is beyond the wanted number."""
    if scaled_away and deletes(owner, "whenScaled"):
        return "pod"
    return "set" if deletes(owner, "whenDeleted") else ""


def _refers_to(reference: OwnerReference, obj: StatefulSet | Pod, resource: Resource) -> bool:
    """By kind and name, whichever life of it. (`matchesRef`)"""
    given = (reference.get("apiVersion"), reference.get("kind"), reference.get("name"))
    return given == (resource.api_version, resource.kind, name_of(obj))


def _references(claim: PersistentVolumeClaim) -> list[OwnerReference]:
    return list(claim["metadata"].get("ownerReferences") or ())


def has_stale_owner(claim: PersistentVolumeClaim, obj: StatefulSet | Pod, resource: Resource) -> bool:
    """Return whether the claim belongs to an earlier object of this name. (`hasStaleOwnerRef`)"""
    found = next((each for each in _references(claim) if _refers_to(each, obj, resource)), None)
    return found is not None and found.get("uid") != (uid_of(obj) if obj["metadata"].get("uid") else "")


def _has_other_controller(claim: PersistentVolumeClaim, owner: StatefulSet, pod: Pod) -> bool:
    """Return True if another controller manages it; False when nothing is to be deleted. (`hasUnexpectedController`)"""
    if not deletes(owner, "whenDeleted") and not deletes(owner, "whenScaled"):
        return False
    for reference in _references(claim):
        for obj, resource in ((owner, STATEFULSETS), (pod, PODS)):
            if _refers_to(reference, obj, resource):
                if reference.get("uid") != uid_of(obj):
                    return True
                break
        else:
            if reference.get("controller"):
                return True
    return False


def is_up_to_date(claim: PersistentVolumeClaim, owner: StatefulSet, pod: Pod, *, scaled_away: bool) -> bool:
    """Return whether nothing is to be written. What an earlier set or Pod of the name left is not touched."""
    if has_stale_owner(claim, owner, STATEFULSETS) or has_stale_owner(claim, pod, PODS):
        return True
    ours = {uid_of(owner): "set", uid_of(pod): "pod"}
    held = {ours[each["uid"]]: bool(each.get("controller")) for each in _references(claim) if each["uid"] in ours}
    if _has_other_controller(claim, owner, pod):
        return not held
    wanted = wanted_owner(owner, scaled_away=scaled_away)
    return held == ({wanted: True} if wanted else {})


def with_owner(
    claim: PersistentVolumeClaim, owner: StatefulSet, pod: Pod, *, scaled_away: bool
) -> PersistentVolumeClaim:
    """Return the claim with the owner that it is to have, and without the other one."""
    kept = [
        each
        for each in _references(claim)
        if not _refers_to(each, owner, STATEFULSETS) and not _refers_to(each, pod, PODS)
    ]
    if not _has_other_controller(claim, owner, pod):
        wanted = wanted_owner(owner, scaled_away=scaled_away)
        if wanted:
            ours = controller_reference(owner, STATEFULSETS) if wanted == "set" else controller_reference(pod, PODS)
            kept.append(ours)
    meta = claim["metadata"].copy()
    meta.pop("ownerReferences", None)
    if kept:
        meta["ownerReferences"] = kept
    return {**claim, "metadata": meta}
