"""ServiceCIDRs and IPAddresses.

Source: pkg/apis/networking/validation/validation.go.
"""

import ipaddress

from lastcall.kube.api.field import FieldError, each, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_subdomain, is_ip, is_path_segment_name
from lastcall.kube.api.validators.kind_rules import KindRules

IMMUTABLE = "field is immutable"
_ONE_OF_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
_NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


_LEADING_ZEROS = "must not have leading 0s"


def _has_leading_zeros(address: str) -> bool:
    """An IPv4 address that would be one without them."""
    if "." not in address or ":" in address:
        return False
    parts = address.split(".")
    plain = ".".join(part.lstrip("0") or "0" for part in parts)
    return plain != address and not is_ip(plain)


def is_address_name(name: str) -> list[str]:
    """Check that an IPAddress is named as its address in its shortest form."""
    if problems := is_ip(name):
        return [_LEADING_ZEROS] if _has_leading_zeros(name) else list(problems)
    shortest = str(ipaddress.ip_address(name))
    return [] if shortest == name else [f'must be in canonical form ("{shortest}")']


def validate_address(address: Object) -> list[FieldError]:
    parent = (address.get("spec") or {}).get("parentRef")
    path = "spec.parentRef"
    if parent is None:
        return [required(path)]
    group = parent.get("group") or ""
    errors = each(f"{path}.group", group, is_dns1123_subdomain(group)) if group else []
    for key in ("resource", "name"):
        value = parent.get(key) or ""
        errors += each(f"{path}.{key}", value, is_path_segment_name(value)) if value else [required(f"{path}.{key}")]
    namespace = parent.get("namespace") or ""
    return errors + (each(f"{path}.namespace", namespace, is_path_segment_name(namespace)) if namespace else [])


def update_address(new: Object, old: Object) -> list[FieldError]:
    parent, stored = ((obj.get("spec") or {}).get("parentRef") for obj in (new, old))
    if parent == stored:
        return []
    if parent is None:
        return [invalid("spec.parentRef", None, IMMUTABLE)]
    shown = {key.capitalize(): parent.get(key) or "" for key in ("group", "resource", "namespace", "name")}
    return [invalid("spec.parentRef", shown, IMMUTABLE)]


def validate_service_cidr(service_cidr: Object) -> list[FieldError]:
    cidrs = (service_cidr.get("spec") or {}).get("cidrs") or []
    path = "spec.cidrs"
    if not cidrs:
        return [required(path, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid(path, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    if len(cidrs) == 2 and _version(cidrs[0]) == _version(cidrs[1]) != 0:
        return [invalid(path, cidrs, _ONE_OF_EACH)]
    errors: list[FieldError] = []
    for index, cidr in enumerate(cidrs):
        errors += each(f"{path}[{index}]", cidr, _cidr_problems(cidr))
    return errors


def _version(cidr: str) -> int:
    try:
        return ipaddress.ip_interface(cidr).version if "/" in cidr else 0
    except ValueError:
        return 0


def _cidr_problems(cidr: str) -> list[str]:
    """(`IsValidCIDR`)"""
    address, slash, length = cidr.partition("/")
    if _has_leading_zeros(address) or (length.startswith("0") and length.isdecimal() and length != "0"):
        return [f"{_LEADING_ZEROS} in IP or prefix length"]
    if not slash or not length.isdecimal() or not _version(cidr):
        return [_NO_CIDR]
    if ":" in address and ipaddress.IPv6Address(address).ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    network = ipaddress.ip_network(cidr, strict=False)
    if str(network.network_address) != str(ipaddress.ip_address(address)):
        return ["must not have bits set beyond the prefix length"]
    return [] if str(network) == cidr else [f'must be in canonical form ("{network}")']


def update_service_cidr(new: Object, old: Object) -> list[FieldError]:
    """Check a change of a ServiceCIDR: a second one may come, for the other family. (`ValidateServiceCIDRUpdate`)"""
    given, stored = ((obj.get("spec") or {}).get("cidrs") for obj in (new, old))
    cidrs, before = given or [], stored or []
    if len(cidrs) != len(before) and (len(before), len(cidrs)) != (1, 2):
        return [invalid("spec.cidrs", given, IMMUTABLE)]
    changed = [n for n, cidr in enumerate(before) if cidrs[n] != cidr]
    errors = [invalid(f"spec.cidrs[{n}]", cidrs[n], IMMUTABLE) for n in changed]
    return errors + validate_service_cidr(new) if len(cidrs) > len(before) else errors


RULES = {
    "ipaddresses": KindRules(is_address_name, validate_address, then=update_address),
    "servicecidrs": KindRules(create=validate_service_cidr, update=update_service_cidr),
}
"""By plural."""
