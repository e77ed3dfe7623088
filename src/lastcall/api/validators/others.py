"""Nodes, Namespaces, Leases, EndpointSlices, Endpoints.

Sources: pkg/apis/core/validation (ValidateNode), pkg/apis/coordination/validation, pkg/apis/discovery/validation.
"""

from lastcall.api.field import FieldError, duplicate, each, forbidden, invalid, required, too_many
from lastcall.api.meta import Object
from lastcall.api.names import (
    is_cidr,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_endpoint_ip,
    is_ip,
    is_label_value,
    is_port_number,
    is_qualified_name,
)
from lastcall.api.validators.common import NON_NEGATIVE, POSITIVE, required_one_of
from lastcall.api.validators.metadata import STANDARD_FINALIZERS
from lastcall.api.validators.pod_spec import TAINT_EFFECTS

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MAX_ENDPOINTS = 1000
MAX_ADDRESSES = 100
MAX_PORTS = 20000
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def validate_node(node: Object) -> list[FieldError]:
    """(`ValidateNode`)"""
    cidrs, path, errors = _pod_cidrs(node), "spec.podCIDRs", _taints(node)
    for index, cidr in enumerate(cidrs):
        errors += each(f"{path}[{index}]", cidr, is_cidr(cidr))
    if not any(is_cidr(cidr) for cidr in cidrs) and len({":" in cidr for cidr in cidrs}) != len(cidrs):
        errors.append(invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
    return errors


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
    errors += _taints(new)
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
    """(`ValidateNamespaceStatusUpdate`)"""
    phase = (new.get("status") or {}).get("phase") or ""
    ends = new["metadata"].get("deletionTimestamp") is not None
    if phase == ("Terminating" if ends else "Active"):
        return []
    why = "'Terminating' if `deletionTimestamp` is not empty" if ends else "'Active' if `deletionTimestamp` is empty"
    return [invalid("status.Phase", phase, f"may only be {why}")]


def validate_endpoints(endpoints: Object) -> list[FieldError]:
    """(`validateEndpointSubsets`)"""
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
    return each(f"{path}.appProtocol", value, is_qualified_name(value)) if value else []


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


def validate_endpoint_slice(endpoint_slice: Object) -> list[FieldError]:
    kind = endpoint_slice.get("addressType") or ""
    errors = required_one_of(kind, "addressType", ADDRESS_TYPES)
    endpoints = endpoint_slice.get("endpoints") or []
    if len(endpoints) > MAX_ENDPOINTS:
        return [*errors, too_many("endpoints", len(endpoints), MAX_ENDPOINTS)]
    for index, endpoint in enumerate(endpoints):
        errors += _endpoint(endpoint, f"endpoints[{index}]", kind)
    ports = endpoint_slice.get("ports") or []
    if len(ports) > MAX_PORTS:
        return [*errors, too_many("ports", len(ports), MAX_PORTS)]
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
    if not addresses:
        return [required(f"{path}.addresses", "must contain at least 1 address")]
    if len(addresses) > MAX_ADDRESSES:
        return [too_many(f"{path}.addresses", len(addresses), MAX_ADDRESSES)]
    errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        at = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            errors += each(at, address, is_dns1123_subdomain(address))
        elif problems := is_ip(address):
            errors += each(at, address, problems)
        elif (":" in address) != (kind == "IPv6"):
            errors.append(invalid(at, address, f"must be an {kind} address"))
    if endpoint.get("hostname"):
        errors += each(f"{path}.hostname", endpoint["hostname"], is_dns1123_label(endpoint["hostname"]))
    if endpoint.get("nodeName"):
        errors += each(f"{path}.nodeName", endpoint["nodeName"], is_dns1123_subdomain(endpoint["nodeName"]))
    return errors


def update_endpoint_slice(new: Object, old: Object) -> list[FieldError]:
    if new.get("addressType") == old.get("addressType"):
        return []
    return [invalid("addressType", new.get("addressType") or "", "field is immutable")]
