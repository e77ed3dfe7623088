"""What a sync has to do for a Pod: sandbox, which containers to start, which to kill. A pure function of spec and
status.

Source: kubelet kuberuntime/kuberuntime_manager.go:computePodActions, computeInitContainerActions and
kuberuntime_container.go, container/helpers.go:ShouldContainerBeRestarted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

import orjson

from lastcall.kube.api.meta import is_terminating
from lastcall.kube.api.pods.restart_rules import container_should_restart, is_container_restartable
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.cri.api import ContainerState, ContainerStatus
from lastcall.kube.node.interfaces import PodStatus, ProbeResult
from lastcall.kube.node.pods.restart_all import containers_to_reset
from lastcall.kube.node.pods.runtime_pod import (
    CONTAINER_HASH_ANNOTATION,
    pod_sandbox_changed,
    should_container_be_restarted,
)
from lastcall.kube.node.pods.spec import (
    containers_of,
    init_containers_of,
    is_restartable_init_container,
)
from lastcall.kube.node.stopping.grace import KillReason
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod

ProbeAnswer = Callable[[str], ProbeResult]
"""container id → result of its probe; "unknown" while there is none."""


@dataclass(frozen=True, slots=True)
class ContainerToKill:
    status: ContainerStatus
    message: str
    reason: KillReason | None


@dataclass(slots=True)
class PodActions:
    """Indexes point into the lists of the spec. `attempt` is that of the sandbox to create."""

    kill_pod: bool = False
    create_sandbox: bool = False
    sandbox_id: str = ""
    attempt: int = 0
    sandbox_changed: bool = False
    """A sandbox existed and cannot be used any more (Event SandboxChanged)."""
    init_containers_to_start: list[int] = field(default_factory=list)
    containers_to_start: list[int] = field(default_factory=list)
    ephemeral_containers_to_start: list[int] = field(default_factory=list)
    containers_to_kill: list[ContainerToKill] = field(default_factory=list)
    containers_to_reset: list[ContainerStatus] = field(default_factory=list)
    """All containers start anew: these are killed if they run, and removed, in this order."""

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not (
            self.kill_pod
            or self.create_sandbox
            or self.init_containers_to_start
            or self.containers_to_start
            or self.ephemeral_containers_to_start
            or self.containers_to_kill
            or self.containers_to_reset
        )


def hash_container(container: Container) -> str:
    """Hash name and image: if it changes, the container has to be replaced (container/helpers.go:HashContainer)."""
    chosen = {"image": container.get("image", ""), "name": container.get("name", "")}
    return hashlib.sha256(orjson.dumps(chosen, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]


def container_changed(container: Container, status: ContainerStatus) -> bool:
    return status.annotations.get(CONTAINER_HASH_ANNOTATION, hash_container(container)) != hash_container(container)


def container_succeeded(container: Container, pod_status: PodStatus) -> bool:
    status = pod_status.find(container["name"])
    return status is not None and status.state == ContainerState.CONTAINER_EXITED and status.exit_code == 0


def should_restart_on_failure(pod: Pod) -> bool:
    """Return whether anything of the Pod may be started again after a failure."""
    never = pod["spec"].get("restartPolicy", "Always") == "Never"
    return not never or any(is_container_restartable(container, pod) for container in containers_of(pod))


def policy_restarts_after_kill(container: Container, pod: Pod) -> bool:
    """Return whether policies restart a container the kubelet kills (liveness, startup): rules need an exit code."""
    policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy", "Always")
    return bool(policy != "Never")


def has_any_regular_container_created(pod: Pod, pod_status: PodStatus) -> bool:
    """Return whether the newest sandbox ever had a regular container. Then initialisation is behind the Pod."""
    newest = pod_status.sandbox_statuses[0].id if pod_status.sandbox_statuses else ""
    names = {container["name"] for container in containers_of(pod)}
    return any(
        status.metadata.name in names and status.pod_sandbox_id == newest for status in pod_status.container_statuses
    )


def compute_pod_actions(
    pod: Pod,
    pod_status: PodStatus,
    *,
    liveness: ProbeAnswer,
    startup: ProbeAnswer,
    restart_all: bool = False,
    resized: frozenset[str] = frozenset(),
) -> PodActions:
    """Compute what `sync_pod` has to do now. Sources as above. `restart_all`: a rule wants it, see `restart_all`.

    `resized` are containers that have to start anew to get their new resources.
    """
    if restart_all:
        return PodActions(containers_to_reset=containers_to_reset(pod, pod_status))
    create = pod_sandbox_changed(pod, pod_status)
    newest = next(iter(pod_status.sandbox_statuses), None)
    attempt = newest.metadata.attempt + create if newest is not None else 0
    actions = PodActions(
        kill_pod=create, create_sandbox=create, sandbox_id=newest.id if newest is not None else "", attempt=attempt,
        sandbox_changed=create and newest is not None,
    )  # fmt: skip
    if create:
        _start_from_the_beginning(actions, pod, pod_status)
        return actions

    for index, ephemeral in enumerate(pod["spec"].get("ephemeralContainers") or ()):
        if pod_status.find(ephemeral["name"]) is None:
            actions.ephemeral_containers_to_start.append(index)

    initialised = compute_init_container_actions(
        actions, pod, pod_status, liveness=liveness, startup=startup, resized=resized
    )
    if actions.kill_pod or not initialised:
        return actions

    kept = False
    for index, container in enumerate(containers_of(pod)):
        status = pod_status.find(container["name"])
        if status is None or status.state != ContainerState.CONTAINER_RUNNING:
            _restart_ended(actions, index, container, pod, status)
            continue
        kill = _why_kill(container, pod, status, liveness, startup)
        if kill is not None:
            _replace_running(actions, index, status, kill)
        elif container["name"] in resized:
            _restart_for_resize(actions, status)
            actions.containers_to_start.append(index)
        else:
            kept = True

    if not kept and not actions.containers_to_start:
        # Every regular container has ended for good: stop the sidecars, then the sandbox.
        actions.kill_pod = True
        actions.init_containers_to_start.clear()
    return actions


def _restart_ended(
    actions: PodActions, index: int, container: Container, pod: Pod, status: ContainerStatus | None
) -> None:
    """Start a container that does not run, if the policies say so; one in an unknown state is killed before."""
    if not should_container_be_restarted(container, pod, status):
        return
    actions.containers_to_start.append(index)
    if status is not None and status.state == ContainerState.CONTAINER_UNKNOWN:
        message = f"Container is in {_state(status)} state, try killing it before restart"
        actions.containers_to_kill.append(ContainerToKill(status, message, KillReason.UNKNOWN))


def _replace_running(
    actions: PodActions, index: int, status: ContainerStatus, kill: tuple[str, KillReason | None, bool]
) -> None:
    message, reason, restart = kill
    if restart:
        message += ", will be restarted"
        actions.containers_to_start.append(index)
    actions.containers_to_kill.append(ContainerToKill(status, message, reason))


def _start_from_the_beginning(actions: PodActions, pod: Pod, pod_status: PodStatus) -> None:
    """A new sandbox: every container is made anew, init containers run again."""
    if not should_restart_on_failure(pod) and actions.attempt != 0 and pod_status.container_statuses:
        actions.create_sandbox = False
        return
    of_pod = pod["spec"].get("restartPolicy", "Always")
    to_start = [
        index
        for index, container in enumerate(containers_of(pod))
        if (container.get("restartPolicy") or of_pod) != "OnFailure" or not container_succeeded(container, pod_status)
    ]
    if not to_start and has_any_regular_container_created(pod, pod_status):
        actions.create_sandbox = False
        return
    if init_containers_of(pod):
        actions.init_containers_to_start = [0]
        return
    actions.containers_to_start = to_start


def _why_kill(
    container: Container, pod: Pod, status: ContainerStatus, liveness: ProbeAnswer, startup: ProbeAnswer
) -> tuple[str, KillReason | None, bool] | None:
    """Message, reason and "will be restarted" for a running container that has to go; None to keep it."""
    name = container["name"]
    if container_changed(container, status):
        return f"Container {name} definition changed", None, True
    restart = policy_restarts_after_kill(container, pod)
    if container.get("livenessProbe") is not None and liveness(status.id) == "failure":
        return f"Container {name} failed liveness probe", KillReason.LIVENESS_PROBE, restart
    if container.get("startupProbe") is not None and startup(status.id) == "failure":
        return f"Container {name} failed startup probe", KillReason.STARTUP_PROBE, restart
    return None


def is_init_container_failed(status: ContainerStatus) -> bool:
    """Return whether it exited with an error, was killed for memory, or is unknown."""
    if status.state == ContainerState.CONTAINER_EXITED:
        return status.exit_code != 0 or status.reason == "OOMKilled"
    return status.state == ContainerState.CONTAINER_UNKNOWN


def _init_restarts(container: Container, pod: Pod, status: ContainerStatus) -> bool:
    """Whether a failed init container is run again: by its own policy and rules, else by the Pod's policy."""
    if not container.get("restartPolicy"):
        return bool(pod["spec"].get("restartPolicy", "Always") != "Never")
    if status.state == ContainerState.CONTAINER_UNKNOWN:
        return True
    return container_should_restart(container, pod, status.exit_code)


def _restart_for_resize(actions: PodActions, status: ContainerStatus) -> None:
    message = f"Container {status.metadata.name} resize requires restart"
    actions.containers_to_kill.append(ContainerToKill(status, message, None))


def compute_init_container_actions(
    actions: PodActions,
    pod: Pod,
    pod_status: PodStatus,
    *,
    liveness: ProbeAnswer,
    startup: ProbeAnswer,
    resized: frozenset[str] = frozenset(),
) -> bool:
    """Decide over the init containers; return True if the regular containers may start.

    They are looked at from the last to the first, because records of finished ones may be gone from the runtime: the
    last one with a record says how far initialisation has come. Sidecars are kept running ever after.
    """
    init_containers = init_containers_of(pod)
    if not init_containers:
        return True
    was_initialised = has_any_regular_container_created(pod, pod_status)
    initialised = was_initialised
    found = False
    last = len(init_containers) - 1
    to_start: list[int] = []
    for index in range(last, -1, -1):
        container = init_containers[index]
        sidecar = is_restartable_init_container(container)
        status = pod_status.find(container["name"])
        if status is None:
            if was_initialised and sidecar and not is_terminating(pod):
                to_start.append(index)
            continue
        found = True
        if was_initialised and not sidecar:
            continue
        done = False
        if status.state == ContainerState.CONTAINER_CREATED:
            to_start.append(index)
        elif status.state != ContainerState.CONTAINER_RUNNING:
            done = _ended_init_container(actions, to_start, index, container, pod, status)
            if actions.kill_pod:
                return False
        elif sidecar:
            done = _running_sidecar(actions, to_start, index, container, status, liveness, startup)
            if container["name"] in resized and index not in to_start:
                _restart_for_resize(actions, status)
                to_start.append(index)
        if was_initialised:
            continue
        if done and index == last:
            initialised = True
        elif done:
            to_start.append(index + 1)
        break  # this one says how far initialisation has come
    if not found and not was_initialised:
        to_start = [0]
    actions.init_containers_to_start = sorted(dict.fromkeys(to_start))
    return initialised


def _ended_init_container(
    actions: PodActions, to_start: list[int], index: int, container: Container, pod: Pod, status: ContainerStatus
) -> bool:
    """Decide over one that does not run; True when the next container may start. A failure may end the Pod."""
    if not is_restartable_init_container(container):
        if not is_init_container_failed(status):
            return True
        if not _init_restarts(container, pod, status):
            actions.kill_pod = True
            return False
    if status.state == ContainerState.CONTAINER_UNKNOWN:
        _kill_unknown(actions, status)
    to_start.append(index)
    return False


def _running_sidecar(
    actions: PodActions,
    to_start: list[int],
    index: int,
    container: Container,
    status: ContainerStatus,
    liveness: ProbeAnswer,
    startup: ProbeAnswer,
) -> bool:
    """A sidecar runs: has it started, so that the next container may? It may also have to be replaced."""
    name = container["name"]

    def replace(message: str, reason: KillReason | None) -> None:
        actions.containers_to_kill.append(ContainerToKill(status, message, reason))
        to_start.append(index)

    if container.get("startupProbe") is not None:
        result = startup(status.id)
        if result == "failure":
            replace(f"Init container {name} failed startup probe", KillReason.STARTUP_PROBE)
        if result != "success":
            return False
    if container_changed(container, status):
        replace(f"Init container {name} definition changed", None)
    elif container.get("livenessProbe") is not None and liveness(status.id) == "failure":
        replace(f"Init container {name} failed liveness probe", KillReason.LIVENESS_PROBE)
    return True


def _kill_unknown(actions: PodActions, status: ContainerStatus) -> None:
    message = f"Init container is in {_state(status)} state, try killing it before restart"
    actions.containers_to_kill.append(ContainerToKill(status, message, KillReason.UNKNOWN))


def _state(status: ContainerStatus) -> str:
    return go_quote("unknown" if status.state == ContainerState.CONTAINER_UNKNOWN else status.state.name.lower())
