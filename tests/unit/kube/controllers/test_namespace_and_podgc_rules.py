"""What a terminating namespace says, and which Pods nobody will end (control-plane-semantics 2.10, 2.11)."""

import pytest

from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, PODS, SECRETS
from lastcall.kube.controllers.garbagecollector.pods.decide import (
    Quarantine,
    excess_terminated,
    is_out_of_service,
    is_pod_terminated,
    is_unscheduled_terminating,
)
from lastcall.kube.controllers.namespace.conditions import (
    CONDITIONS,
    Findings,
    graceful_estimate,
    problems,
    requeue_seconds,
    still_there,
    updated_conditions,
)


def test_a_namespace_without_problems_has_five_conditions_that_say_so():
    conditions = updated_conditions([], {}, "t1")
    assert [each["type"] for each in conditions] == [each.type for each in CONDITIONS]
    assert {each["status"] for each in conditions} == {"False"}
    assert updated_conditions(conditions, {}, "t2") == conditions


def test_a_condition_keeps_its_time_until_its_status_moves():
    old = updated_conditions([], {"NamespaceContentRemaining": "two"}, "t1")
    same = updated_conditions(old, {"NamespaceContentRemaining": "one"}, "t2")
    assert next(each for each in same if each["type"] == "NamespaceContentRemaining") == {
        "type": "NamespaceContentRemaining",
        "status": "True",
        "reason": "SomeResourcesRemain",
        "message": "one",
        "lastTransitionTime": "t1",
    }
    after = updated_conditions(same, {}, "t3")
    assert after[3]["lastTransitionTime"] == "t3"
    assert after[4]["lastTransitionTime"] == "t1"


def test_what_remains_is_told_in_order_with_its_finalizers():
    findings = Findings(
        remaining={SECRETS: 0, DEPLOYMENTS: 2, CONFIGMAPS: 1}, finalizers={"b/y": 1, "a/x": 2}, estimate=15
    )
    assert problems(findings) == {
        "NamespaceContentRemaining": (
            "Some resources are remaining: configmaps. has 1 resource instances, "
            "deployments.apps has 2 resource instances"
        ),
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: a/x in 2 resource instances, "
            "b/y in 1 resource instances"
        ),
    }


def test_while_pods_end_nothing_is_said_of_what_remains():
    assert problems(Findings(finalizers={"a/x": 1}, estimate=30)) == {}
    assert problems(Findings(errors=[still_there("n", PODS)])) == {
        "NamespaceDeletionContentFailure": (
            "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: n for gvr: "
            "/v1, Resource=pods"
        )
    }


@pytest.mark.parametrize(("age", "estimate", "requeue"), [(0, 30, 16), (29, 30, 16), (30, 0, 1)])
def test_the_longest_grace_period_of_a_running_pod_is_the_estimate(age, estimate, requeue):
    pods = [
        {"spec": {"terminationGracePeriodSeconds": grace}, "status": {"phase": phase}}
        for grace, phase in ((5, "Running"), (30, "Pending"), (90, "Failed"), (90, "Succeeded"))
    ]
    assert graceful_estimate(pods, age) == estimate
    assert requeue_seconds(estimate) == requeue


def ended(name: str, created: int, *, phase: str = "Succeeded", reason: str = "") -> dict:
    meta = {"name": name, "creationTimestamp": f"2030-01-01T00:00:{created:02d}Z"}
    return {"metadata": meta, "status": {"phase": phase, "reason": reason}}


def test_of_too_many_terminated_pods_the_evicted_and_then_the_oldest_go():
    pods = [
        ended("young", 9),
        ended("old", 1),
        ended("evicted", 8, phase="Failed", reason="Evicted"),
        ended("old-too", 1),
    ]
    assert [pod["metadata"]["name"] for pod in excess_terminated(pods, 1)] == ["evicted", "old", "old-too"]
    assert excess_terminated(pods, 4) == []
    assert excess_terminated(pods, 0) == []


@pytest.mark.parametrize(
    ("phase", "terminated"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("", False), ("Succeeded", True), ("Failed", True)],
)
def test_a_pod_is_terminated_by_its_phase(phase, terminated):
    assert is_pod_terminated({"status": {"phase": phase}}) is terminated


def test_a_terminating_pod_without_a_node_has_nobody():
    deleted = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    assert is_unscheduled_terminating({"metadata": deleted, "spec": {}})
    assert not is_unscheduled_terminating({"metadata": deleted, "spec": {"nodeName": "n"}})
    assert not is_unscheduled_terminating({"metadata": {}, "spec": {}})


@pytest.mark.parametrize(
    ("ready", "key", "out"),
    [
        ("False", "node.kubernetes.io/out-of-service", True),
        ("Unknown", "node.kubernetes.io/out-of-service", True),
        ("True", "node.kubernetes.io/out-of-service", False),
        ("False", "node.kubernetes.io/unreachable", False),
    ],
)
def test_a_node_is_out_of_service_when_an_administrator_says_so_and_it_is_not_ready(ready, key, out):
    node = {
        "spec": {"taints": [{"key": key, "effect": "NoExecute"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    assert is_out_of_service(node) is out


def test_a_missing_node_is_given_forty_seconds_to_come_back():
    quarantine = Quarantine()
    assert quarantine.look(["a", "b"], 0.0) == []
    assert quarantine.look(["b"], 20.0) == []
    assert quarantine.look(["a", "b"], 40.0) == ["b"]
    assert quarantine.look(["a"], 80.0) == ["a"]
