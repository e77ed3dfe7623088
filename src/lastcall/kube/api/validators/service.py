"""Services. Source: pkg/apis/core/validation/validation.go (ValidateService, ValidateServiceUpdate)."""

from collections.abc import Sequence
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import (
    between,
    is_cidr,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_endpoint_ip,
    is_ip,
    is_port_number,
    is_qualified_name,
    is_strict_ip,
)
from lastcall.kube.api.validators.common import one_of, port_number_or_name, required_one_of
from lastcall.kube.api.validators.metadata import validate_labels

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES = ("ClientIP", "None")
PROTOCOLS = ("SCTP", "TCP", "UDP")
POLICIES = ("Cluster", "Local")
FAMILIES = ("IPv4", "IPv6")
FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_MAX_AFFINITY_SECONDS = 86400


def cluster_ips(spec: Object) -> list[str]:
    """Return `clusterIPs`, or what `clusterIP` makes of it."""
    return list(spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []))


def validate_service(service: Object) -> list[FieldError]:
    spec: Object = service.get("spec") or {}
    kind = spec.get("type") or ""
    ports: list[Object] = spec.get("ports") or []
    addresses = cluster_ips(spec)
    headless = addresses[:1] == ["None"]
    errors: list[FieldError] = []
    if not ports and not headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    errors += _for_type(spec, kind, addresses, headless)
    names: list[str] = []
    for index, port in enumerate(ports):
        errors += _port(port, f"spec.ports[{index}]", names, name_needed=len(ports) > 1)
    errors += validate_labels(spec.get("selector"), "spec.selector")
    errors += _affinity(spec)
    errors += address_errors(spec, addresses)
    errors += _external_addresses(spec)
    errors += required_one_of(kind, "spec.type", TYPES)
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                why = "may not be used when `type` is 'ClusterIP'"
                errors.append(forbidden(f"spec.ports[{index}].nodePort", why))
    errors += _duplicates(ports)
    errors += _load_balancer(spec, kind)
    errors += load_balancer_class(spec)
    return errors + _traffic_policies(spec, kind)


def _for_type(spec: Object, kind: str, addresses: list[str], headless: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if kind in ("LoadBalancer", "NodePort") and headless:
        why = f"may not be set to 'None' for {kind} services"
        errors.append(invalid("spec.clusterIPs[0]", "None", why))
    if kind == "ExternalName":
        given = (("clusterIPs", addresses), ("ipFamilies", spec.get("ipFamilies")))
        for key, value in (*given, ("ipFamilyPolicy", spec.get("ipFamilyPolicy"))):
            if value:
                errors.append(forbidden(f"spec.{key}", "may not be set for ExternalName services"))
        name = (spec.get("externalName") or "").removesuffix(".")
        if name:
            errors += each("spec.externalName", name, is_dns1123_subdomain(name))
        else:
            errors.append(required("spec.externalName"))
    return errors


def _port(port: Object, path: str, names: list[str], *, name_needed: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    name = port.get("name") or ""
    if name:
        errors += each(f"{path}.name", name, is_dns1123_label(name))
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.append(name)
    elif name_needed:
        errors.append(required(f"{path}.name"))
    number = port.get("port") or 0
    errors += each(f"{path}.port", number, is_port_number(number))
    errors += required_one_of(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
    errors += port_number_or_name(port.get("targetPort"), f"{path}.targetPort")
    if port.get("appProtocol") is not None:
        errors += each(f"{path}.appProtocol", port["appProtocol"], is_qualified_name(port["appProtocol"]))
    return errors


def _affinity(spec: Object) -> list[FieldError]:
    affinity = spec.get("sessionAffinity")
    errors = required_one_of(affinity, "spec.sessionAffinity", AFFINITIES)
    config = spec.get("sessionAffinityConfig")
    if affinity == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        path = "spec.sessionAffinityConfig"
        if seconds is None:
            why = "when session affinity type is ClientIP"
            errors.append(required(path, why))
        elif not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            why = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
            errors.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, why))
    elif affinity == "None" and config is not None:
        why = "must not be set when session affinity is None"
        errors.append(forbidden("spec.sessionAffinityConfig", why))
    return errors


def address_errors(spec: Object, addresses: list[str], had: Sequence[str] = ()) -> list[FieldError]:
    """Check the addresses. Those in `had`, of before, are not checked again.
    (`ValidateServiceClusterIPsRelatedFields`)"""
    if spec.get("type") == "ExternalName":
        return []
    errors: list[FieldError] = []
    path = "spec.clusterIPs"
    if spec.get("clusterIPs") and not spec.get("clusterIP"):
        errors.append(invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    elif spec.get("clusterIPs") and spec.get("clusterIP") != addresses[0]:
        errors.append(invalid(path, addresses, "first value must match `clusterIP`"))
    families: list[str] = spec.get("ipFamilies") or []
    errors += _family_errors(spec, families)
    bad: list[FieldError] = []
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                bad.append(invalid(path, addresses, "'None' must be the first and only value"))
            continue
        bad += each(f"{path}[{index}]", address, is_ip(address)) if address not in had else []
    errors += bad
    if len(addresses) > 2:
        errors.append(invalid(path, addresses, "may only hold up to 2 values"))
    if bad:
        return errors
    of_family = ["IPv6" if ":" in address else "IPv4" for address in addresses]
    if len(addresses) > 1 and len(dict.fromkeys(of_family)) < 2:
        errors.append(invalid(path, addresses, "may specify no more than one IP for each IP family"))
    if addresses[:1] != ["None"]:
        for index, (address, asked) in enumerate(zip(addresses, families, strict=False)):
            if asked in FAMILIES and of_family[index] != asked:
                why = f"expected an {asked} value as indicated by `ipFamilies[{index}]`"
                errors.append(invalid(f"{path}[{index}]", address, why))
    return errors


def _family_errors(spec: Object, families: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, family in enumerate(families):
        if family not in FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{index}]", family, FAMILIES))
        if family in families[:index]:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    return errors + one_of(spec.get("ipFamilyPolicy"), "spec.ipFamilyPolicy", FAMILY_POLICIES)


def _external_addresses(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        problems = is_strict_ip(address) or is_endpoint_ip(address)
        errors += each(path, address, problems)
    return errors


def _load_balancer(spec: Object, kind: str) -> list[FieldError]:
    """What only a load balancer may have."""
    errors: list[FieldError] = []
    why = "may only be used when `type` is 'LoadBalancer'"
    if ranges := spec.get("loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"  # so in Kubernetes
        if kind != "LoadBalancer":
            errors.append(forbidden(path, why))
        for index, value in enumerate(ranges):
            errors += each(f"{path}[{index}]", value.strip(), is_cidr(value.strip()))
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", why))
    return errors


def load_balancer_class(spec: Object) -> list[FieldError]:
    """Check loadBalancerClass. (`validateLoadBalancerClassField`)"""
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if name is None:
        return []
    if spec.get("type") == "LoadBalancer":
        return each(path, name, is_qualified_name(name))
    return [forbidden(path, "may only be used when `type` is 'LoadBalancer'")]


def _duplicates(ports: list[Object]) -> list[FieldError]:
    """Equal node ports, then equal (protocol, port) pairs. The value shown is that of the internal Go type."""
    errors: list[FieldError] = []
    node_ports: set[tuple[Any, Any]] = set()
    pairs: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        if port.get("nodePort"):
            key = (port.get("protocol"), port["nodePort"])
            if key in node_ports:
                errors.append(duplicate(f"spec.ports[{index}].nodePort", port["nodePort"]))
            node_ports.add(key)
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in pairs:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(f"spec.ports[{index}]", shown))
        pairs.add(key)
    return errors


def _traffic_policies(spec: Object, kind: str) -> list[FieldError]:
    errors: list[FieldError] = []
    external, path = spec.get("externalTrafficPolicy"), "spec.externalTrafficPolicy"
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        if external:
            errors += one_of(external, path, POLICIES)
        elif kind != "ClusterIP":
            errors.append(required(path))
    elif external:
        errors.append(invalid(path, external, "may only be set for externally-accessible services"))
    node_port = spec.get("healthCheckNodePort")
    if node_port and not (kind == "LoadBalancer" and external == "Local"):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid("spec.healthCheckNodePort", node_port, why))
    elif node_port and not 1 <= node_port <= 65535:
        errors.append(invalid("spec.healthCheckNodePort", node_port, between(1, 65535)))
    errors += one_of(spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy", POLICIES)
    return errors + one_of(spec.get("trafficDistribution"), "spec.trafficDistribution", DISTRIBUTIONS)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Check that the first address stays while the Service has one, and a load balancer's class.

    (`validateUpgradeDowngradeClusterIPs`, `validateLoadBalancerClassField`)
    """
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    if "ExternalName" not in (spec.get("type"), stored.get("type")):
        now, before = cluster_ips(spec), cluster_ips(stored)
        if now and before and now[0] != before[0]:
            errors.append(invalid("spec.clusterIPs[0]", now, "may not change once set"))
        headless = [addresses[:1] == ["None"] for addresses in (now, before)]
        families, had = spec.get("ipFamilies") or [], stored.get("ipFamilies") or []
        if not any(headless) and families and had and families[0] != had[0]:
            shown = families if len(families) == len(had) else now
            errors.append(invalid("spec.ipFamilies[0]", shown, "may not change once set"))
    name = spec.get("loadBalancerClass")
    if spec.get("type") == stored.get("type") == "LoadBalancer" and name != stored.get("loadBalancerClass"):
        errors.append(invalid("spec.loadBalancerClass", name, "may not change once set"))
    return errors + load_balancer_class(spec)
