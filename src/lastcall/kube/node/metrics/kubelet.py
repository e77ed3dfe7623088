"""`/metrics` and `/metrics/probes` of the kubelet. Source: pkg/kubelet/metrics/metrics.go, prober/prober_manager.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, namespace_of
from lastcall.kube.cri.api import ContainerState, PodSandboxState, RuntimeService, RuntimeServiceError
from lastcall.kube.node.pods.spec import is_static_pod
from lastcall.kube.node.workers.transitions import State
from lastcall.world.counting import Family
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.node.prober.manager import PodProbeManager
    from lastcall.kube.node.runtime.pleg import PodLifecycleEventGenerator
    from lastcall.kube.node.runtime.start_container import ContainerStarter
    from lastcall.kube.node.runtime_deadlines import RuntimeWithDeadlines
    from lastcall.kube.node.workers.manager import PodWorkers
    from lastcall.kube.node.workers.pod_manager import PodManager

_STATIC = ("", "true")
_CONTAINER_STATES = {
    ContainerState.CONTAINER_CREATED: "created",
    ContainerState.CONTAINER_EXITED: "exited",
    ContainerState.CONTAINER_RUNNING: "running",
}
_LIFECYCLES = (State.SYNC, State.TERMINATING, State.TERMINATED)


@dataclass(frozen=True, slots=True)
class CountedParts:
    """The parts of a kubelet that count something."""

    pods: PodManager
    workers: PodWorkers
    pleg: PodLifecycleEventGenerator
    runtime: RuntimeWithDeadlines
    starter: ContainerStarter
    probes: PodProbeManager


async def running_families(runtime: RuntimeService) -> list[Family]:
    """Return counts of sandboxes and containers from the runtime; none if it does not answer."""
    try:
        sandboxes, containers = await runtime.list_pod_sandbox(), await runtime.list_containers()
    except RuntimeServiceError:
        return []
    states = Counter(_CONTAINER_STATES[each.state] for each in containers if each.state in _CONTAINER_STATES)
    return [
        ("kubelet_running_pods", [({}, sum(1 for each in sandboxes if each.state == PodSandboxState.SANDBOX_READY))]),
        ("kubelet_running_containers", [({"container_state": state}, count) for state, count in states.items()]),
    ]


def kubelet_families(parts: CountedParts, node: str, active: Sequence[Pod]) -> Iterator[Family]:
    """Yield the kubelet's metrics. `active` are the Pods that are not over."""
    yield "kubelet_node_name", [({"node": node}, 1)]
    desired = parts.pods.get_pods()
    yield "kubelet_desired_pods", _by_static(desired)
    yield "kubelet_active_pods", _by_static(active)
    yield "kubelet_mirror_pods", [({}, len(parts.pods.get_mirrors()))]
    yield "kubelet_working_pods", _working(parts)
    yield from parts.pleg.families()
    yield from parts.runtime.families()
    yield from parts.starter.families()


def probe_families(parts: CountedParts) -> Iterator[Family]:
    """Yield the counts of each probe that has a worker: as in Kubernetes, they go with it."""
    samples = []
    for worker in parts.probes.workers():
        labels = {
            "container": worker.container["name"],
            "namespace": namespace_of(worker.pod),
            "pod": name_of(worker.pod),
            "pod_uid": worker.pod["metadata"]["uid"],
            "probe_type": worker.probe_type.capitalize(),
        }
        samples += [({**labels, "result": result}, count) for result, count in worker.counts.items()]
    yield "prober_probe_total", samples


def _by_static(pods: Sequence[Pod]) -> list[tuple[dict[str, str], float]]:
    counts = Counter("true" if is_static_pod(pod) else "" for pod in pods)
    return [({"static": static}, counts[static]) for static in _STATIC]


def _working(parts: CountedParts) -> list[tuple[dict[str, str], float]]:
    """(kubelet.go:updatePodMetrics)"""
    counts: Counter[tuple[str, str, str]] = Counter()
    for uid in parts.workers.known_uids():
        pod = parts.pods.get_pod(uid)
        config, static = ("desired", "true" if is_static_pod(pod) else "") if pod is not None else ("orphan", "")
        counts[config, parts.workers.state_of(uid).value, static] += 1
    return [
        ({"config": config, "lifecycle": lifecycle.value, "static": static}, counts[config, lifecycle.value, static])
        for config in ("desired", "orphan")
        for lifecycle in _LIFECYCLES
        for static in _STATIC
    ]
