"""NetworkPolicies, IngressClasses and RuntimeClasses. Source: pkg/apis/networking/validation/validation.go,
pkg/apis/node/validation/validation.go."""

import ipaddress
import re

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required, too_long
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import (
    is_cidr,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_path_segment_name,
    is_port_name,
    is_port_number,
)
from lastcall.kube.api.validators.common import internal, label_selector
from lastcall.kube.api.validators.containers.specs import validate_resources
from lastcall.kube.api.validators.metadata import validate_labels
from lastcall.kube.api.validators.pod_spec import validate_tolerations

IMMUTABLE = "field is immutable"
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_POLICY_TYPES = ("Ingress", "Egress")
_LONGEST_CONTROLLER = 250
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def validate_network_policy(obj: Object) -> list[FieldError]:
    """Check a NetworkPolicy. (`ValidateNetworkPolicySpec`)"""
    spec = obj.get("spec") or {}
    errors = label_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            at = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                errors += _policy_port(port, f"{at}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                errors += _peer(peer, f"{at}.{peers}[{number}]")
    types = spec.get("policyTypes") or ()
    if len(types) > len(_POLICY_TYPES):
        return [*errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    for index, type_ in enumerate(types):
        if type_ not in _POLICY_TYPES:
            errors.append(not_supported(f"spec.policyTypes[{index}]", type_, _POLICY_TYPES))
    return errors


def _policy_port(entry: Object, path: str) -> list[FieldError]:
    errors = []
    port, end = entry.get("port"), entry.get("endPort")
    if (protocol := entry.get("protocol")) is not None and protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if port is None:
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified"))
    elif isinstance(port, int):
        errors += each(f"{path}.port", port, is_port_number(port))
        if end is not None:
            if end < port:
                errors.append(invalid(f"{path}.endPort", port, "must be greater than or equal to `port`"))
            errors += each(f"{path}.endPort", end, is_port_number(end))
    else:
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
        errors += each(f"{path}.port", port, is_port_name(port))
    return errors


def _peer(peer: Object, path: str) -> list[FieldError]:
    errors = []
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        errors += label_selector(peer[key], f"{path}.{key}")
    if (block := peer.get("ipBlock")) is not None:
        errors += _ip_block(block, f"{path}.ipBlock")
    elif not selectors:
        return [*errors, required(path, "must specify a peer")]
    if block is not None and selectors:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _ip_block(block: Object, path: str) -> list[FieldError]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return [required(f"{path}.cidr")]
    if problems := is_cidr(cidr):
        return each(f"{path}.cidr", cidr, problems)
    errors = each(f"{path}.cidr", cidr, _bits(cidr))
    for index, text in enumerate(block.get("except") or ()):
        at = f"{path}.except[{index}]"
        if problems := is_cidr(text) or _bits(text):
            errors += each(at, text, problems)
        elif not _strictly_inside(text, cidr):
            errors.append(invalid(at, text, "must be a strict subset of `cidr`"))
    return errors


def _bits(cidr: str) -> list[str]:
    beyond = ipaddress.ip_interface(cidr).ip != ipaddress.ip_interface(cidr).network.network_address
    return ["must not have bits set beyond the prefix length"] if beyond else []


def _strictly_inside(part: str, whole: str) -> bool:
    inner, outer = ipaddress.ip_network(part, strict=False), ipaddress.ip_network(whole, strict=False)
    return inner.prefixlen > outer.prefixlen and inner.network_address in outer


def validate_ingress_class(obj: Object) -> list[FieldError]:
    """Check an IngressClass. (`ValidateIngressClass`)"""
    spec = obj.get("spec") or {}
    controller = spec.get("controller") or ""
    errors = [too_long("spec.controller", _LONGEST_CONTROLLER)] if len(controller) > _LONGEST_CONTROLLER else []
    errors += _domain_prefixed_path(controller, "spec.controller")
    if (parameters := spec.get("parameters")) is not None:
        errors += _parameters(parameters, "spec.parameters")
    return errors


def _domain_prefixed_path(value: str, path: str) -> list[FieldError]:
    """`IsDomainPrefixedPath`."""
    if not value:
        return [required(path)]
    domain, _, rest = value.partition("/")
    if not domain or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = each(path, domain, is_dns1123_subdomain(domain))
    if not _PATH.fullmatch(rest):
        errors.append(invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH.pattern}')"))
    return errors


def _parameters(parameters: Object, path: str) -> list[FieldError]:
    errors = []
    if (group := parameters.get("apiGroup")) is not None:
        errors += each(f"{path}.apiGroup", group, is_dns1123_subdomain(group))
    for key in ("kind", "name"):
        value = parameters.get(key) or ""
        errors += each(f"{path}.{key}", value, is_path_segment_name(value)) if value else [required(f"{path}.{key}")]
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        return [*errors, required(f"{path}.scope")]
    if scope not in ("Cluster", "Namespace"):
        errors.append(not_supported(f"{path}.scope", scope, ("Cluster", "Namespace")))
    if scope == "Namespace":
        text = "`parameters.scope` is set to 'Namespace'"
        missing = [required(f"{path}.namespace", text)]
        errors += each(f"{path}.namespace", namespace, is_dns1123_label(namespace)) if namespace else missing
    if scope == "Cluster" and namespace is not None:
        text = "`parameters.scope` is set to 'Cluster'"
        errors.append(forbidden(f"{path}.namespace", text))
    return errors


def update_ingress_class(new: Object, old: Object) -> list[FieldError]:
    """Check a change (`ValidateIngressClassUpdate`); the rules of the object itself come after it."""
    controller = (new.get("spec") or {}).get("controller") or ""
    same = controller == ((old.get("spec") or {}).get("controller") or "")
    return [] if same else [invalid("spec.controller", controller, IMMUTABLE)]


def validate_runtime_class(obj: Object) -> list[FieldError]:
    """Check a RuntimeClass. (`ValidateRuntimeClass`)"""
    handler = obj.get("handler") or ""
    errors = each("handler", handler, is_dns1123_label(handler)) if handler else [required("handler")]
    if (overhead := obj.get("overhead")) is not None:
        errors += validate_resources({"limits": overhead.get("podFixed")}, "overhead")
    scheduling = obj.get("scheduling") or {}
    errors += validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    tolerations = scheduling.get("tolerations") or []
    errors += validate_tolerations(tolerations, "scheduling.tolerations")
    return errors + [
        duplicate(f"scheduling.tolerations[{index}]", internal("core.v1.Toleration", toleration))
        for index, toleration in enumerate(tolerations)
        if toleration in tolerations[:index]
    ]


def update_runtime_class(new: Object, old: Object) -> list[FieldError]:
    """Check a change of a RuntimeClass. (`ValidateRuntimeClassUpdate`)"""
    handler = new.get("handler") or ""
    return [] if handler == (old.get("handler") or "") else [invalid("handler", handler, IMMUTABLE)]
