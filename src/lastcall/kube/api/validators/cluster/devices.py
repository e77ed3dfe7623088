"""ResourceClaims, ResourceClaimTemplates, DeviceClasses and ResourceSlices.

Source: pkg/apis/resource/validation/validation.go. What selectors may cost is not estimated.
"""

from collections.abc import Iterable, Sequence

import orjson

from lastcall.kube.api.field import FieldError, each, invalid, not_supported, required, too_long
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_subdomain, is_label_value, is_qualified_name
from lastcall.kube.api.quota.counting import is_extended
from lastcall.kube.api.validators.cluster.device_parts import Check, label, list_of, qualified_name, repeated
from lastcall.kube.api.validators.common import driver_name, internal
from lastcall.kube.api.validators.expressions import Expressions, expression_error
from lastcall.kube.api.validators.metadata import template_metadata

MOST_ALTERNATIVES = 8
LONGEST_EXPRESSION = 10 * 1024
LONGEST_PARAMETERS = 10 * 1024
IMMUTABLE = "field is immutable"
_NAME_OF_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
_EFFECTS = ("NoExecute", "NoSchedule", "None")


def validate_claim(claim: Object, expressions: Expressions) -> list[FieldError]:
    return _claim_spec(claim.get("spec") or {}, "spec", expressions)


def validate_template(template: Object, expressions: Expressions) -> list[FieldError]:
    spec = template.get("spec") or {}
    return template_metadata(spec.get("metadata") or {}, "spec.metadata") + _claim_spec(
        spec.get("spec") or {}, "spec.spec", expressions
    )


def update_claim(new: Object, old: Object) -> list[FieldError]:
    """Check that the spec of claims and templates does not change."""
    return _same_spec(new, old, "resource.v1.ResourceClaimSpec")


def update_template(new: Object, old: Object) -> list[FieldError]:
    return _same_spec(new, old, "resource.v1.ResourceClaimTemplateSpec")


def _same_spec(new: Object, old: Object, type_: str) -> list[FieldError]:
    spec = new.get("spec") or {}
    return [] if spec == (old.get("spec") or {}) else [invalid("spec", internal(type_, spec), IMMUTABLE)]


def _claim_spec(spec: Object, path: str, expressions: Expressions) -> list[FieldError]:
    devices, path = spec.get("devices") or {}, f"{path}.devices"
    requests = devices.get("requests") or []
    names = request_names(requests)
    errors = list_of(requests, f"{path}.requests", _request(expressions))
    errors += repeated((request.get("name") or "" for request in requests), f"{path}.requests")

    def constraint(value: Object, at: str) -> list[FieldError]:
        found = references(value.get("requests"), f"{at}.requests", names)
        for key in ("matchAttribute", "distinctAttribute"):
            if value.get(key) is not None:
                return found + _full_name(value[key], f"{at}.{key}")
        why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        return [*found, required(at, why)]

    def config(value: Object, at: str) -> list[FieldError]:
        return references(value.get("requests"), f"{at}.requests", names) + configuration(value, at)

    errors += list_of(devices.get("constraints"), f"{path}.constraints", constraint)
    return errors + list_of(devices.get("config"), f"{path}.config", config)


def request_names(requests: Iterable[Object]) -> set[str]:
    names = set()
    for request in requests:
        name = request.get("name") or ""
        names |= {name, *(f"{name}/{each_one.get('name') or ''}" for each_one in request.get("firstAvailable") or ())}
    return names


def references(values: Sequence[str] | None, path: str, names: set[str]) -> list[FieldError]:
    errors = list_of(values, path, lambda name, at: reference(name, at, names))
    return errors + list(repeated(values or (), path))


def reference(name: str, path: str, names: set[str]) -> list[FieldError]:
    segments = name.split("/")
    if len(segments) > 2:
        return [invalid(path, name, _NAME_OF_REQUEST)]
    errors = [error for segment in segments for error in label(segment, path)]
    return errors if name in names else [*errors, invalid(path, name, _NAME_OF_REQUEST)]


def _request(expressions: Expressions) -> Check:
    def alternative(value: Object, at: str) -> list[FieldError]:
        return label(value.get("name") or "", f"{at}.name") + _exact(value, at, expressions)

    def check(request: Object, path: str) -> list[FieldError]:
        errors = label(request.get("name") or "", f"{path}.name")
        exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
        if exactly is None and not alternatives:
            return [*errors, required(path, _ONE_REQUEST)]
        if exactly is not None and alternatives:
            return [*errors, invalid(path, None, f"{_ONE_REQUEST}, but multiple fields are set")]
        if exactly is not None:
            return errors + _exact(exactly, f"{path}.exactly", expressions)
        at = f"{path}.firstAvailable"
        errors += list_of(alternatives, at, alternative, MOST_ALTERNATIVES)
        return errors + list(repeated((each_one.get("name") or "" for each_one in alternatives), at))

    return check


def _exact(request: Object, path: str, expressions: Expressions) -> list[FieldError]:
    name = request.get("deviceClassName") or ""
    at = f"{path}.deviceClassName"
    errors = each(at, name, is_dns1123_subdomain(name)) if name else [required(at)]
    errors += list_of(request.get("selectors"), f"{path}.selectors", _selector(expressions))
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode == "All":
        if count:
            errors.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount":
        errors += [] if count > 0 else [invalid(f"{path}.count", count, "must be greater than zero")]
    else:
        errors.append(not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    return errors + list_of(request.get("tolerations"), f"{path}.tolerations", _toleration)


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


def _selector(expressions: Expressions) -> Check:
    def check(selector: Object, path: str) -> list[FieldError]:
        if selector.get("cel") is None:
            return [required(f"{path}.cel")]
        at, expression = f"{path}.cel.expression", selector["cel"].get("expression") or ""
        if len(expression.encode()) > LONGEST_EXPRESSION:
            return [too_long(at, LONGEST_EXPRESSION)]
        problem = expressions.selector(expression)
        return [expression_error(at, expression, problem)] if problem else []

    return check


def configuration(config: Object, path: str) -> list[FieldError]:
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
    errors = qualified_name(name, path)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, name, why))
    return errors


def validate_class(device_class: Object, expressions: Expressions) -> list[FieldError]:
    spec = device_class.get("spec") or {}
    errors = list_of(spec.get("selectors"), "spec.selectors", _selector(expressions))
    errors += list_of(spec.get("config"), "spec.config", configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        errors.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors
