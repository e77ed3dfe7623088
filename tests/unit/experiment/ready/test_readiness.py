"""When an object is ready, as kubectl would say."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lastcall.experiment.ready.readiness import is_waited_for, readiness
from lastcall.experiment.ready.waiting import _until_killed
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)

BOATS = Resource("example.com", "v1", "boats", "Boat", namespaced=True)


def condition(name: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status, **more}]}


def obj(status: dict[str, Any], generation: int = 1, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "it", "generation": generation}, "spec": spec, "status": status}


SEEN = {"observedGeneration": 1}
ROLLED_OUT = {**SEEN, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
SAME = {"currentRevision": "a", "updateRevision": "a"}


@pytest.mark.parametrize(
    ("resource", "found", "text"),
    [
        (PODS, obj({}), "it is Pending and not Ready"),
        (PODS, obj({"phase": "Running", **condition("Ready", "False")}), "it is Running and not Ready"),
        (PODS, obj({"phase": "Running", **condition("Ready")}), ""),
        (PODS, obj({"phase": "Succeeded"}), ""),
        (DEPLOYMENTS, obj(ROLLED_OUT, replicas=2), ""),
        (DEPLOYMENTS, obj(ROLLED_OUT, 2, replicas=2), "its controller has not seen its newest spec"),
        (
            DEPLOYMENTS,
            obj({**ROLLED_OUT, "updatedReplicas": 1}, replicas=2),
            "2 of 2 Pods are available, 1 of 2 are up",
        ),
        (
            DEPLOYMENTS,
            obj({**ROLLED_OUT, "replicas": 3}, replicas=2),
            "2 of 2 Pods are available, 2 of 2 are updated, 1 more",
        ),
        (DEPLOYMENTS, obj({**ROLLED_OUT, "availableReplicas": 1}, replicas=2), "1 of 2 Pods are available"),
        (DEPLOYMENTS, obj({**SEEN, "replicas": 1, "updatedReplicas": 1}), "0 of 1 Pods are available"),
        (DEPLOYMENTS, obj(SEEN, replicas=0), ""),
        (REPLICASETS, obj({**SEEN, "replicas": 1, "availableReplicas": 1}, replicas=1), ""),
        (REPLICASETS, obj({**SEEN, "replicas": 2, "availableReplicas": 2}, replicas=1), "2 of 1 Pods are available"),
        (STATEFULSETS, obj({**ROLLED_OUT, **SAME}, replicas=2), ""),
        (STATEFULSETS, obj({**ROLLED_OUT, **SAME, "updateRevision": "b"}, replicas=2), "its update is not complete"),
        (
            STATEFULSETS,
            obj({**ROLLED_OUT, **SAME, "updatedReplicas": 1}, replicas=2),
            "2 of 2 Pods are available, 1 of 2 are",
        ),
        (STATEFULSETS, obj({**ROLLED_OUT, "updatedReplicas": 0}, replicas=2, updateStrategy={"type": "OnDelete"}), ""),
        (
            STATEFULSETS,
            obj({**ROLLED_OUT, "updatedReplicas": 1}, replicas=2, updateStrategy={"rollingUpdate": {"partition": 1}}),
            "",
        ),
        (DAEMONSETS, obj({**SEEN, "desiredNumberScheduled": 1}), "0 of 1 Pods are available, 0 of 1 are updated"),
        (
            DAEMONSETS,
            obj({**SEEN, "desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1}),
            "",
        ),
        (JOBS, obj({"succeeded": 1}), "1 of its Pods have succeeded"),
        (JOBS, obj(condition("Complete")), ""),
        (PERSISTENTVOLUMECLAIMS, obj({"phase": "Pending"}), "it is Pending"),
        (PERSISTENTVOLUMECLAIMS, obj({"phase": "Bound"}), ""),
        (NAMESPACES, obj({"phase": "Active"}), ""),
        (CUSTOMRESOURCEDEFINITIONS, obj(condition("NamesAccepted")), "it is not Established"),
        (CUSTOMRESOURCEDEFINITIONS, obj(condition("Established")), ""),
        (CONFIGMAPS, {"metadata": {"name": "it"}}, ""),
        (BOATS, {"metadata": {"name": "it"}}, ""),
        (BOATS, obj({"sails": 2}), ""),
        (BOATS, obj(condition("Ready")), ""),
        (
            BOATS,
            obj(condition("Ready", "False", reason="Late", message="soon")),
            "its condition Ready is False (Late: s",
        ),
        (BOATS, obj(condition("Ready", "Unknown")), "its condition Ready is Unknown"),
        (BOATS, obj(condition("Reconciling")), "its condition Reconciling is True"),
        (BOATS, obj({**SEEN, **condition("Ready")}, 2), "its controller has not seen its newest spec"),
        (BOATS, {"metadata": {"name": "it"}, "status": "afloat"}, ""),
        (BOATS, {"metadata": {"name": "it"}, "status": {"conditions": ["afloat"]}}, ""),
        (CONFIGMAPS, None, "it does not exist"),
    ],
)
def test_ready_is_what_kubectl_rollout_status_and_wait_say(resource: Resource, found: Any, text: str) -> None:
    told = readiness(resource, found)
    assert told.ready == (not text), told
    assert told.text.startswith(text)
    assert not told.failed


@pytest.mark.parametrize(
    ("resource", "found", "failed"),
    [
        (PODS, obj({"phase": "Failed", "reason": "Evicted"}), "its phase is Failed (Evicted)"),
        (JOBS, obj(condition("Failed", reason="BackoffLimitExceeded", message="tried")), "BackoffLimitExceeded: tried"),
        (
            DEPLOYMENTS,
            obj({**SEEN, **condition("Progressing", "False", reason="ProgressDeadlineExceeded", message="late")}),
            "progress deadline: late",
        ),
        (CUSTOMRESOURCEDEFINITIONS, obj(condition("NamesAccepted", "False", message="taken")), "not accepted: taken"),
        (PERSISTENTVOLUMECLAIMS, obj({"phase": "Lost"}), "lost"),
        (BOATS, obj(condition("Stalled", reason="NoWater")), "it is stalled (NoWater)"),
    ],
)
def test_what_will_never_be_ready_says_why(resource: Resource, found: Any, failed: str) -> None:
    told = readiness(resource, found)
    assert not told.ready and told.failed.endswith(failed)


def test_of_a_whole_manifest_those_are_waited_for_that_become_ready_by_themselves() -> None:
    assert is_waited_for(PODS) and is_waited_for(JOBS)
    assert is_waited_for(BOATS)
    assert not is_waited_for(CONFIGMAPS)
    assert not is_waited_for(PERSISTENTVOLUMECLAIMS)  # it may wait for its first consumer


@pytest.mark.parametrize(
    ("deadlines", "seconds"),
    [(["00:00:12"], 12.0), (["00:00:05", "00:00:12"], 12.0), (["00:00:00", "00:00:12"], 0.0), ([], 0.0)],
)
def test_of_pods_that_end_the_time_until_the_last_kill_is_told(deadlines: list[str], seconds: float) -> None:
    ending = [{"metadata": {"name": "it", "deletionTimestamp": f"2026-01-01T{each}Z"}} for each in deadlines]
    assert _until_killed(ending, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
