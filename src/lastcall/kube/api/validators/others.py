"""Nodes, Namespaces, Leases, EndpointSlices, Endpoints.

Sources: pkg/apis/core/validation (ValidateNode), pkg/apis/coordination/validation, pkg/apis/discovery/validation.
"""

import re

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, go_quote, invalid, required, too_many
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import (
    Check,
    is_cidr,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_endpoint_ip,
    is_ip,
    is_label_value,
    is_port_number,
    is_qualified_name,
    is_strict_ip,
)
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.validators.common import NON_NEGATIVE, POSITIVE, required_one_of
from lastcall.kube.api.validators.metadata import STANDARD_FINALIZERS
from lastcall.kube.api.validators.pod_spec import TAINT_EFFECTS

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MAX_ENDPOINTS = 1000
MAX_ADDRESSES = 100
MAX_PORTS = 20000
MAX_HINTS = 8
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def validate_node(node: Object) -> list[FieldError]:
    """Check a Node. (`ValidateNode`)"""
    cidrs, path = _pod_cidrs(node), "spec.podCIDRs"
    errors = _taints(node) + _resources(node) + _declared_features(node)
    for index, cidr in enumerate(cidrs):
        errors += each(f"{path}[{index}]", cidr, is_cidr(cidr))
    if len(cidrs) < 2:
        return errors
    wrong = next((index for index, cidr in enumerate(cidrs) if is_cidr(cidr)), None)
    if wrong is not None:
        why = f"invalid CIDR[{wrong}]: <nil> (invalid CIDR address: {cidrs[wrong]})"
        text = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
        errors.append(FieldError("InternalError", path, "", text))
    if wrong is not None or len({":" in cidr for cidr in cidrs}) != len(cidrs):
        errors.append(invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
    return errors


_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(?:/[a-zA-Z0-9]+)*")


def _resources(node: Object) -> list[FieldError]:
    """(`ValidateNodeResources`)"""
    status = node.get("status") or {}
    errors: list[FieldError] = []
    for key in ("capacity", "allocatable"):
        for name, text in (status.get(key) or {}).items():
            quantity = parse_quantity(text)
            if quantity.value < 0:
                errors.append(invalid(f"status.{key}.{name}", str(quantity), NON_NEGATIVE))
            elif "/" in name and quantity.value.denominator != 1:
                errors.append(invalid(f"status.{key}.{name}", str(quantity), "must be an integer"))
    return errors


def _declared_features(node: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    before = ""
    for index, name in enumerate((node.get("status") or {}).get("declaredFeatures") or ()):
        path = f"status.declaredFeatures[{index}]"
        if index and name == before:
            errors.append(duplicate(path, name))
        elif index and name < before:
            errors.append(invalid(path, name, "list must be sorted alphabetically"))
        if not _FEATURE.fullmatch(name):
            why = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
            why += "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            errors.append(invalid(path, name, f"invalid feature name {go_quote(name)}: {why}"))
        before = name
    return errors


def _addresses_of(node: Object) -> list[FieldError]:
    seen: list[Object] = []
    errors: list[FieldError] = []
    for index, address in enumerate((node.get("status") or {}).get("addresses") or ()):
        shown = {"Type": address.get("type") or "", "Address": address.get("address") or ""}
        if shown in seen:
            errors.append(duplicate(f"status.addresses[{index}]", shown))
        seen.append(shown)
    return errors


def node_status(new: Object, old: Object) -> list[FieldError]:
    """Check a node's status together with all the rest of it. (`ValidateNodeUpdate`)"""
    return validate_node(new) + update_node(new, old)


def _pod_cidrs(node: Object) -> list[str]:
    """Where the two fields do not agree, the one counts. (`Convert_v1_NodeSpec_To_core_NodeSpec`)"""
    spec = node.get("spec") or {}
    one, several = spec.get("podCIDR") or "", spec.get("podCIDRs") or []
    return [one] if one and several[:1] != [one] else several


def _taints(node: Object) -> list[FieldError]:
    """Taints are reported below metadata, as Kubernetes does."""
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{index}]"
        key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
        errors += each(f"{path}.key", key, is_qualified_name(key))
        if problems := is_label_value(value):
            errors.append(invalid(f"{path}.value", value, ";".join(problems)))
        errors += required_one_of(effect, f"{path}.effect", TAINT_EFFECTS)
        if (key, effect) in seen:
            duplicated = duplicate(path, taint)
            why = "taints must be unique by key and effect pair"
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            errors.append(FieldError(duplicated.type, path, shown, why))
        seen.add((key, effect))
    return errors


def update_node(new: Object, old: Object) -> list[FieldError]:
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    had, have = _pod_cidrs(old), _pod_cidrs(new)
    if had and had != have:
        errors.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if stored.get("providerID") and spec.get("providerID") != stored["providerID"]:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    # An update checks the taints twice (ValidateNode and ValidateNodeUpdate), and lists what it finds twice.
    errors += _taints(new) + _addresses_of(new)
    if spec.get("externalID") != stored.get("externalID"):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def validate_namespace(namespace: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for finalizer in (namespace.get("spec") or {}).get("finalizers") or ():
        errors += _finalizer(finalizer, "spec.finalizers")
    return errors


def _finalizer(name: str, path: str) -> list[FieldError]:
    errors = each(path, name, is_qualified_name(name))
    if "/" not in name and name not in STANDARD_FINALIZERS:
        errors.append(invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
    return errors


def finalize_namespace(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, finalizer in enumerate((new.get("spec") or {}).get("finalizers") or ()):
        errors += _finalizer(finalizer, f"spec.finalizers[{index}]")
    return errors


def update_namespace_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a Namespace's status. (`ValidateNamespaceStatusUpdate`)"""
    phase = (new.get("status") or {}).get("phase") or ""
    ends = new["metadata"].get("deletionTimestamp") is not None
    if phase == ("Terminating" if ends else "Active"):
        return []
    why = "'Terminating' if `deletionTimestamp` is not empty" if ends else "'Active' if `deletionTimestamp` is empty"
    return [invalid("status.Phase", phase, f"may only be {why}")]


def validate_endpoints(endpoints: Object) -> list[FieldError]:
    """Check the subsets of Endpoints. (`validateEndpointSubsets`)"""
    errors: list[FieldError] = []
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for key in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(subset.get(key) or ()):
                errors += _endpoint_address(address, f"{path}.{key}[{position}]")
        ports = subset.get("ports") or []
        for position, port in enumerate(ports):
            at, name = f"{path}.ports[{position}]", port.get("name") or ""
            if name:
                errors += each(f"{at}.name", name, is_dns1123_label(name))
            elif len(ports) > 1:
                errors.append(required(f"{at}.name"))
            errors += each(f"{at}.port", port.get("port") or 0, is_port_number(port.get("port") or 0))
            errors += required_one_of(port.get("protocol"), f"{at}.protocol", _PROTOCOLS)
            errors += _app_protocol(port, at)
    return errors


def _app_protocol(port: Object, path: str) -> list[FieldError]:
    value = port.get("appProtocol")
    return [] if value is None else each(f"{path}.appProtocol", value, is_qualified_name(value))


def _endpoint_address(address: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    value = address.get("ip") or ""
    problems = is_ip(value)
    errors += each(f"{path}.ip", value, problems)
    if address.get("hostname"):
        errors += each(f"{path}.hostname", address["hostname"], is_dns1123_label(address["hostname"]))
    if address.get("nodeName") is not None:
        errors += each(f"{path}.nodeName", address["nodeName"], is_dns1123_subdomain(address["nodeName"]))
    return errors + each(f"{path}.ip", value, ["must be a valid IP address"] if problems else is_endpoint_ip(value))


def validate_lease(lease: Object) -> list[FieldError]:
    spec = lease.get("spec") or {}
    errors: list[FieldError] = []
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, POSITIVE))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, NON_NEGATIVE))
    return errors


def validate_endpoint_slice(endpoint_slice: Object, old: Object | None = None) -> list[FieldError]:
    """Check an EndpointSlice. Endpoints that an update leaves as they are are not checked again."""
    kind = endpoint_slice.get("addressType") or ""
    errors = required_one_of(kind, "addressType", ADDRESS_TYPES)
    errors += _ports_of_slice(endpoint_slice.get("ports") or [])
    if old is not None and endpoint_slice.get("endpoints") == old.get("endpoints"):
        return errors
    return errors + _endpoints_of_slice(endpoint_slice, kind)


def _endpoints_of_slice(endpoint_slice: Object, kind: str) -> list[FieldError]:
    endpoints = endpoint_slice.get("endpoints") or []
    if len(endpoints) > MAX_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), MAX_ENDPOINTS)]
    return [
        error for index, each_one in enumerate(endpoints) for error in _endpoint(each_one, f"endpoints[{index}]", kind)
    ]


def _ports_of_slice(ports: list[Object]) -> list[FieldError]:
    if len(ports) > MAX_PORTS:
        return [too_many("ports", len(ports), MAX_PORTS)]
    errors: list[FieldError] = []
    names: list[str] = []
    for index, port in enumerate(ports):
        path = f"ports[{index}]"
        name = port.get("name") or ""
        if name:
            errors += each(f"{path}.name", name, is_dns1123_label(name))
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.append(name)
        errors += required_one_of(port.get("protocol"), f"{path}.protocol", _PROTOCOLS)
        errors += _app_protocol(port, path)
    return errors


def _endpoint(endpoint: Object, path: str, kind: str) -> list[FieldError]:
    addresses = endpoint.get("addresses") or []
    errors: list[FieldError] = []
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > MAX_ADDRESSES:
        errors.append(too_many(f"{path}.addresses", len(addresses), MAX_ADDRESSES))
    for index, address in enumerate(addresses):
        at = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            errors += each(at, address, is_dns1123_subdomain(address))
        elif problems := is_strict_ip(address):
            errors += each(at, address, problems)
        else:
            if (":" in address) != (kind == "IPv6"):
                errors.append(invalid(f"{path}.addresses", address, f"must be an {kind} address"))
            errors += each(at, address, is_endpoint_ip(address))
    if endpoint.get("nodeName") is not None:
        errors += each(f"{path}.nodeName", endpoint["nodeName"], is_dns1123_subdomain(endpoint["nodeName"]))
    if endpoint.get("hostname"):
        errors += each(f"{path}.hostname", endpoint["hostname"], is_dns1123_label(endpoint["hostname"]))
    hints = endpoint.get("hints") or {}
    for key, check in (("forZones", is_label_value), ("forNodes", is_dns1123_subdomain)):
        errors += _hints(hints.get(key) or [], f"{path}.hints.{key}", check)
    return errors


def _hints(hints: list[Object], path: str, check: Check) -> list[FieldError]:
    """(`validateHints`)"""
    if len(hints) > MAX_HINTS:
        return [too_many(path, len(hints), MAX_HINTS)]
    errors, names = list[FieldError](), list[str]()
    for index, hint in enumerate(hints):
        name = hint.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{path}[{index}].name", name))
        names.append(name)
        errors += each(f"{path}[{index}].name", name, check(name))
    return errors


def change_endpoint_slice(new: Object, old: Object) -> list[FieldError]:
    errors = validate_endpoint_slice(new, old)
    if new.get("addressType") == old.get("addressType"):
        return errors
    return [*errors, invalid("addressType", new.get("addressType") or "", "field is immutable")]
