"""What the proxy knows: Services, slices and its Node, by the news that has come. Answers rules. Pure."""

# check: pure

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import AnyObject, Object, labels_of, name_of, namespace_of
from lastcall.kube.proxy.endpoints import endpoints_of, is_ipv4, service_of
from lastcall.kube.proxy.health import ServiceHealth
from lastcall.kube.proxy.rules import PortRules, local_ready_addresses, rules_of
from lastcall.kube.proxy.services import Service, ServiceKey, parse_service
from lastcall.kube.proxy.topology import Node
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.service import EndpointSlice

LABEL_ZONE = "topology.kubernetes.io/zone"


@dataclass(slots=True)
class ServiceView:
    """The rules of one Service and what else it asks for."""

    rules: tuple[PortRules, ...] = ()
    health: ServiceHealth | None = None


@dataclass(slots=True)
class View:
    """`changed` are the Services to look at again, in the order in which the news came."""

    node: Node
    services: dict[ServiceKey, Service] = field(default_factory=dict)
    slices: dict[ServiceKey, dict[str, EndpointSlice]] = field(default_factory=dict)
    changed: dict[ServiceKey, None] = field(default_factory=dict)
    _served_by: dict[tuple[str, str], ServiceKey] = field(default_factory=dict)
    """(namespace, slice) → the Service it was last seen for."""

    def put_service(self, key: ServiceKey, obj: Object | None) -> None:
        """Store a Service; None if it is gone."""
        service = parse_service(obj) if obj is not None else None
        if service == self.services.get(key):
            return
        if service is None:
            del self.services[key]
        else:
            self.services[key] = service
        self.changed[key] = None

    def put_slice(self, name: tuple[str, str], slice_: EndpointSlice | None) -> None:
        """Store a slice; None if it is gone. A slice that changes its Service leaves the old one."""
        service = service_of(slice_) if slice_ is not None else None
        before = self._served_by.pop(name, None)
        if before is not None and before != service:
            of_service = self.slices.get(before, {})
            of_service.pop(name[1], None)
            if not of_service:
                self.slices.pop(before, None)
            self.changed[before] = None
        if service is not None and slice_ is not None:
            self._served_by[name] = service
            self.slices.setdefault(service, {})[name[1]] = slice_
            self.changed[service] = None

    def put_node(self, obj: Object | None) -> None:
        """Store the Node. If it has no addresses, the known ones stay."""
        if obj is None:
            return
        node = parse_node(obj)
        node = node if node.addresses else replace(node, addresses=self.node.addresses)
        if node != self.node:
            self.node = node
            self.changed.update(dict.fromkeys(self.services))

    def look(self, key: ServiceKey) -> ServiceView:
        """Return the view of a Service; an empty one if it is not served."""
        service = self.services.get(key)
        if service is None:
            return ServiceView()
        endpoints = endpoints_of(self.slices.get(key, {}).values(), self.node.name)
        health = None
        if service.health_check_node_port:
            health = ServiceHealth(service.health_check_node_port, local_ready_addresses(endpoints, self.node))
        return ServiceView(rules_of(service, endpoints, self.node), health)

    def service_of_slice(self, name: tuple[str, str]) -> ServiceKey | None:
        """Return the Service that a slice (namespace, name) was last seen for."""
        return self._served_by.get(name)

    def take_changed(self) -> list[ServiceKey]:
        changed, self.changed = list(self.changed), {}
        return changed


def parse_node(obj: Object) -> Node:
    """Parse a Node; NodePorts answer on its internal and external IPv4 addresses."""
    addresses = (obj.get("status") or {}).get("addresses") or ()
    found = [
        each["address"]
        for each in addresses
        if each.get("type") in ("InternalIP", "ExternalIP") and is_ipv4(each["address"])
    ]
    return Node(name_of(obj), labels_of(obj).get(LABEL_ZONE, ""), tuple(dict.fromkeys(found)))


def key_of(obj: AnyObject) -> tuple[str, str]:
    return (namespace_of(obj), name_of(obj))
