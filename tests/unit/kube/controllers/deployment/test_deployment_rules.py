"""The arithmetic of Deployments and the ranking of ReplicaSets, by tables and properties."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.controllers.deployment.revisions import (
    equal_ignoring_hash,
    new_replica_set,
    template_hash,
    to_clean_up,
    with_revision_annotations,
)
from lastcall.kube.controllers.deployment.rolling import (
    fenceposts,
    max_surge,
    max_unavailable,
    new_replicas,
    replicas_of,
    shrink_old,
)
from lastcall.kube.controllers.deployment.scaling import scale
from lastcall.kube.controllers.replicaset.ranking import choose_victims

NOW = 100_000.0


def deployment(replicas, surge="25%", unavailable="25%", kind="RollingUpdate"):
    strategy = {"type": kind}
    if kind == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxSurge": surge, "maxUnavailable": unavailable}
    spec = {"replicas": replicas, "strategy": strategy, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}
    spec["selector"] = {"matchLabels": {"a": "b"}}
    return {"metadata": {"name": "d", "namespace": "default", "uid": "d"}, "spec": spec}


def replica_set(name, replicas, available=None, *, created="2030-01-01T00:00:00Z", annotations=None):
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": created, "annotations": annotations or {}},
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "availableReplicas": replicas if available is None else available},
    }


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        ("25%", "25%", 4, (1, 1)), ("25%", "25%", 3, (1, 0)), ("25%", "25%", 10, (3, 2)), ("25%", "25%", 1, (1, 0)),
        (0, "25%", 3, (0, 1)), ("0%", "0%", 3, (0, 1)), ("100%", 0, 3, (3, 0)), (2, 1, 3, (2, 1)), (0, 0, 0, (0, 1)),
    ],
)  # fmt: skip
def test_surge_rounds_up_and_unavailable_rounds_down(surge, unavailable, replicas, expected):
    assert fenceposts(surge, unavailable, replicas) == expected


def test_nothing_is_unavailable_or_surging_where_there_is_no_rolling_update():
    recreate = deployment(4, kind="Recreate")
    assert (max_surge(recreate), max_unavailable(recreate)) == (0, 0)
    assert new_replicas(recreate, [], replica_set("new", 0)) == 4


@given(
    replicas=st.integers(0, 20),
    surge=st.one_of(st.integers(0, 5), st.integers(0, 100).map(lambda n: f"{n}%")),
    unavailable=st.one_of(st.integers(0, 5), st.integers(0, 100).map(lambda n: f"{n}%")),
    new=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    old=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_a_step_never_goes_over_the_surge_nor_takes_availability_below_its_floor(
    replicas, surge, unavailable, new, old
):
    owner = deployment(replicas, surge, unavailable)
    fresh = replica_set("new", new[0], min(new))
    others = [replica_set(f"old{n}", size, min(size, ok)) for n, (size, ok) in enumerate(old)]
    total = replicas_of(fresh) + sum(map(replicas_of, others))
    grown = new_replicas(owner, [*others, fresh], fresh)
    ceiling = max(total, replicas + max_surge(owner))
    assert total - replicas_of(fresh) + grown <= ceiling
    available = min(new) + sum(min(size, ok) for size, ok in old)
    sizes = {each["metadata"]["name"]: replicas_of(each) for each in others}
    for step in shrink_old(owner, others, fresh):
        assert 0 <= step.replicas < sizes[step.replica_set["metadata"]["name"]]
        sizes[step.replica_set["metadata"]["name"]] = step.replicas
    kept = min(new) + sum(min(sizes[f"old{n}"], min(size, ok)) for n, (size, ok) in enumerate(old))
    assert kept >= min(available, replicas - max_unavailable(owner))


def test_pods_that_do_not_work_go_first_from_the_oldest_replica_set_on():
    broken = replica_set("a", 3, 0, created="2030-01-01T00:00:02Z")
    working = replica_set("b", 4, 4, created="2030-01-01T00:00:01Z")
    steps = shrink_old(deployment(4, 0, 1), [broken, working], replica_set("new", 0, 0))
    assert [(step.replica_set["metadata"]["name"], step.replicas) for step in steps] == [("a", 0), ("b", 3)]


MAX = "deployment.kubernetes.io/max-replicas"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # (10 replicas, surge 3): 8 old and 5 new share a scale to 15 as 11 and 7, to 5 as 5 and 3.
        (10, 15, {"old": 11, "new": 7}),
        (10, 20, {"old": 14, "new": 9}),
        (10, 5, {"old": 5, "new": 3}),
        (10, 0, {"old": 0, "new": 0}),
    ],
)
def test_a_scale_in_the_middle_of_a_rollout_is_shared_out(before, after, expected):
    owner = deployment(after, 3, 2)
    noted = {MAX: str(before + 3)}
    old = replica_set("old", 8, created="2030-01-01T00:00:00Z", annotations=noted)
    new = replica_set("new", 5, created="2030-01-01T00:01:00Z", annotations=noted)
    found = {step.replica_set["metadata"]["name"]: step.replicas for step in scale(owner, new, [old])}
    assert found == expected
    assert sum(found.values()) == (after + 3 if after else 0)


def test_one_replica_set_with_pods_just_gets_the_new_number():
    owner = deployment(7)
    (step,) = scale(owner, replica_set("new", 3), [replica_set("old", 0)])
    assert (step.replica_set["metadata"]["name"], step.replicas) == ("new", 7)
    assert scale(deployment(3), replica_set("new", 3), []) == []


def pod(name, *, node="n", phase="Running", ready=True, ready_at="1970-01-01T00:00:00Z", **more):
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ready_at}]
    meta = {"name": name, "uid": name, "creationTimestamp": more.get("created", "1970-01-01T00:00:00Z")}
    if "cost" in more:
        meta["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": more["cost"]}
    return {
        "metadata": meta,
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "c", "restartCount": more.get("restarts", 0)}],
        },
    }


RANKS = [
    ("not assigned to a node", pod("a", node="", phase="Pending", ready=False), pod("b", phase="Pending", ready=False)),
    ("phase before Running", pod("a", phase="Pending", ready=False), pod("b", ready=False)),
    ("not Ready", pod("a", ready=False), pod("b")),
    ("lower pod-deletion-cost", pod("a", cost="-5"), pod("b", cost="3")),
    ("more related Pods on its node", pod("a", node="crowded"), pod("b", node="lonely")),
    ("Ready for a shorter time (in buckets of powers of two, then by uid)",
     pod("b", ready_at="1970-01-02T03:46:30Z"), pod("a")),
    ("more restarts", pod("b", restarts=2), pod("a", restarts=1)),
    ("created later (in buckets of powers of two, then by uid)",
     pod("b", created="1970-01-02T03:46:30Z"), pod("a")),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "first", "second"), RANKS, ids=[case[0] for case in RANKS])
def test_the_ranking_of_victims(reason, first, second):
    related = [pod(f"r{n}", node="crowded") for n in range(3)] + [pod("r", node="lonely")]
    for order in ([first, second], [second, first]):
        (victim,) = choose_victims(order, related, 1, NOW)
        assert victim.pod is first
        assert (victim.reason, victim.rank, victim.candidates) == (reason, 1, 2)


def test_readiness_in_one_bucket_is_told_apart_by_uid_before_restarts_are_looked_at():
    older = pod("b", ready_at="1970-01-01T00:00:10Z", restarts=0)
    younger = pod("a", ready_at="1970-01-01T00:00:05Z", restarts=9)
    (victim,) = choose_victims([older, younger], [], 1, NOW)
    assert victim.pod is younger  # by uid; by restarts too, but that is never asked
    (victim,) = choose_victims([{**older, "metadata": {**older["metadata"], "uid": "0"}}, younger], [], 1, NOW)
    assert victim.pod["metadata"]["name"] == "b"


@given(st.permutations([pod(f"p{n}", ready=n % 2 == 0, restarts=n, cost=str(n % 3)) for n in range(7)]))
@settings(max_examples=50, deadline=None)
def test_the_victims_do_not_depend_on_the_order_of_the_cache(pods):
    names = [victim.pod["metadata"]["name"] for victim in choose_victims(pods, [], 4, NOW)]
    assert names == ["p3", "p1", "p5", "p6"]


def test_the_hash_is_a_label_and_a_name_and_changes_with_the_template_and_collisions():
    owner = deployment(3)
    made = new_replica_set(owner, None)
    value = made["metadata"]["labels"]["pod-template-hash"]
    assert 8 <= len(value) <= 10
    assert made["metadata"]["name"] == f"d-{value}"
    assert made["spec"]["selector"]["matchLabels"] == {"a": "b", "pod-template-hash": value}
    assert equal_ignoring_hash(made["spec"]["template"], owner["spec"]["template"])
    assert template_hash(owner["spec"]["template"], 1) != value
    other = deployment(3)
    other["spec"]["template"]["spec"]["hostNetwork"] = True
    assert template_hash(other["spec"]["template"]) != value
    assert not equal_ignoring_hash(made["spec"]["template"], other["spec"]["template"])


def test_a_replica_set_that_becomes_new_again_keeps_the_history_of_its_revisions():
    owner = deployment(3)
    owner["metadata"]["annotations"] = {"kubernetes.io/change-cause": "x", "deployment.kubernetes.io/revision": "9"}
    again = replica_set("a", 0, annotations={"deployment.kubernetes.io/revision": "2"})
    assert with_revision_annotations(again, owner, 5, exists=True)
    assert again["metadata"]["annotations"] == {
        "kubernetes.io/change-cause": "x", "deployment.kubernetes.io/revision": "5",
        "deployment.kubernetes.io/revision-history": "2",
    }  # fmt: skip
    assert not with_revision_annotations(again, owner, 5, exists=True)


def test_empty_replica_sets_beyond_the_limit_are_cleaned_up_lowest_revision_first():
    owner = deployment(3)
    owner["spec"]["revisionHistoryLimit"] = 1
    sets = [replica_set(f"r{n}", 0, annotations={"deployment.kubernetes.io/revision": str(n)}) for n in (3, 1, 2)]
    assert [each["metadata"]["name"] for each in to_clean_up(owner, sets)] == ["r1", "r2"]
    sets[1]["status"]["replicas"] = 1
    assert [each["metadata"]["name"] for each in to_clean_up(owner, sets)] == ["r2"]
