"""The kubelet's own Pod conditions. Source: status/generate.go.

A generated condition has no `lastTransitionTime`: the status manager sets it, because only it knows the last one.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.kube.api.text.go_notation import go_list, go_quote
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.runtime_pod import why_sandbox_changed
from lastcall.kube.node.pods.spec import (
    containers_of,
    init_containers_of,
    is_restartable_init_container,
    is_terminal_phase,
)

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerStatus as APIContainerStatus
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

KUBELET_CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "PodResizePending",
    "PodResizeInProgress",
    "AllContainersRestarting",
)
"""Conditions that only the kubelet writes, in the order in which it writes the first five."""


def make_condition(
    type_: str, status: bool, *, reason: str = "", message: str = "", observed_generation: int = 0
) -> PodCondition:
    condition: PodCondition = {"type": type_}
    if observed_generation:
        condition["observedGeneration"] = observed_generation
    condition |= {"status": "True" if status else "False", "lastProbeTime": None}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def find_condition(conditions: Iterable[PodCondition] | None, type_: str) -> PodCondition | None:
    return next((c for c in conditions or () if c["type"] == type_), None)


def set_pod_condition(status: APIPodStatus, condition: PodCondition) -> None:
    """Put a condition into `status.conditions`, in place; the status manager adds its time.

    It observes the same generation as the others. (`CalculatePodConditionObservedGeneration`)
    """
    conditions: list[PodCondition] = status.setdefault("conditions", [])
    generation = max((each.get("observedGeneration", 0) for each in conditions), default=0)
    if generation:
        condition = {**condition, "observedGeneration": generation}
    conditions[:] = [*(each for each in conditions if each.get("type") != condition.get("type")), condition]


def terminal_ready_condition(type_: str, phase: str, observed_generation: int = 0) -> PodCondition:
    """Return Ready or ContainersReady of a Pod in a terminal phase."""
    reason = {"Failed": "PodFailed", "Succeeded": "PodCompleted"}.get(phase, "")
    return make_condition(type_, False, reason=reason, observed_generation=observed_generation)


def containers_ready_condition(
    pod: Pod, statuses: list[APIContainerStatus], phase: str, generation: int = 0
) -> PodCondition:
    """Return ContainersReady. Source: status/generate.go:GenerateContainersReadyCondition."""
    by_name = {status["name"]: status for status in statuses}
    unknown: list[str] = []
    unready: list[str] = []
    sidecars = [c for c in init_containers_of(pod) if is_restartable_init_container(c)]
    for container in (*sidecars, *containers_of(pod)):
        status = by_name.get(container["name"])
        if status is None:
            unknown.append(container["name"])
        elif not status.get("ready"):
            unready.append(container["name"])
    if not statuses:
        return make_condition(
            "ContainersReady", False, reason="UnknownContainerStatuses", observed_generation=generation
        )
    if phase == "Failed" or (phase == "Succeeded" and not unknown):
        return terminal_ready_condition("ContainersReady", phase, generation)
    message = _message(unknown, unready, "unready")
    if message:
        return make_condition(
            "ContainersReady", False, reason="ContainersNotReady", message=message, observed_generation=generation
        )
    return make_condition("ContainersReady", True, observed_generation=generation)


def pod_ready_condition(
    pod: Pod, conditions: list[PodCondition], statuses: list[APIContainerStatus], phase: str, generation: int = 0
) -> PodCondition:
    """Return Ready: ContainersReady and every readiness gate. Source: status/generate.go:GeneratePodReadyCondition."""
    containers_ready = containers_ready_condition(pod, statuses, phase, generation)
    if containers_ready.get("status") != "True":
        return {**containers_ready, "type": "Ready"}
    problems: list[str] = []
    for gate in pod["spec"].get("readinessGates") or []:
        type_ = gate["conditionType"]
        condition = find_condition(conditions, type_)
        if condition is None:
            problems.append(f"corresponding condition of pod readiness gate {go_quote(type_)} does not exist.")
        elif condition.get("status") != "True":
            problems.append(
                f'the status of pod readiness gate {go_quote(type_)} is not "True", but {condition.get("status")}'
            )
    if problems:
        return make_condition(
            "Ready",
            False,
            reason="ReadinessGatesNotReady",
            message=", ".join(problems),
            observed_generation=generation,
        )
    return make_condition("Ready", True, observed_generation=generation)


def all_containers_restarting_condition(phase: str, underway: bool, generation: int = 0) -> PodCondition:
    """Return AllContainersRestarting, for Pods with such a rule. Source: GenerateAllContainersRestartingCondition."""
    if is_terminal_phase(phase):
        return terminal_ready_condition("AllContainersRestarting", phase, generation)
    if not underway:
        return make_condition("AllContainersRestarting", False, observed_generation=generation)
    return make_condition(
        "AllContainersRestarting",
        True,
        reason="RestartAllContainersStarted",
        message="container exited with restart policy rule",
        observed_generation=generation,
    )


def initialized_condition(
    pod: Pod, statuses: list[APIContainerStatus], phase: str, generation: int = 0
) -> PodCondition:
    """Return Initialized. Source: status/generate.go:GeneratePodInitializedCondition."""
    by_name = {status["name"]: status for status in statuses}
    if not statuses and init_containers_of(pod):
        return make_condition("Initialized", False, reason="UnknownContainerStatuses", observed_generation=generation)
    unknown: list[str] = []
    incomplete: list[str] = []
    for container in init_containers_of(pod):
        status = by_name.get(container["name"])
        if status is None:
            unknown.append(container["name"])
        elif not status.get("started" if is_restartable_init_container(container) else "ready"):
            incomplete.append(container["name"])
    if phase == "Succeeded" and not unknown:
        return make_condition("Initialized", True, reason="PodCompleted", observed_generation=generation)
    if any(_has_started(by_name.get(c["name"])) for c in containers_of(pod)):
        # A regular container has run, so initialisation was over once, whatever a sidecar does now.
        return make_condition("Initialized", True, observed_generation=generation)
    message = _message(unknown, incomplete, "incomplete")
    if message:
        return make_condition(
            "Initialized", False, reason="ContainersNotInitialized", message=message, observed_generation=generation
        )
    return make_condition("Initialized", True, observed_generation=generation)


def ready_to_start_containers_condition(
    pod: Pod, pod_status: PodStatus, generation: int = 0, *, says_why: bool = False
) -> PodCondition:
    """Return PodReadyToStartContainers: no new sandbox is needed. With `says_why` (1.37) a False one has a reason.

    Source: status/generate.go:GeneratePodReadyToStartContainersCondition.
    """
    why = why_sandbox_changed(pod, pod_status)
    reason = {"reason": "PodSandboxNotReady", "message": why} if why and says_why else {}
    return make_condition("PodReadyToStartContainers", not why, observed_generation=generation, **reason)


def force_unready_when_terminal(status: APIPodStatus, now: str) -> None:
    """Set Ready to False in a terminal phase (kubernetes #108594). Changes `status` in place; `now` is RFC 3339.

    Only a True condition is replaced: a Pod that never became ready keeps its own reason.
    """
    phase = status.get("phase", "")
    if not is_terminal_phase(phase):
        return
    conditions: list[PodCondition] = status.get("conditions") or []
    ready = [find_condition(conditions, type_) for type_ in ("ContainersReady", "Ready")]
    if not any(condition and condition.get("status") == "True" for condition in ready):
        return
    for index, condition in enumerate(conditions):
        if condition.get("type") in ("ContainersReady", "Ready"):
            changed = condition.get("status") == "True"
            conditions[index] = terminal_ready_condition(
                condition["type"], phase, condition.get("observedGeneration", 0)
            ) | {"lastTransitionTime": now if changed else condition.get("lastTransitionTime")}


def _message(unknown: list[str], others: list[str], word: str) -> str:
    parts = []
    if unknown:
        parts.append(f"containers with unknown status: {go_list(unknown)}")
    if others:
        parts.append(f"containers with {word} status: {go_list(others)}")
    return ", ".join(parts)


def _has_started(status: APIContainerStatus | None) -> bool:
    if status is None:
        return False
    state = status.get("state") or {}
    return "running" in state or "terminated" in state or bool((status.get("lastState") or {}).get("terminated"))
