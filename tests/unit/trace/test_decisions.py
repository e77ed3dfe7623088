"""Who decided that a Pod has to end, by what the API shows."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.trace.decisions import DecisionContext, find_decision
from lastcall.trace.events import PodEvent
from lastcall.trace.owners import OwnerState

DELETED = PodEvent("e", "1", "SuccessfulDelete", "", "", "n", "web", "o", "", "", "", "")


def pod(name: str = "web-2", kind: str = "", condition: str = "", message: str = "", **labels: str) -> dict[str, Any]:
    owners = [{"kind": kind, "name": "web", "uid": "o", "controller": True}] if kind else []
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": condition, "message": message}]
    return {
        "metadata": {"name": name, "namespace": "n", "labels": labels, "ownerReferences": owners},
        "spec": {"nodeName": "node-1"},
        "status": {"phase": "Succeeded", "conditions": conditions if condition else []},
    }


def said(kind: str, reporter: str = "", name: str = "web-2") -> PodEvent:
    words = f"Deleted pod: {name}" if kind in ("ReplicaSet", "DaemonSet", "Job") else f"delete Pod {name} in {kind} web"
    return replace(DELETED, of_kind=kind, message=words, reporter=reporter)


def owner(kind: str, **more: Any) -> OwnerState:
    return OwnerState(kind, "n", "web", "o", generation=3, **more)


@pytest.mark.parametrize(
    ("condition", "actor", "words"),
    [
        ("EvictionByEvictionAPI", "apiserver", "evicted through the Eviction API; the API does not say by whom"),
        ("DeletionByTaintManager", "taint-eviction-controller", "evicted from node-1: it has a NoExecute taint"),
        (
            "DeletionByDeviceTaintManager",
            "device-taint-eviction-controller",
            "evicted because a device that it uses has a NoExecute taint",
        ),
        ("PreemptionByScheduler", "kube-scheduler", "preempted by a Pod of higher priority"),
        ("DeletionByPodGC", "pod-garbage-collector-controller", "node not found"),
    ],
)
def test_the_condition_says_it(condition: str, actor: str, words: str) -> None:
    found = find_decision(pod(condition=condition, message="PodGC: node not found"), DecisionContext(), 7)
    assert found is not None
    assert (found.actor, found.facts_as(kinds.DELETION_DECIDED)["why"]) == (actor, words)
    assert (found.at_ns, found.evidence) == (7, "inferred")


@pytest.mark.parametrize("condition", ["TerminationByKubelet", "SomethingNew"])
def test_a_condition_of_another_reason_names_nobody(condition: str) -> None:
    assert find_decision(pod(condition=condition), DecisionContext(), 0) is None


def test_a_condition_that_is_not_true_names_nobody() -> None:
    found = pod(condition="EvictionByEvictionAPI")
    found["status"]["conditions"][0]["status"] = "False"
    assert find_decision(found, DecisionContext(), 0) is None


def test_what_allowed_an_eviction_is_named() -> None:
    evicted = find_decision(pod(condition="EvictionByEvictionAPI"), DecisionContext(budgets=["n/pdb"]), 0)
    assert evicted is not None
    assert evicted.facts_as(kinds.DELETION_DECIDED)["podDisruptionBudget"] == "n/pdb"
    assert str(evicted.facts["why"]).endswith("PodDisruptionBudget n/pdb allowed it")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("Preempted by pod u-1 on node node-1", "preempted by n/vip, a Pod of higher priority"),
        ("Preempted by m/old on node node-1", "preempted by m/old, a Pod of higher priority"),
        (
            "Preempted by pod u-2 on node node-1",
            "preempted by a Pod of higher priority (Preempted by pod u-2 on node node-1)",
        ),
        (
            "Preempted by a pod on node node-1",
            "preempted by a Pod of higher priority (Preempted by a pod on node node-1)",
        ),
    ],
)
def test_who_preempted_is_named_where_the_event_tells_a_pod_that_is_known(message: str, why: str) -> None:
    """As schedulers of 1.36, of 1.26 and of 1.28 write it."""
    event = replace(DELETED, reason="Preempted", message=message)
    around = DecisionContext(events=[event], pod_name=lambda uid: {"u-1": "n/vip"}.get(uid, ""))
    found = find_decision(pod(condition="PreemptionByScheduler"), around, 0)
    assert found is not None
    assert found.facts["why"] == why


KNOWN, LOST, MAINTENANCE = (
    {"key": key, "effect": "NoExecute"} for key in ("known", "node.kubernetes.io/unreachable", "maintenance")
)


@pytest.mark.parametrize(
    ("states", "why"),
    [
        ([], "evicted from node-1: it has a NoExecute taint"),
        ([[KNOWN]], "evicted from node-1: it has a NoExecute taint"),
        (
            [[KNOWN, MAINTENANCE]],
            "evicted from node-1 by its taint maintenance:NoExecute, which this Pod does not tolerate",
        ),
        (
            [[KNOWN, LOST]],
            "evicted from node-1 by its taint node.kubernetes.io/unreachable:NoExecute, tolerated for 300 s",
        ),
        (
            [[LOST], [LOST, MAINTENANCE], []],
            "evicted from node-1 by its taint maintenance:NoExecute, which this Pod does not tolerate",
        ),
    ],
)
def test_the_taint_that_the_pod_tolerates_least_is_named(states: list[Any], why: str) -> None:
    tolerated = pod(condition="DeletionByTaintManager")
    tolerated["spec"]["tolerations"] = [
        {"key": "known", "operator": "Exists"},
        {"key": LOST["key"], "operator": "Exists", "tolerationSeconds": 300},
    ]
    found = find_decision(tolerated, DecisionContext(taints=states), 0)
    assert found is not None
    assert (found.facts["why"], found.facts["node"]) == (why, "node-1")


def test_a_node_that_is_out_of_service_is_another_rule() -> None:
    found = find_decision(
        pod(condition="DeletionByPodGC", message="PodGC: node is out-of-service"), DecisionContext(), 0
    )
    assert found is not None
    assert found.rule.endswith(":gcTerminating")


STEPS: dict[str, tuple[str, dict[str, Any], dict[str, str], str, str]] = {
    "too many Pods": ("ReplicaSet", {}, {}, "", "scaling"),
    "a StatefulSet scaled in": ("StatefulSet", {"replicas": 2}, {}, "", "scaling"),
    "the last that stays": ("StatefulSet", {"replicas": 3}, {}, "", ""),
    "a StatefulSet rolled out": (
        "StatefulSet", {"replicas": 3, "update_revision": "b"}, {"controller-revision-hash": "a"}, "Running", "rollout",
    ),
    "of the newest revision": (
        "StatefulSet", {"replicas": 3, "update_revision": "a"}, {"controller-revision-hash": "a"}, "", "",
    ),
    "one that had ended": ("StatefulSet", {"replicas": 0}, {}, "Failed", "ended"),
    "one that ends with its DELETE": ("StatefulSet", {"replicas": 0}, {}, "Running", "scaling"),
    "a DaemonSet rolled out": (
        "DaemonSet", {"template_generation": "2"}, {"pod-template-generation": "1"}, "", "rollout",
    ),
    "a DaemonSet of the same template": (
        "DaemonSet", {"template_generation": "2"}, {"pod-template-generation": "2"}, "", "",
    ),
    "a Job that is over": ("Job", {"finished": "Failed", "finished_reason": "DeadlineExceeded"}, {}, "", "finished"),
    "a Job that was suspended": ("Job", {"suspended": True}, {}, "", "suspended"),
    "a Job with too many": ("Job", {}, {}, "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_a_controller_says_that_it_deleted_it_and_its_owner_says_why(name: str) -> None:
    kind, state, labels, phase, step = STEPS[name]
    around = DecisionContext(owner=owner(kind, **state), events=[said(kind, "a-controller")], phase=phase)
    found = find_decision(pod(kind=kind, **labels), around, 0)
    assert found is not None
    facts = found.facts_as(kinds.DELETION_DECIDED)
    assert (facts.get("step", ""), found.actor, facts["ownerGeneration"]) == (step, "a-controller", 3)


def test_without_the_owners_state_only_its_event_is_told() -> None:
    found = find_decision(pod(kind="StatefulSet"), DecisionContext(events=[said("StatefulSet")]), 0)
    assert found is not None
    assert "step" not in found.facts
    assert (found.actor, found.facts["why"]) == (
        "statefulset-controller",
        "StatefulSet web deleted it, as its Event says",
    )


@pytest.mark.parametrize("event", [said("ReplicaSet", name="other"), replace(said("ReplicaSet"), of_uid="another")])
def test_an_event_of_another_pod_or_owner_says_nothing(event: PodEvent) -> None:
    assert find_decision(pod(kind="ReplicaSet"), DecisionContext(events=[event]), 0) is None


def test_who_is_gone_took_its_pods_along() -> None:
    by_owner = find_decision(pod(kind="ReplicaSet"), DecisionContext(owner_gone=True), 0)
    both = find_decision(pod(kind="ReplicaSet"), DecisionContext(owner_gone=True, namespace_ends=True), 0)
    assert by_owner is not None
    assert both is not None
    assert (by_owner.actor, both.actor) == ("garbage-collector", "namespace-controller")
    assert find_decision(pod(), DecisionContext(owner_gone=True), 0) is None, "it has no owner"
    assert find_decision(pod(kind="ReplicaSet"), DecisionContext(), 0) is None


def test_what_the_condition_says_goes_before_an_event_and_that_before_an_absence() -> None:
    around = DecisionContext(events=[said("ReplicaSet", "rs")], owner_gone=True, namespace_ends=True)
    evicted = find_decision(pod(kind="ReplicaSet", condition="EvictionByEvictionAPI"), around, 0)
    scaled = find_decision(pod(kind="ReplicaSet"), around, 0)
    assert evicted is not None
    assert scaled is not None
    assert (evicted.actor, scaled.actor) == ("apiserver", "rs")
