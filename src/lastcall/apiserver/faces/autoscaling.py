"""autoscaling/v1 and v2 are two faces of one HorizontalPodAutoscaler; it is stored as v2.

What v1 has no field for goes into annotations and comes back out of them.

Source: pkg/apis/autoscaling/v1/conversion.go.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from lastcall.api.meta import Object
from lastcall.api.resources import HORIZONTALPODAUTOSCALERS, HORIZONTALPODAUTOSCALERS_V1

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
CURRENT_METRICS = f"{_PREFIX}current-metrics"
CONDITIONS = f"{_PREFIX}conditions"
BEHAVIOR = f"{_PREFIX}behavior"
_ANNOTATIONS = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR)

_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def to_v1(autoscaler: Object) -> Object:
    """The autoscaling/v1 face of a v2 object."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    new_spec = _only(spec, _SPEC)
    new_status = _only(status, _STATUS)
    new_status.setdefault("currentReplicas", 0)
    new_status.setdefault("desiredReplicas", 0)
    target, others = _split(spec.get("metrics") or (), "target")
    if target is not None:
        new_spec["targetCPUUtilizationPercentage"] = target
    current, other_current = _split(status.get("currentMetrics") or (), "current")
    if current is not None:
        new_status["currentCPUUtilizationPercentage"] = current
    moved = {
        METRICS: others,
        CURRENT_METRICS: other_current,
        CONDITIONS: status.get("conditions"),
        BEHAVIOR: spec.get("behavior"),
    }
    meta = _annotated(autoscaler["metadata"], {key: value for key, value in moved.items() if value})
    return _as(HORIZONTALPODAUTOSCALERS_V1.api_version, meta, new_spec, new_status)


def to_v2(autoscaler: Object) -> Object:
    """The v2 object of an autoscaling/v1 face. An annotation that cannot be read is dropped, as there."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    annotations = autoscaler["metadata"].get("annotations") or {}
    new_spec, new_status = _only(spec, _SPEC), _only(status, _STATUS)
    metrics = [each for each in _read(annotations, METRICS, list) if isinstance(each, dict)]
    if (target := spec.get("targetCPUUtilizationPercentage")) is not None:
        metrics = [_cpu("target", {"type": "Utilization", "averageUtilization": target}), *metrics]
    if metrics:
        new_spec["metrics"] = metrics
    if behavior := _read(annotations, BEHAVIOR, dict):
        new_spec["behavior"] = behavior
    current = [each for each in _read(annotations, CURRENT_METRICS, list) if isinstance(each, dict)]
    if (percentage := status.get("currentCPUUtilizationPercentage")) is not None:
        current = [_cpu("current", {"averageUtilization": percentage}), *current]
    if not new_status.get("currentReplicas"):
        new_status.pop("currentReplicas", None)  # v2 leaves out a zero
    if status:
        new_status["currentMetrics"] = current or None
    if conditions := _read(annotations, CONDITIONS, list):
        new_status["conditions"] = conditions
    meta = _annotated(autoscaler["metadata"], {})
    return _as(HORIZONTALPODAUTOSCALERS.api_version, meta, new_spec, new_status)


def _as(api_version: str, meta: Object, spec: Object, status: Object) -> Object:
    kind = HORIZONTALPODAUTOSCALERS.kind
    return {"kind": kind, "apiVersion": api_version, "metadata": meta, "spec": spec, "status": status}


def _only(fields: Object, names: tuple[str, ...]) -> Object:
    return {name: fields[name] for name in names if name in fields}


def _cpu(part: str, value: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", part: value}}


def _split(metrics: Any, part: str) -> tuple[int | None, list[Object]]:
    """(the utilization of cpu, which v1 has a field for; all the other metrics)."""
    found: int | None = None
    others: list[Object] = []
    for metric in metrics:
        resource = metric.get("resource") or {}
        utilization = (resource.get(part) or {}).get("averageUtilization")
        if found is None and resource.get("name") == "cpu" and utilization is not None:
            found = utilization
        else:
            others.append(metric)
    return found, others


def _annotated(meta: Object, moved: Mapping[str, Any]) -> Object:
    """`meta` with what has no field in its annotations, and without what was there before."""
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _ANNOTATIONS}
    annotations |= {key: orjson.dumps(value).decode() for key, value in moved.items()}
    rest = {key: value for key, value in meta.items() if key != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest


def _read(annotations: Mapping[str, str], name: str, type_: type) -> Any:
    try:
        value = orjson.loads(annotations.get(name) or b"null")
    except ValueError:
        value = None
    return value if isinstance(value, type_) else type_()
