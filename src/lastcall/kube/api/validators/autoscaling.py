"""HorizontalPodAutoscaler, in the form of autoscaling/v2. Source: pkg/apis/autoscaling/validation/validation.go."""

from typing import Any

from lastcall.kube.api.field import FieldError, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_label, is_path_segment_name
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.validators.common import NON_NEGATIVE, POSITIVE
from lastcall.kube.api.validators.kind_rules import KindRules
from lastcall.kube.api.validators.status import autoscaler_status

_SOURCES = {
    "Object": "object", "External": "external", "Pods": "pods", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip
"""Types of metrics, and the field that each fills, in the order in which they are looked at."""
_LONGEST_WINDOW, _LONGEST_PERIOD = 3600, 1800
_EITHER = "must set either a target raw value or a target utilization"
_BOTH = "may not set both a target raw value and a target utilization"


def validate_horizontal_pod_autoscaler(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 0:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    elif most < 1:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    errors += _reference(target, "spec.scaleTargetRef")
    errors += _api_version(target.get("apiVersion") or "", "spec.scaleTargetRef.apiVersion")
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get(key) is not None for metric in metrics for key in ("object", "external")):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", why))
    behavior = spec.get("behavior") or {}
    for key in ("scaleUp", "scaleDown"):
        if behavior.get(key) is not None:
            errors += _scaling_rules(behavior[key], f"spec.behavior.{key}")
    return errors


def _segment(value: str, path: str, missing: str = "") -> list[FieldError]:
    return each(path, value, is_path_segment_name(value)) if value else [required(path, missing)]


def _reference(reference: Object, path: str) -> list[FieldError]:
    """(`ValidateCrossVersionObjectReference`)"""
    return [
        error for key in ("kind", "name") for error in _segment(reference.get(key) or "", f"{path}.{key}")
    ]  # fmt: skip


def _api_version(value: str, path: str) -> list[FieldError]:
    """(`ValidateAPIVersion`)"""
    if value.count("/") > 1:
        return [invalid(path, value, f"unexpected GroupVersion string: {value}")]
    return (
        [] if value.partition("/")[0] and "/" in value else [invalid(path, value, "apiVersion must specify API group")]
    )


def _metric(metric: Object, path: str) -> list[FieldError]:
    """(`validateMetricSpec`)"""
    kind, errors = metric.get("type") or "", list[FieldError]()
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        errors.append(not_supported(f"{path}.type", kind, sorted(_SOURCES)))
    present = [key for key in _SOURCES.values() if metric.get(key) is not None]
    for key in present[:1]:
        errors += _CHECKS[key](metric[key], f"{path}.{key}")
    wanted = _SOURCES.get(kind, "")
    if wanted and wanted not in present:
        errors.append(required(f"{path}.{wanted}", "must populate information for the given metric source"))
    if kind not in _SOURCES:
        errors.append(not_supported(f"{path}.type", kind, sorted(_SOURCES)))
    if len(present) > 1:
        why = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{key}", why) for key in present if key != wanted]
    return errors


def _object(source: Object, path: str) -> list[FieldError]:
    errors = _reference(source.get("describedObject") or {}, f"{path}.describedObject")
    target = source.get("target") or {}
    errors += _identifier(source, path) + _target(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        errors.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    return errors


def _external(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _identifier(source, path) + _target(target, f"{path}.target")
    given = [target.get(key) is not None for key in ("value", "averageValue")]
    if not any(given):
        why = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.target.averageValue", why))
    if all(given):
        why = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.target.value", why))
    return errors


def _pods(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _identifier(source, path) + _target(target, f"{path}.target")
    average = target.get("averageValue")
    if average is None or parse_quantity(average).value <= 0:
        errors.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return errors


def _resource(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("name") else [required(f"{path}.name", "must specify a resource name")]
    return errors + _resource_target(source, path)


def _container_resource(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("name") else [required(f"{path}.name", "must specify a resource name")]
    container = source.get("container") or ""
    if not container:
        errors.append(required(f"{path}.container", "must specify a container"))
    else:
        errors += each(f"{path}.container", container, is_dns1123_label(container))
    return errors + _resource_target(source, path)


_CHECKS = {
    "object": _object, "external": _external, "pods": _pods, "resource": _resource,
    "containerResource": _container_resource,
}  # fmt: skip


def _resource_target(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _target(target, f"{path}.target")
    given = [target.get(key) is not None for key in ("averageUtilization", "averageValue")]
    if not any(given):
        errors.append(required(f"{path}.target.averageUtilization", _EITHER))
    if all(given):
        errors.append(forbidden(f"{path}.target.averageValue", _BOTH))
    return errors


def _identifier(source: Object, path: str) -> list[FieldError]:
    """(`validateMetricIdentifier`)"""
    name = (source.get("metric") or {}).get("name") or ""
    return _segment(name, f"{path}.metric.name", "must specify a metric name")


def _target(target: Object, path: str) -> list[FieldError]:
    """(`validateMetricTarget`)"""
    kind, errors = target.get("type") or "", list[FieldError]()
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for key in ("value", "averageValue"):
        if target.get(key) is not None and (amount := parse_quantity(target[key])).value <= 0:
            errors.append(invalid(f"{path}.{key}", str(amount), "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, POSITIVE))
    return errors


def _between(value: Any, path: str, most: int, *, zero: bool) -> list[FieldError]:
    """A number of seconds, or of Pods."""
    if value < 0 or (value == 0 and not zero):
        return [invalid(path, value, "must be greater than or equal to zero" if zero else "must be greater than zero")]
    return [invalid(path, value, f"must be less than or equal to {most}")] if most and value > most else []


def _scaling_rules(rules: Object, path: str) -> list[FieldError]:
    """(`validateScalingRules`)"""
    errors: list[FieldError] = []
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None:
        errors += _between(window, f"{path}.stabilizationWindowSeconds", _LONGEST_WINDOW, zero=True)
    if select is not None and select not in ("Disabled", "Max", "Min"):
        errors.append(not_supported(f"{path}.selectPolicy", select, ("Disabled", "Max", "Min")))
    policies = rules.get("policies") or []
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        at, kind = f"{path}.policies[{index}]", policy.get("type") or ""
        if kind not in ("Percent", "Pods"):
            errors.append(not_supported(f"{at}.type", kind, ("Percent", "Pods")))
        errors += _between(policy.get("value") or 0, f"{at}.value", 0, zero=False)
        errors += _between(policy.get("periodSeconds") or 0, f"{at}.periodSeconds", _LONGEST_PERIOD, zero=False)
    tolerance = rules.get("tolerance")
    if tolerance is not None and (amount := parse_quantity(tolerance)).value < 0:
        errors.append(invalid(f"{path}.tolerance", str(amount), NON_NEGATIVE))
    return errors


RULES = {
    "horizontalpodautoscalers": KindRules(
        obj=validate_horizontal_pod_autoscaler, subresources=(("status", autoscaler_status),)
    )
}
"""By plural."""
