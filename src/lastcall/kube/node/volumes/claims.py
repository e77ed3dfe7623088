"""The directory behind a claim: its volume's hostPath or local path.

Source: pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go (createVolumeSpec, getPVCExtractPV,
getPVSpec), pkg/volume/{hostpath,local}.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.kube.api.claims import ClaimUse, claims_used_by, not_made_for
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, is_terminating, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, Resource
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.node.interfaces import VolumeError
from lastcall.kube.node.volumes.host_volumes import check_host_path

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod


class NotProcessed(VolumeError):
    """The claim is not ready to be mounted: the whole sync fails at once, and is tried again."""


def use_of(pod: Pod, volume: str) -> ClaimUse:
    """Return the use of the claim that this volume of the Pod names."""
    return next(use for use in claims_used_by(pod) if use.volume == volume)


def why_not_ready(pod: Pod, use: ClaimUse, claim: Object) -> str:
    """Return why the claim cannot be mounted for the Pod, "" if it can. (`getPVCExtractPV`)"""
    if use.ephemeral and (why := not_made_for(pod, claim)):
        return why
    if is_terminating(claim):
        return "PVC is being deleted"
    if (claim.get("status") or {}).get("phase") != "Bound" or not claim["spec"].get("volumeName"):
        return "PVC is not bound"
    return ""


def path_of(volume: Object) -> Path:
    """Return the path of a volume that this node can have. Raises VolumeError."""
    spec = volume["spec"]
    if spec.get("volumeMode") == "Block":
        raise VolumeError("volumeMode Block is not supported by lastcall; use Filesystem")
    if spec.get("hostPath") is not None:
        return check_host_path(spec["hostPath"])
    if spec.get("local") is not None:
        path = Path(spec["local"].get("path") or "/")
        if not path.exists():
            raise VolumeError(f"path {go_quote(str(path))} does not exist")
        return path
    raise VolumeError(
        f"the source of PersistentVolume {name_of(volume)} is not supported by lastcall; use hostPath or local"
    )


async def claimed_volume(client: Client, pod: Pod, volume: str) -> tuple[Object, bool]:
    """Return (the PersistentVolume, whether it is mounted read-only). Raises NotProcessed."""
    use, namespace = use_of(pod, volume), namespace_of(pod)
    where = f"error processing PVC {namespace}/{use.claim}: "
    failure = f"{where}failed to fetch PVC from API server"
    claim = await _get(client, PERSISTENTVOLUMECLAIMS, use.claim, namespace, failure)
    if why := why_not_ready(pod, use, claim):
        raise NotProcessed(where + why)
    name = claim["spec"]["volumeName"]
    failure = f"{where}failed to fetch PV {go_quote(name)} from API server"
    found = await _get(client, PERSISTENTVOLUMES, name, "", failure)
    reference = found["spec"].get("claimRef")
    if not reference:
        why = "it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        raise NotProcessed(f"{where}found PV object {go_quote(name)} but {why}")
    if reference.get("uid") != uid_of(claim):
        uids = go_quote(str(reference.get("uid") or "")), go_quote(uid_of(claim))
        why = f"its pv.Spec.ClaimRef.UID {uids[0]} does not point to claim.UID {uids[1]}"
        raise NotProcessed(f"{where}found PV object {go_quote(name)} but {why}")
    return found, use.read_only


async def _get(client: Client, resource: Resource, name: str, namespace: str, failure: str) -> Object:
    try:
        return await client.get(resource, name, namespace)
    except StatusError as error:
        raise NotProcessed(f"{failure}: {error.message}") from None
    except ConnectionLost as error:
        raise NotProcessed(f"{failure}: {error}") from None
