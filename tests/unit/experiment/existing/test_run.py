"""What `lastcall run --context` refuses, plans, and takes for its own."""

from typing import Any

import pytest

from lastcall.errors import UserError
from lastcall.experiment.existing.changes import how_to_delete
from lastcall.experiment.existing.run_checks import check_manifests, overlaps, planned
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from lastcall.manifests.read import Manifest, Place
from lastcall.manifests.yaml_documents import Document

WEB = {"app": "web"}


def manifest(resource: Resource, name: str, namespace: str = "shop", **rest: Any) -> Manifest:
    labels = rest.pop("labels", {})
    meta = {"name": name, "labels": labels, **({"namespace": namespace} if resource.namespaced else {})}
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta, **rest}
    return Manifest(obj, resource, Place("a.yaml", Document(obj, 1, 1)))


def workload(resource: Resource = DEPLOYMENTS, labels: dict[str, str] = WEB, **spec: Any) -> Manifest:
    wanted: Any = labels if resource == REPLICATIONCONTROLLERS else {"matchLabels": labels}
    spec = {"selector": wanted, "template": {"metadata": {"labels": labels}, "spec": {}}, **spec}
    return manifest(resource, "web", spec=spec)


def stateful() -> Manifest:
    return workload(STATEFULSETS, volumeClaimTemplates=[{"metadata": {"name": name}} for name in ("data", "logs")])


def there(name: str, selector: Any = None, labels: dict[str, str] | None = None, controller: str = "") -> Object:
    owners = [{"uid": controller, "controller": True}] if controller else []
    meta = {"name": name, "uid": f"u-{name}", "labels": labels or {}, "ownerReferences": owners}
    return {"metadata": meta, "spec": {"selector": selector} if selector else {}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (manifest(NAMESPACES, "other"), "it is cluster-scoped"),
        (manifest(PODS, "a", "other"), "its namespace is other, and the experiment's is shop"),
        (manifest(PODS, ""), "it needs a fixed name"),
        (manifest(CONFIGMAPS, "system:a"), "it needs a fixed name"),
    ],
)
def test_what_cannot_be_removed_without_a_trace_is_refused_with_its_place(given: Manifest, why: str) -> None:
    with pytest.raises(UserError, match=r"^a\.yaml:1: ") as refused:
        check_manifests("shop", [manifest(PODS, "good"), given])
    assert why in str(refused.value) and "good" not in str(refused.value)


def test_a_namespace_of_kubernetes_is_refused() -> None:
    with pytest.raises(UserError, match="runs no experiments in kube-"):
        check_manifests("kube-system", [manifest(PODS, "a", "kube-system")])


@pytest.mark.parametrize("resource", [DEPLOYMENTS, STATEFULSETS, DAEMONSETS, JOBS, REPLICATIONCONTROLLERS])
def test_workloads_are_accepted_and_removed_with_their_pods(resource: Resource) -> None:
    check_manifests("shop", [workload(resource)])
    assert how_to_delete(resource) == "Foreground"


@pytest.mark.parametrize(
    ("manifests", "delete", "steps", "restored"),
    [
        (
            [manifest(PODS, "a")],
            False,
            [
                "create Pod a",
                "wait until its Pods are Ready, for at most 60 s",
                "evict these Pods, one after another, each when its PodDisruptionBudgets allow it",
                "leave Pod a ended: an evicted Pod without an owner does not come back",
            ],
            "delete everything that it created",
        ),
        (
            [workload(replicas=3), workload(DAEMONSETS), workload(JOBS, parallelism=2)],
            True,
            [
                "create Deployment web (3 Pods), DaemonSet web (a Pod on each node that it fits), Job web (2 Pods)",
                "wait until its Pods are Ready, for at most 60 s",
                "delete these Pods, all at the same time",
            ],
            "delete everything that it created, with the Pods that replaced the ended ones",
        ),
    ],
)
def test_the_plan_says_what_is_done_and_what_does_not_come_back(
    manifests: list[Manifest], delete: bool, steps: list[str], restored: str
) -> None:
    assert planned(manifests, delete=delete, timeout=60.0) == (tuple(steps), (restored,))


@pytest.mark.parametrize(
    ("manifests", "around", "found"),
    [
        (
            [workload()],
            {SERVICES: [there("front", WEB)]},
            ["Service front, which already exists, would send requests to"],
        ),
        ([manifest(PODS, "a", labels=WEB)], {SERVICES: [there("front", WEB)]}, ["Service front"]),
        ([workload()], {SERVICES: [there("front", {"app": "other"}), there("none")]}, []),
        ([manifest(PODS, "a", labels=WEB)], {REPLICASETS: [there("rs", {"matchLabels": WEB})]}, ["ReplicaSet rs"]),
        ([manifest(PODS, "a", labels=WEB)], {REPLICATIONCONTROLLERS: [there("rc", WEB)]}, ["would adopt"]),
        ([workload()], {REPLICASETS: [there("rs", {"matchLabels": WEB})]}, []),  # its Pods have a controller
        ([workload()], {PODS: [there("lone", labels=WEB)]}, ["Deployment web would adopt Pod lone"]),
        ([workload()], {PODS: [there("owned", labels=WEB, controller="u-rs")]}, []),
        (
            [stateful()],
            {PERSISTENTVOLUMECLAIMS: [there(f"{each}-0") for each in ("data-web", "logs-web", "data-db")]},
            ["StatefulSet web would use PersistentVolumeClaim data-web-0, logs-web-0, which already exists"],
        ),
        ([stateful()], {PERSISTENTVOLUMECLAIMS: [there("data-web-x"), there("data-web-0-a"), there("data-web")]}, []),
        ([workload()], {PERSISTENTVOLUMECLAIMS: [there("data-web-0")]}, []),
        ([manifest(JOBS, "j", spec={})], {PODS: [there("lone", labels=WEB)]}, []),  # its selector is its own uid
    ],
)
def test_what_would_mix_with_pods_that_are_there_is_found(
    manifests: list[Manifest], around: dict[Resource, list[Object]], found: list[str]
) -> None:
    told = overlaps(manifests, around)
    assert len(told) == len(found) and all(each in line for each, line in zip(found, told, strict=True)), told


def test_the_plan_says_what_becomes_of_the_claims_of_a_stateful_set() -> None:
    _, restored = planned([stateful(), workload()], delete=False, timeout=60.0)
    assert restored == (
        "delete everything that it created, with the Pods that replaced the ended ones",
        "delete the claims of StatefulSet web: whether their volumes are kept depends on the reclaim policy of their "
        "StorageClass",
    )
