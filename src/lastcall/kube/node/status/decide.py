"""The rules of the status manager, without its I/O. Source: status/status_manager.go.

Every function takes plain status objects and answers new ones, or says no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from lastcall.kube.api.meta import Object, copy_object, is_terminating
from lastcall.kube.api.pods.restart_rules import all_containers_could_restart, container_should_restart
from lastcall.kube.api.pods.spec import StatusField
from lastcall.kube.node.pods.spec import (
    all_containers_of,
    find_container,
    init_containers_of,
    is_mirror_pod,
    is_restartable_init_container,
    is_static_pod,
    is_terminal_phase,
)
from lastcall.kube.node.pods.termination_message import MAX_POD_BYTES
from lastcall.kube.node.status.conditions import (
    KUBELET_CONDITIONS,
    containers_ready_condition,
    find_condition,
    force_unready_when_terminal,
    pod_ready_condition,
)
from lastcall.kube.node.status.containers import runtime_id, status_unknown_terminated
from lastcall.kube.node.status.features import StatusFeatures

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerStatus as APIContainerStatus
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

SHARED_CONDITIONS = ("DisruptionTarget",)
"""Conditions that the kubelet and others write."""
STATUS_FIELDS: tuple[StatusField, ...] = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
LOST_MESSAGE = "The container could not be located when the pod was terminated"


def prepare_status(pod: Pod, status: APIPodStatus, old: APIPodStatus, now: str) -> APIPodStatus | None:
    """Return the status to remember after `old`, or None if it would move a container illegally.

    Sets transition times and the start time and cuts messages to the Pod's budget. `now` is RFC 3339.
    Source: status_manager.go:updateStatusInternal.
    """
    if illegal_transition(pod, old, status):
        return None
    for condition in status.get("conditions") or []:
        if condition.get("type") in KUBELET_CONDITIONS or condition.get("type") in SHARED_CONDITIONS:
            before = find_condition(old.get("conditions"), condition["type"])
            same = before is not None and before.get("status") == condition.get("status")
            condition["lastTransitionTime"] = (before.get("lastTransitionTime") or now) if before and same else now
    status["startTime"] = old.get("startTime") or status.get("startTime") or now
    normalize_messages(pod, status)
    return status


def normalize_messages(pod: Pod, status: APIPodStatus) -> None:
    """Cut termination messages to an even share of 12288 bytes. Source: status_manager.go:normalizeStatus."""
    share = MAX_POD_BYTES // max(1, sum(1 for _ in all_containers_of(pod)))
    for field in STATUS_FIELDS:
        for container in status.get(field) or []:
            for state in (container.get("state"), container.get("lastState")):
                ended = (state or {}).get("terminated")
                if ended and len(ended.get("message", "")) * 4 > share:
                    cut = ended["message"].encode()[:share]
                    ended["message"] = cut.decode("utf-8", "ignore")


def illegal_transition(pod: Pod, old: APIPodStatus, new: APIPodStatus) -> str:
    """Return why a container may not leave Terminated, "" if all is well. Source: checkContainerStateTransition."""
    if pod["spec"].get("restartPolicy", "Always") == "Always" or all_containers_could_restart(pod):
        return ""
    sidecars = {c["name"] for c in init_containers_of(pod) if is_restartable_init_container(c)}
    field: StatusField
    for field in ("containerStatuses", "initContainerStatuses"):
        after = {status["name"]: status for status in new.get(field) or []}
        for before in old.get(field) or []:
            ended = (before.get("state") or {}).get("terminated")
            name = before["name"]
            if ended is None or name in sidecars or name not in after:
                continue
            container = find_container(pod, name) or {"name": name}
            if container_should_restart(container, pod, ended["exitCode"]):
                continue
            if "terminated" not in (after[name].get("state") or {}):
                return f"terminated container {name} attempted illegal transition to non-terminated state"
    return ""


def equal_by_kubelet(old: APIPodStatus, new: APIPodStatus) -> bool:
    """Return whether all that the kubelet owns is equal. Source: status_manager.go:isPodStatusByKubeletEqual."""

    def owned(status: APIPodStatus) -> dict[str, PodCondition]:
        types = (*KUBELET_CONDITIONS, *SHARED_CONDITIONS)
        return {c["type"]: c for c in status.get("conditions") or [] if c["type"] in types}

    if owned(old) != owned(new):
        return False
    return _without_conditions(old) == _without_conditions(new)


def _without_conditions(status: APIPodStatus) -> Object:
    return {key: value for key, value in status.items() if key != "conditions" and value not in (None, [], "")}


def merge_pod_status(
    api: APIPodStatus, new: APIPodStatus, *, could_have_running_containers: bool, features: StatusFeatures, now: str
) -> APIPodStatus:
    """Return what to write over the API's status. Source: status_manager.go:mergePodStatus."""
    merged = copy_object(new)
    conditions = [copy_object(c) for c in api.get("conditions") or [] if c["type"] not in KUBELET_CONDITIONS]
    becomes_terminal = not is_terminal_phase(api.get("phase")) and is_terminal_phase(new.get("phase"))
    for condition in merged.get("conditions") or []:
        if condition.get("type") in KUBELET_CONDITIONS:
            conditions.append(condition)
        elif condition.get("type") in SHARED_CONDITIONS and features.disruption_target and becomes_terminal:
            # Written once all containers have ended, so that a running Pod never has it.
            before = find_condition(api.get("conditions"), condition["type"])
            if before is None or before.get("status") != condition.get("status"):
                condition["lastTransitionTime"] = now
            _replace_or_append(conditions, condition)
    merged["conditions"] = conditions
    if "resourceClaimStatuses" in api:
        merged["resourceClaimStatuses"] = api["resourceClaimStatuses"]
    if becomes_terminal and could_have_running_containers:
        # Nobody may hear that a Pod has ended while one of its containers may still run (#108366, since 1.23.13).
        outcome: Literal["phase", "reason", "message"]
        for outcome in ("phase", "reason", "message"):
            merged.pop(outcome, None)
            if outcome in api:
                merged[outcome] = api[outcome]
    force_unready_when_terminal(merged, now)
    return merged


def _replace_or_append(conditions: list[PodCondition], condition: PodCondition) -> None:
    for index, existing in enumerate(conditions):
        if existing.get("type") == condition.get("type"):
            conditions[index] = condition
            return
    conditions.append(condition)


def terminated_status(pod: Pod, cached: APIPodStatus, features: StatusFeatures) -> APIPodStatus:
    """Return the last status of a Pod: what is not Terminated is lost. Source: status_manager.go:TerminatePod."""
    status = copy_object(cached)
    if has_pod_initialized(pod, status):
        for container in status.get("containerStatuses") or []:
            _lose(container)
    for container in initialized_containers(status.get("initContainerStatuses") or []):
        _lose(container)
    if not is_static_pod(pod) and features.terminal_phase_on_delete and not is_terminal_phase(status.get("phase")):
        status["phase"] = "Failed"
    return status


def _lose(container: APIContainerStatus) -> None:
    if "terminated" not in (container.get("state") or {}):
        container["state"] = {"terminated": status_unknown_terminated(LOST_MESSAGE)}


def has_pod_initialized(pod: Pod, status: APIPodStatus) -> bool:
    """Return whether all init containers were done once. Source: status_manager.go:hasPodInitialized."""
    init = init_containers_of(pod)
    if not init:
        return True
    for container in status.get("containerStatuses") or []:
        state = container.get("state") or {}
        if "running" in state or "terminated" in state or (container.get("lastState") or {}).get("terminated"):
            return True
    statuses = status.get("initContainerStatuses") or []
    if not statuses:
        return False
    last = statuses[-1]
    spec = find_container(pod, last["name"])
    if spec is not None and is_restartable_init_container(spec):
        return "running" in (last.get("state") or {}) and bool(last.get("started"))
    ended = [(state or {}).get("terminated") for state in (last.get("lastState"), last.get("state"))]
    return any(one is not None and one["exitCode"] == 0 for one in ended)


def initialized_containers(statuses: list[APIContainerStatus]) -> list[APIContainerStatus]:
    """Return init containers up to the last one that ever started; at least the first one."""
    for index in range(len(statuses) - 1, -1, -1):
        status = statuses[index]
        if "waiting" not in (status.get("state") or {}) or (status.get("lastState") or {}).get("terminated"):
            return statuses[: index + 1]
    return statuses[:1]


def with_container_ready(
    pod: Pod, cached: APIPodStatus, container_id: str, ready: bool, generation: int
) -> APIPodStatus | None:
    """Return `cached` with a container's readiness changed, and the conditions that follow. None if nothing changes.

    Source: status_manager.go:SetContainerReadiness. `container_id` with or without its `lastcall://`.
    """
    found = _find(cached, container_id)
    if found is None or bool(found.get("ready")) == ready:
        return None
    status = copy_object(cached)
    changed = _find(status, container_id)
    assert changed is not None
    changed["ready"] = ready
    statuses = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    conditions: list[PodCondition] = status.setdefault("conditions", [])
    phase = status.get("phase", "")
    for condition in (
        pod_ready_condition(pod, conditions, statuses, phase, generation),
        containers_ready_condition(pod, statuses, phase, generation),
    ):
        _replace_or_append(conditions, condition)
    return status


def with_container_started(cached: APIPodStatus, container_id: str, started: bool) -> APIPodStatus | None:
    """Return `cached` with a container's `started` changed. None if nothing changes. Source: SetContainerStartup."""
    found = _find(cached, container_id)
    if found is None or found.get("started") is started:
        return None
    status = copy_object(cached)
    changed = _find(status, container_id)
    assert changed is not None
    changed["started"] = started
    return status


def _find(status: APIPodStatus, container_id: str) -> APIContainerStatus | None:
    wanted = runtime_id(container_id)
    field: StatusField
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or []:
            if runtime_id(container.get("containerID", "")) == wanted:
                return container
    return None


def can_be_deleted(
    api_pod: Pod, status: APIPodStatus, pod_is_finished: bool, resources_reclaimed: bool, features: StatusFeatures
) -> bool:
    """Return whether the kubelet may send the final DELETE. Source: status_manager.go:canBeDeleted.

    Since 1.27 the API's own phase must be terminal; before, containers and volumes must be gone instead.
    """
    if not is_terminating(api_pod) or is_mirror_pod(api_pod) or not pod_is_finished:
        return False
    if features.final_delete_needs_terminal_phase:
        return is_terminal_phase((api_pod.get("status") or {}).get("phase"))
    running = any("running" in (c.get("state") or {}) for f in STATUS_FIELDS for c in status.get(f) or [])
    return resources_reclaimed and not running


def merge_patch(old: Any, new: Any) -> Any:
    """Return the RFC 7386 patch that turns `old` into `new` (both JSON objects); `{}` if they are equal.

    A null and an absent field are the same to the API (a merge patch cannot set one), so they make no difference.
    """
    patch: dict[str, Any] = {}
    for key, value in new.items():
        if key not in old:
            if value is not None:
                patch[key] = value
        elif old[key] != value and _without_nulls(old[key]) != _without_nulls(value):
            both = isinstance(value, dict) and isinstance(old[key], dict)
            patch[key] = merge_patch(old[key], value) if both else value
    for key, value in old.items():
        if key not in new and value is not None:
            patch[key] = None
    return patch


def _without_nulls(value: Any) -> Any:
    # Most of what there is are texts and numbers: they are not looked at one by one.
    if isinstance(value, dict):
        return {
            key: _without_nulls(item) if type(item) in _NESTED else item
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) if type(item) in _NESTED else item for item in value]
    return value


_NESTED = frozenset((dict, list))
