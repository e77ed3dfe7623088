"""Scaling a Deployment in the middle of a rollout: every ReplicaSet gets its share. Pure.

Source: pkg/controller/deployment/sync.go:scale, util/deployment_util.go:GetReplicaSetProportion.
"""

# check: pure

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.controllers.deployment.rolling import Resize, by_age, max_surge, replicas_of, status_count

if TYPE_CHECKING:
    from lastcall.kube.api.types.workloads import Deployment, ReplicaSet

DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"


def number_annotation(obj: Deployment | ReplicaSet, key: str) -> int | None:
    return int_of((obj["metadata"].get("annotations") or {}).get(key))


def is_scaling_event(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> bool:
    """Return whether a ReplicaSet with Pods was sized for another number of replicas. (`isScalingEvent`)"""
    for each in replica_sets:
        if replicas_of(each) > 0:
            desired = number_annotation(each, DESIRED_REPLICAS)
            if desired is not None and desired != replicas_of(deployment):
                return True
    return False


def scale(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Resize]:
    """Return the sizes after a change of the replicas. It has unchanged ones too: their annotations change."""
    wanted = replicas_of(deployment)
    active = [each for each in [*old, *([new] if new is not None else [])] if replicas_of(each) > 0]
    if len(active) <= 1:
        only = active[0] if active else new if new is not None else (by_age(old)[-1] if old else None)
        return [] if only is None or replicas_of(only) == wanted else [Resize(only, wanted)]
    if new is not None and _is_saturated(deployment, new):
        return [Resize(each, 0) for each in by_age([rs for rs in old if replicas_of(rs) > 0])]
    if (deployment["spec"].get("strategy") or {}).get("type") != "RollingUpdate":
        return []
    allowed = wanted + max_surge(deployment) if wanted > 0 else 0
    to_add = allowed - sum(map(replicas_of, active))
    newest_first = by_age(active)[::-1]
    # The largest gets what rounding leaves over; of equals the newer grows and the older shrinks.
    ordered = sorted(newest_first if to_add > 0 else newest_first[::-1], key=lambda each: -replicas_of(each))
    added = 0
    sizes: list[int] = []
    for each in ordered:
        share = _proportion(deployment, each, to_add, added) if to_add else 0
        added += share
        sizes.append(replicas_of(each) + share)
    if to_add and sizes:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return [Resize(each, size) for each, size in zip(ordered, sizes, strict=True)]


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    """(`IsSaturated`)"""
    wanted = replicas_of(deployment)
    desired = number_annotation(new, DESIRED_REPLICAS)
    return replicas_of(new) == desired == status_count(new, "availableReplicas") == wanted


def _proportion(deployment: Deployment, each: ReplicaSet, to_add: int, added: int) -> int:
    allowed = to_add - added
    if replicas_of(each) == 0 or allowed == 0:
        return 0
    share = _fraction(deployment, each)
    return min(share, allowed) if to_add > 0 else max(share, allowed)


def _fraction(deployment: Deployment, each: ReplicaSet) -> int:
    """(`getReplicaSetFraction`)"""
    if replicas_of(deployment) == 0:
        return -replicas_of(each)
    before = number_annotation(each, MAX_REPLICAS) or status_count(deployment, "replicas")
    if before == 0:
        return 0
    size = replicas_of(each) * (replicas_of(deployment) + max_surge(deployment)) / before
    return math.floor(size + 0.5) - replicas_of(each)
