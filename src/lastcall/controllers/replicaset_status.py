"""The status of a ReplicaSet or ReplicationController. Pure.

Source: pkg/controller/replicaset/replica_set_utils.go:calculateStatus.
"""

from collections.abc import Sequence
from typing import Any

from lastcall.api.meta import Object, labels_of
from lastcall.api.pods import get_condition, is_pod_ready
from lastcall.controllers.pod_control import seconds_until_available


def calculate_status(
    owner: Object,
    active: Sequence[Object],
    terminating: Sequence[Object] | None,
    *,
    error: str,
    difference: int,
    now: float,
    stamp: str,
) -> Object:
    """The new status. `terminating` None leaves their count out (ReplicationController, versions before 1.35).

    `error` is what creating (`difference` < 0) or deleting Pods failed with, "" when it did not. `now` is seconds since
    the epoch, `stamp` the same as RFC 3339.
    """
    spec, old = owner["spec"], owner.get("status") or {}
    template_labels = (spec.get("template") or {}).get("metadata", {}).get("labels") or {}
    min_ready = spec.get("minReadySeconds") or 0
    wanted_labels = template_labels.items()
    ready = [pod for pod in active if is_pod_ready(pod)]
    available = len(ready)
    if min_ready:
        available = sum(seconds_until_available(pod, min_ready, now) == 0.0 for pod in ready)
    counts: dict[str, int] = {
        "fullyLabeledReplicas": sum(wanted_labels <= labels_of(pod).items() for pod in active),
        "readyReplicas": len(ready),
        "availableReplicas": available,
    }
    # Of the counts, only `replicas` is written when it is 0, and `terminatingReplicas` where it is counted.
    status: Object = {"replicas": len(active), **{key: value for key, value in counts.items() if value}}
    if terminating is not None:
        status["terminatingReplicas"] = len(terminating)
    if old.get("observedGeneration") is not None:
        status["observedGeneration"] = old["observedGeneration"]
    conditions = _conditions(old, error, difference, stamp)
    if conditions:
        status["conditions"] = conditions
    return status


def _conditions(old: Object, error: str, difference: int, stamp: str) -> list[Any]:
    conditions = list(old.get("conditions") or ())
    failure = get_condition(old, "ReplicaFailure")
    if error and failure is None:
        reason = "FailedCreate" if difference < 0 else "FailedDelete"
        condition = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": stamp, "reason": reason}
        return [*conditions, {**condition, "message": error}]
    if not error and failure is not None:
        return [each for each in conditions if each["type"] != "ReplicaFailure"]
    return conditions
