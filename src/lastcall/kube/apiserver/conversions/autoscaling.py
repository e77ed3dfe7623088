"""autoscaling/v1 and v2 are two versions of one HorizontalPodAutoscaler; it is stored as v2.

What v1 has no field for goes into annotations and comes back out of them.

Source: pkg/apis/autoscaling/v1/conversion.go.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.internal import as_internal
from lastcall.kube.api.resources import HORIZONTALPODAUTOSCALERS, HORIZONTALPODAUTOSCALERS_V1
from lastcall.kube.apiserver.conversions import autoscaling_metrics as older

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
CURRENT_METRICS = f"{_PREFIX}current-metrics"
CONDITIONS = f"{_PREFIX}conditions"
BEHAVIOR = f"{_PREFIX}behavior"
_ANNOTATIONS = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR)

_BEHAVIOR_TYPE = "autoscaling.v2.HorizontalPodAutoscalerBehavior"
"""Whose annotation has the names of the internal type."""
_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")
"""In the order of Go's struct: the annotation is text."""
_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def to_v1(autoscaler: Object) -> Object:
    """Return the autoscaling/v1 object of a v2 object."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    new_spec = _only(spec, _SPEC)
    new_status = _only(status, _STATUS)
    new_status.setdefault("currentReplicas", 0)
    new_status.setdefault("desiredReplicas", 0)
    metrics, measured = spec.get("metrics") or (), status.get("currentMetrics") or ()
    if targets := [of_cpu for each in metrics if (of_cpu := _cpu_utilization(each, "target")) is not None]:
        new_spec["targetCPUUtilizationPercentage"] = targets[0]
    if current := [of_cpu for each in measured if (of_cpu := _cpu_utilization(each, "current")) is not None]:
        new_status["currentCPUUtilizationPercentage"] = current[-1]
    moved = {
        METRICS: [older.of_spec(each) for each in metrics if _cpu_utilization(each, "target") is None],
        CURRENT_METRICS: [older.of_status(each) for each in measured],
        CONDITIONS: [_only(each, _CONDITION) for each in status.get("conditions") or ()],
        BEHAVIOR: as_internal(_BEHAVIOR_TYPE, spec.get("behavior")),
    }
    meta = _annotated(autoscaler["metadata"], {key: value for key, value in moved.items() if value})
    return _as(HORIZONTALPODAUTOSCALERS_V1.api_version, meta, new_spec, new_status)


def to_v2(autoscaler: Object) -> Object:
    """Return the v2 object of an autoscaling/v1 object. An invalid annotation is dropped, as in Kubernetes."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    annotations = autoscaler["metadata"].get("annotations") or {}
    new_spec, new_status = _only(spec, _SPEC), _only(status, _STATUS)
    metrics = [older.to_spec(each) for each in _read(annotations, METRICS, list) if isinstance(each, dict)]
    if (target := spec.get("targetCPUUtilizationPercentage")) is not None:
        metrics.append(_cpu("target", {"type": "Utilization", "averageUtilization": target}))
    if metrics:
        new_spec["metrics"] = metrics
    if behavior := _plain_names(_read(annotations, BEHAVIOR, dict)):
        new_spec["behavior"] = behavior
    current_metrics = [each for each in _read(annotations, CURRENT_METRICS, list) if isinstance(each, dict)]
    current = [older.to_status(each) for each in current_metrics]  # says more than the percentage, and so counts
    if not current and (percentage := status.get("currentCPUUtilizationPercentage")) is not None:
        current = [_cpu("current", {"averageUtilization": percentage})]
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


def _cpu_utilization(metric: Object, part: str) -> int | None:
    """The utilization of cpu, which v1 has a field for; None of any other metric."""
    resource = metric.get("resource") or {}
    if resource.get("name") != "cpu":
        return None
    utilization: int | None = (resource.get(part) or {}).get("averageUtilization")
    return utilization


def _annotated(meta: Object, moved: Mapping[str, Any]) -> Object:
    """`meta` with what has no field in its annotations, and without what was there before."""
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _ANNOTATIONS}
    annotations |= {key: orjson.dumps(value).decode() for key, value in moved.items()}
    rest = {key: value for key, value in meta.items() if key != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest


def _plain_names(value: Any) -> Any:
    """JSON as Go reads it into a struct: the names of fields by any case, null as nothing."""
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _plain_names(each) for key, each in value.items() if each is not None}
    return [_plain_names(each) for each in value] if isinstance(value, list) else value


def _read(annotations: Mapping[str, str], name: str, type_: type) -> Any:
    try:
        value = orjson.loads(annotations.get(name) or b"null")
    except ValueError:
        value = None
    return value if isinstance(value, type_) else type_()
