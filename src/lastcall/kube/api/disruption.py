"""What the API server and the disruption controller both say about PodDisruptionBudgets and disrupted Pods.

Sources: pkg/controller/disruption (getExpectedPodCount), component-helpers apps/poddisruptionbudget
(UpdateDisruptionAllowedCondition), apimachinery pkg/api/meta/conditions.go:SetStatusCondition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import AnyObject
from lastcall.kube.api.pods.spec import DISRUPTION_TARGET
from lastcall.kube.api.selectors import NOTHING, LabelSelector, selector_of_expressions
from lastcall.kube.api.text.numbers import scaled
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import Condition
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.kube.api.types.policy import PodDisruptionBudgetStatus

DISRUPTION_ALLOWED = "DisruptionAllowed"
SUFFICIENT_PODS = "SufficientPods"
INSUFFICIENT_PODS = "InsufficientPods"
SYNC_FAILED = "SyncFailed"


def budget_selector(budget: AnyObject) -> LabelSelector:
    """Return which Pods a budget protects: all for `{}`, none without a selector or with one that cannot be read."""
    try:
        return selector_of_expressions((budget.get("spec") or {}).get("selector"))
    except ValueError:
        return NOTHING


@dataclass(frozen=True, slots=True)
class Expected:
    """How many Pods there should be, and how many of them healthy."""

    pods: int
    healthy: int


def expected_pods(budget: AnyObject, selected: int, scale: int) -> Expected:
    """Return (expected, desired healthy) Pods. `selected` exist, their owners ask for `scale`. Percentages are rounded
    up. (`getExpectedPodCount`)"""
    spec = budget.get("spec") or {}
    unavailable, available = spec.get("maxUnavailable"), spec.get("minAvailable")
    if unavailable is not None:
        return Expected(scale, max(0, scale - scaled(unavailable, scale, up=True)))
    if isinstance(available, str):
        return Expected(scale, scaled(available, scale, up=True))
    if available is not None:
        return Expected(selected, int(available))
    return Expected(0, 0)


def disruption_target(reason: str, message: str) -> PodCondition:
    """Return the condition without its time, `set_condition` of `lastcall.kube.api.pods.spec` adds that."""
    return {"type": DISRUPTION_TARGET, "status": "True", "lastProbeTime": None, "reason": reason, "message": message}


def set_status_condition(status: PodDisruptionBudgetStatus, condition: Condition, now: str) -> None:
    """Put a `metav1.Condition` into `status.conditions`, in place. `now` (RFC 3339) counts when its status moved."""
    conditions = status.setdefault("conditions", [])
    old = next((each for each in conditions if each.get("type") == condition.get("type")), None)
    if old is None:
        conditions.append({**condition, "lastTransitionTime": now})
        return
    moved = old.get("status") != condition.get("status")
    new: Condition = {**condition, "lastTransitionTime": now if moved else old.get("lastTransitionTime")}
    conditions[conditions.index(old)] = new


def update_disruption_allowed_condition(status: PodDisruptionBudgetStatus, now: str) -> None:
    """Make the condition say what `status.disruptionsAllowed` says (changes `status`)."""
    allowed = status["disruptionsAllowed"] > 0
    condition: Condition = {
        "type": DISRUPTION_ALLOWED,
        "status": "True" if allowed else "False",
        "reason": SUFFICIENT_PODS if allowed else INSUFFICIENT_PODS,
        "message": "",
    }
    if status.get("observedGeneration"):
        condition["observedGeneration"] = status["observedGeneration"]
    set_status_condition(status, condition, now)
