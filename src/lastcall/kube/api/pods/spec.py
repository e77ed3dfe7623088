"""What several components ask of a Pod."""

# check: pure

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from lastcall.kube.api.meta import AnyObject, Object, name_of, namespace_of, uid_of
from lastcall.kube.api.quantity import is_positive, parse_quantity

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod_status import PodCondition, PodStatus

QOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]
ContainerGroup = Literal["initContainers", "containers", "ephemeralContainers"]
StatusField = Literal["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"]
_COMPUTE = ("cpu", "memory")

DISRUPTION_TARGET = "DisruptionTarget"
"""The condition of a Pod that is about to be ended by a disruption; its reason says by which."""


def all_containers(pod: AnyObject, *, ephemeral: bool = True) -> Iterator[tuple[ContainerGroup, Object]]:
    """Yield every container of the spec with the list it is in: init, then application, then ephemeral ones."""
    spec = pod.get("spec") or {}
    groups: tuple[ContainerGroup, ...] = ("initContainers", "containers", "ephemeralContainers")
    for group in groups if ephemeral else groups[:2]:
        for container in spec.get(group) or ():
            yield group, container


def is_restartable_init(container: AnyObject) -> bool:
    """Return True for a sidecar: an init container with restartPolicy Always. (`podutil.IsRestartableInitContainer`)"""
    return container.get("restartPolicy") == "Always"


def pod_key(pod: AnyObject) -> str:
    """Return `namespace/name`."""
    return f"{namespace_of(pod)}/{name_of(pod)}"


def pod_ref_text(pod: AnyObject) -> str:
    """Return `name_namespace(uid)`, as the kubelet's messages name a Pod. (`format.Pod`)"""
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"


def qos_class(pod: AnyObject) -> QOSClass:
    """Compute the class from the resources of the (defaulted) spec. (`pkg/apis/core/v1/helper/qos:ComputePodQOS`)"""
    spec = pod.get("spec") or {}
    pod_resources = spec.get("resources") or {}
    if pod_resources.get("requests") or pod_resources.get("limits"):
        resources: list[dict[str, Any]] = [pod_resources]
    else:
        resources = [container.get("resources") or {} for _, container in all_containers(pod, ephemeral=False)]
    requested = limited = False
    guaranteed = True
    requests = {name: parse_quantity("0") for name in _COMPUTE}
    limits = {name: parse_quantity("0") for name in _COMPUTE}
    for resource in resources:
        found = 0
        for name in _COMPUTE:
            asked = (resource.get("requests") or {}).get(name)
            if asked is not None and is_positive(asked):
                requested = True
                requests[name] += parse_quantity(asked)
            limit = (resource.get("limits") or {}).get(name)
            if limit is not None and is_positive(limit):
                limited = True
                found += 1
                limits[name] += parse_quantity(limit)
        guaranteed = guaranteed and found == len(_COMPUTE)
    if not requested and not limited:
        return "BestEffort"
    if guaranteed and all(requests[name] == limits[name] for name in _COMPUTE):
        return "Guaranteed"
    return "Burstable"


@overload
def get_condition(status: PodStatus, condition_type: str) -> PodCondition | None: ...


@overload
def get_condition(status: AnyObject, condition_type: str) -> Object | None: ...


def get_condition(status: AnyObject, condition_type: str) -> Any:
    """Return the entry of `status.conditions` with this type."""
    condition: Object
    for condition in status.get("conditions") or ():
        if condition.get("type") == condition_type:
            return condition
    return None


def set_condition(status: Object, condition: AnyObject, now: str) -> bool:
    """Put `condition` into `status.conditions`, in place; True when something changed.

    `now` (RFC 3339) becomes `lastTransitionTime` when the condition is new or its `status` changed, otherwise the old
    time stays. (`podutil.UpdatePodCondition`)
    """
    conditions = status.setdefault("conditions", [])
    old = get_condition(status, condition["type"])
    if old is None:
        conditions.append({**condition, "lastTransitionTime": now})
        return True
    moved = old.get("status") != condition.get("status")
    new = {**condition, "lastTransitionTime": now if moved else old.get("lastTransitionTime", now)}
    if new == old:
        return False
    conditions[next(index for index, entry in enumerate(conditions) if entry is old)] = new
    return True


def is_pod_ready(pod: AnyObject) -> bool:
    """Return whether the Ready condition is True."""
    condition = get_condition(pod.get("status") or {}, "Ready")
    return condition is not None and condition.get("status") == "True"


def is_pod_terminal(pod: AnyObject) -> bool:
    """Return whether the phase is Succeeded or Failed. (`podutil.IsPodTerminal`)"""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_mirror_pod(pod: AnyObject) -> bool:
    return "kubernetes.io/config.mirror" in ((pod.get("metadata") or {}).get("annotations") or {})
