"""What the binder does about one claim or one volume. Pure.

Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim, syncBoundClaim, syncVolume,
reclaimVolume), index.go. A claim and a volume are bound when each names the other; the four writes are made in an order
in which any of them may be the last before a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from lastcall.kube.api.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
    YES,
    asked_size,
    class_of,
    default_class,
    find_matching_volume,
    is_bound_to,
    is_delayed,
    mode_of,
    modes_of,
    names_a_class,
    offers_modes,
    size_of,
)
from lastcall.kube.api.meta import annotations_of, copy_object, name_of, namespace_of, uid_of
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.storage import (
        PersistentVolume,
        PersistentVolumeClaim,
        PersistentVolumeClaimStatus,
        PersistentVolumeStatus,
        StorageClass,
    )

ClaimPhase = Literal["Bound", "Lost", "Pending"]
VolumePhase = Literal["Available", "Bound", "Failed", "Released"]
IN_TREE = "kubernetes.io/"
NO_VOLUME = "no persistent volumes available for this claim and no storage class is set"
FIRST_CONSUMER = "waiting for first consumer to be created before binding"
LOST_REFERENCE = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
LOST_VOLUME = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"
NO_RECYCLER = "No recycler plugin found for the volume!"


@dataclass(frozen=True, slots=True)
class Said:
    """An Event."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ClaimDecision:
    """`bind`: to `volume`. `provision`: ask the provisioner of this `name` for one. `default`: take the class `name`.
    `pending` and `lost`: that phase. The message is reported in any case, for `lost` only when the phase is new."""

    verb: Literal["bind", "provision", "default", "pending", "lost", "nothing"]
    volume: PersistentVolume | None = None
    name: str = ""
    said: Said | None = None


class Volumes(Protocol):
    """The volumes that there are."""

    def get(self, namespace: str, name: str) -> PersistentVolume | None: ...

    def items(self) -> list[PersistentVolume]: ...


def decide_claim(
    claim: PersistentVolumeClaim,
    volumes: Volumes,
    classes: Mapping[str, StorageClass],
    waiting_pods: Callable[[], Sequence[str]],
) -> ClaimDecision:
    """Decide about a claim; `classes` by name. `waiting_pods` returns the names of its Pods that have no node yet."""
    if BIND_COMPLETED in annotations_of(claim):
        return _bound_claim(claim, volumes)
    name = claim["spec"].get("volumeName") or ""
    return _named_volume(claim, volumes.get("", name)) if name else _any_volume(claim, volumes, classes, waiting_pods)


def _any_volume(
    claim: PersistentVolumeClaim,
    volumes: Volumes,
    classes: Mapping[str, StorageClass],
    waiting_pods: Callable[[], Sequence[str]],
) -> ClaimDecision:
    wanted = class_of(claim)
    delayed = SELECTED_NODE not in annotations_of(claim) and is_delayed(claim, classes.get(wanted))
    found = find_best_match(claim, volumes.items(), delayed=delayed)
    if found is not None:
        return ClaimDecision("bind", found)
    if not names_a_class(claim):
        given = default_class(classes.values())
        if given is not None:
            return ClaimDecision("default", name=name_of(given))
    if delayed:
        return ClaimDecision("pending", said=_waits_for(waiting_pods()))
    if not wanted:
        return ClaimDecision("pending", said=Said("Normal", "FailedBinding", NO_VOLUME))
    return _provision(wanted, classes.get(wanted))


def _waits_for(pods: Sequence[str]) -> Said:
    if not pods:
        return Said("Normal", "WaitForFirstConsumer", FIRST_CONSUMER)
    which = f"pod {pods[0]}" if len(pods) == 1 else f"pods {','.join(pods)}"
    return Said("Normal", "WaitForPodScheduled", f"waiting for {which} to be scheduled")


def _provision(name: str, storage_class: StorageClass | None) -> ClaimDecision:
    """(`provisionClaim`, `findProvisionablePlugin`): the provisioner is never in this process."""
    if storage_class is None:
        said = Said("Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
        return ClaimDecision("nothing", said=said)
    provisioner = str(storage_class.get("provisioner") or "")
    if provisioner.startswith(IN_TREE):
        said = Said("Warning", "ProvisioningFailed", f"no volume plugin matched name: {provisioner}")
        return ClaimDecision("nothing", said=said)
    text = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )
    return ClaimDecision("provision", name=provisioner, said=Said("Normal", "ExternalProvisioning", text))


def find_best_match(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, delayed: bool
) -> PersistentVolume | None:
    """Return the volume that fits a claim best: those with the fewest sufficient access modes come first.

    Source: `persistentVolumeOrderedIndex.findByClaim`.
    """
    by_modes: dict[tuple[str, ...], list[PersistentVolume]] = {}
    for volume in volumes:
        if offers_modes(volume, claim):
            by_modes.setdefault(tuple(sorted(modes_of(volume))), []).append(volume)
    for modes in sorted(by_modes, key=lambda each: (len(each), each)):
        found = find_matching_volume(claim, by_modes[modes], delayed=delayed)
        if found is not None:
            return found
    return None


def _named_volume(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> ClaimDecision:
    """The claim says which volume it wants."""
    if volume is None:
        return ClaimDecision("pending")
    if not volume["spec"].get("claimRef"):
        why = mismatch(claim, volume)
        if why:
            said = Said("Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name_of(volume)}": {why}')
            return ClaimDecision("pending", said=said)
        return ClaimDecision("bind", volume)
    if is_bound_to(volume, claim):
        return ClaimDecision("bind", volume)
    if BOUND_BY_CONTROLLER in annotations_of(claim):
        return ClaimDecision("nothing")  # another client has changed what we wrote
    text = f'volume "{name_of(volume)}" already bound to a different claim.'
    return ClaimDecision("pending", said=Said("Warning", "FailedBinding", text))


def mismatch(claim: PersistentVolumeClaim, volume: PersistentVolume) -> str:
    """Return why a claim cannot have the volume it names, "" when it can. (`checkVolumeSatisfyClaim`)"""
    if size_of(volume) < asked_size(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if mode_of(volume) != mode_of(claim):
        return "incompatible volumeMode"
    return "" if offers_modes(volume, claim) else "incompatible accessMode"


def _bound_claim(claim: PersistentVolumeClaim, volumes: Volumes) -> ClaimDecision:
    name = claim["spec"].get("volumeName") or ""
    if not name:
        return ClaimDecision("lost", said=Said("Warning", "ClaimLost", LOST_REFERENCE))
    volume = volumes.get("", name)
    if volume is None:
        return ClaimDecision("lost", said=Said("Warning", "ClaimLost", LOST_VOLUME))
    reference = volume["spec"].get("claimRef")
    if not reference or reference.get("uid") == uid_of(claim):
        return ClaimDecision("bind", volume)
    return ClaimDecision("lost", said=Said("Warning", "ClaimMisbound", MISBOUND))


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim | None:
    """Return the claim with the volume's name and the binder's marks, None when it has them. (`bindClaimToVolume`)"""
    marks = annotations_of(claim)
    named = claim["spec"].get("volumeName") == name_of(volume)
    if named and BIND_COMPLETED in marks:
        return None
    made = copy_object(claim)
    marks = {**marks, BIND_COMPLETED: YES}
    if not named:
        made["spec"]["volumeName"] = name_of(volume)
        marks[BOUND_BY_CONTROLLER] = YES
    made["metadata"]["annotations"] = marks
    return made


def claim_status(
    claim: PersistentVolumeClaim, phase: ClaimPhase, volume: PersistentVolume | None
) -> PersistentVolumeClaimStatus | None:
    """Return the status that the claim is to have, None when it has it. (`updateClaimStatus`)"""
    old = claim.get("status") or {}
    new: PersistentVolumeClaimStatus = {**old, "phase": phase}
    if volume is None:
        new.pop("accessModes", None)
        new.pop("capacity", None)
    else:
        new["accessModes"] = list(volume["spec"].get("accessModes") or ())
        if old.get("phase") != phase or not old.get("capacity"):
            new["capacity"] = {"storage": (volume["spec"].get("capacity") or {}).get("storage", "0")}
    return None if new == old else new


@dataclass(frozen=True, slots=True)
class VolumeDecision:
    """`phase` is the volume's, "" to leave it. `look_at_claim`: the claim has to be looked at. `unbind`: let it go.
    `reclaim`: the claim is gone, and what becomes of the volume is `decide_reclaim`'s."""

    phase: VolumePhase | Literal[""] = ""
    look_at_claim: bool = False
    unbind: bool = False
    reclaim: bool = False
    volume_said: Said | None = None
    claim_said: Said | None = None


def decide_volume(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> VolumeDecision:
    """Decide about a volume; `claim` is named by its claimRef, None when that is gone or has another uid."""
    reference = volume["spec"].get("claimRef")
    if not reference or not reference.get("uid"):
        return VolumeDecision("Available")
    if claim is None:
        ended = (volume.get("status") or {}).get("phase") in ("Released", "Failed")
        return VolumeDecision("" if ended else "Released", reclaim=True)
    named = claim["spec"].get("volumeName") or ""
    if not named:
        if mode_of(volume) != mode_of(claim):
            volume_text = (
                f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{name_of(claim)}" due to '
                "incompatible volumeMode."
            )
            claim_text = f'Cannot bind PersistentVolume "{name_of(volume)}" to requested claim due to incompatible '
            return VolumeDecision(
                volume_said=Said("Warning", "VolumeMismatch", volume_text),
                claim_said=Said("Warning", "VolumeMismatch", f"{claim_text}volumeMode."),
            )
        return VolumeDecision(look_at_claim=True)
    if named == name_of(volume):
        return VolumeDecision("Bound")
    if PROVISIONED_BY in annotations_of(volume) and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
        ended = (volume.get("status") or {}).get("phase") in ("Released", "Failed")
        return VolumeDecision("" if ended else "Released", reclaim=True)
    return VolumeDecision(unbind=True)


def unbound_volume(volume: PersistentVolume) -> PersistentVolume:
    """Return the volume without its claim; what a user has reserved stays reserved. (`unbindVolume`)"""
    made = copy_object(volume)
    if BOUND_BY_CONTROLLER in annotations_of(made):
        del made["metadata"]["annotations"][BOUND_BY_CONTROLLER]
        del made["spec"]["claimRef"]
    else:
        made["spec"]["claimRef"].pop("uid", None)
        made["spec"]["claimRef"].pop("resourceVersion", None)
    return made


def decide_reclaim(volume: PersistentVolume) -> Said | None:
    """Return why a released volume cannot be reclaimed as its policy says. (`reclaimVolume`)

    None when there is nothing to do here: it is retained, or its provisioner deletes it.
    """
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    if policy == "Recycle":
        return Said("Warning", "VolumeFailedRecycle", NO_RECYCLER)
    if policy != "Delete" or PROVISIONED_BY in annotations_of(volume):
        return None
    path = (volume["spec"].get("hostPath") or {}).get("path")
    if path is not None:
        why = f"host_path deleter only supports /tmp/.+ but received provided {path}"
        if path.startswith("/tmp/"):  # noqa: S108 (a path of a manifest)
            why = f"lastcall deletes no directory that it has not made: remove {path}, then the PersistentVolume"
    else:
        why = f'error getting deleter volume plugin for volume "{name_of(volume)}": no deletable volume plugin matched'
    return Said("Warning", "VolumeFailedDelete", why)


def volume_status(
    volume: PersistentVolume, phase: VolumePhase, now: str, message: str = ""
) -> PersistentVolumeStatus | None:
    """Return the status that the volume is to have, None when it has it. `now` is RFC 3339. (`updateVolumePhase`)"""
    old = volume.get("status") or {}
    if old.get("phase") == phase:
        return None
    new: PersistentVolumeStatus = {"phase": phase, "lastPhaseTransitionTime": now}
    if message:
        new["message"] = message
    return new


def claim_key(volume: PersistentVolume) -> tuple[str, str] | None:
    """Return (namespace, name) in the claimRef."""
    reference = volume["spec"].get("claimRef")
    return (reference.get("namespace") or "", reference.get("name") or "") if reference else None


def is_claim_of(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim is the very one in the claimRef, by uid."""
    return claim_key(volume) == (namespace_of(claim), name_of(claim)) and (
        volume["spec"]["claimRef"].get("uid") in (None, "", uid_of(claim))
    )
