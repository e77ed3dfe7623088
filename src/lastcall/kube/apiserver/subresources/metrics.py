"""NodeMetrics and PodMetrics (metrics.k8s.io) of two samples of what kubelets count. Pure.

Source: metrics-server pkg/storage/{node,pod,types}.go, pkg/api/{node,pod}.go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import Object, labels_of, name_of, namespace_of
from lastcall.kube.api.quantity import Quantity
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.world.clock import rfc3339
from lastcall.world.dataclass import dataclass

SHORTEST_WINDOW = timedelta(milliseconds=500)
"""Between two samples: what was used in less says nothing about a rate."""
LONGEST_WINDOW = timedelta(seconds=60)


class Point(NamedTuple):
    """CPU since the start in nanoseconds, memory in bytes."""

    at: datetime
    cpu: int
    working_set: int


@dataclass(slots=True)
class Sample:
    """What was counted once: by node, and by (namespace, Pod, uid) and container."""

    nodes: dict[str, Point] = field(default_factory=dict)
    pods: dict[tuple[str, str, str], dict[str, Point]] = field(default_factory=dict)


def read_summary(sample: Sample, node: str, summary: Any) -> None:
    """Add a kubelet's `/stats/summary`; what is not as it should be is left out."""
    if not isinstance(summary, dict):
        return
    if (point := _point(summary.get("node"))) is not None:
        sample.nodes[node] = point
    for pod in summary.get("pods") or ():
        reference = pod.get("podRef") or {}
        points = {each["name"]: point for each in pod.get("containers") or () if (point := _point(each)) is not None}
        if points:
            key = (reference.get("namespace", ""), reference.get("name", ""), reference.get("uid", ""))
            sample.pods[key] = points


def _point(usage: Any) -> Point | None:
    try:
        at = parse_rfc3339(usage["cpu"]["time"])
        return Point(at, int(usage["cpu"]["usageCoreNanoSeconds"]), int(usage["memory"]["workingSetBytes"]))
    except (KeyError, TypeError, ValueError):
        return None


def rate(before: Point | None, after: Point | None) -> int | None:
    """Return billionths of a processor between two points; None if they are too close, or the count began anew."""
    if before is None or after is None or after.cpu < before.cpu:
        return None
    passed = after.at - before.at
    if passed < SHORTEST_WINDOW:
        return None
    return round((after.cpu - before.cpu) / passed.total_seconds())


def node_metrics(resource: Resource, node: Object, before: Sample, after: Sample) -> Object | None:
    """Return the NodeMetrics, None while nothing is known."""
    name = name_of(node)
    first, second = before.nodes.get(name), after.nodes.get(name)
    cores = rate(first, second)
    if cores is None or first is None or second is None:
        return None
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": _meta(node, second.at),
        "timestamp": rfc3339(second.at),
        "window": duration(second.at - first.at),
        "usage": _usage(cores, second.working_set),
    }


def pod_metrics(resource: Resource, pod: Object, before: Sample, after: Sample) -> Object | None:
    """Return the PodMetrics, None while a running container is not known (metrics-server omits such a Pod as well)."""
    key = (namespace_of(pod), name_of(pod), pod["metadata"].get("uid", ""))
    first, second = before.pods.get(key, {}), after.pods.get(key, {})
    containers, windows = [], []
    for name, point in second.items():
        earlier = first.get(name)
        cores = rate(earlier, point)
        if cores is None or earlier is None:
            return None
        containers.append({"name": name, "usage": _usage(cores, point.working_set)})
        windows.append((point.at, point.at - earlier.at))
    if not containers:
        return None
    at, window = max(windows)
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {**_meta(pod, at), "namespace": namespace_of(pod)},
        "timestamp": rfc3339(at),
        "window": duration(window),
        "containers": sorted(containers, key=lambda each: str(each["name"])),
    }


def _meta(obj: Object, at: datetime) -> Object:
    meta: Object = {"name": name_of(obj), "creationTimestamp": rfc3339(at)}
    return {**meta, "labels": dict(labels)} if (labels := labels_of(obj)) else meta


def _usage(cores: int, bytes_: int) -> Mapping[str, str]:
    return {"cpu": str(Quantity(Fraction(cores, 10**9))), "memory": str(Quantity(Fraction(bytes_), "BinarySI"))}


def duration(window: timedelta) -> str:
    """Format as Go prints it."""
    seconds = round(window.total_seconds(), 3)
    minutes, rest = divmod(seconds, 60)
    shown = f"{round(rest, 3):g}s"
    return f"{minutes:.0f}m{shown}" if minutes else shown


def not_found(resource: Resource, namespace: str, name: str) -> StatusError:
    kind = "podmetrics" if resource.namespaced else "nodemetrics"
    shown = f"{namespace}/{name}" if namespace else name
    message = f'{kind}.metrics.k8s.io "{shown}" not found'
    return status_failure(404, "NotFound", message, {"name": shown, "group": "metrics.k8s.io", "kind": kind})


def metrics_list(resource: Resource, items: Sequence[Object]) -> Object:
    return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": {}, "items": list(items)}
