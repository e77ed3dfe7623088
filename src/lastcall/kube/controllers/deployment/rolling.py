"""The arithmetic of a rolling update: how far the new ReplicaSet may grow and the old ones may shrink. Pure.

Sources: pkg/controller/deployment/util/deployment_util.go (ResolveFenceposts, NewRSNewReplicas, MaxUnavailable),
pkg/controller/deployment/rolling.go. What counts are specs and available Pods: terminating Pods are invisible here, so
that for a while more Pods exist than replicas and surge together.
"""

# check: pure

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.text.numbers import scaled
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.workloads import Deployment, ReplicaSet, RollingUpdateDeployment


Count = Literal["replicas", "readyReplicas", "availableReplicas", "terminatingReplicas"]
"""A number that the status of a Deployment and of a ReplicaSet has."""


@dataclass(frozen=True, slots=True)
class Resize:
    """A ReplicaSet and how many Pods its spec is to ask for."""

    replica_set: ReplicaSet
    replicas: int


def replicas_of(obj: Deployment | ReplicaSet | None) -> int:
    """Return `spec.replicas`; 0 for no object."""
    return int((obj["spec"].get("replicas") or 0) if obj is not None else 0)


def status_count(obj: Deployment | ReplicaSet | None, key: Count) -> int:
    return int(((obj.get("status") or {}).get(key) or 0) if obj is not None else 0)


def fenceposts(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """Return (surge, unavailable) as numbers. Both 0 would stop everything: one Pod may be unavailable then."""
    most, least = scaled(surge, replicas, up=True), scaled(unavailable, replicas, up=False)
    return (most, least) if most or least else (0, 1)


def _rolling(deployment: Deployment) -> RollingUpdateDeployment | None:
    strategy = deployment["spec"].get("strategy") or {}
    return (strategy.get("rollingUpdate") or {}) if strategy.get("type") == "RollingUpdate" else None


def max_surge(deployment: Deployment) -> int:
    """Return how many Pods an update may add. (`MaxSurge`)"""
    rolling = _rolling(deployment)
    if rolling is None:
        return 0
    return fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), replicas_of(deployment))[0]


def max_unavailable(deployment: Deployment) -> int:
    """Return how many Pods may be unavailable during an update. (`MaxUnavailable`)"""
    rolling, replicas = _rolling(deployment), replicas_of(deployment)
    if rolling is None or replicas == 0:
        return 0
    return min(fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), replicas)[1], replicas)


def new_replicas(deployment: Deployment, replica_sets: Sequence[ReplicaSet], new: ReplicaSet) -> int:
    """Return how many Pods the new ReplicaSet may have now. `replica_sets` are all, with `new`. (`NewRSNewReplicas`)"""
    if _rolling(deployment) is None:
        return replicas_of(deployment)
    room = replicas_of(deployment) + max_surge(deployment) - sum(map(replicas_of, replica_sets))
    if room <= 0:
        return replicas_of(new)
    return replicas_of(new) + min(room, replicas_of(deployment) - replicas_of(new))


def shrink_old(deployment: Deployment, old: Sequence[ReplicaSet], new: ReplicaSet) -> list[Resize]:
    """Return the next sizes of old ReplicaSets: first without Pods that do not work, then as availability allows.

    Source: rolling.go:reconcileOldReplicaSets, cleanupUnhealthyReplicas, scaleDownOldReplicaSetsForRollingUpdate.
    """
    total = sum(map(replicas_of, old))
    if total == 0:
        return []
    least_available = replicas_of(deployment) - max_unavailable(deployment)
    new_unavailable = replicas_of(new) - status_count(new, "availableReplicas")
    may_go = total + replicas_of(new) - least_available - new_unavailable
    if may_go <= 0:
        return []
    ordered = sorted(old, key=_age)
    sizes = [replicas_of(each) for each in ordered]
    steps: list[Resize] = []
    for index, each in enumerate(ordered):
        unhealthy = sizes[index] - status_count(each, "availableReplicas")
        goes = min(may_go, max(0, unhealthy)) if sizes[index] else 0
        may_go -= goes
        sizes[index] -= goes
        steps += [Resize(each, sizes[index])] if goes else []
    spare = sum(status_count(each, "availableReplicas") for each in [*ordered, new]) - least_available
    for index, each in enumerate(ordered):
        goes = min(sizes[index], max(0, spare))
        spare -= goes
        sizes[index] -= goes
        steps += [Resize(each, sizes[index])] if goes else []
    return steps


def _age(replica_set: ReplicaSet) -> tuple[str, str]:
    """(`ReplicaSetsByCreationTimestamp`)"""
    return replica_set["metadata"].get("creationTimestamp") or "", replica_set["metadata"]["name"]


def by_age(replica_sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Sort oldest first; names decide within a second."""
    return sorted(replica_sets, key=_age)
