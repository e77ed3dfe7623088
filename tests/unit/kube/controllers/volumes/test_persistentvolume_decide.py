"""What the binder does about a claim and about a volume, one row for each branch of pv_controller.go."""

from typing import Any

import pytest

from lastcall.kube.api.meta import Object
from lastcall.kube.controllers.volumes.decide import (
    bound_claim,
    claim_status,
    decide_claim,
    decide_reclaim,
    decide_volume,
    find_best_match,
    unbound_volume,
    volume_status,
)

COMPLETED = "pv.kubernetes.io/bind-completed"
BY_US = "pv.kubernetes.io/bound-by-controller"
SELECTED = "volume.kubernetes.io/selected-node"
NOW = "2030-01-01T00:00:00Z"


class Known:
    """The volumes of a cluster."""

    def __init__(self, volumes: list[Object]) -> None:
        self._volumes = volumes

    def get(self, namespace: str, name: str) -> Object | None:
        return next((each for each in self._volumes if each["metadata"]["name"] == name), None)

    def items(self) -> list[Object]:
        return self._volumes


def claim(*marks: str, size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any) -> Object:
    meta = {
        "name": "c",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "5",
        "annotations": dict.fromkeys(marks, "yes"),
    }
    requests = {"requests": {"storage": size}}
    spec = {"storageClassName": "", "accessModes": list(modes), "resources": requests, **spec}
    return {"metadata": meta, "spec": {key: value for key, value in spec.items() if value is not None}, "status": {}}


def volume(name: str = "v", *marks: str, size: str = "1Gi", phase: str = "Available", **spec: Any) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "persistentVolumeReclaimPolicy": "Retain",
        **spec,
    }
    meta = {"name": name, "uid": f"uid-{name}", "annotations": dict.fromkeys(marks, "yes")}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def reference(uid: str | None = "u", name: str = "c") -> Object:
    return {"namespace": "n", "name": name, **({"uid": uid} if uid else {})}


def storage_class(name: str, mode: str = "Immediate", provisioner: str = "example.com/p", **more: Any) -> Object:
    meta = {"name": name, **more}
    return {"metadata": meta, "provisioner": provisioner, "volumeBindingMode": mode}


LATER = storage_class("later", "WaitForFirstConsumer")
SOON = storage_class("soon")
IN_TREE = storage_class("tree", provisioner="kubernetes.io/no-provisioner")
DEFAULT = storage_class("chosen", annotations={"storageclass.kubernetes.io/is-default-class": "true"})

CLAIMS = [
    ("nothing to be had and no class", claim(), [], [], "pending FailedBinding"),
    ("a volume that will do", claim(), [volume()], [], "bind v"),
    ("one that is reserved comes first", claim(), [volume("a"), volume("b", claimRef=reference(None))], [], "bind b"),
    ("one of somebody else", claim(), [volume(claimRef=reference("x", "d"))], [], "pending FailedBinding"),
    ("too small", claim(size="2Gi"), [volume()], [], "pending FailedBinding"),
    ("another mode", claim(modes=("ReadWriteMany",)), [volume()], [], "pending FailedBinding"),
    ("a Released one is not given again", claim(), [volume(phase="Released")], [], "pending FailedBinding"),
    ("another class", claim(), [volume(storageClassName="soon")], [], "pending FailedBinding"),
    ("by label", claim(selector={"matchLabels": {"a": "b"}}), [volume()], [], "pending FailedBinding"),
    ("first consumer", claim(storageClassName="later"), [], [LATER], "pending WaitForFirstConsumer"),
    ("the scheduler's to choose", claim(storageClassName="later"), [volume(storageClassName="later")], [LATER],
     "pending WaitForFirstConsumer"),
    ("the node is chosen", claim(SELECTED, storageClassName="later"), [], [LATER], "provision ExternalProvisioning"),
    ("a volume is made at once", claim(storageClassName="soon"), [], [SOON], "provision ExternalProvisioning"),
    ("no such class", claim(storageClassName="none"), [], [SOON], "nothing ProvisioningFailed"),
    ("by hand only", claim(storageClassName="tree"), [], [IN_TREE], "nothing ProvisioningFailed"),
    ("a default class that came later", claim(storageClassName=None), [], [DEFAULT], "default chosen"),
    ("no class at all is a word too", claim(), [], [DEFAULT], "pending FailedBinding"),
    ("named, not there", claim(volumeName="v"), [], [], "pending"),
    ("named and free", claim(volumeName="v"), [volume()], [], "bind v"),
    ("named, too small", claim(volumeName="v", size="2Gi"), [volume()], [], "pending VolumeMismatch"),
    ("named, reserved for us", claim(volumeName="v"), [volume(claimRef=reference(None))], [], "bind v"),
    ("named, somebody else's", claim(volumeName="v"), [volume(claimRef=reference("x", "d"))], [],
     "pending FailedBinding"),
    ("named by us, taken away", claim(BY_US, volumeName="v"), [volume(claimRef=reference("x", "d"))], [], "nothing"),
    ("bound", claim(COMPLETED, volumeName="v"), [volume(claimRef=reference())], [], "bind v"),
    ("bound, the reference lost", claim(COMPLETED, volumeName="v"), [volume()], [], "bind v"),
    ("bound, its name lost", claim(COMPLETED), [volume()], [], "lost ClaimLost"),
    ("bound, the volume gone", claim(COMPLETED, volumeName="v"), [], [], "lost ClaimLost"),
    ("bound, another's now", claim(COMPLETED, volumeName="v"), [volume(claimRef=reference("x"))], [],
     "lost ClaimMisbound"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "volumes", "classes", "wanted"), [row[1:] for row in CLAIMS], ids=[r[0] for r in CLAIMS]
)
def test_what_becomes_of_a_claim(given: Object, volumes: list[Object], classes: list[Object], wanted: str):
    known = Known(volumes)
    found = decide_claim(given, known, {each["metadata"]["name"]: each for each in classes}, lambda: [])
    what = found.volume["metadata"]["name"] if found.volume else found.name if found.verb == "default" else ""
    said = found.said.reason if found.said else ""
    assert " ".join(each for each in (found.verb, what or said) if each) == wanted


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        ([], "waiting for first consumer to be created before binding"),
        (["p"], "waiting for pod p to be scheduled"),
        (["p", "q"], "waiting for pods p,q to be scheduled"),
    ],
)
def test_a_delayed_claim_says_whom_it_waits_for(pods: list[str], text: str):
    found = decide_claim(claim(storageClassName="later"), Known([]), {"later": LATER}, lambda: pods)
    assert found.said is not None and found.said.message == text


def test_the_smallest_of_the_volumes_with_the_fewest_modes_is_taken():
    wide = volume("wide", size="1Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    volumes = [volume("big", size="3Gi"), volume("fits", size="2Gi"), wide]
    found = find_best_match(claim(), volumes, delayed=False)
    assert found is not None and found["metadata"]["name"] == "fits"


VOLUMES = [
    ("free", volume(), None, {"phase": "Available"}),
    ("reserved", volume(claimRef=reference(None)), None, {"phase": "Available"}),
    ("its claim is gone", volume(claimRef=reference(), phase="Bound"), None, {"phase": "Released", "reclaim": True}),
    ("tried before", volume(claimRef=reference(), phase="Failed"), None, {"reclaim": True}),
    ("half bound", volume(claimRef=reference()), claim(), {"look_at_claim": True}),
    ("bound", volume(claimRef=reference()), claim(volumeName="v"), {"phase": "Bound"}),
    ("its claim has another", volume(claimRef=reference()), claim(volumeName="w"), {"unbind": True}),
    ("made for a claim that has another", volume("v", "pv.kubernetes.io/provisioned-by", claimRef=reference(),
     persistentVolumeReclaimPolicy="Delete"), claim(volumeName="w"), {"phase": "Released", "reclaim": True}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "owner", "wanted"), [row[1:] for row in VOLUMES], ids=[row[0] for row in VOLUMES])
def test_what_becomes_of_a_volume(given: Object, owner: Object | None, wanted: dict[str, Any]):
    found = decide_volume(given, owner)
    assert {
        key: getattr(found, key) for key in ("phase", "look_at_claim", "unbind", "reclaim") if getattr(found, key)
    } == wanted


def test_a_block_volume_that_is_reserved_for_a_file_system_tells_both():
    found = decide_volume(volume(claimRef=reference(), volumeMode="Block"), claim())
    assert found.volume_said and found.claim_said and "incompatible volumeMode" in found.claim_said.message


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/x"}}, None),
        ({"persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": "/x"}}, "only supports /tmp/.+"),
        ({"persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": "/tmp/x"}}, "deletes no directory"),
        ({"persistentVolumeReclaimPolicy": "Delete", "local": {"path": "/x"}}, "no deletable volume plugin matched"),
        ({"persistentVolumeReclaimPolicy": "Recycle", "hostPath": {"path": "/x"}}, "No recycler plugin"),
    ],
)
def test_only_what_nobody_can_reclaim_fails(spec: dict[str, Any], text: str | None):
    said = decide_reclaim(volume(**spec))
    assert (said is None) if text is None else (said is not None and text in said.message)


def test_a_volume_with_a_provisioner_is_left_to_it():
    spec = {"persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": "/x"}}
    assert decide_reclaim(volume("v", "pv.kubernetes.io/provisioned-by", **spec)) is None


def test_who_chose_the_volume_is_marked():
    assert bound_claim(claim(), volume()) == claim(BY_US, COMPLETED, volumeName="v")
    assert bound_claim(claim(volumeName="v"), volume()) == claim(COMPLETED, volumeName="v")
    assert bound_claim(claim(COMPLETED, volumeName="v"), volume()) is None


def test_what_a_user_has_reserved_stays_reserved():
    ours, users = volume("v", BY_US, claimRef=reference()), volume("v", claimRef=reference())
    assert "claimRef" not in unbound_volume(ours)["spec"]
    assert unbound_volume(users)["spec"]["claimRef"] == reference(None)


def test_a_status_is_written_once():
    first = claim_status(claim(), "Bound", volume(size="2Gi"))
    assert first == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert claim_status({**claim(), "status": first}, "Bound", volume(size="2Gi")) is None
    assert claim_status({**claim(), "status": first}, "Lost", None) == {"phase": "Lost"}
    assert volume_status(volume(phase="Pending"), "Available", NOW) == {
        "phase": "Available",
        "lastPhaseTransitionTime": NOW,
    }
    assert volume_status(volume(), "Available", NOW) is None
