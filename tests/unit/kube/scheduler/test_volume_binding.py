"""Which nodes can have a Pod's volumes, and which volume goes to which claim."""

from typing import Any

import pytest
from scheduling import cache_of, node, pod, pod_info, running

from lastcall.kube.api.meta import Object
from lastcall.kube.scheduler.filters import Diagnosis
from lastcall.kube.scheduler.placement import look
from lastcall.kube.scheduler.volume_binding import PodVolumes, can_provision, not_bound_because, pod_volumes

LATER = {"metadata": {"name": "later"}, "provisioner": "example.com/p", "volumeBindingMode": "WaitForFirstConsumer"}
BY_HAND = {**LATER, "metadata": {"name": "by-hand"}, "provisioner": "kubernetes.io/no-provisioner"}
CLASSES = {"later": LATER, "by-hand": BY_HAND}
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"


def claim(
    name: str = "c", *, bound: str = "", selected: str = "", size: str = "1Gi", phase: str = "Pending", **more: Any
) -> Object:
    marks = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    marks |= {"volume.kubernetes.io/selected-node": selected} if selected else {}
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "annotations": marks,
        **more.pop("metadata", {}),
    }
    spec = {"storageClassName": "later", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": meta, "spec": {**spec, **more, "volumeName": bound}, "status": {"phase": phase}}


def volume(name: str, host: str = "", size: str = "1Gi", of: str = "later") -> Object:
    spec: Object = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
    if host:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def user(*claims: str) -> Object:
    return pod(volumes=[{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims])


def found(claims: list[Object], volumes: list[Object], selected: dict[Any, str] | None = None) -> PodVolumes:
    known = {("default", each["metadata"]["name"]): each for each in claims}
    names = [each["metadata"]["name"] for each in claims]
    return pod_volumes(user(*names), known.get, volumes, CLASSES, selected or {})


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim(storageClassName="")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(phase="Lost", bound="v")], 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'),
        ([claim(metadata={"deletionTimestamp": "x"})], 'persistentvolumeclaim "c" is being deleted'),
        ([claim()], ""),
        ([claim(bound="v")], ""),
    ],
)
def test_what_no_node_can_help_with_is_said_before_any_is_looked_at(claims: list[Object], text: str):
    known = {("default", each["metadata"]["name"]): each for each in claims}
    assert pod_volumes(user("c"), known.get, [], CLASSES, {}).conflict == text


def test_an_ephemeral_claim_that_is_not_there_yet_is_waited_for():
    given = pod(volumes=[{"name": "s", "ephemeral": {}}])
    name = given["metadata"]["name"]
    conflict = pod_volumes(given, lambda key: None, [], CLASSES, {}).conflict
    assert conflict == f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}-s"'


def reasons(volumes: PodVolumes, name: str = "n1") -> tuple[str, ...]:
    cache = cache_of(node(name, labels={"kubernetes.io/hostname": name}))
    return volumes.reasons_against(name, cache.nodes[name].labels)


@pytest.mark.parametrize(
    ("claims", "volumes", "wanted"),
    [
        ([claim(bound="v")], [volume("v", "n1")], ()),
        ([claim(bound="v")], [volume("v", "n2")], (NODE_CONFLICT,)),
        ([claim(bound="v")], [], (NO_VOLUME,)),
        ([claim()], [], ()),
        ([claim(storageClassName="by-hand")], [], (BIND_CONFLICT,)),
        ([claim(storageClassName="by-hand")], [volume("v", "n1", of="by-hand")], ()),
        ([claim(storageClassName="by-hand")], [volume("v", "n2", of="by-hand")], (BIND_CONFLICT,)),
        ([claim("c", storageClassName="by-hand"), claim("d", storageClassName="by-hand")],
         [volume("v", "n1", of="by-hand")], (BIND_CONFLICT,)),
        ([claim(selected="n1")], [], ()),
        ([claim(selected="n2")], [], (BIND_CONFLICT,)),
    ],
)  # fmt: skip
def test_what_speaks_against_a_node(claims: list[Object], volumes: list[Object], wanted: tuple[str, ...]):
    assert reasons(found(claims, volumes)) == wanted


def test_the_smallest_claim_chooses_first_and_what_is_not_there_is_made():
    volumes = found([claim("big", size="3Gi"), claim("small")], [volume("v", size="3Gi"), volume("w", size="2Gi")])
    bindings = volumes.bindings("n1", {})
    assert bindings is not None and not bindings.provisions
    assert [(c["metadata"]["name"], v["metadata"]["name"]) for c, v in bindings.static] == [
        ("small", "w"),
        ("big", "v"),
    ]
    bindings = found([claim("big", size="9Gi")], [volume("v")]).bindings("n1", {})
    assert bindings is not None and [each["metadata"]["name"] for each in bindings.provisions] == ["big"]


def test_a_node_that_was_chosen_a_moment_ago_counts_before_it_is_written():
    assert reasons(found([claim()], [], {("default", "c"): "n2"})) == (BIND_CONFLICT,)


def test_volumes_are_made_only_where_the_class_allows():
    zones = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
    assert can_provision({**LATER, "allowedTopologies": zones}, {"zone": "a"})
    assert not can_provision({**LATER, "allowedTopologies": zones}, {"zone": "b"})
    assert not can_provision(None, {})


def test_the_message_is_that_of_kubernetes():
    cache = cache_of(node("n1"), node("n2"))
    info = pod_info(cache, user("c"))
    info.volumes = found([claim(storageClassName="")], [])
    diagnosis = look(info, cache)
    assert isinstance(diagnosis, Diagnosis)
    assert str(diagnosis) == "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    assert diagnosis.plugins == ("VolumeBinding",)


def test_a_claim_for_one_pod_is_taken_while_another_pod_with_a_node_names_it():
    cache = cache_of(node("n1"), node("n2"))
    running(cache, pod("other", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), "n1")
    info = pod_info(cache, user("c"))
    info.volumes = found([claim(accessModes=["ReadWriteOncePod"], bound="v")], [volume("v")])
    diagnosis = look(info, cache)
    assert isinstance(diagnosis, Diagnosis) and diagnosis.plugins == ("VolumeRestrictions",)
    info.volumes = found([claim(bound="v")], [volume("v")])
    assert not isinstance(look(info, cache), Diagnosis)


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (None, 'persistentvolumeclaim "c" not found'),
        (claim(metadata={"deletionTimestamp": "x"}), 'persistentvolumeclaim "c" is being deleted'),
        (claim(), 'provisioning failed for PVC "c"'),
        (claim(selected="n2"), 'selectedNode annotation value "n2" not set to scheduled node "n1"'),
        (claim(selected="n1"), ""),
        (claim(bound="v"), ""),
    ],
)
def test_waiting_in_vain_is_noticed(now: Object | None, text: str):
    assert not_bound_because([(claim(), now)], [claim()], "n1") == text
