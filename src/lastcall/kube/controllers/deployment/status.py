"""The status of a Deployment and what its conditions say. Pure.

Sources: pkg/controller/deployment/sync.go:calculateStatus, progress.go:syncRolloutStatus,
util/deployment_util.go (SetDeploymentCondition, DeploymentComplete, DeploymentProgressing, DeploymentTimedOut).
"""

# check: pure

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from lastcall.kube.api.meta import name_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.text.times import later, parse_rfc3339
from lastcall.kube.controllers.deployment.rolling import max_unavailable, replicas_of, status_count
from lastcall.world.clock import rfc3339

if TYPE_CHECKING:
    from lastcall.kube.api.types.workloads import (
        Deployment,
        DeploymentCondition,
        DeploymentStatus,
        ReplicaSet,
        ReplicaSetCondition,
    )

NEW_REPLICA_SET_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
NO_DEADLINE = 2**31 - 1
_Counted = Literal["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]


def has_progress_deadline(deployment: Deployment) -> bool:
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    return deadline is not None and deadline != NO_DEADLINE


def condition(kind: str, status: str, reason: str, message: str, moment: datetime) -> DeploymentCondition:
    stamp = rfc3339(moment)
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }


def condition_of(status: DeploymentStatus, kind: str) -> DeploymentCondition | None:
    return cast("DeploymentCondition | None", get_condition(status, kind))


def set_condition(status: DeploymentStatus, new: DeploymentCondition) -> None:
    """Set a condition. The list is replaced, not changed, because it may be shared.

    The same status and reason change nothing; a changed condition moves to the end.
    """
    current = condition_of(status, new["type"])
    if current is not None and (current.get("status"), current.get("reason")) == (new["status"], new["reason"]):
        return
    if current is not None and current.get("status") == new["status"]:
        new = {**new, "lastTransitionTime": current.get("lastTransitionTime")}
    remove_condition(status, new["type"])
    status["conditions"] = [*(status.get("conditions") or ()), new]


def remove_condition(status: DeploymentStatus, kind: str) -> None:
    conditions = [each for each in status.get("conditions") or () if each.get("type") != kind]
    if conditions:
        status["conditions"] = conditions
    else:
        status.pop("conditions", None)


def calculate_status(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None, moment: datetime
) -> DeploymentStatus:
    """Count all ReplicaSets together, and add the condition Available. Counts of 0 are left out, as in Go's JSON."""
    available = sum(status_count(each, "availableReplicas") for each in replica_sets)
    old = deployment.get("status") or {}
    counts: DeploymentStatus = {
        "replicas": sum(status_count(each, "replicas") for each in replica_sets),
        "updatedReplicas": status_count(new, "replicas"),
        "readyReplicas": sum(status_count(each, "readyReplicas") for each in replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(replicas_of, replica_sets)) - available),
    }
    status: DeploymentStatus = {"observedGeneration": deployment["metadata"].get("generation") or 0}
    status |= cast("DeploymentStatus", {key: value for key, value in counts.items() if value})
    status["terminatingReplicas"] = sum(status_count(each, "terminatingReplicas") for each in replica_sets)
    if old.get("collisionCount") is not None:
        status["collisionCount"] = old["collisionCount"]
    if old.get("conditions"):
        status["conditions"] = old["conditions"]
    if available >= replicas_of(deployment) - max_unavailable(deployment):
        text = "Deployment has minimum availability."
        set_condition(status, condition("Available", "True", "MinimumReplicasAvailable", text, moment))
    else:
        text = "Deployment does not have minimum availability."
        set_condition(status, condition("Available", "False", "MinimumReplicasUnavailable", text, moment))
    return status


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    wanted = replicas_of(deployment)
    counts = (status.get("updatedReplicas", 0), status.get("replicas", 0), status.get("availableReplicas", 0))
    generation = deployment["metadata"].get("generation") or 0
    return counts == (wanted, wanted, wanted) and status.get("observedGeneration", 0) >= generation


def is_progressing(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Return whether there are more new, fewer old, more ready or more available Pods than the stored status says."""
    old = deployment.get("status") or {}

    def count(of: DeploymentStatus, key: _Counted) -> int:
        return int(of.get(key) or 0)

    def old_ones(of: DeploymentStatus) -> int:
        return count(of, "replicas") - count(of, "updatedReplicas")

    return (
        count(status, "updatedReplicas") > count(old, "updatedReplicas")
        or old_ones(status) < old_ones(old)
        or count(status, "readyReplicas") > count(old, "readyReplicas")
        or count(status, "availableReplicas") > count(old, "availableReplicas")
    )


def is_timed_out(deployment: Deployment, status: DeploymentStatus, moment: datetime) -> bool:
    progressing = condition_of(status, "Progressing")
    if progressing is None or not has_progress_deadline(deployment):
        return False
    if progressing.get("reason") == NEW_REPLICA_SET_AVAILABLE:
        return False
    if progressing.get("reason") == TIMED_OUT:
        return True
    deadline = deployment["spec"]["progressDeadlineSeconds"]
    return moment > later(parse_rfc3339(progressing.get("lastUpdateTime")), deadline)


def rollout_status(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None, moment: datetime
) -> DeploymentStatus:
    """Return the status with Progressing and ReplicaFailure brought up to date. (`syncRolloutStatus`)"""
    status = calculate_status(deployment, replica_sets, new, moment)
    if not has_progress_deadline(deployment):
        remove_condition(status, "Progressing")
    current = condition_of(deployment.get("status") or {}, "Progressing")
    done = (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and current is not None
        and current.get("reason") == NEW_REPLICA_SET_AVAILABLE
    )
    if has_progress_deadline(deployment) and not done:
        _set_progress(deployment, status, current, new, moment)
    failure = _replica_failure(replica_sets, new)
    if failure is not None:
        set_condition(status, failure)
    else:
        remove_condition(status, "ReplicaFailure")
    return status


def _set_progress(
    deployment: Deployment,
    status: DeploymentStatus,
    current: DeploymentCondition | None,
    new: ReplicaSet | None,
    moment: datetime,
) -> None:
    what = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        text = f"{what} has successfully progressed."
        set_condition(status, condition("Progressing", "True", NEW_REPLICA_SET_AVAILABLE, text, moment))
    elif is_progressing(deployment, status):
        made = condition("Progressing", "True", "ReplicaSetUpdated", f"{what} is progressing.", moment)
        if current is not None:
            # Every step forward moves lastUpdateTime, from which the deadline counts.
            if current.get("status") == "True":
                made["lastTransitionTime"] = current.get("lastTransitionTime")
            remove_condition(status, "Progressing")
        set_condition(status, made)
    elif is_timed_out(deployment, status, moment):
        text = f"{what} has timed out progressing."
        set_condition(status, condition("Progressing", "False", TIMED_OUT, text, moment))


def _replica_failure(replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> DeploymentCondition | None:
    """The failure of the new ReplicaSet, else of any. (`getReplicaFailures`)"""
    for each in ([new] if new is not None else []) + list(replica_sets):
        failure = cast("ReplicaSetCondition | None", get_condition(each.get("status") or {}, "ReplicaFailure"))
        if failure is not None:
            found: DeploymentCondition = {
                "type": "ReplicaFailure",
                "status": cast(str, failure.get("status")),
                "lastUpdateTime": failure.get("lastTransitionTime"),
                "lastTransitionTime": failure.get("lastTransitionTime"),
                "reason": failure.get("reason", ""),
                "message": failure.get("message", ""),
            }
            return found
    return None


def seconds_until_stuck(deployment: Deployment, status: DeploymentStatus, moment: datetime) -> float | None:
    """Return in how many seconds to check the deadline, None for never. (`requeueStuckDeployment`)"""
    progressing = condition_of(status, "Progressing")
    if progressing is None or not has_progress_deadline(deployment):
        return None
    if is_complete(deployment, status) or progressing.get("reason") == TIMED_OUT:
        return None
    deadline = deployment["spec"]["progressDeadlineSeconds"]
    left = (later(parse_rfc3339(progressing.get("lastUpdateTime")), deadline) - moment).total_seconds()
    return max(0.0, left) + 1.0
