"""A Pod as the runtime alone knows it (kubelet container/runtime.go:Pod), and the names a Pod has there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, name_of, namespace_of
from lastcall.kube.api.pods.restart_rules import container_should_restart
from lastcall.kube.cri.api import ContainerState, ContainerStatus, PodSandboxState, PodSandboxStatus
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.spec import (
    init_containers_of,
    is_host_network_pod,
    is_restartable_init_container,
    is_terminal_phase,
)
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod

POD_NAME_LABEL = "io.kubernetes.pod.name"
POD_NAMESPACE_LABEL = "io.kubernetes.pod.namespace"
POD_UID_LABEL = "io.kubernetes.pod.uid"
CONTAINER_NAME_LABEL = "io.kubernetes.container.name"

CONTAINER_HASH_ANNOTATION = "io.kubernetes.container.hash"
RESTART_COUNT_ANNOTATION = "io.kubernetes.container.restartCount"
TERMINATION_MESSAGE_PATH_ANNOTATION = "io.kubernetes.container.terminationMessagePath"
TERMINATION_MESSAGE_POLICY_ANNOTATION = "io.kubernetes.container.terminationMessagePolicy"
PRE_STOP_HANDLER_ANNOTATION = "io.kubernetes.container.preStopHandler"
CONTAINER_PORTS_ANNOTATION = "io.kubernetes.container.ports"
POD_DELETION_GRACE_PERIOD_ANNOTATION = "io.kubernetes.pod.deletionGracePeriod"
POD_TERMINATION_GRACE_PERIOD_ANNOTATION = "io.kubernetes.pod.terminationGracePeriod"


@dataclass(frozen=True, slots=True)
class RunningPod:
    """What is to be killed: running containers and all sandboxes of one Pod."""

    uid: str
    name: str
    namespace: str
    containers: tuple[ContainerStatus, ...] = ()
    sandboxes: tuple[PodSandboxStatus, ...] = ()

    def to_api_pod(self) -> Pod:
        """Return a Pod object with names and images only (container/runtime.go:Pod.ToAPIPod)."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"uid": self.uid, "name": self.name, "namespace": self.namespace},
            "spec": {"containers": [{"name": c.metadata.name, "image": c.image} for c in self.containers]},
        }


def pod_of_container(container: ContainerStatus) -> Pod:
    """Return the Pod of a container as the runtime knows it, with this container alone."""
    labels = container.labels
    return RunningPod(
        labels.get(POD_UID_LABEL, ""), labels.get(POD_NAME_LABEL, ""), labels.get(POD_NAMESPACE_LABEL, ""), (container,)
    ).to_api_pod()


def running_pod_of(pod_status: PodStatus) -> RunningPod:
    """Return running containers and all sandboxes (container/helpers.go:ConvertPodStatusToRunningPod)."""
    return RunningPod(
        pod_status.uid,
        pod_status.name,
        pod_status.namespace,
        pod_status.running_containers(),
        pod_status.sandbox_statuses,
    )


def pods_in_runtime(sandboxes: list[PodSandboxStatus], containers: list[ContainerStatus]) -> dict[str, PodStatus]:
    """Group what a runtime lists by Pod UID, in the order the runtime lists it (newest first)."""
    sandboxes_by_uid: dict[str, list[PodSandboxStatus]] = {}
    containers_by_uid: dict[str, list[ContainerStatus]] = {}
    names: dict[str, tuple[str, str]] = {}
    for sandbox in sandboxes:
        sandboxes_by_uid.setdefault(sandbox.metadata.uid, []).append(sandbox)
        names.setdefault(sandbox.metadata.uid, (sandbox.metadata.name, sandbox.metadata.namespace))
    for container in containers:
        uid = container.labels.get(POD_UID_LABEL, "")
        containers_by_uid.setdefault(uid, []).append(container)
        names.setdefault(uid, (container.labels.get(POD_NAME_LABEL, ""), container.labels.get(POD_NAMESPACE_LABEL, "")))
    return {
        uid: make_pod_status(uid, name, namespace, sandboxes_by_uid.get(uid, []), containers_by_uid.get(uid, []), ())
        for uid, (name, namespace) in names.items()
    }


def make_pod_status(
    uid: str,
    name: str,
    namespace: str,
    sandboxes: list[PodSandboxStatus],
    containers: list[ContainerStatus],
    previous_ips: tuple[str, ...],
) -> PodStatus:
    """Make a Pod's status. Addresses come from the newest sandbox; when all are down, the last known ones stay.

    Source: kuberuntime_manager.go:GetPodStatus, pleg/generic.go:getPodIPs.
    """
    sandboxes = sorted(sandboxes, key=lambda s: -s.created_at)
    ips: tuple[str, ...] = ()
    if sandboxes and sandboxes[0].state == PodSandboxState.SANDBOX_READY:
        ips = sandboxes[0].ips
    elif not any(s.state == PodSandboxState.SANDBOX_READY for s in sandboxes):
        ips = previous_ips
    return PodStatus(
        uid, name, namespace, ips, tuple(sorted(containers, key=lambda c: -c.created_at)), tuple(sandboxes)
    )


def pod_sandbox_changed(pod: Pod, pod_status: PodStatus) -> bool:
    """Return whether the Pod needs a new sandbox (kuberuntime/util/util.go:PodSandboxChanged)."""
    return bool(why_sandbox_changed(pod, pod_status))


def why_sandbox_changed(pod: Pod, pod_status: PodStatus) -> str:
    """Return why the Pod needs a new sandbox; "" when it needs none.

    Since 1.37 a condition of the Pod says so (kubernetes#135300). The first and the last text are Kubernetes's, the
    words of the others could not be read.
    """
    if not pod_status.sandbox_statuses:
        return "no pod sandbox exists"
    if len(pod_status.ready_sandboxes()) > 1:
        return "multiple pod sandboxes are ready"
    newest, host_network = pod_status.sandbox_statuses[0], is_host_network_pod(pod)
    if newest.state != PodSandboxState.SANDBOX_READY:
        return "pod sandbox is not ready"
    if (newest.namespace_options.network == "NODE") != host_network:
        return "network namespace of pod sandbox has changed"
    return "pod sandbox has no IP address" if not host_network and not newest.ips else ""


def should_container_be_restarted(container: Container, pod: Pod, newest: ContainerStatus | None) -> bool:
    """Return whether a container that does not run may be started (container/helpers.go:ShouldContainerBeRestarted).

    `newest` is its newest instance. A Pod that is being deleted restarts nothing.
    """
    if is_terminating(pod):
        return False
    if newest is None or newest.state in (ContainerState.CONTAINER_CREATED, ContainerState.CONTAINER_UNKNOWN):
        return True
    if newest.state == ContainerState.CONTAINER_RUNNING:
        return False
    return container_should_restart(container, pod, newest.exit_code)


def pod_full_name(pod: Pod) -> str:
    """Return `<name>_<namespace>`."""
    return f"{name_of(pod)}_{namespace_of(pod)}"


def pod_phase(pod: Pod) -> str:
    """Return `status.phase`, "" if there is none."""
    phase: str = (pod.get("status") or {}).get("phase", "")
    return phase


def is_terminal(pod: Pod) -> bool:
    """Return True for phase Succeeded or Failed."""
    return is_terminal_phase(pod_phase(pod))


def has_restartable_init_container(pod: Pod) -> bool:
    return any(is_restartable_init_container(c) for c in init_containers_of(pod))
