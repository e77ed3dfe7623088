"""What each Pod has been given of the node: the resources it was admitted with, or resized to. Pure.

Source: pkg/kubelet/allocation/allocation_manager.go.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, cast

from lastcall.kube.api.resource_lists import parse, pod_requests
from lastcall.kube.node.pods.spec import containers_of, get_pod_qos, init_containers_of, is_static_pod
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lastcall.kube.api.meta import Object
    from lastcall.kube.api.types.container import Container, ResourceRequirements
    from lastcall.kube.api.types.pod import Pod, PodSpec

Kind = Literal["limits", "requests"]
_KINDS: tuple[Kind, ...] = ("limits", "requests")
_GROUPS: tuple[Literal["containers", "initContainers"], ...] = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class Allocation:
    """By container; `pod` is what the Pod itself was given, None for nothing."""

    containers: dict[str, ResourceRequirements] = field(default_factory=dict)
    pod: ResourceRequirements | None = None


def can_be_resized(pod: Pod) -> bool:
    """Return whether a Pod can be resized: the QoS class stays, so a BestEffort Pod cannot ask for more later."""
    return get_pod_qos(pod) != "BestEffort"


def allocation_of(pod: Pod) -> Allocation:
    """Return what a Pod's spec asks for."""
    resources = {each["name"]: each.get("resources") or {} for each in (*init_containers_of(pod), *containers_of(pod))}
    return Allocation(resources, pod["spec"].get("resources"))


def same_resources(one: ResourceRequirements | None, other: ResourceRequirements | None) -> bool:
    """Return whether two ask for the same amounts, however they are written."""
    return all(parse((one or {}).get(kind)) == parse((other or {}).get(kind)) for kind in _KINDS)


def with_allocation(pod: Pod, allocation: Allocation | None) -> Pod:
    """Return the Pod with what it was given; `pod` itself if it asks for the same. (UpdatePodFromAllocation)"""
    if allocation is None:
        return pod
    spec: PodSpec = {**pod["spec"]}
    changed = False
    if not same_resources(spec.get("resources"), allocation.pod):
        changed = True
        if allocation.pod is None:
            spec.pop("resources", None)
        else:
            spec["resources"] = allocation.pod
    for group in _GROUPS:
        containers = spec.get(group) or []
        given = [_given(container, allocation) for container in containers]
        if any(one is not other for one, other in zip(given, containers, strict=True)):
            changed = True
            spec[group] = given
    return {**pod, "spec": spec} if changed else pod


def _given(container: Container, allocation: Allocation) -> Container:
    resources = allocation.containers.get(container["name"])
    if resources is None or same_resources(container.get("resources"), resources):
        return container
    return {**container, "resources": resources}


def why_infeasible(pod: Pod) -> str:
    """Return why a Pod can never be resized here; "" if it can. (IsInPlacePodVerticalScalingAllowed)"""
    return "In-place resize of static-pods is not supported" if is_static_pod(pod) else ""


def increases_requests(pod: Pod, allocated: Pod) -> bool:
    """Return True if a resize asks for more CPU or memory. (`isResizeIncreasingRequests`)"""
    wanted, has = (pod_requests(cast("Object", each["spec"])) for each in (pod, allocated))
    return any(name in wanted and (name not in has or has[name] < wanted[name]) for name in ("cpu", "memory"))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A Pod with a resize that it was not given yet. `since` is when it was refused first, None: never yet."""

    pod: Pod
    allocated: Pod
    since: int | None = None


def in_order(waiting: Iterable[Waiting]) -> list[Waiting]:
    """Sort: what takes no more of the node; by priority; Guaranteed Pods; the longest wait. (sortPendingResizes)"""

    def key(one: Waiting) -> tuple[bool, int, bool, bool, int]:
        priority = int(one.pod["spec"].get("priority") or 0)
        not_guaranteed = get_pod_qos(one.pod) != "Guaranteed"
        return (
            increases_requests(one.pod, one.allocated), -priority, not_guaranteed, one.since is None, one.since or 0,
        )  # fmt: skip

    return sorted(waiting, key=key)


def written(allocation: Allocation) -> Object:
    """Return an allocation as the checkpoint has it."""
    return {"containers": allocation.containers, "pod": allocation.pod}


def read(value: object) -> Allocation:
    """Read an allocation of a checkpoint. Raises ValueError for what was not written by this."""
    containers = value.get("containers") if isinstance(value, dict) else None
    pod = value.get("pod") if isinstance(value, dict) else None
    if not isinstance(containers, dict) or not all(isinstance(each, dict) for each in containers.values()):
        raise ValueError("no resources of containers")
    if not (pod is None or isinstance(pod, dict)):
        raise ValueError("no resources of the Pod")
    allocation = Allocation(
        cast("dict[str, ResourceRequirements]", containers), cast("ResourceRequirements | None", pod)
    )
    for each in (*allocation.containers.values(), allocation.pod or {}):
        for kind in _KINDS:
            parse(each.get(kind))  # QuantityError is a ValueError
    return allocation
