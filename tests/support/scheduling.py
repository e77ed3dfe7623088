"""Nodes, Pods and caches for tests of the scheduler's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lastcall.kube.api.meta import uid_of
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.filters import Diagnosis, failure_text
from lastcall.kube.scheduler.placement import look
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.preemption import preempt

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod


def node(
    name: str = "n", ready: str = "True", labels: Any = None, taints: Any = (), unschedulable: bool = False, **room: str
) -> Node:
    """A node with 2 cpu, 4Gi, 20Gi of storage and 110 Pods; `room` changes or adds amounts."""
    allocatable = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi", "pods": "110", **room}
    if ready != "True":
        key = "unreachable" if ready == "Unknown" else "not-ready"
        taints = [*taints, {"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), **({"unschedulable": True} if unschedulable else {})},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": allocatable},
    }


def pod(name: str = "p", *, labels: Any = None, namespace: str = "default", owner: str = "", **spec: Any) -> Pod:
    """A Pod whose uid is its name. `owner` is the uid of a ReplicaSet."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": name,
        "labels": labels or {},
        "generation": 1,
    }
    if owner:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    return cast("Pod", {"metadata": metadata, "spec": spec})


def requests(**amounts: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": amounts}}]}


def cache_of(*nodes: Node) -> Cache:
    cache = Cache()
    for each in nodes:
        cache.set_node(each)
    return cache


def pod_info(cache: Cache, a_pod: Pod) -> PodInfo:
    return cache.infos.of(a_pod)


def running(cache: Cache, a_pod: Pod, on: str) -> None:
    assert uid_of(a_pod)
    cache.put_pod(cache.infos.of(a_pod), on)


def text(cache: Cache, a_pod: Pod, budgets: Any = ()) -> str:
    """The message of FailedScheduling."""
    info = cache.infos.of(a_pod)
    diagnosis = look(info, cache)
    assert isinstance(diagnosis, Diagnosis), diagnosis
    message = preempt(info, cache, diagnosis, budgets).message if diagnosis.node_count else ""
    return failure_text(diagnosis, message, 36)
