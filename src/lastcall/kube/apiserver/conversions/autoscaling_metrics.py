"""Metrics of an autoscaler as annotations of autoscaling/v1 have them, and as autoscaling/v2 does.

Source: pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/v1/defaults.go
"""

from collections.abc import Mapping
from typing import Any

from lastcall.kube.api.meta import Object

_SPEC: Mapping[str, tuple[tuple[str, tuple[str, ...], str | None], ...]] = {
    "object": (
        ("target", ("describedObject",), None),
        ("metricName", ("metric", "name"), ""),
        ("targetValue", ("target", "value"), "0"),
        ("selector", ("metric", "selector"), None),
        ("averageValue", ("target", "averageValue"), None),
    ),
    "pods": (
        ("metricName", ("metric", "name"), ""),
        ("targetAverageValue", ("target", "averageValue"), "0"),
        ("selector", ("metric", "selector"), None),
    ),
    "resource": (
        ("name", ("name",), ""),
        ("targetAverageUtilization", ("target", "averageUtilization"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
    ),
    "containerResource": (
        ("name", ("name",), ""),
        ("targetAverageUtilization", ("target", "averageUtilization"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
        ("container", ("container",), ""),
    ),
    "external": (
        ("metricName", ("metric", "name"), ""),
        ("metricSelector", ("metric", "selector"), None),
        ("targetValue", ("target", "value"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
    ),
}
"""By the kind of a metric: the older field, where its value is in v2, and the value for none."""
_STATUS: Mapping[str, tuple[tuple[str, tuple[str, ...], str | None], ...]] = {
    "object": (
        ("target", ("describedObject",), None),
        ("metricName", ("metric", "name"), ""),
        ("currentValue", ("current", "value"), "0"),
        ("selector", ("metric", "selector"), None),
        ("averageValue", ("current", "averageValue"), None),
    ),
    "pods": (
        ("metricName", ("metric", "name"), ""),
        ("currentAverageValue", ("current", "averageValue"), "0"),
        ("selector", ("metric", "selector"), None),
    ),
    "resource": (
        ("name", ("name",), ""),
        ("currentAverageUtilization", ("current", "averageUtilization"), None),
        ("currentAverageValue", ("current", "averageValue"), "0"),
    ),
    "containerResource": (
        ("name", ("name",), ""),
        ("currentAverageUtilization", ("current", "averageUtilization"), None),
        ("currentAverageValue", ("current", "averageValue"), "0"),
        ("container", ("container",), ""),
    ),
    "external": (
        ("metricName", ("metric", "name"), ""),
        ("metricSelector", ("metric", "selector"), None),
        ("currentValue", ("current", "value"), "0"),
        ("currentAverageValue", ("current", "averageValue"), None),
    ),
}
_Table = Mapping[str, tuple[tuple[str, tuple[str, ...], str | None], ...]]


def of_spec(metric: Object) -> Object:
    return _older(metric, _SPEC)


def of_status(metric: Object) -> Object:
    return _older(metric, _STATUS)


def to_spec(metric: Object) -> Object:
    """Convert a wanted metric. The type of its target follows from what is there of it."""
    new = _newer(metric, _SPEC)
    for kind in _SPEC:
        if isinstance(part := new.get(kind), dict):
            part["target"] = {"type": _type_of(part.get("target") or {}), **(part.get("target") or {})}
    return new


def to_status(metric: Object) -> Object:
    return _newer(metric, _STATUS)


def _type_of(target: Object) -> str:
    if target.get("averageUtilization") is not None:
        return "Utilization"
    return "AverageValue" if target.get("averageValue") is not None else "Value"


def _older(metric: Object, table: _Table) -> Object:
    new: Object = {"type": metric.get("type", "")}
    for kind, fields in table.items():
        if not isinstance(part := metric.get(kind), dict):
            continue
        new[kind] = {}
        for name, path, nothing in fields:
            if (value := _at(part, path)) is not None or (value := nothing) is not None:
                new[kind][name] = value
    return new


def _newer(metric: Object, table: _Table) -> Object:
    new: Object = {"type": metric.get("type", "")}
    for kind, fields in table.items():
        if not isinstance(part := metric.get(kind), dict):
            continue
        made = new[kind] = {}
        for name, path, nothing in fields:
            value = part.get(name)
            if value is None or (name == "targetValue" and value == nothing):
                continue
            at = made
            for step in path[:-1]:
                at = at.setdefault(step, {})
            at[path[-1]] = value
    return new


def _at(part: Object, path: tuple[str, ...]) -> Any:
    at: Any = part
    for step in path:
        at = at.get(step) if isinstance(at, dict) else None
    return at
