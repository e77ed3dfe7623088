"""Services: cluster IPs and node ports (pkg/registry/core/service/storage/alloc.go)."""

from collections.abc import Callable
from contextlib import suppress

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import FieldError, invalid
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import SERVICES, Resource
from lastcall.kube.api.validators.service import address_errors, cluster_ips
from lastcall.kube.apiserver.allocators import AddressAllocator, AllocationError, PortAllocator, why_not
from lastcall.kube.apiserver.strategies.base import Strategy, Undo
from lastcall.kube.apiserver.wire.context import RequestContext

HEADLESS = "None"


def needs_cluster_ip(spec: Object) -> bool:
    return spec.get("type", "ClusterIP") in ("ClusterIP", "NodePort", "LoadBalancer")


def needs_node_ports(spec: Object) -> bool:
    type_ = spec.get("type")
    return type_ == "NodePort" or (type_ == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))


def needs_health_check_node_port(spec: Object) -> bool:
    """Return whether a Service needs one. (pkg/api/service/util.go:NeedsHealthCheck)"""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


class ServiceStrategy(Strategy):
    returns_deleted_object = True
    allow_create_on_update = True
    status_may_create = True

    def __init__(self, resource: Resource, cluster_ips: AddressAllocator, node_ports: PortAllocator) -> None:
        super().__init__(resource)
        self._cluster_ips = cluster_ips
        self._node_ports = node_ports

    def load(self, service: Object) -> None:
        """Count a stored Service's addresses and ports as taken (when the server starts)."""
        for address in _addresses(service):
            with suppress(AllocationError):
                self._cluster_ips.take(address)
        for port in ports_of(service):
            with suppress(AllocationError):
                self._node_ports.take(port)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        _drop_internal_policy(obj["spec"])

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if subresource:
            return
        # A replacement that does not name them keeps addresses and ports (patchAllocatedValues).
        new_spec, old_spec = new["spec"], old["spec"]
        _normalize_cluster_ips(new_spec, old_spec)
        if needs_cluster_ip(new_spec) and needs_cluster_ip(old_spec):
            for key in ("clusterIP", "clusterIPs"):
                if not new_spec.get(key) and old_spec.get(key):
                    new_spec[key] = old_spec[key]
            for key in ("ipFamilies", "ipFamilyPolicy"):
                if key in old_spec:
                    new_spec.setdefault(key, old_spec[key])
        if needs_node_ports(new_spec) and needs_node_ports(old_spec):
            old_ports = old_spec.get("ports") or []
            known = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in old_ports}
            for port in new_spec.get("ports") or []:
                if not port.get("nodePort") and (kept := known.get((port.get("protocol"), port.get("port")))):
                    port["nodePort"] = kept

        health = old_spec.get("healthCheckNodePort")
        if needs_health_check_node_port(new_spec) and health and not new_spec.get("healthCheckNodePort"):
            new_spec["healthCheckNodePort"] = health
        _drop_type_dependent_fields(new_spec, old_spec)
        _drop_internal_policy(new_spec)

    def refused(self, new: Object, old: Object | None, dry_run: bool) -> list[FieldError]:
        """Report what cannot be given to a Service before anything else that is wrong. (alloc.go:allocateCreate)"""
        spec = new.get("spec") or {}
        if needs_cluster_ip(spec):
            had = cluster_ips((old or {}).get("spec") or {})
            errors = address_errors(spec, cluster_ips(spec), had) or family_errors(spec) or self._unnamed(new)
            if errors := errors or self._address_refused(spec, had, dry_run):
                return errors
        return self._ports_refused(spec, ports_of(old or {}), dry_run)

    def _address_refused(self, spec: Object, held: list[str], dry_run: bool) -> list[FieldError]:
        address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or []), "")
        if not address or address == HEADLESS or address in held:
            return []
        why = why_not(self._cluster_ips, address, dry_run)
        return [invalid("spec.clusterIPs", [address], why)] if why else []

    def _ports_refused(self, spec: Object, held: list[int], dry_run: bool) -> list[FieldError]:
        if spec.get("type") not in ("NodePort", "LoadBalancer"):
            return []
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort") or 0
            if number and number not in held and (why := why_not(self._node_ports, number, dry_run)):
                return [invalid(f"spec.ports[{index}].nodePort", number, why)]
        return []

    def _unnamed(self, service: Object) -> list[FieldError]:
        """The address of a Service is kept by an IPAddress that names it. (ipallocator.go:createIPAddress)"""
        if (service.get("metadata") or {}).get("name") or cluster_ips(service.get("spec") or {}):
            return []
        try:
            address = self._cluster_ips.take_any()
        except AllocationError:
            return []  # it has no name, and that is reported
        self._cluster_ips.give_back(address)
        why = f'IPAddress.networking.k8s.io "{address}" is invalid: spec.parentRef.name: Required value'
        return [invalid("spec.clusterIPs", [""], f"failed to allocate IP: {why}")]

    def begin_create(self, obj: Object, context: RequestContext) -> Undo:
        return self._allocate(obj, {})

    def begin_update(self, new: Object, old: Object, context: RequestContext) -> Undo:
        return self._allocate(new, old)

    def after_update(self, new: Object, old: Object) -> None:
        kept_addresses, kept_ports = _addresses(new), ports_of(new)
        self._give_back(
            [address for address in _addresses(old) if address not in kept_addresses],
            [port for port in ports_of(old) if port not in kept_ports],
        )

    def after_delete(self, obj: Object) -> None:
        self._give_back(_addresses(obj), ports_of(obj))

    def _give_back(self, addresses: list[str], ports: list[int]) -> None:
        for address in addresses:
            self._cluster_ips.give_back(address)
        for port in ports:
            self._node_ports.give_back(port)

    def _allocate(self, service: Object, old: Object) -> Undo:
        spec = service["spec"]
        addresses: list[str] = []
        ports: list[int] = []

        def undo() -> None:
            self._give_back(addresses, ports)

        try:
            if needs_cluster_ip(spec):
                self._allocate_address(service, _addresses(old), addresses)
            if spec.get("type") in ("NodePort", "LoadBalancer"):
                self._allocate_ports(service, ports_of(old), ports)
            if needs_health_check_node_port(spec):
                self._allocate_health_check(service, ports_of(old), ports)
        except StatusError:
            undo()
            raise
        return undo

    def _allocate_address(self, service: Object, held: list[str], taken: list[str]) -> None:
        spec = service["spec"]
        address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or []), "")
        try:
            if not address:
                address = self._cluster_ips.take_any()
                taken.append(address)
            elif address != HEADLESS and address not in held:
                self._cluster_ips.take(address)
                taken.append(address)
        except AllocationError as error:
            raise _refused(service, "spec.clusterIPs", [address], error) from None
        spec["clusterIP"] = address
        spec["clusterIPs"] = [address]
        # A headless Service without a selector may be given endpoints of any family (initIPFamilyFields).
        any_family = address == HEADLESS and not spec.get("selector")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if any_family else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if any_family else "SingleStack")

    def _allocate_ports(self, service: Object, held: list[int], taken: list[int]) -> None:
        for index, port in enumerate(service["spec"].get("ports") or []):
            number = port.get("nodePort") or 0
            if number in held or number in taken or not (number or needs_node_ports(service["spec"])):
                continue
            try:
                if number:
                    self._node_ports.take(number)
                else:
                    number = port["nodePort"] = self._node_ports.take_any()
            except AllocationError as error:
                raise _refused(service, f"spec.ports[{index}].nodePort", number, error) from None
            taken.append(number)

    def _allocate_health_check(self, service: Object, held: list[int], taken: list[int]) -> None:
        number = service["spec"].get("healthCheckNodePort") or 0
        if number in held:
            return
        try:
            if number:
                self._node_ports.take(number)
            else:
                number = service["spec"]["healthCheckNodePort"] = self._node_ports.take_any()
        except AllocationError as error:
            raise _refused(service, "spec.healthCheckNodePort", number, error) from None
        taken.append(number)


def _drop_internal_policy(spec: Object) -> None:
    """An ExternalName has no traffic of the cluster. (pkg/registry/core/service/strategy.go)"""
    if spec.get("type") == "ExternalName":
        spec.pop("internalTrafficPolicy", None)


def family_errors(spec: Object) -> list[FieldError]:
    """Check what a cluster of one family, IPv4, can give. A headless Service without a selector may say anything.

    (alloc.go:initIPFamilyFields)
    """
    addresses = cluster_ips(spec)
    if addresses[:1] == [HEADLESS] and not spec.get("selector"):
        return []
    policy, families = spec.get("ipFamilyPolicy") or "SingleStack", spec.get("ipFamilies") or []
    path = "spec.ipFamilyPolicy"
    if policy == "SingleStack":
        either = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        if len(addresses) > 1:
            return [invalid(path, policy, either.format("cluster IPs"))]
        if len(families) > 1:
            return [invalid(path, policy, either.format("IP families"))]
    errors = [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family != "IPv4"
    ]
    if policy == "RequireDualStack":
        errors.append(invalid(path, policy, "this cluster is not configured for dual-stack services"))
    return errors


def _normalize_cluster_ips(new: Object, old: Object) -> None:
    """A write that changes clusterIP and leaves clusterIPs alone means both. (`normalizeClusterIPs`)"""
    address, had = new.get("clusterIP") or "", old.get("clusterIP") or ""
    if address and had and address != had and new.get("clusterIPs") == old.get("clusterIPs"):
        new["clusterIPs"] = [address, *(old.get("clusterIPs") or [])[1:]]


def _drop_type_dependent_fields(new: Object, old: Object) -> None:
    """What the old type needed and the new one does not goes, unless the user has just set it (then it is refused).

    pkg/registry/core/service/strategy.go:dropTypeDependentFields.
    """

    def leaves(needs: Callable[[Object], bool], *fields: str) -> None:
        if needs(old) and not needs(new) and all(new.get(field) == old.get(field) for field in fields):
            for field in fields:
                new.pop(field, None)

    leaves(needs_cluster_ip, "clusterIP", "clusterIPs")
    leaves(needs_cluster_ip, "ipFamilies", "ipFamilyPolicy")
    leaves(needs_health_check_node_port, "healthCheckNodePort")
    leaves(_is_load_balancer, "allocateLoadBalancerNodePorts")
    leaves(_is_load_balancer, "loadBalancerClass")
    leaves(_is_externally_accessible, "externalTrafficPolicy")
    if needs_node_ports(old) and not needs_node_ports(new):
        held = {port.get("nodePort") for port in old.get("ports") or []}
        ports = new.get("ports") or []
        if all(port.get("nodePort") in held for port in ports if port.get("nodePort")):
            for port in ports:
                port.pop("nodePort", None)


def _is_load_balancer(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer"


def _is_externally_accessible(spec: Object) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort") or bool(spec.get("externalIPs"))


def _addresses(service: Object) -> list[str]:
    spec = service.get("spec", {})
    return [address for address in spec.get("clusterIPs") or [] if address != HEADLESS]


def ports_of(service: Object) -> list[int]:
    spec = service.get("spec", {})
    numbers = [port.get("nodePort") for port in spec.get("ports") or []]
    return [number for number in (*numbers, spec.get("healthCheckNodePort")) if number]


def _refused(service: Object, path: str, value: object, error: AllocationError) -> StatusError:
    return invalid_object(SERVICES, name_of(service), [invalid(path, value, str(error))])
