"""Metrics that other servers measure: custom.metrics.k8s.io and external.metrics.k8s.io. Pure, but for `values_of`.

Source: pkg/controller/podautoscaler/{horizontal,replica_calculator}.go, metrics/client.go.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, is_terminating
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.api.text.go_selectors import selector_text
from lastcall.kube.controllers.informers import Fetch
from lastcall.kube.controllers.podautoscaler.replicas import MetricError, Tolerances

CUSTOM, EXTERNAL = "custom.metrics.k8s.io/v1beta1", "external.metrics.k8s.io/v1beta1"
OF_OTHERS = {"External": "external", "Object": "object", "Pods": "pods"}
"""Types of metrics, and the field of each."""


class Question(NamedTuple):
    """Where a metric is (`path`), what Events call it (`shown`), and how an error begins (`about`)."""

    path: str
    shown: str
    about: str


class Measurement(NamedTuple):
    """How many replicas a metric asks for, and its `current` in the status."""

    replicas: int
    current: Object


def measures_without_pods(spec: Object) -> bool:
    """Return True if a metric can be measured of no Pod at all. (`hasObjectOrExternalMetrics`)"""
    return any(each.get("type") in ("Object", "External") for each in spec.get("metrics") or ())


def question_of(spec: Object, namespace: str, pods: str, plural: str = "") -> Question:
    """Return how a metric is asked for. `pods` is the selector of the target's Pods.

    `plural` is that of the object's kind; it is guessed where it is "".
    """
    kind = spec["type"]
    source = spec[OF_OTHERS[kind]]
    metric = source["metric"]
    name, selector = metric["name"], metric.get("selector")
    base = f"/apis/{EXTERNAL if kind == 'External' else CUSTOM}/namespaces/{quote(namespace)}"
    if kind == "External":
        query = {"labelSelector": str(selector_of_expressions(selector))} if selector else {}
        go = selector_text(selector)
        return Question(
            _path(base, quote(name), query),
            f"external metric {name}({go})",
            f"unable to get external metric {namespace}/{name}/{go}: unable to fetch metrics from external metrics API",
        )
    query = {"metricLabelSelector": str(selector_of_expressions(selector))} if selector else {}
    if kind == "Pods":
        path = _path(base, f"pods/*/{quote(name)}", {"labelSelector": pods, **query})
        about = f"unable to get metric {name}: unable to fetch metrics from custom metrics API"
        return Question(path, f"pods metric {name}", about)
    thing = source["describedObject"]
    group = thing.get("apiVersion", "").rpartition("/")[0]
    resource = (plural or _guessed_plural(thing["kind"])) + (f".{group}" if group else "")
    about = (
        f"unable to get metric {name}: {thing['kind']} on {namespace} {thing['name']}"
        "/unable to fetch metrics from custom metrics API"
    )
    return Question(
        _path(base, f"{resource}/{quote(thing['name'])}/{quote(name)}", query), f"{thing['kind']} metric {name}", about
    )


def _path(base: str, rest: str, query: dict[str, str]) -> str:
    return f"{base}/{rest}" + (f"?{urlencode(query)}" if query else "")


def _guessed_plural(kind: str) -> str:
    """Return what the authors of a kind will have named its resource, in lower case."""
    singular = kind.lower()
    if singular.endswith("endpoints"):
        return singular
    if singular.endswith(("s", "x", "ch", "sh")):
        return f"{singular}es"
    if singular.endswith("y") and not singular.endswith(("ay", "ey", "iy", "oy", "uy")):
        return f"{singular[:-1]}ies"
    return f"{singular}s"


async def values_of(fetch: Fetch | None, spec: Object, question: Question) -> list[int]:
    """Return the thousandths that the other server measured. Raises MetricError."""
    kind = spec["type"]
    resource = question.path.partition("?")[0].rpartition("/")[2]
    group = (EXTERNAL if kind == "External" else CUSTOM).partition("/")[0]
    try:
        if fetch is None:
            raise MetricError(f"no server of {group} can be asked")
        items = (await fetch(question.path)).get("items") or []
    except StatusError as error:
        words = str(error.status.get("message", error))
        raise MetricError(f"{question.about}: {words} (get {resource}.{group})") from None
    except MetricError as error:
        raise MetricError(f"{question.about}: {error}") from None
    if not items:
        raise MetricError(f"{question.about.rpartition(': ')[0]}: no metrics returned from {kind.lower()} metrics API")
    return [parse_quantity(each.get("value") or "0").milli for each in items]


def measure(
    spec: Object, values: Sequence[int], current: int, pods: Sequence[Object], tolerances: Tolerances
) -> Measurement:
    """Return what a metric asks for. `pods` are those of the target.

    (`GetObjectMetricReplicas`, `GetExternalPerPodMetricReplicas`, …)
    """
    kind = spec["type"]
    target = spec[OF_OTHERS[kind]]["target"]
    if kind == "Pods":
        wanted = parse_quantity(target["averageValue"]).milli
        average = sum(values) // len(values)
        ratio = average / wanted
        replicas = current if tolerances.holds(ratio) else math.ceil(ratio * len(values))
        return Measurement(replicas, {"averageValue": _milli(average)})
    usage = sum(values)
    if target.get("averageValue") is not None:
        wanted = parse_quantity(target["averageValue"]).milli
        holds = current > 0 and tolerances.holds(usage / (wanted * current))
        replicas = current if holds else math.ceil(usage / wanted)
        return Measurement(replicas, {"averageValue": _milli(math.ceil(usage / current) if current else 0)})
    ratio = usage / parse_quantity(target["value"]).milli
    if not current:
        replicas = math.ceil(ratio)  # no Pod is ready, so the ratio is taken as it is
    elif tolerances.holds(ratio):
        replicas = current
    else:
        replicas = math.ceil(ratio * sum(is_pod_ready(each) and not is_terminating(each) for each in pods))
    return Measurement(replicas, {"value": _milli(usage)})


def status_of(spec: Object, current: Object) -> Object:
    """Return the metric as `status.currentMetrics` shows it."""
    kind = spec["type"]
    field = OF_OTHERS[kind]
    source = spec[field]
    named = {key: source[key] for key in ("metric", "describedObject") if key in source}
    return {"type": kind, field: {**named, "current": current}}


def _milli(value: int) -> str:
    return str(parse_quantity(f"{value}m"))
