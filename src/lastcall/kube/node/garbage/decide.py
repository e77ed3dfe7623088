"""What ended containers and sandboxes leave behind: which of it goes. Pure.

Sources: kuberuntime/kuberuntime_gc.go, kubelet pod_container_deletor.go. `manager` performs it.
"""

from collections.abc import Callable, Iterable, Sequence

from lastcall.kube.cri.api import ContainerState, ContainerStatus, PodSandboxState, PodSandboxStatus
from lastcall.kube.node.interfaces import PodStatus
from lastcall.world.dataclass import dataclass

DEAD_CONTAINERS_KEPT = 1
"""Ended instances kept for each container of a Pod that is still known, beside the one that just ended."""

GC_PERIOD_SECONDS = 60.0
"""kubelet.go:ContainerGCPeriod."""

Removable = Callable[[str], bool]
"""Whether nothing of the Pod with this UID is needed any more."""


@dataclass(frozen=True, slots=True)
class ContainerGCPolicy:
    """`min_age` (seconds since its creation) spares a young container; `max_per_pod_container` ended instances of each
    container of a Pod stay, and `max_containers` on the node altogether. Less than 0: no limit.

    Source: container/container_gc.go:GCPolicy; the defaults are cmd/kubelet/app/options'.
    """

    min_age: float = 0.0
    max_per_pod_container: int = 1
    max_containers: int = -1


def containers_to_evict(
    containers: Iterable[tuple[str, ContainerStatus]], policy: ContainerGCPolicy, now_ns: int, removable: Removable
) -> list[ContainerStatus]:
    """Return the containers (each with its Pod's UID) to evict, in this order (kuberuntime_gc.go:evictContainers).

    First all of removable Pods; then what is too much of one container of one Pod; then, when there are too many on
    the node, each container of a Pod is cut to an equal part and the oldest go. Always the oldest first.
    """
    units = _evictable(containers, policy, now_ns)
    evicted: list[ContainerStatus] = []
    for key in [key for key in units if removable(key[0])]:
        evicted += reversed(units.pop(key))
    if policy.max_per_pod_container >= 0:
        evicted += _cut(units, policy.max_per_pod_container)
    if 0 <= policy.max_containers < _count(units):
        evicted += _cut(units, max(1, policy.max_containers // len(units)))
        left = sorted((each for unit in units.values() for each in unit), key=_oldest_first)
        evicted += left[: max(0, len(left) - policy.max_containers)]
    return evicted


_Units = dict[tuple[str, str], list[ContainerStatus]]
"""By Pod UID and container name, the newest first."""


def _evictable(containers: Iterable[tuple[str, ContainerStatus]], policy: ContainerGCPolicy, now_ns: int) -> _Units:
    newest = now_ns - int(policy.min_age * 1e9)
    units: _Units = {}
    for uid, container in containers:
        if container.state != ContainerState.CONTAINER_RUNNING and container.created_at <= newest:
            units.setdefault((uid, container.metadata.name), []).append(container)
    return {key: sorted(units[key], key=_oldest_first, reverse=True) for key in sorted(units)}


def _cut(units: _Units, kept: int) -> list[ContainerStatus]:
    """Leave the `kept` newest of each unit; answer the others, the oldest of each first."""
    cut: list[ContainerStatus] = []
    for key, unit in units.items():
        cut += reversed(unit[kept:])
        units[key] = unit[:kept]
    return cut


def _count(units: _Units) -> int:
    return sum(map(len, units.values()))


def _oldest_first(container: ContainerStatus) -> tuple[int, str]:
    return container.created_at, container.id


def sandboxes_to_evict(
    sandboxes: Iterable[PodSandboxStatus], containers: Iterable[ContainerStatus], removable: Removable
) -> list[PodSandboxStatus]:
    """Return sandboxes that are not ready and hold no container: all of removable Pods, of others all but the newest.

    The oldest of a Pod first. Source: kuberuntime_gc.go:evictSandboxes.
    """
    in_use = {container.pod_sandbox_id for container in containers}
    by_pod: dict[str, list[PodSandboxStatus]] = {}
    for sandbox in sandboxes:
        by_pod.setdefault(sandbox.metadata.uid, []).append(sandbox)
    evicted = []
    for uid in sorted(by_pod):
        oldest_first = sorted(by_pod[uid], key=lambda sandbox: (sandbox.created_at, sandbox.id))
        candidates = oldest_first if removable(uid) else oldest_first[:-1]
        evicted += [s for s in candidates if s.state != PodSandboxState.SANDBOX_READY and s.id not in in_use]
    return evicted


def instances_to_prune(pod_status: PodStatus, died: ContainerStatus, *, remove_all: bool) -> list[ContainerStatus]:
    """Return old ended instances of a container that died (pod_container_deletor.go:getContainersToDeleteInPod)."""
    if remove_all:
        return [c for c in pod_status.container_statuses if c.state == ContainerState.CONTAINER_EXITED]
    others = [
        c
        for c in pod_status.container_statuses
        if c.metadata.name == died.metadata.name and c.id != died.id and c.state == ContainerState.CONTAINER_EXITED
    ]
    return others[DEAD_CONTAINERS_KEPT:]


def pod_uid_of_log_directory(name: str) -> str:
    """Return the UID in `<namespace>_<name>_<uid>` (kuberuntime/helpers.go:parsePodUIDFromLogsDirectory)."""
    return name.rpartition("_")[2]


def log_directories_to_remove(names: Sequence[str], removable: Removable) -> list[str]:
    """Return the names below the Pods' log root that belong to gone Pods (kuberuntime_gc.go:evictPodLogsDirectories).

    A name that no kubelet makes is left alone.
    """
    return [name for name in sorted(names) if name.count("_") >= 2 and removable(pod_uid_of_log_directory(name))]
