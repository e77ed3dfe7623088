"""How many replicas a metric asks for. Pure; amounts are thousandths, of a core or a byte.

Source: pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go.
"""

# check: plain objects because its Pods and metrics do not have their types yet
# check: pure

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from lastcall.kube.api.meta import Object, is_terminating, name_of, namespace_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.text.times import parse_rfc3339

CPU_INITIALIZATION = timedelta(minutes=5)
"""--horizontal-pod-autoscaler-cpu-initialization-period"""
INITIAL_READINESS_DELAY = timedelta(seconds=30)
"""--horizontal-pod-autoscaler-initial-readiness-delay"""
TOLERANCE = 0.1
"""--horizontal-pod-autoscaler-tolerance"""


class MetricError(Exception):
    """Why there is no answer, in Kubernetes's words."""


class Measured(NamedTuple):
    """What a Pod (or one container of it) used."""

    value: int
    at: datetime
    window: timedelta


class Tolerances(NamedTuple):
    """How far from the target is near enough, on the way down and up."""

    down: float = TOLERANCE
    up: float = TOLERANCE

    def holds(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Groups(NamedTuple):
    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


class Wanted(NamedTuple):
    """`utilization` in percent of the requests, None where the target is a value; `average` of the Pods measured."""

    replicas: int
    utilization: int | None
    average: int


def groups_of(pods: Sequence[Object], measured: Mapping[str, Measured], resource: str, now: datetime) -> Groups:
    """Sort the Pods into ready, unready, missing (without metrics) and ignored ones. (`groupPods`)"""
    ready = 0
    unready: set[str] = set()
    missing: set[str] = set()
    ignored: set[str] = set()
    for pod in pods:
        name, status = name_of(pod), pod.get("status") or {}
        if is_terminating(pod) or status.get("phase") == "Failed":
            ignored.add(name)
        elif status.get("phase") == "Pending":
            unready.add(name)
        elif name not in measured:
            missing.add(name)
        elif resource == "cpu" and _is_warming_up(status, measured[name], now):
            unready.add(name)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_warming_up(status: Object, measured: Measured, now: datetime) -> bool:
    condition = get_condition(status, "Ready")
    started = status.get("startTime")
    if condition is None or not started:
        return True
    start, since = parse_rfc3339(started), parse_rfc3339(condition.get("lastTransitionTime") or started)
    if start + CPU_INITIALIZATION > now:
        return condition.get("status") == "False" or measured.at < since + measured.window
    return condition.get("status") == "False" and start + INITIAL_READINESS_DELAY > since


def requests_of(pods: Sequence[Object], resource: str, container: str = "") -> dict[str, int]:
    """Return the requests by Pod; of one container when it is named. Raises MetricError. (`calculatePodRequests`)"""
    requests = {}
    for pod in pods:
        total = 0
        sidecars = [each for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"]
        for each in [*pod["spec"].get("containers", ()), *sidecars]:
            if container and each["name"] != container:
                continue
            asked = ((each.get("resources") or {}).get("requests") or {}).get(resource)
            if asked is None:
                raise MetricError(f"missing request for {resource} in container {each['name']} of Pod {name_of(pod)}")
            total += parse_quantity(asked).milli
        requests[name_of(pod)] = total
    return requests


def by_utilization(
    current: int,
    target: int,
    pods: Sequence[Object],
    measured: Mapping[str, Measured],
    resource: str,
    container: str,
    now: datetime,
    tolerances: Tolerances,
) -> Wanted:
    """Compute the replicas for a `target` in percent of what Pods request. Raises MetricError.
    (`GetResourceReplicas`)"""
    groups = _checked(pods, measured, resource, now)
    requests = requests_of(pods, resource, container)
    values = _values(measured, groups)

    def ratio(of: Mapping[str, int]) -> tuple[float, int, int]:
        known = {name: value for name, value in of.items() if name in requests}
        asked = sum(requests[name] for name in known)
        if not asked:
            raise MetricError("no metrics returned matched known pods")
        utilization = sum(known.values()) * 100 // asked
        return utilization / target, utilization, sum(known.values()) // len(known)

    first, utilization, average = ratio(values)
    fallback = {name: requests.get(name, 0) * max(100, target) // 100 for name in groups.missing}
    replicas = _replicas(current, first, groups, values, fallback, lambda of: ratio(of)[0], tolerances)
    return Wanted(replicas, utilization, average)


def by_value(
    current: int,
    target: int,
    pods: Sequence[Object],
    measured: Mapping[str, Measured],
    resource: str,
    now: datetime,
    tolerances: Tolerances,
) -> Wanted:
    """Compute the replicas for a `target` that a Pod uses on average. Raises MetricError. (`GetRawResourceReplicas`)"""
    groups = _checked(pods, measured, resource, now)
    values = _values(measured, groups)

    def ratio(of: Mapping[str, int]) -> float:
        return (sum(of.values()) // len(of)) / target

    average = sum(values.values()) // len(values)
    fallback = dict.fromkeys(groups.missing, target)
    replicas = _replicas(current, ratio(values), groups, values, fallback, ratio, tolerances)
    return Wanted(replicas, None, average)


def _checked(pods: Sequence[Object], measured: Mapping[str, Measured], resource: str, now: datetime) -> Groups:
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    return groups_of(pods, measured, resource, now)


def _values(measured: Mapping[str, Measured], groups: Groups) -> dict[str, int]:
    left_out = groups.unready | groups.ignored
    values = {name: each.value for name, each in measured.items() if name not in left_out}
    if not values:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    return values


def _replicas(
    current: int,
    first: float,
    groups: Groups,
    values: Mapping[str, int],
    fallback: Mapping[str, int],
    ratio: Callable[[Mapping[str, int]], float],
    tolerances: Tolerances,
) -> int:
    """Pods of which nothing is known count against a change: as much as asked for on the way down, nothing on the way
    up."""
    rebalance = bool(groups.unready) and first > 1.0
    if not rebalance and not groups.missing:
        return current if tolerances.holds(first) else math.ceil(first * groups.ready)
    whole = dict(values)
    if first < 1.0:
        whole.update(fallback)
    elif first > 1.0:
        whole.update(dict.fromkeys(groups.missing, 0))
    if rebalance:
        whole.update(dict.fromkeys(groups.unready, 0))
    second = ratio(whole)
    if tolerances.holds(second) or (first < 1.0 < second) or (second < 1.0 < first):
        return current
    replicas = math.ceil(second * len(whole))
    if (second < 1.0 and replicas > current) or (second > 1.0 and replicas < current):
        return current
    return replicas


def measured_of(items: Collection[Object], resource: str, container: str = "") -> dict[str, Measured]:
    """Read PodMetrics, by Pod. Raises MetricError. (metrics/client.go:getPodMetrics, getContainerMetrics)"""
    found = {}
    for each in items:
        containers = each.get("containers") or ()
        name = name_of(each)
        if container:
            containers = [one for one in containers if one.get("name") == container]
            if not containers:
                where = f"{namespace_of(each)}/{name}"
                raise MetricError(f"container {container} not present in metrics for pod {where}")
        amounts = [(one.get("usage") or {}).get(resource) for one in containers]
        if not containers or any(amount is None for amount in amounts):
            continue
        total = sum(parse_quantity(amount).milli for amount in amounts if amount is not None)
        found[name] = Measured(total, parse_rfc3339(each["timestamp"]), window_of(each.get("window") or "0s"))
    return found


def window_of(text: str) -> timedelta:
    """Parse a metav1.Duration: `15.013s`, `1m5s`."""
    minutes, m, seconds = text.rpartition("m") if not text.endswith("ms") else ("", "", text)
    try:
        thousandths = seconds.endswith("ms")
        rest = float(seconds.removesuffix("ms")) / 1000 if thousandths else float(seconds.removesuffix("s") or 0)
        return timedelta(seconds=rest + 60 * float(minutes or 0) * bool(m))
    except ValueError:
        return timedelta()
