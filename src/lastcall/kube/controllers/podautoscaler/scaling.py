"""How far replicas may move now: bounds, rates, stabilization. Pure; times are seconds of a monotonic clock.

Source: pkg/controller/podautoscaler/horizontal.go, pkg/apis/autoscaling/v2/defaults.go (GenerateHPAScaleUpRules).
"""

# check: plain objects because the behavior and its policies do not have their types yet
# check: pure

import math
from dataclasses import field
from typing import NamedTuple

from lastcall.kube.api.meta import Object
from lastcall.world.dataclass import dataclass

DOWNSCALE_STABILIZATION = 300.0
"""--horizontal-pod-autoscaler-downscale-stabilization"""
_UP = ({"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15})
_DOWN = ({"type": "Percent", "value": 100, "periodSeconds": 15},)

LOWER = "recent recommendations were lower than current one, applying the lowest recent recommendation"
HIGHER = "recent recommendations were higher than current one, applying the highest recent recommendation"


class Said(NamedTuple):
    """Of a condition."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(slots=True)
class Memory:
    """What was recommended and done lately: (when, replicas), newest last."""

    recommended: list[tuple[float, int]] = field(default_factory=list)
    ups: list[tuple[float, int]] = field(default_factory=list)
    downs: list[tuple[float, int]] = field(default_factory=list)


class Bounded(NamedTuple):
    replicas: int
    said: tuple[Said, ...]


def bounded(
    memory: Memory, behavior: Object | None, current: int, wanted: int, least: int, most: int, now: float
) -> Bounded:
    """Limit `wanted` to what is allowed, and remember the recommendation."""
    if behavior is None:
        window = DOWNSCALE_STABILIZATION
        recent = [replicas for at, replicas in memory.recommended if at >= now - window]
        stable, reason, why = max([wanted, *recent]), "ScaleDownStabilized", HIGHER
    else:
        up_window = _window(behavior, "scaleUp", 0.0)
        down_window = _window(behavior, "scaleDown", DOWNSCALE_STABILIZATION)
        up = wanted >= current
        since = now - (up_window if up else down_window)
        recent = [replicas for at, replicas in memory.recommended if at > since]
        stable = (min if up else max)([wanted, *recent])
        reason, why = ("ScaleUpStabilized", LOWER) if up else ("ScaleDownStabilized", HIGHER)
        window = max(up_window, down_window)
    memory.recommended = [each for each in memory.recommended if each[0] >= now - window] + [(now, wanted)]
    if stable != wanted:
        able = Said("AbleToScale", "True", reason, why)
    else:
        able = Said("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
    replicas, reason, why = (
        _with_rules(current, stable, least, most)
        if behavior is None
        else _with_rates(memory, behavior, current, stable, least, most, now)
    )
    limited = "False" if replicas == stable else "True"
    return Bounded(replicas, (able, Said("ScalingLimited", limited, reason, why)))


SCALED_TO_ZERO = "ScaledToZero"
"""The condition by which a target that the autoscaler took to zero differs from one that somebody else did."""
_TO_ZERO = ("True", "ScaledToZero", "the HPA controller scaled the workload to zero")
_NOT_TO_ZERO = ("False", "NotScaledToZero", "the HPA controller did not scale the workload to zero")


def stays_at_zero(least: int, *, scaled: bool, measurable: bool) -> bool:
    """Return True for a target of no replicas that is left alone: nobody took it there but its owner.

    `scaled`: the condition ScaledToZero is True, and the gate HPAScaleToZero is on. `measurable`: there are metrics
    that need no Pod. (`shouldComputeMetricsForZeroReplicas`)
    """
    return not (scaled and (measurable or least > 0))


def said_of_zero(current: int, wanted: int, least: int, *, measurable: bool) -> Said:
    """Return the condition that a change of the size leaves, with the gate HPAScaleToZero."""
    to_zero = current > 0 and wanted == 0 and least == 0 and measurable
    return Said(SCALED_TO_ZERO, *(_TO_ZERO if to_zero else _NOT_TO_ZERO))


_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FAST = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_DOWN = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


def _with_rules(current: int, wanted: int, least: int, most: int) -> tuple[int, str, str]:
    """(`convertDesiredReplicasWithRules`) At most twice as many at once, or 4."""
    limit = max(2 * current, 4)
    if wanted < least:
        return (least, *_TOO_FEW)
    if wanted > min(most, limit):
        return (min(most, limit), *(_TOO_FAST if most > limit else _TOO_MANY))
    return (wanted, *_WITHIN)


def _with_rates(
    memory: Memory, behavior: Object, current: int, wanted: int, least: int, most: int, now: float
) -> tuple[int, str, str]:
    """(`convertDesiredReplicasWithBehaviorRate`)"""
    if wanted > current:
        limit = max(current, _up_limit(memory, behavior, current, now))
        if wanted > min(most, limit):
            return (min(most, limit), *(_TOO_FAST if most > limit else _TOO_MANY))
    elif wanted < current:
        limit = min(current, _down_limit(memory, behavior, current, now))
        if wanted < max(least, limit):
            return (max(least, limit), *(_TOO_FAST_DOWN if least < limit else _TOO_FEW))
    return (wanted, *_WITHIN)


def _up_limit(memory: Memory, behavior: Object, current: int, now: float) -> int:
    select, policies = _policies(behavior, "scaleUp")
    if select == "Disabled":
        return current
    proposed: list[int] = []
    for policy in policies:
        start = current - _changed(memory.ups, policy, now)
        by_pods = policy["type"] == "Pods"
        proposed.append(start + policy["value"] if by_pods else math.ceil(start * (100 + policy["value"]) / 100))
    return min(proposed) if select == "Min" else max(proposed)


def _down_limit(memory: Memory, behavior: Object, current: int, now: float) -> int:
    select, policies = _policies(behavior, "scaleDown")
    if select == "Disabled":
        return current
    proposed: list[int] = []
    for policy in policies:
        start = current + _changed(memory.downs, policy, now)
        by_pods = policy["type"] == "Pods"
        proposed.append(start - policy["value"] if by_pods else start * (100 - policy["value"]) // 100)
    return max(proposed) if select == "Min" else min(proposed)


def _changed(events: list[tuple[float, int]], policy: Object, now: float) -> int:
    return sum(change for at, change in events if at > now - policy["periodSeconds"])


def _rules(behavior: Object, direction: str) -> Object:
    rules: Object = behavior.get(direction) or {}
    return rules


def _policies(behavior: Object, direction: str) -> tuple[str, list[Object]]:
    rules = _rules(behavior, direction)
    default = _UP if direction == "scaleUp" else _DOWN
    return rules.get("selectPolicy") or "Max", list(rules.get("policies") or default)


def _window(behavior: Object, direction: str, default: float) -> float:
    seconds = _rules(behavior, direction).get("stabilizationWindowSeconds")
    return default if seconds is None else float(seconds)


def remember(memory: Memory, behavior: Object | None, before: int, after: int, now: float) -> None:
    """Record that replicas were changed. (`storeScaleEvent`)"""
    if behavior is None:
        return
    up = after > before
    _, policies = _policies(behavior, "scaleUp" if up else "scaleDown")
    oldest = now - max(each["periodSeconds"] for each in policies)
    events = memory.ups if up else memory.downs
    events[:] = [each for each in events if each[0] >= oldest] + [(now, abs(after - before))]


def with_conditions(
    conditions: list[Object], said: tuple[Said, ...], moment: str, generation: int | None = None
) -> list[Object]:
    """Return the conditions with what is said now. The time of a condition is that of its status.

    `generation` is that of the autoscaler, None before 1.37. (`setConditionInList`)
    """
    new = [dict(each) for each in conditions]
    for each in said:
        found = next((one for one in new if one.get("type") == each.type), None)
        if found is None:
            new.append(found := {"type": each.type})
        if found.get("status") != each.status:
            found["lastTransitionTime"] = moment
        found.update(status=each.status, reason=each.reason, message=each.message)
        if generation is not None:
            found["observedGeneration"] = generation
    return new
