"""ResourceClaims, ResourceClaimTemplates, DeviceClasses and ResourceSlices.

Source: pkg/apis/resource/validation/validation.go. What selectors may cost is not estimated.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson

from lastcall.api.field import FieldError, duplicate, each, invalid, not_supported, required, too_long, too_many
from lastcall.api.meta import Object
from lastcall.api.names import is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name
from lastcall.api.quota.counting import is_extended
from lastcall.api.validators.cluster.csi import driver_name
from lastcall.api.validators.common import internal
from lastcall.api.validators.expressions import Expressions, expression_error
from lastcall.api.validators.kind_rules import KindRules

MOST = 32
"""Requests, constraints, configurations, selectors of a list."""
MOST_ALTERNATIVES = 8
MOST_RESERVED = 256
LONGEST_EXPRESSION = 10 * 1024
LONGEST_PARAMETERS = 10 * 1024
IMMUTABLE = "field is immutable"
_NAME_OF_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_NUMBER = "(0|[1-9][0-9]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+{_BUILD}(\.{_BUILD})*)?")
_NOT_AN_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)

_SOURCES = ("FromClaim", "FromClass")
_EFFECTS = ("NoExecute", "NoSchedule", "None")

Check = Callable[[Any, str], list[FieldError]]


def _list(values: Sequence[Any] | None, path: str, check: Check, most: int = MOST) -> list[FieldError]:
    values = values or []
    if len(values) > most:
        return [too_many(path, len(values), most)]
    return [error for index, value in enumerate(values) for error in check(value, f"{path}[{index}]")]


def _repeated(keys: Iterable[Any], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, key in enumerate(keys):
        if key in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.add(key)


def _label(value: str, path: str) -> list[FieldError]:
    return each(path, value, is_dns1123_label(value))


def validate_claim(claim: Object) -> list[FieldError]:
    return _claim_spec(claim.get("spec") or {}, "spec")


def validate_template(template: Object) -> list[FieldError]:
    return _claim_spec((template.get("spec") or {}).get("spec") or {}, "spec.spec")


def update_claim(new: Object, old: Object) -> list[FieldError]:
    """The spec of claims and templates never changes."""
    return _same_spec(new, old, "resource.v1.ResourceClaimSpec")


def update_template(new: Object, old: Object) -> list[FieldError]:
    return _same_spec(new, old, "resource.v1.ResourceClaimTemplateSpec")


def _same_spec(new: Object, old: Object, type_: str) -> list[FieldError]:
    spec = new.get("spec") or {}
    return [] if spec == (old.get("spec") or {}) else [invalid("spec", internal(type_, spec), IMMUTABLE)]


def _claim_spec(spec: Object, path: str) -> list[FieldError]:
    devices, path = spec.get("devices") or {}, f"{path}.devices"
    requests = devices.get("requests") or []
    names = _request_names(requests)
    errors = _list(requests, f"{path}.requests", _request)
    errors += _repeated((request.get("name") or "" for request in requests), f"{path}.requests")

    def constraint(value: Object, at: str) -> list[FieldError]:
        found = _references(value.get("requests"), f"{at}.requests", names)
        for key in ("matchAttribute", "distinctAttribute"):
            if value.get(key) is not None:
                return found + _full_name(value[key], f"{at}.{key}")
        why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        return [*found, required(at, why)]

    def config(value: Object, at: str) -> list[FieldError]:
        return _references(value.get("requests"), f"{at}.requests", names) + _configuration(value, at)

    errors += _list(devices.get("constraints"), f"{path}.constraints", constraint)
    return errors + _list(devices.get("config"), f"{path}.config", config)


def _request_names(requests: Iterable[Object]) -> set[str]:
    names = set()
    for request in requests:
        name = request.get("name") or ""
        names |= {name, *(f"{name}/{each_one.get('name') or ''}" for each_one in request.get("firstAvailable") or ())}
    return names


def _references(values: Sequence[str] | None, path: str, names: set[str]) -> list[FieldError]:
    errors = _list(values, path, lambda name, at: _reference(name, at, names))
    return errors + list(_repeated(values or (), path))


def _reference(name: str, path: str, names: set[str]) -> list[FieldError]:
    segments = name.split("/")
    if len(segments) > 2:
        return [invalid(path, name, _NAME_OF_REQUEST)]
    errors = [error for segment in segments for error in _label(segment, path)]
    return errors if name in names else [*errors, invalid(path, name, _NAME_OF_REQUEST)]


def _request(request: Object, path: str) -> list[FieldError]:
    errors = _label(request.get("name") or "", f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        return [*errors, required(path, _ONE_REQUEST)]
    if exactly is not None and alternatives:
        return [*errors, invalid(path, None, f"{_ONE_REQUEST}, but multiple fields are set")]
    if exactly is not None:
        return errors + _exact(exactly, f"{path}.exactly")

    def alternative(value: Object, at: str) -> list[FieldError]:
        return _label(value.get("name") or "", f"{at}.name") + _exact(value, at)

    at = f"{path}.firstAvailable"
    errors += _list(alternatives, at, alternative, MOST_ALTERNATIVES)
    return errors + list(_repeated((each_one.get("name") or "" for each_one in alternatives), at))


def _exact(request: Object, path: str) -> list[FieldError]:
    name = request.get("deviceClassName") or ""
    at = f"{path}.deviceClassName"
    errors = each(at, name, is_dns1123_subdomain(name)) if name else [required(at)]
    errors += _list(request.get("selectors"), f"{path}.selectors", _selector)
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode == "All":
        if count:
            errors.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount":
        errors += [] if count > 0 else [invalid(f"{path}.count", count, "must be greater than zero")]
    else:
        errors.append(not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    return errors + _list(request.get("tolerations"), f"{path}.tolerations", _toleration)


def _toleration(toleration: Object, path: str) -> list[FieldError]:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    errors = each(f"{path}.key", key, is_qualified_name(key)) if key else []
    if operator == "Exists":
        errors += [invalid(f"{path}.value", value, "must be empty for operator `Exists`")] if value else []
    elif operator == "Equal":
        errors += each(f"{path}.value", value, is_label_value(value))
    else:
        errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def _selector(selector: Object, path: str) -> list[FieldError]:
    if selector.get("cel") is None:
        return [required(f"{path}.cel")]
    expression = selector["cel"].get("expression") or ""
    if len(expression.encode()) > LONGEST_EXPRESSION:
        return [too_long(f"{path}.cel.expression", LONGEST_EXPRESSION)]
    return []


def _selector_errors(selectors: Sequence[Object] | None, path: str, expressions: Expressions) -> list[FieldError]:
    errors = []
    for index, selector in enumerate(selectors or ()):
        expression = (selector.get("cel") or {}).get("expression")
        if expression is None or len(expression.encode()) > LONGEST_EXPRESSION:
            continue  # said by `_selector`
        if problem := expressions.selector(expression):
            errors.append(expression_error(f"{path}.selectors[{index}].cel.expression", expression, problem))
    return errors


def claim_selectors(claim: Object, expressions: Expressions) -> list[FieldError]:
    return _selectors_of_spec(claim.get("spec") or {}, "spec", expressions)


def template_selectors(template: Object, expressions: Expressions) -> list[FieldError]:
    return _selectors_of_spec((template.get("spec") or {}).get("spec") or {}, "spec.spec", expressions)


def _selectors_of_spec(spec: Object, path: str, expressions: Expressions) -> list[FieldError]:
    errors = []
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        at = f"{path}.devices.requests[{index}]"
        errors += _selector_errors((request.get("exactly") or {}).get("selectors"), f"{at}.exactly", expressions)
        for number, alternative in enumerate(request.get("firstAvailable") or ()):
            errors += _selector_errors(alternative.get("selectors"), f"{at}.firstAvailable[{number}]", expressions)
    return errors


def _configuration(config: Object, path: str) -> list[FieldError]:
    opaque, path = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        return [required(path)]
    errors = driver_name(opaque.get("driver") or "", f"{path}.driver")
    parameters, at = opaque.get("parameters"), f"{path}.parameters"
    if parameters is None:
        return [*errors, required(at)]
    if len(orjson.dumps(parameters)) > LONGEST_PARAMETERS:
        return [*errors, too_long(at, LONGEST_PARAMETERS)]
    if not isinstance(parameters, dict):
        return [*errors, invalid(at, "<value omitted>", "must be a valid JSON object")]
    return errors


def _full_name(name: str, path: str) -> list[FieldError]:
    errors = _qualified_name(name, path)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, name, why))
    return errors


def _qualified_name(name: str, path: str) -> list[FieldError]:
    parts = name.split("/")
    if len(parts) == 1:
        return _identifier(name, path)
    if len(parts) > 2:
        return []
    domain, rest = parts
    errors = driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    return errors + (_identifier(rest, path) if rest else [invalid(path, "", "the name must not be empty")])


def _identifier(name: str, path: str) -> list[FieldError]:
    errors = [too_long(path, 32)] if len(name) > 32 else []
    return errors if _IDENTIFIER.fullmatch(name) else [*errors, invalid(path, name, _NOT_AN_IDENTIFIER)]


def update_claim_status(new: Object, old: Object) -> list[FieldError]:
    status, stored = new.get("status") or {}, old.get("status") or {}
    path = "status.reservedFor"
    reserved = status.get("reservedFor") or []

    def consumer(value: Object, at: str) -> list[FieldError]:
        return [required(f"{at}.{key}") for key in ("resource", "name", "uid") if not value.get(key)]

    errors = _list(reserved, path, consumer, MOST_RESERVED)
    errors += _repeated((each_one.get("uid") for each_one in reserved), path)
    allocation = status.get("allocation")
    if reserved and allocation is None:
        why = "may not be specified when `allocated` is not set"
        errors.append(FieldError("FieldValueForbidden", path, "", why))
    if allocation is not None and stored.get("allocation") is None:
        requests = ((new.get("spec") or {}).get("devices") or {}).get("requests") or []
        errors += _allocation(allocation.get("devices") or {}, "status.allocation.devices", _request_names(requests))
    if allocation is not None and stored.get("allocation") is not None and allocation != stored["allocation"]:
        errors.append(invalid("status.allocation", allocation, IMMUTABLE))
    return errors


def _allocation(devices: Object, path: str, names: set[str]) -> list[FieldError]:
    def result(value: Object, at: str) -> list[FieldError]:
        errors = _reference(value.get("request") or "", f"{at}.request", names)
        errors += driver_name(value.get("driver") or "", f"{at}.driver")
        errors += _pool_name(value.get("pool") or "", f"{at}.pool")
        return errors + _label(value.get("device") or "", f"{at}.device")

    def config(value: Object, at: str) -> list[FieldError]:
        source = value.get("source") or ""
        errors = [] if source else [required(f"{at}.source")]
        if source and source not in _SOURCES:
            errors.append(not_supported(f"{at}.source", source, _SOURCES))
        return errors + _references(value.get("requests"), f"{at}.requests", names) + _configuration(value, at)

    errors = _list(devices.get("results"), f"{path}.results", result)
    return errors + _list(devices.get("config"), f"{path}.config", config, 2 * MOST)


def validate_class(device_class: Object, expressions: Expressions) -> list[FieldError]:
    spec = device_class.get("spec") or {}
    errors = _list(spec.get("selectors"), "spec.selectors", _selector)
    errors += _selector_errors(spec.get("selectors"), "spec", expressions)
    errors += _list(spec.get("config"), "spec.config", _configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        errors.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors


_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = f"exactly one of {', '.join(f'`{place}`' for place in _PLACES)} is required"


def validate_slice(resource_slice: Object) -> list[FieldError]:
    spec = resource_slice.get("spec") or {}
    pool = spec.get("pool") or {}
    errors = driver_name(spec.get("driver") or "", "spec.driver")
    errors += _pool_name(pool.get("name") or "", "spec.pool.name")
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    if spec.get("nodeName") is not None:
        name = spec["nodeName"]
        if not name:
            errors.append(invalid("spec.nodeName", name, "must be either unset or set to a non-empty string"))
        errors += [] if not name else each("spec.nodeName", name, is_dns1123_subdomain(name))
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key) is False:
            errors.append(invalid(f"spec.{key}", False, "must be either unset or set to true"))
    given = [f"`{place}`" for place in _PLACES if spec.get(place)]
    if not given:
        errors.append(required("spec", _ONE_PLACE))
    elif len(given) > 1:
        errors.append(invalid("spec", f"{{{', '.join(given)}}}", f"{_ONE_PLACE}, but multiple fields are set"))
    devices = spec.get("devices") or []
    most = 64 if any(device.get("taints") or device.get("consumesCounters") for device in devices) else 128
    errors += _list(devices, "spec.devices", _device, most)
    return errors + list(_repeated((device.get("name") or "" for device in devices), "spec.devices"))


def _pool_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [too_long(path, 253)] if len(name) > 253 else []
    return errors + [error for part in name.split("/") for error in each(path, part, is_dns1123_subdomain(part))]


def _device(device: Object, path: str) -> list[FieldError]:
    errors = _label(device.get("name") or "", f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > MOST:
        why = f"the total number of attributes and capacities must not exceed {MOST}"
        errors.append(invalid(path, len(attributes) + len(capacity), why))
    for key, value in attributes.items():
        at = f"{path}.attributes[{key}]"
        errors += _qualified_name(key, f"{path}.attributes")
        given = [each_one for each_one in value.values() if each_one is not None]
        if len(given) != 1:
            errors.append(invalid(at, value if given else "", "exactly one value must be specified"))
        version = value.get("version")
        if version is not None and not _VERSION.fullmatch(version):
            why = "must be a string compatible with semver.org spec 2.0.0"
            errors.append(invalid(f"{at}.version", version, why))
        for kind in ("string", "version"):
            if len((value.get(kind) or "").encode()) > 64:
                errors.append(too_long(f"{at}.{kind}", 64))
    for key in capacity:
        errors += _qualified_name(key, f"{path}.capacity")
    return errors


def update_slice(new: Object, old: Object) -> list[FieldError]:
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    name, had = ((each_spec.get("pool") or {}).get("name") for each_spec in (spec, stored))
    if name != had:
        errors.append(invalid("spec.pool.name", name, IMMUTABLE))
    for key in ("driver", "nodeName"):
        if spec.get(key) != stored.get(key):
            errors.append(invalid(f"spec.{key}", spec.get(key), IMMUTABLE))
    return errors


RULES = {
    "resourceclaims": KindRules(
        create=validate_claim,
        created=claim_selectors,
        update=update_claim,
        subresources=(("status", update_claim_status),),
    ),
    "resourceclaimtemplates": KindRules(obj=validate_template, created=template_selectors, then=update_template),
    "deviceclasses": KindRules(expressions=validate_class),
    "resourceslices": KindRules(obj=validate_slice, update=update_slice),
}
"""By plural."""
