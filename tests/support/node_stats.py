"""What a virtual node and its Pods use, and how its ends of Pods are told."""

from typing import Any

from virtual_cluster import VirtualCluster

from lastcall.kube.api.resources import EVENTS
from lastcall.kube.node.eviction.decide import ContainerUsage, FileUsage, Observation, PodUsage

MI = 1 << 20


class Stats:
    """What the node and its Pods use. `free` is by signal, `pods` by name; every reading is a fresh one."""

    def __init__(self) -> None:
        self.free: dict[str, tuple[int, int]] = {}
        self.pods: dict[str, PodUsage] = {}
        self._at = 0.0

    async def observe(self) -> dict[str, Observation]:
        self._at += 1
        return {signal: Observation(*amounts, self._at) for signal, amounts in self.free.items()}

    async def pod_usage(self, pods: Any) -> dict[str, PodUsage]:
        names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods}
        return {uid: self.pods[name] for uid, name in names.items() if name in self.pods}


def using(memory: int = 0, processes: int = 1, rootfs: int = 0, logs: int = 0, **volumes: int) -> PodUsage:
    """Of a Pod with one container, `app`; MiB."""
    files = {name: FileUsage(size * MI, 1) for name, size in volumes.items()}
    app = ContainerUsage(memory * MI, processes, FileUsage(rootfs * MI, 1), FileUsage(logs * MI, 1))
    return PodUsage({"app": app}, files)


def disruption(cluster: VirtualCluster, pod: str = "p") -> tuple[str, str] | None:
    conditions = cluster.status(pod).get("conditions") or []
    return next((((c["reason"]), c["message"]) for c in conditions if c["type"] == "DisruptionTarget"), None)


def ended_as(cluster: VirtualCluster, pod: str = "p") -> tuple[str | None, ...]:
    status = cluster.status(pod)
    return status.get("phase"), status.get("reason"), status.get("message")


def node_events(cluster: VirtualCluster) -> list[str]:
    found = {}
    for seen in cluster.history[EVENTS]:
        if seen.object["involvedObject"]["kind"] == "Node" and seen.object["source"].get("component") == "kubelet":
            found[seen.name] = f"{seen.object['type']} {seen.object['reason']}: {seen.object['message']}"
    return list(found.values())
