"""A Pod's control group: its name by quality of service, and its limits from those of its containers. Pure.

Sources: pkg/kubelet/cm/pod_container_manager_linux.go, helpers_linux.go:ResourceConfigForPod.
"""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.cri.api import LinuxContainerResources
from lastcall.kube.cri.cpu_shares import MIN_CPU_SHARES, cpu_shares
from lastcall.kube.node.pods.resources import pod_resources
from lastcall.kube.node.pods.spec import containers_of, get_pod_qos, init_containers_of

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

CPU_PERIOD = 100_000
MIN_CPU_QUOTA = 1_000

DEFAULT_POD_PIDS_LIMIT = 4096
"""Processes and threads of one Pod. Kubernetes sets none by default; here a fork bomb would hit the user's laptop."""


def cgroup_parent(pod: Pod) -> str:
    """Return `/kubepods/burstable/pod<uid>`; Guaranteed Pods have no QoS level (GetPodContainerName, cgroupfs)."""
    qos = get_pod_qos(pod)
    level = "" if qos == "Guaranteed" else f"/{qos.lower()}"
    return f"/kubepods{level}/pod{uid_of(pod)}"


def cpu_quota(milli: int) -> int:
    """Return the microseconds in each period; 0 is unlimited (helpers_linux.go:MilliCPUToQuota)."""
    return max(milli * CPU_PERIOD // 1000, MIN_CPU_QUOTA) if milli else 0


def resource_config_for_pod(pod: Pod, pod_pids_limit: int = 0) -> LinuxContainerResources:
    """Return the limits of the whole Pod: the sum, if every container has one. `pod_pids_limit` 0 is unlimited."""
    qos = get_pod_qos(pod)
    unified = {"pids.max": str(pod_pids_limit)} if pod_pids_limit > 0 else {}
    if qos == "BestEffort":
        return LinuxContainerResources(cpu_shares=MIN_CPU_SHARES, unified=unified)
    found = pod_resources(pod)
    limits, requests = found.get("limits", {}), found.get("requests", {})
    requested = parse_quantity(requests.get("cpu", limits.get("cpu", "0"))).milli
    quota = cpu_quota(parse_quantity(limits.get("cpu", "0")).milli) if _all_declare(pod, "cpu") else 0
    memory = parse_quantity(limits.get("memory", "0")).whole if _all_declare(pod, "memory") else 0
    return LinuxContainerResources(
        cpu_shares=cpu_shares(requested),
        cpu_quota=quota,
        cpu_period=CPU_PERIOD if quota else 0,
        memory_limit_in_bytes=memory,
        unified=unified,
    )


def declares_limits(pod: Pod) -> bool:
    """Return whether any container asks for a CPU or memory limit."""
    return any(
        resource in ((container.get("resources") or {}).get("limits") or {})
        for container in (*init_containers_of(pod), *containers_of(pod))
        for resource in ("cpu", "memory")
    )


def _all_declare(pod: Pod, resource: str) -> bool:
    if resource in ((pod["spec"].get("resources") or {}).get("limits") or {}):
        return True
    containers = [*init_containers_of(pod), *containers_of(pod)]
    return all(
        parse_quantity(((container.get("resources") or {}).get("limits") or {}).get(resource, "0")).milli > 0
        for container in containers
    )
