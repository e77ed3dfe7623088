"""Whether a Pod that was bound to this node may start on it (kubelet lifecycle/predicate.go:Admit)."""

from collections.abc import Callable
from dataclasses import dataclass

from lastcall.api.meta import Object
from lastcall.node.pod_rules import containers_of, init_containers_of, is_restartable_init_container
from lastcall.node.volumes.downward import resource_value


@dataclass(frozen=True, slots=True)
class Rejection:
    """`reason` goes into status.reason and the Event, `message` into the Event and, with a prefix, the status."""

    reason: str
    message: str


AdmitHandler = Callable[[Object, list[Object]], Rejection | None]
"""(pod, the other active Pods of the node) → why not, or None."""


def matches_node(labels: dict[str, str]) -> AdmitHandler:
    """The Pod's nodeSelector must match the node's labels."""

    def admit(pod: Object, others: list[Object]) -> Rejection | None:
        selector = pod["spec"].get("nodeSelector") or {}
        if all(labels.get(key) == value for key, value in selector.items()):
            return None
        return Rejection(
            "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        )

    return admit


def fits_node(allocatable: dict[str, str]) -> AdmitHandler:
    """CPU (millicores), memory (bytes) and the number of Pods must fit (`OutOfcpu`, `OutOfmemory`, `OutOfpods`)."""

    def admit(pod: Object, others: list[Object]) -> Rejection | None:
        capacity = int(allocatable["pods"]) if "pods" in allocatable else None
        if capacity is not None and len(others) + 1 > capacity:
            return _out_of("pods", 1, len(others), capacity)
        for resource, divisor in (("cpu", "1m"), ("memory", "1")):
            if resource not in allocatable:
                continue
            wanted = pod_request(pod, resource, divisor)
            capacity = _amount({"requests": {resource: allocatable[resource]}}, resource, divisor)
            used = sum(pod_request(other, resource, divisor) for other in others)
            if wanted and used + wanted > capacity:
                return _out_of(resource, wanted, used, capacity)
        return None

    return admit


def pod_request(pod: Object, resource: str, divisor: str) -> int:
    """What a Pod asks for: its regular containers and sidecars together, or one init container if that is more."""
    steady = sum(_amount(container.get("resources"), resource, divisor) for container in containers_of(pod))
    peak = 0
    for container in init_containers_of(pod):
        amount = _amount(container.get("resources"), resource, divisor)
        if is_restartable_init_container(container):
            steady += amount
        else:
            peak = max(peak, amount)
    overhead = _amount({"requests": pod["spec"].get("overhead") or {}}, resource, divisor)
    return max(steady, peak) + overhead


def _amount(resources: Object | None, resource: str, divisor: str) -> int:
    wanted = resources or {}
    kind = "requests" if resource in (wanted.get("requests") or {}) else "limits"
    pod = {"spec": {"containers": [{"name": "c", "resources": wanted}]}}
    reference = {"containerName": "c", "resource": f"{kind}.{resource}", "divisor": divisor}
    return int(resource_value(pod, reference, {}))


def _out_of(resource: str, wanted: int, used: int, capacity: int) -> Rejection:
    message = f"Node didn't have enough resource: {resource}, requested: {wanted}, used: {used}, capacity: {capacity}"
    return Rejection(f"OutOf{resource}", message)
