"""The status of a ReplicaSet or ReplicationController. Pure.

Source: pkg/controller/replicaset/replica_set_utils.go:calculateStatus.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import labels_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready
from lastcall.kube.controllers.pods.control import seconds_until_available
from lastcall.kube.controllers.pods.owned import OwnedPods
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.workloads import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus


@dataclass(frozen=True, slots=True)
class Counts:
    """Of the active Pods, and of the terminating ones; None leaves those out (ReplicationController)."""

    active: int
    fully_labeled: int
    ready: int
    terminating: int | None


def count(owner: ReplicaSet, pods: OwnedPods, terminating: int | None) -> Counts:
    return Counts(len(pods.active), pods.labeled(_template_labels(owner)), pods.ready, terminating)


def count_each(owner: ReplicaSet, active: Sequence[Pod], terminating: int | None) -> Counts:
    """Count as `count` does, of Pods some of which have been claimed just now."""
    wanted = _template_labels(owner).items()
    labeled = sum(wanted <= labels_of(pod).items() for pod in active)
    return Counts(len(active), labeled, sum(map(is_pod_ready, active)), terminating)


def _template_labels(owner: ReplicaSet) -> dict[str, str]:
    return (owner["spec"].get("template") or {}).get("metadata", {}).get("labels") or {}


def available_of(owner: ReplicaSet, active: Iterable[Pod], ready: int, now: float) -> int:
    """Count the active Pods that are available at `now` (seconds since the epoch)."""
    min_ready = owner["spec"].get("minReadySeconds") or 0
    return sum(seconds_until_available(pod, min_ready, now) == 0.0 for pod in active) if min_ready else ready


def calculate_status(
    owner: ReplicaSet, counts: Counts, available: int, *, error: str, difference: int, stamp: str
) -> ReplicaSetStatus:
    """Return the new status.

    `error` is what creating (`difference` < 0) or deleting Pods failed with, "" when it did not. `stamp` is the time
    as RFC 3339.
    """
    old = owner.get("status") or {}
    # Of the counts, only `replicas` is written when it is 0, and `terminatingReplicas` where it is counted.
    status: ReplicaSetStatus = {"replicas": counts.active}
    if counts.fully_labeled:
        status["fullyLabeledReplicas"] = counts.fully_labeled
    if counts.ready:
        status["readyReplicas"] = counts.ready
    if available:
        status["availableReplicas"] = available
    if counts.terminating is not None:
        status["terminatingReplicas"] = counts.terminating
    if old.get("observedGeneration") is not None:
        status["observedGeneration"] = old["observedGeneration"]
    conditions = _conditions(old, error, difference, stamp)
    if conditions:
        status["conditions"] = conditions
    return status


def _conditions(old: ReplicaSetStatus, error: str, difference: int, stamp: str) -> list[ReplicaSetCondition]:
    conditions = list(old.get("conditions") or ())
    failure = get_condition(old, "ReplicaFailure")
    if error and failure is None:
        reason = "FailedCreate" if difference < 0 else "FailedDelete"
        failed: ReplicaSetCondition = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": stamp,
            "reason": reason,
            "message": error,
        }
        return [*conditions, failed]
    if not error and failure is not None:
        return [each for each in conditions if each.get("type") != "ReplicaFailure"]
    return conditions
