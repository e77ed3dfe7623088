"""What the status of a Deployment says, as tables (deployment/status.py).

Source: pkg/controller/deployment/sync.go:calculateStatus, progress.go, util/deployment_util.go.
"""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.controllers.deployment.status import (
    NO_DEADLINE,
    calculate_status,
    condition,
    condition_of,
    has_progress_deadline,
    is_complete,
    is_progressing,
    is_timed_out,
    remove_condition,
    rollout_status,
    seconds_until_stuck,
    set_condition,
)
from lastcall.world.clock import rfc3339

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
AVAILABLE = ("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
UNAVAILABLE = ("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def deployment(replicas: int = 4, /, *, unavailable: int = 1, deadline: int | None = 60, **status: object) -> dict:
    rolling = {"maxSurge": 1, "maxUnavailable": unavailable}
    spec = {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    if deadline is not None:
        spec["progressDeadlineSeconds"] = deadline
    return {"metadata": {"name": "web", "namespace": "default", "generation": 7}, "spec": spec, "status": status}


def replica_set(name: str = "new", size: int = 4, *, conditions: tuple = (), **counts: int) -> dict:
    status = {f"{key}Replicas": value for key, value in counts.items() if key != "replicas"}
    status |= {"replicas": counts["replicas"]} if "replicas" in counts else {}
    return {"metadata": {"name": name}, "spec": {"replicas": size}, "status": {**status, "conditions": [*conditions]}}


def progressing(reason: str, *, status: str = "True", since: float = 10, transition: float = 100) -> dict:
    made = condition("Progressing", status, reason, "text", ago(since))
    return {**made, "lastTransitionTime": rfc3339(ago(transition))}


def words(found: dict | None) -> tuple | None:
    return None if found is None else (found["type"], found["status"], found["reason"], found["message"])


def test_the_counts_are_sums_over_all_replica_sets_and_updated_counts_the_new_one() -> None:
    new = replica_set("new", 3, replicas=3, ready=2, available=1, terminating=1)
    old = replica_set("old", 2, replicas=2, ready=2, available=2, terminating=4)
    status = calculate_status(deployment(), [old, new], new, NOW)
    stamp = rfc3339(NOW)
    assert status == {
        "observedGeneration": 7, "replicas": 5, "updatedReplicas": 3, "readyReplicas": 4, "availableReplicas": 3,
        "unavailableReplicas": 2, "terminatingReplicas": 5,
        "conditions": [dict(zip(("type", "status", "reason", "message"), AVAILABLE, strict=True),
                            lastUpdateTime=stamp, lastTransitionTime=stamp)],
    }  # fmt: skip


def test_counts_of_zero_are_left_out_except_the_terminating_ones() -> None:
    status = calculate_status(deployment(0), [], None, NOW)
    assert {key: value for key, value in status.items() if key != "conditions"} == {
        "observedGeneration": 7,
        "terminatingReplicas": 0,
    }


def test_more_pods_available_than_asked_for_are_not_counted_below_zero() -> None:
    shrinking = replica_set("new", 1, replicas=3, available=3)
    assert "unavailableReplicas" not in calculate_status(deployment(1), [shrinking], shrinking, NOW)


def test_the_collision_count_and_the_conditions_are_kept_and_an_absent_generation_is_zero() -> None:
    of = deployment(collisionCount=0, conditions=[{"type": "Mine", "status": "True"}])
    del of["metadata"]["generation"]
    status = calculate_status(of, [], None, NOW)
    assert (status["collisionCount"], status["observedGeneration"]) == (0, 0)
    assert [each["type"] for each in status["conditions"]] == ["Mine", "Available"]
    assert "collisionCount" not in calculate_status(deployment(), [], None, NOW)


@pytest.mark.parametrize(
    ("replicas", "unavailable", "available", "expected"),
    [(4, 1, 4, AVAILABLE), (4, 1, 3, AVAILABLE), (4, 1, 2, UNAVAILABLE), (4, 2, 2, AVAILABLE), (0, 1, 0, AVAILABLE)],
)
def test_a_deployment_is_available_down_to_its_max_unavailable(
    replicas: int, unavailable: int, available: int, expected: tuple
) -> None:
    new = replica_set(size=replicas, available=available)
    status = calculate_status(deployment(replicas, unavailable=unavailable), [new], new, NOW)
    assert words(condition_of(status, "Available")) == expected


def test_a_condition_with_the_same_status_and_reason_stays_as_it_is() -> None:
    status = {"conditions": [condition("A", "True", "R", "before", ago(50))]}
    set_condition(status, condition("A", "True", "R", "after", NOW))
    assert [each["message"] for each in status["conditions"]] == ["before"]


@pytest.mark.parametrize(("status_after", "transition"), [("True", 50), ("False", 0)])
def test_a_condition_keeps_its_transition_time_with_its_status_and_moves_to_the_end(
    status_after: str, transition: float
) -> None:
    before = [condition("A", "True", "R", "text", ago(50)), condition("B", "True", "R", "text", ago(50))]
    status = {"conditions": before}
    set_condition(status, condition("A", status_after, "Other", "text", NOW))
    assert [each["type"] for each in status["conditions"]] == ["B", "A"]
    changed = status["conditions"][1]
    assert (changed["lastUpdateTime"], changed["lastTransitionTime"]) == (rfc3339(NOW), rfc3339(ago(transition)))
    assert [each["type"] for each in before] == ["A", "B"]


def test_the_last_condition_takes_the_list_with_it() -> None:
    status = {"conditions": [{"type": "A"}, {"type": "B"}]}
    remove_condition(status, "A")
    assert status == {"conditions": [{"type": "B"}]}
    remove_condition(status, "B")
    assert status == {}
    remove_condition(status, "B")
    assert status == {}


@pytest.mark.parametrize(("deadline", "expected"), [(None, False), (NO_DEADLINE, False), (0, True), (600, True)])
def test_a_deadline_may_be_absent_or_endless(deadline: int | None, expected: bool) -> None:
    assert has_progress_deadline(deployment(deadline=deadline)) is expected


COMPLETE = {"updatedReplicas": 4, "replicas": 4, "availableReplicas": 4, "observedGeneration": 7}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True), ({"observedGeneration": 8}, True), ({"observedGeneration": 6}, False),
        ({"updatedReplicas": 3}, False), ({"replicas": 5}, False), ({"availableReplicas": 3}, False),
    ],
)  # fmt: skip
def test_a_rollout_is_complete_when_all_pods_are_new_and_available(change: dict, expected: bool) -> None:
    assert is_complete(deployment(), {**COMPLETE, **change}) is expected


def test_without_replicas_a_rollout_is_complete_once_it_is_observed() -> None:
    of = deployment(0)
    assert is_complete(of, {"observedGeneration": 7}) and not is_complete(of, {})
    of["metadata"]["generation"] = 1
    assert not is_complete(of, {})
    del of["metadata"]["generation"]
    assert is_complete(of, {})


BEFORE = {"replicas": 5, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"updatedReplicas": 3, "replicas": 6}, True),
        ({"updatedReplicas": 1, "replicas": 4}, False),
        ({"replicas": 4}, True),
        ({"replicas": 6}, False),
        ({"readyReplicas": 4}, True),
        ({"readyReplicas": 2}, False),
        ({"availableReplicas": 4}, True),
        ({"availableReplicas": 2}, False),
    ],
)
def test_each_step_forward_is_progress(change: dict, expected: bool) -> None:
    assert is_progressing(deployment(**BEFORE), {**BEFORE, **change}) is expected


def test_the_first_pod_is_progress_and_none_is_not() -> None:
    assert is_progressing(deployment(), {"readyReplicas": 1})
    assert not is_progressing(deployment(), {})


@pytest.mark.parametrize(
    ("deadline", "current", "expected"),
    [
        (60, None, False),
        (None, progressing("ReplicaSetUpdated", since=100), False),
        (60, progressing("ReplicaSetUpdated", since=61), True),
        (60, progressing("ReplicaSetUpdated", since=60), False),
        (60, progressing("NewReplicaSetAvailable", since=100), False),
        (60, progressing("ProgressDeadlineExceeded", status="False", since=0), True),
    ],
)
def test_a_rollout_times_out_once_nothing_moved_for_longer_than_its_deadline(
    deadline: int | None, current: dict | None, expected: bool
) -> None:
    status = {"conditions": [current] if current else []}
    assert is_timed_out(deployment(deadline=deadline), status, NOW) is expected


@pytest.mark.parametrize(
    ("deadline", "current", "counts", "expected"),
    [
        (60, progressing("ReplicaSetUpdated", since=10), {}, 51.0),
        (60, progressing("ReplicaSetUpdated", since=60), {}, 1.0),
        (60, progressing("ReplicaSetUpdated", since=100), {}, 1.0),
        (60, progressing("ReplicaSetUpdated"), COMPLETE, None),
        (60, progressing("ProgressDeadlineExceeded"), {}, None),
        (None, progressing("ReplicaSetUpdated"), {}, None),
        (60, None, {}, None),
    ],
)
def test_a_rollout_is_looked_at_again_a_second_after_its_deadline(
    deadline: int | None, current: dict | None, counts: dict, expected: float | None
) -> None:
    status = {**counts, "conditions": [current] if current else []}
    assert seconds_until_stuck(deployment(deadline=deadline), status, NOW) == expected


NEW = replica_set("new", 4, replicas=2, ready=1, available=1)
DONE = replica_set("new", 4, replicas=4, ready=4, available=4)
SAME = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}


@pytest.mark.parametrize(
    ("of", "new", "expected"),
    [
        (deployment(), DONE, ("True", "NewReplicaSetAvailable", 'ReplicaSet "new" has successfully progressed.')),
        (deployment(), NEW, ("True", "ReplicaSetUpdated", 'ReplicaSet "new" is progressing.')),
        (deployment(3), None, ("True", "ReplicaSetUpdated", 'Deployment "web" is progressing.')),
        (deployment(**SAME, conditions=[progressing("ReplicaSetUpdated", since=61)]), NEW,
         ("False", "ProgressDeadlineExceeded", 'ReplicaSet "new" has timed out progressing.')),
        (deployment(**SAME, conditions=[progressing("ReplicaSetUpdated", since=59)]), NEW,
         ("True", "ReplicaSetUpdated", "text")),
        (deployment(**SAME), NEW, None),
        (deployment(deadline=None, conditions=[progressing("ReplicaSetUpdated")]), NEW, None),
    ],
)  # fmt: skip
def test_progressing_says_what_the_rollout_does(of: dict, new: dict | None, expected: tuple | None) -> None:
    if new is None:
        of["status"] = {"replicas": 9}
    found = condition_of(rollout_status(of, [new] if new else [], new, NOW), "Progressing")
    assert (words(found) or ("",))[1:] == (expected or ())


def test_a_rollout_that_was_complete_does_not_begin_anew_when_all_its_pods_are_gone() -> None:
    """sync.go:syncRolloutStatus: isCompleteDeployment, of the counts that there are: none, and none updated."""
    of = deployment(replicas=3, conditions=[progressing("NewReplicaSetAvailable", since=3600)])
    new = replica_set("new", 4)
    found = condition_of(rollout_status(of, [new], new, NOW), "Progressing")
    assert found == of["status"]["conditions"][0]


@pytest.mark.parametrize(("status", "transition"), [("True", 100), ("Unknown", 0)])
def test_a_step_forward_moves_the_time_from_which_the_deadline_counts(status: str, transition: float) -> None:
    of = deployment(conditions=[progressing("ReplicaSetUpdated", status=status, since=50)])
    found = condition_of(rollout_status(of, [NEW], NEW, NOW), "Progressing")
    assert (found["lastUpdateTime"], found["lastTransitionTime"]) == (rfc3339(NOW), rfc3339(ago(transition)))


@pytest.mark.parametrize(
    ("reason", "old", "expected"),
    [
        # Complete before: a Pod that fails later is no rollout, and one that comes is no step of it.
        ("NewReplicaSetAvailable", [], "NewReplicaSetAvailable"),
        ("NewReplicaSetAvailable", [replica_set("old", 0, replicas=1)], "ReplicaSetUpdated"),
        ("ReplicaSetUpdated", [], "ReplicaSetUpdated"),
    ],
)
def test_a_rollout_that_was_complete_stays_so_while_all_pods_are_new(reason: str, old: list, expected: str) -> None:
    of = deployment(conditions=[progressing(reason, since=50)])
    found = condition_of(rollout_status(of, [*old, NEW], NEW, NOW), "Progressing")
    assert found["reason"] == expected
    assert (found["lastUpdateTime"] == rfc3339(ago(50))) is (reason == expected == "NewReplicaSetAvailable")


def failure(reason: str) -> dict:
    return {"type": "ReplicaFailure", "status": "True", "reason": reason, "message": "m", "lastTransitionTime": "t"}


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ((), (), None),
        ((failure("Quota"),), (), "Quota"),
        ((), (failure("Old"),), "Old"),
        ((failure("Quota"),), (failure("Old"),), "Quota"),
    ],
)
def test_the_failure_of_the_new_replica_set_comes_before_that_of_an_old_one(
    new: tuple, old: tuple, expected: str | None
) -> None:
    fresh, others = replica_set("new", conditions=new), [replica_set("old", conditions=old)]
    for sets, the_new in (([*others, fresh], fresh), ([fresh, *others], None)):
        found = condition_of(rollout_status(deployment(), sets, the_new, NOW), "ReplicaFailure")
        assert (found or {}).get("reason") == expected
        if found is not None:
            stamps = {"lastUpdateTime": "t", "lastTransitionTime": "t"}
            assert found == {"type": "ReplicaFailure", "status": "True", "reason": expected, "message": "m", **stamps}


def test_a_failure_that_is_over_is_taken_away() -> None:
    of = deployment(conditions=[failure("Quota")])
    assert condition_of(rollout_status(of, [NEW], NEW, NOW), "ReplicaFailure") is None
