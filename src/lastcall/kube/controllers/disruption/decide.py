"""What a PodDisruptionBudget allows, as arithmetic on the Pods it selects. Pure.

Source: pkg/controller/disruption/disruption.go (buildDisruptedPodMap, countHealthyPods,
updatePdbStatus).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lastcall.kube.api.disruption import (
    DISRUPTION_ALLOWED,
    SYNC_FAILED,
    Expected,
    set_status_condition,
    update_disruption_allowed_condition,
)
from lastcall.kube.api.meta import copy_object, is_terminating, name_of
from lastcall.kube.api.pods.spec import DISRUPTION_TARGET, get_condition, is_pod_ready, is_pod_terminal
from lastcall.kube.api.text.times import later, parse_rfc3339
from lastcall.world.clock import rfc3339
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import Condition
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.policy import PodDisruptionBudget, PodDisruptionBudgetStatus

DELETION_TIMEOUT = timedelta(minutes=2)
"""How long an evicted Pod that is not deleted after all counts as gone."""
STALE_TIMEOUT = timedelta(minutes=2)
"""How long a Pod that is not deleted stays a DisruptionTarget."""


def needs_scale(budget: PodDisruptionBudget) -> bool:
    """Return whether the arithmetic uses what owners ask for and not the Pods there are."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


@dataclass(frozen=True, slots=True)
class Disrupted:
    """`pods`: name → time, of evicted Pods whose deletion is still awaited. `not_deleted`: the wait for them timed out.
    `recheck` is when the next one will have been."""

    pods: Mapping[str, str]
    not_deleted: tuple[Pod, ...]
    recheck: datetime | None


def disrupted_pods(budget: PodDisruptionBudget, pods: Sequence[Pod], now: datetime) -> Disrupted:
    """Return the evicted Pods whose deletion is awaited or late (`buildDisruptedPodMap`). `now` is aware UTC time."""
    known = (budget.get("status") or {}).get("disruptedPods") or {}
    waiting: dict[str, str] = {}
    late: list[Pod] = []
    recheck: datetime | None = None
    for pod in pods:
        since = known.get(name_of(pod))
        if since is None or is_terminating(pod):
            continue
        due = later(parse_rfc3339(since), DELETION_TIMEOUT.total_seconds())
        if due <= now:
            late.append(pod)
            continue
        waiting[name_of(pod)] = since
        recheck = due if recheck is None else min(recheck, due)
    return Disrupted(waiting, tuple(late), recheck)


def count_healthy(pods: Sequence[Pod], disrupted: Mapping[str, str]) -> int:
    """Count Pods that are Ready, not being deleted, and not about to be. (`countHealthyPods`)"""
    return sum(not is_terminating(pod) and name_of(pod) not in disrupted and is_pod_ready(pod) for pod in pods)


def next_status(
    budget: PodDisruptionBudget, expected: Expected, healthy: int, disrupted: Mapping[str, str], now: datetime
) -> PodDisruptionBudget | None:
    """Return the budget with its new status; None when nothing changes. (`updatePdbStatus`)

    Without Pods nothing is allowed, so that the first ones are safe before they have been counted.
    """
    allowed = healthy - expected.healthy
    old = budget.get("status") or {}
    status: PodDisruptionBudgetStatus = {
        "observedGeneration": budget["metadata"].get("generation", 0),
        "disruptionsAllowed": allowed if expected.pods > 0 and allowed > 0 else 0,
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "expectedPods": expected.pods,
        "conditions": [each.copy() for each in old.get("conditions") or ()],
    }
    if disrupted:
        status["disruptedPods"] = dict(disrupted)
    update_disruption_allowed_condition(status, rfc3339(now))
    return _with_status(budget, status)


def failed_status(budget: PodDisruptionBudget, message: str, now: datetime) -> PodDisruptionBudget | None:
    """Return the budget that allows nothing after an error; None when it says so already. (`failSafe`)"""
    status = copy_object(budget.get("status") or {})
    status["disruptionsAllowed"] = 0
    condition: Condition = {"type": DISRUPTION_ALLOWED, "status": "False", "reason": SYNC_FAILED, "message": message}
    if status.get("observedGeneration"):
        condition["observedGeneration"] = status["observedGeneration"]
    set_status_condition(status, condition, rfc3339(now))
    return _with_status(budget, status)


def _with_status(budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus) -> PodDisruptionBudget | None:
    if status == budget.get("status"):
        return None
    return {**copy_object(budget), "status": status}


def stale_for(pod: Pod, now: datetime) -> float | None:
    """Return the seconds until a DisruptionTarget without a deletion expires (0.0: now); None for any other Pod.

    What the kubelet said may take any time. (`nonTerminatingPodHasStaleDisruptionCondition`)
    """
    condition = get_condition(pod.get("status") or {}, DISRUPTION_TARGET)
    if condition is None or condition.get("status") != "True" or condition.get("reason") == "TerminationByKubelet":
        return None
    if is_terminating(pod) or is_pod_terminal(pod):
        return None
    since = condition.get("lastTransitionTime")
    age = now - parse_rfc3339(since) if since else STALE_TIMEOUT
    return max(0.0, (STALE_TIMEOUT - age).total_seconds())
