"""Whose a StatefulSet's claims are, who uses a claim, and which directory is a volume's."""

from typing import Any

import pytest

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import PODS
from lastcall.kube.controllers.statefulset.claims import has_stale_owner, is_up_to_date, with_owner
from lastcall.kube.controllers.volumes.ephemeral import ephemeral_claim
from lastcall.kube.controllers.volumes.local_path import (
    Refused,
    directory_name,
    directory_of,
    new_volume,
    should_delete,
    should_provision,
)
from lastcall.kube.controllers.volumes.protection import uses

ROOT = "/lastcall/durable/local-path-provisioner"


def stateful_set(scaled: str = "Retain", deleted: str = "Retain", uid: str = "set") -> Object:
    policy = {"whenScaled": scaled, "whenDeleted": deleted}
    return {"metadata": {"name": "web", "uid": uid}, "spec": {"persistentVolumeClaimRetentionPolicy": policy}}


POD: Object = {"metadata": {"name": "web-1", "namespace": "n", "uid": "pod"}, "spec": {}}
NAMES = {"set": ("apps/v1", "StatefulSet", "web"), "pod": ("v1", "Pod", "web-1"), "other": ("v1", "ConfigMap", "x")}


def owned(*owners: str, controller: bool = True) -> Object:
    """`set`, `pod` and `other` are owners by kind and name; `set:old` is one with another uid."""
    references = []
    for owner in owners:
        kind, _, uid = owner.partition(":")
        version, what, name = NAMES[kind]
        references.append(
            {"apiVersion": version, "kind": what, "name": name, "uid": uid or kind, "controller": controller}
        )
    return {"metadata": {"name": "data-web-1", "ownerReferences": references}}


POLICIES = [
    ("Retain", "Retain", False, []), ("Retain", "Retain", True, []),
    ("Retain", "Delete", False, ["set"]), ("Retain", "Delete", True, ["set"]),
    ("Delete", "Retain", False, []), ("Delete", "Retain", True, ["pod"]),
    ("Delete", "Delete", False, ["set"]), ("Delete", "Delete", True, ["pod"]),
]  # fmt: skip


@pytest.mark.parametrize(("scaled", "deleted", "away", "wanted"), POLICIES)
@pytest.mark.parametrize("before", [[], ["set"], ["pod"], ["set", "pod"]])
def test_a_claim_belongs_to_whom_the_policy_says(
    scaled: str, deleted: str, away: bool, wanted: list[str], before: list[str]
):
    owner = stateful_set(scaled, deleted)
    claim = owned(*before)
    assert is_up_to_date(claim, owner, POD, scaled_away=away) == (before == wanted)
    now = with_owner(claim, owner, POD, scaled_away=away)
    assert [each["uid"] for each in now["metadata"].get("ownerReferences", [])] == wanted
    assert is_up_to_date(now, owner, POD, scaled_away=away)


def test_what_an_earlier_life_owns_is_not_touched():
    owner = stateful_set("Delete", "Delete")
    for claim in (owned("set:old"), owned("pod:old")):
        assert is_up_to_date(claim, owner, POD, scaled_away=False)
    assert has_stale_owner(owned("pod:old"), {"metadata": {"name": "web-1"}}, PODS)
    assert not has_stale_owner(owned("set"), {"metadata": {"name": "web-1"}}, PODS)


def test_beside_another_controller_there_is_none_of_ours():
    owner = stateful_set("Delete", "Delete")
    assert is_up_to_date(owned("other"), owner, POD, scaled_away=False)
    assert not is_up_to_date(owned("other", "set"), owner, POD, scaled_away=False)
    kept = with_owner(owned("other", "set"), owner, POD, scaled_away=False)
    assert [each["uid"] for each in kept["metadata"]["ownerReferences"]] == ["other"]


def test_an_owner_that_does_not_control_is_put_right():
    assert not is_up_to_date(owned("set", controller=False), stateful_set("Retain", "Delete"), POD, scaled_away=False)


def user(node: str = "node-1", **meta: Any) -> Object:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
    ]
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "p-uid", **meta},
        "spec": {"volumes": volumes, **({"nodeName": node} if node else {})},
    }


def test_a_pod_with_a_node_uses_its_claims_also_when_it_has_ended():
    claim = {"metadata": {"name": "data", "namespace": "n"}}
    assert uses(user(), claim)
    assert uses({**user(), "status": {"phase": "Succeeded"}}, claim)
    assert not uses(user(""), claim)
    assert not uses(user(), {"metadata": {"name": "other", "namespace": "n"}})


def test_an_ephemeral_claim_is_used_by_its_own_pod_until_that_is_shut_down():
    claim = ephemeral_claim(user(), user()["spec"]["volumes"][1])
    assert claim["metadata"]["name"] == "p-b" and claim["spec"] == {"accessModes": ["ReadWriteOnce"]}
    assert uses(user(), claim)
    stranger = {"metadata": {"name": "p-b", "namespace": "n"}}
    assert not uses(user(), stranger)
    ended = user(deletionTimestamp="2030-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    assert not uses(ended, claim)


def waiting(**marks: str) -> Object:
    names = {"provisioner": "volume.kubernetes.io/storage-provisioner", "node": "volume.kubernetes.io/selected-node"}
    meta = {
        "name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1",
        "annotations": {names[key]: value for key, value in marks.items()},
    }  # fmt: skip
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": "standard", "accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"metadata": meta, "spec": spec}


LATER = {"metadata": {"name": "standard"}, "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
NODE = {"metadata": {"name": "node-1", "labels": {"kubernetes.io/hostname": "host-1"}}}
OURS = "rancher.io/local-path"


@pytest.mark.parametrize(
    ("claim", "wanted"),
    [
        (waiting(), False),
        (waiting(provisioner=OURS), False),
        (waiting(provisioner=OURS, node="node-1"), True),
        (waiting(provisioner="example.com/p", node="node-1"), False),
    ],
)
def test_a_volume_is_made_when_the_node_is_chosen(claim: Object, wanted: bool):
    assert should_provision(claim, {"standard": LATER}) is wanted
    claim["spec"]["volumeName"] = "v"
    assert not should_provision(claim, {"standard": LATER})


def test_a_new_volume_is_for_its_claim_and_its_node():
    made = new_volume(waiting(), LATER, NODE, ROOT)
    assert made["metadata"]["name"] == "pvc-u"
    assert made["spec"]["hostPath"] == {"path": f"{ROOT}/pvc-u_n_c", "type": "DirectoryOrCreate"}
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["host-1"]
    assert directory_of(made, ROOT) == "pvc-u_n_c"
    assert not should_delete(made)
    assert should_delete({**made, "status": {"phase": "Released"}})


@pytest.mark.parametrize(("policy", "expected"), [(None, "Delete"), ("Delete", "Delete"), ("Retain", "Retain")])
def test_a_volume_is_kept_or_deleted_as_its_class_says(policy: str | None, expected: str):
    made = new_volume(waiting(), {**LATER, "reclaimPolicy": policy}, NODE, ROOT)
    assert made["spec"]["persistentVolumeReclaimPolicy"] == expected
    assert should_delete({**made, "status": {"phase": "Released"}}) is (expected == "Delete")


@pytest.mark.parametrize(
    ("spec", "node", "why"),
    [
        ({"accessModes": ["ReadWriteMany"]}, NODE, "only supports ReadWriteOnce"),
        ({"volumeMode": "Block"}, NODE, "does not support block"),
        ({"selector": {}}, NODE, "Selector is not supported"),
        ({}, None, "no node was specified"),
    ],
)
def test_what_local_path_cannot_do_it_says(spec: dict[str, Any], node: Object | None, why: str):
    claim = waiting()
    claim["spec"] |= spec
    with pytest.raises(Refused, match=why):
        new_volume(claim, LATER, node, ROOT)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/etc", f"{ROOT}", f"{ROOT}/", f"{ROOT}/..", f"{ROOT}/pvc-u_n_c/../pvc-x_n_c", f"{ROOT}/pvc-x_n_c",
     "/lastcall/durable/store.sqlite", f"{ROOT}2/pvc-u_n_c"],
)  # fmt: skip
def test_only_the_directory_that_a_volume_got_is_removed(path: str):
    with pytest.raises(Refused):
        directory_of({"metadata": {"name": "pvc-u"}, "spec": {"hostPath": {"path": path}}}, ROOT)


def test_the_name_of_a_directory_fits_into_a_file_system():
    claim = waiting()
    claim["metadata"]["name"] = "x" * 253
    assert len(directory_name(claim)) == 255
    assert directory_of(new_volume(claim, LATER, NODE, ROOT), ROOT) == directory_name(claim)
