"""Whether a Pod that was bound to this node may start on it (kubelet lifecycle/predicate.go:Admit)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lastcall.kube.api import scheduling
from lastcall.kube.api.meta import annotations_of, labels_of
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.node.pods.resources import pod_resources
from lastcall.kube.node.pods.spec import (
    all_containers_of,
    containers_of,
    init_containers_of,
    is_restartable_init_container,
)
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod


@dataclass(frozen=True, slots=True)
class Rejection:
    """`reason` goes into status.reason and the Event, `message` into the Event and, with a prefix, the status."""

    reason: str
    message: str


AdmitHandler = Callable[["Pod", "list[Pod]"], Rejection | None]
"""(pod, the other active Pods of the node) → why not, or None."""


def matches_node(node: Callable[[], Node]) -> AdmitHandler:
    """Require that the Pod's nodeSelector and required node affinity match the node as it is now.

    `node()` answers the Node; one without labels is not known here, and the scheduler's word counts.
    """

    def admit(pod: Pod, others: list[Pod]) -> Rejection | None:
        own = node()
        if not labels_of(own) or scheduling.matches_node(pod["spec"], own):
            return None
        return Rejection(
            "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        )

    return admit


def matches_os(pod: Pod, others: list[Pod]) -> Rejection | None:
    """Reject a Pod for another OS: the node is Linux (lifecycle/handlers.go:NewPodAdmitHandler … PodOSNotSupported)."""
    if ((pod["spec"].get("os") or {}).get("name") or "linux") == "linux":
        return None
    return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")


_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what an empty hostIP means


def has_free_ports(pod: Pod, others: list[Pod]) -> Rejection | None:
    """Reject a Pod whose ports of the node (`hostPort`) another Pod has (nodeports.Fits)."""
    wanted = _host_ports(pod)
    taken = {port for other in others for port in _host_ports(other)} if wanted else set()
    for address, protocol, number in wanted:
        for used, by, at in taken:
            if (by, at) == (protocol, number) and (used == address or _EVERY_ADDRESS in (used, address)):
                why = "node(s) didn't have free ports for the requested pod ports"
                return Rejection("NodePorts", f"Predicate NodePorts failed: {why}")
    return None


def _host_ports(pod: Pod) -> set[tuple[str, str, int]]:
    """(address, protocol, port); those of plain init containers do not count (util.GetHostPorts)."""
    sidecars = [each for each in init_containers_of(pod) if is_restartable_init_container(each)]
    return {
        (port.get("hostIP") or _EVERY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"])
        for container in (*sidecars, *containers_of(pod))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


_APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"


def enforces_app_armor(host_has_it: bool) -> AdmitHandler:
    """Reject a Pod that demands an AppArmor profile, RuntimeDefault too: nothing here confines by one.

    Source: kubelet lifecycle/handlers.go:NewAppArmorAdmitHandler, security/apparmor/validate.go, helpers.go:GetProfile.
    """

    def admit(pod: Pod, others: list[Pod]) -> Rejection | None:
        running = (pod.get("status") or {}).get("phase", "Pending") != "Pending"
        if running or all(_app_armor(pod, each) in ("", "Unconfined") for each in all_containers_of(pod)):
            return None
        why = "lastcall loads no profiles" if host_has_it else "AppArmor is not enabled on the host"
        return Rejection("AppArmor", f"Cannot enforce AppArmor: {why}")

    return admit


def _app_armor(pod: Pod, container: Container) -> str:
    """The profile's type, "" for none: the container's, an older API's annotation, the Pod's."""
    for context in (container.get("securityContext") or {}, pod["spec"].get("securityContext") or {}):
        if profile := context.get("appArmorProfile"):
            return str(profile.get("type", ""))
        named = annotations_of(pod).get(f"{_APP_ARMOR_ANNOTATION}{container['name']}")
        if named:
            return "Unconfined" if named == "unconfined" else named
    return ""


@dataclass(frozen=True, slots=True)
class Shortage:
    """Millicores of cpu, bytes of memory, Pods."""

    resource: str
    wanted: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        return self.wanted - (self.capacity - self.used)

    @property
    def rejection(self) -> Rejection:
        return _out_of(self.resource, self.wanted, self.used, self.capacity)


def shortages(pod: Pod, others: list[Pod], allocatable: dict[str, str]) -> list[Shortage]:
    """Return every resource of which there is not enough for `pod` beside `others`."""
    found: list[Shortage] = []
    for resource in ("pods", "cpu", "memory"):
        if resource not in allocatable:
            continue
        wanted, used = request_of(pod, resource), sum(request_of(other, resource) for other in others)
        capacity = _amount(resource, allocatable[resource])
        if wanted and used + wanted > capacity:
            found.append(Shortage(resource, wanted, used, capacity))
    return found


def fits_node(allocatable: dict[str, str]) -> AdmitHandler:
    """Require that CPU (millicores), memory (bytes) and number of Pods fit (`OutOfcpu`, `OutOfmemory`, `OutOfpods`)."""

    def admit(pod: Pod, others: list[Pod]) -> Rejection | None:
        return next((shortage.rejection for shortage in shortages(pod, others, allocatable)), None)

    return admit


def request_of(pod: Pod, resource: str) -> int:
    """Return what a Pod asks for: millicores of cpu, bytes of memory; each Pod is one of the `pods`."""
    if resource == "pods":
        return 1
    requests = pod_resources(pod).get("requests") or {}
    overhead = pod["spec"].get("overhead") or {}
    return sum(_amount(resource, amounts[resource]) for amounts in (requests, overhead) if resource in amounts)


def _amount(resource: str, quantity: str) -> int:
    return parse_quantity(quantity).milli if resource == "cpu" else parse_quantity(quantity).whole


def _out_of(resource: str, wanted: int, used: int, capacity: int) -> Rejection:
    message = f"Node didn't have enough resource: {resource}, requested: {wanted}, used: {used}, capacity: {capacity}"
    return Rejection(f"OutOf{resource}", message)
