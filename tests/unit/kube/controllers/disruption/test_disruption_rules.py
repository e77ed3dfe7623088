"""The arithmetic of PodDisruptionBudgets (control-plane-semantics 2.7)."""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.api.disruption import Expected, expected_pods
from lastcall.kube.api.text.go_selectors import selector_text
from lastcall.kube.controllers.disruption.decide import (
    count_healthy,
    disrupted_pods,
    failed_status,
    next_status,
    stale_for,
)
from lastcall.world.clock import rfc3339

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def ago(seconds: float) -> str:
    return rfc3339(NOW - timedelta(seconds=seconds))


def a_pod(name: str, *, ready: bool = True, terminating: bool = False, target: dict | None = None, phase="Running"):
    meta: dict = {"name": name, "namespace": "default"}
    if terminating:
        meta["deletionTimestamp"] = ago(0)
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    if target is not None:
        conditions.append({"type": "DisruptionTarget", "status": "True", **target})
    return {"metadata": meta, "status": {"phase": phase, "conditions": conditions}}


def a_budget(spec: dict | None = None, **status) -> dict:
    return {"metadata": {"name": "b", "generation": 1}, "spec": spec or {}, "status": status}


@pytest.mark.parametrize(
    ("spec", "selected", "scale", "pods", "healthy"),
    [
        ({"minAvailable": 2}, 5, 0, 5, 2),
        ({"minAvailable": 7}, 5, 0, 5, 7),
        ({"minAvailable": "50%"}, 3, 7, 7, 4),
        ({"minAvailable": "100%"}, 3, 3, 3, 3),
        ({"minAvailable": "1%"}, 3, 3, 3, 1),
        ({"minAvailable": "0%"}, 3, 3, 3, 0),
        ({"maxUnavailable": 1}, 3, 3, 3, 2),
        ({"maxUnavailable": 5}, 3, 3, 3, 0),
        ({"maxUnavailable": "30%"}, 3, 7, 7, 4),
        ({"maxUnavailable": "1%"}, 3, 7, 7, 6),
        ({"maxUnavailable": 0}, 3, 7, 7, 7),
        ({}, 3, 3, 0, 0),
    ],
)
def test_percentages_are_of_what_owners_ask_for_and_round_up(spec, selected, scale, pods, healthy):
    assert expected_pods(a_budget(spec), selected, scale) == Expected(pods, healthy)


def test_healthy_is_ready_not_terminating_and_not_evicted():
    pods = [a_pod("a"), a_pod("b"), a_pod("c", ready=False), a_pod("d", terminating=True)]
    assert count_healthy(pods, {"b": ago(1)}) == 1


@pytest.mark.parametrize(
    ("expected", "healthy", "allowed", "reason"),
    [
        (Expected(3, 2), 3, 1, "SufficientPods"),
        (Expected(3, 2), 2, 0, "InsufficientPods"),
        (Expected(3, 2), 1, 0, "InsufficientPods"),
        (Expected(0, 0), 2, 0, "InsufficientPods"),
    ],
)
def test_what_is_allowed_is_what_is_healthy_above_what_is_needed(expected, healthy, allowed, reason):
    status = next_status(a_budget(), expected, healthy, {}, NOW)["status"]
    assert (status["disruptionsAllowed"], status["conditions"][0]["reason"]) == (allowed, reason)
    assert status["observedGeneration"] == 1


def test_a_status_that_says_all_that_is_written_once():
    budget = next_status(a_budget(), Expected(3, 2), 3, {}, NOW)
    assert next_status(budget, Expected(3, 2), 3, {}, NOW + timedelta(seconds=9)) is None
    failed = failed_status(budget, "no", NOW)
    assert failed["status"]["disruptionsAllowed"] == 0
    assert failed["status"]["conditions"][0]["reason"] == "SyncFailed"
    assert failed_status(failed, "no", NOW) is None


def test_an_evicted_pod_is_waited_for_two_minutes():
    budget = a_budget(disruptedPods={"a": ago(10), "b": ago(119), "c": ago(120), "d": ago(1), "gone": ago(1)})
    pods = [a_pod("a"), a_pod("b"), a_pod("c"), a_pod("d", terminating=True), a_pod("e")]
    found = disrupted_pods(budget, pods, NOW)
    assert dict(found.pods) == {"a": ago(10), "b": ago(119)}
    assert found.not_deleted == (pods[2],)
    assert found.recheck == NOW + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        (a_pod("p"), None),
        (a_pod("p", target={"reason": "EvictionByEvictionAPI", "lastTransitionTime": ago(30)}), 90.0),
        (a_pod("p", target={"reason": "EvictionByEvictionAPI", "lastTransitionTime": ago(300)}), 0.0),
        (a_pod("p", target={"reason": "TerminationByKubelet", "lastTransitionTime": ago(300)}), None),
        (a_pod("p", target={"lastTransitionTime": ago(300)}, terminating=True), None),
        (a_pod("p", target={"lastTransitionTime": ago(300)}, phase="Failed"), None),
        (a_pod("p", target={"status": "False", "lastTransitionTime": ago(300)}), None),
    ],
)
def test_a_target_that_is_not_deleted_is_one_for_two_minutes(pod, seconds):
    assert stale_for(pod, NOW) == seconds


def test_a_selector_is_shown_as_go_shows_it():
    expressions = [{"key": "a", "operator": "In", "values": ["x", "y"]}]
    assert selector_text({"matchLabels": {"app": "u"}, "matchExpressions": expressions}) == (
        "&LabelSelector{MatchLabels:map[string]string{app: u,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:a,Operator:In,Values:[x y],},},}"
    )
