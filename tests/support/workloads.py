"""Manifests of owners of Pods, and what became of them in a virtual cluster."""

from typing import Any

from virtual_cluster import VirtualCluster

from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import EVENTS, PODS, Resource


def template(image: str = "app:1", *, ready_after: float = 0.0, **spec: Any) -> Object:
    """A Pod template with one container `app` behind the label app=web."""
    container: Object = {"name": "app", "image": image}
    if ready_after:
        container["readinessProbe"] = {
            "tcpSocket": {"port": 80}, "initialDelaySeconds": int(ready_after), "periodSeconds": 1
        }  # fmt: skip
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}


def workload(
    kind: str, *, name: str = "web", api_version: str = "apps/v1", pods: Object | None = None, **spec: Any
) -> Object:
    """`kind` with the selector app=web."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": pods or template(), **spec},
    }


def autoscaler(kind: str, *, most: int, name: str = "web") -> Object:
    """A HorizontalPodAutoscaler that needs no metrics to scale in: its target has more than `most` replicas."""
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    spec = {"minReplicas": 1, "maxReplicas": most, "scaleTargetRef": target}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"{name}-sizes"},
        "spec": spec,
    }


async def listed(cluster: VirtualCluster, resource: Resource) -> list[Object]:
    return (await cluster.client.list(resource, cluster.namespace)).items


async def pods(cluster: VirtualCluster) -> list[Object]:
    return await listed(cluster, PODS)


def events_about(cluster: VirtualCluster, name: str) -> list[str]:
    """`reason: message` of the Events about an object, in the order in which they were first seen."""
    found: dict[str, None] = {}
    for seen in cluster.history[EVENTS]:
        if seen.object["involvedObject"]["name"] == name and seen.type != "DELETED":
            found[f"{seen.object['reason']}: {seen.object['message']}"] = None
    return list(found)


def most_at_once(cluster: VirtualCluster, counts: Any) -> int:
    """The highest number of Pods at any moment for which `counts(pod)` held."""
    alive: dict[str, bool] = {}
    most = 0
    for seen in cluster.history[PODS]:
        alive[name_of(seen.object)] = seen.type != "DELETED" and bool(counts(seen.object))
        most = max(most, sum(alive.values()))
    return most


def fewest_at_once(cluster: VirtualCluster, counts: Any, since: float) -> int:
    """The lowest number after `since` (virtual seconds)."""
    alive: dict[str, bool] = {}
    fewest = 10**9
    for seen in cluster.history[PODS]:
        alive[name_of(seen.object)] = seen.type != "DELETED" and bool(counts(seen.object))
        if seen.at >= since:
            fewest = min(fewest, sum(alive.values()))
    return fewest
