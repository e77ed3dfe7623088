"""Owners, and what two of their states say."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace.ledger import MOST_GONE, ClusterState
from lastcall.trace.owners import OwnerState, changes, differ, removed, state_of, writer_of
from lastcall.trace.pod_timeline import Moment

SECOND = 1_000_000_000


def deployment(generation: int = 1, uid: str = "d", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", "namespace": "n", "uid": uid, "generation": generation}, "spec": spec}


def replica_set(generation: int, replicas: int, revision: str) -> dict[str, Any]:
    owner = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    notes = {"deployment.kubernetes.io/revision": revision}
    meta = {"name": "web-1", "namespace": "n", "uid": "r", "generation": generation, "annotations": notes}
    return {"metadata": {**meta, "ownerReferences": [owner]}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ({"replicas": 3}, {"replicas": 1}, {"changed": ["replicas"], "from": 3, "to": 1}),
        ({"template": {"a": 1}}, {"template": {"a": 2}}, {"changed": ["template"]}),
        ({"paused": True}, {}, {"changed": ["paused"]}),
    ],
)
def test_what_was_written_into_an_owner(old: dict[str, Any], new: dict[str, Any], facts: dict[str, Any]) -> None:
    before = state_of("Deployment", deployment(1, **old))
    (written,) = changes(before, state_of("Deployment", deployment(2, **new), before), "9")
    assert written.kind == kinds.OWNER_WRITTEN
    assert facts.items() <= written.facts.items()
    assert ("from" in written.facts) == ("from" in facts)


def test_nothing_is_said_of_the_same_generation_or_of_an_owner_that_was_not_known() -> None:
    one = state_of("Deployment", deployment(1, replicas=3))
    assert list(changes(None, one, "1")) == []
    assert list(changes(one, replace(one, revision="2"), "2")) == []
    assert list(changes(one, replace(one, generation=2), "2")) == []


@pytest.mark.parametrize(("newest", "step"), [("1", "scaling"), ("2", "rollout"), ("", "scaling")])
def test_a_replica_set_is_scaled_by_its_deployment(newest: str, step: str) -> None:
    old = state_of("ReplicaSet", replica_set(1, 3, "1"))
    (scaled,) = changes(old, state_of("ReplicaSet", replica_set(2, 0, "1"), old), "9", newest)
    assert scaled.kind == kinds.SCALE_DECIDED
    assert (scaled.facts["step"], scaled.facts["from"], scaled.facts["to"]) == (step, 3, 0)


def test_an_owner_that_is_deleted_is_told_once() -> None:
    old = state_of("Deployment", deployment())
    deleting = replace(old, deleting=True)
    assert [each.kind for each in changes(old, deleting, "2")] == [kinds.OWNER_DELETED]
    assert list(changes(deleting, deleting, "3")) == []
    assert list(removed(deleting, "4")) == []
    assert [each.kind for each in removed(old, "4")] == [kinds.OWNER_DELETED]


def wrote(manager: str, time: str | None, *fields: str, subresource: str | None = None) -> dict[str, Any]:
    """An entry of managedFields. The API server gives no time to one of the subresource scale."""
    owned = {"f:spec": {f"f:{name}": {} for name in fields}}
    return {"manager": manager, "time": time, "fieldsV1": owned, "subresource": subresource}


WRITES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing is known": ([], ""),
    "the only one": ([wrote("kubectl-create", "2026-01-01T00:00:00Z", "replicas")], "kubectl-create"),
    "another field": ([wrote("kubectl-create", "2026-01-01T00:00:00Z", "template")], ""),
    "the scale of kubectl, beside a newer write of something else": (
        [
            wrote("kubectl", None, "replicas", subresource="scale"),
            wrote("kubectl-client-side-apply", "2026-01-02T00:00:00Z", "template"),
        ],
        "kubectl",
    ),
    "an autoscaler": (
        [wrote("kube-controller-manager", None, "replicas", subresource="scale")],
        "horizontal-pod-autoscaler",
    ),
    "another controller": ([wrote("kube-controller-manager", "2026-01-02T00:00:00Z", "replicas")], ""),
    "the status": ([wrote("someone", "2026-01-02T00:00:00Z", "replicas", subresource="status")], ""),
    "the last of two": (
        [wrote("one", "2026-01-01T00:00:00Z", "replicas"), wrote("two", "2026-01-02T00:00:00Z", "replicas")],
        "two",
    ),
    "two in the same second": (
        [wrote("one", "2026-01-01T00:00:00Z", "replicas"), wrote("two", "2026-01-01T00:00:00Z", "replicas")],
        "",
    ),
    "two, one of them without a time": (
        [wrote("kubectl", None, "replicas", subresource="scale"), wrote("two", "2026-01-01T00:00:00Z", "replicas")],
        "",
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_who_wrote_a_field_last_is_told_by_its_managed_fields_or_nobody_is_named(name: str) -> None:
    entries, writer = WRITES[name]
    assert writer_of({"metadata": {"managedFields": entries}}, "replicas") == writer


def test_of_two_fields_that_two_managers_wrote_nobody_is_named() -> None:
    def state(generation: int, size: int, template: str) -> OwnerState:
        obj = deployment(generation, replicas=size, template=template)
        obj["metadata"]["managedFields"] = [
            wrote("kubectl", None, "replicas", subresource="scale"),
            wrote("kubectl-rollout", "2026-01-01T00:00:00Z", "template"),
        ]
        return state_of("Deployment", obj)

    writers = [
        next(changes(state(1, 1, "a"), state(2, size, template), "9")).facts["userAgent"]
        for size, template in ((2, "a"), (1, "b"), (2, "b"))
    ]
    assert writers == ["kubectl", "kubectl-rollout", ""]


@pytest.mark.parametrize(
    ("change", "other"),
    [
        ({"generation": 2}, True),
        ({"update_revision": "b"}, True),
        ({"finished": "Failed"}, True),
        ({"suspended": True}, True),
        ({"template_generation": "2"}, True),
        ({"writers": {"replicas": "x"}}, False),
    ],
)
def test_what_a_decision_may_depend_on(change: dict[str, Any], other: bool) -> None:
    one = OwnerState("Job", "n", "j", "u", generation=1)
    assert differ(one, replace(one, **change)) is other


# -- the cluster's state


def cluster() -> ClusterState:
    return ClusterState(lambda actor: actor, lambda record: None)


def at(seconds: float) -> Moment:
    return Moment(int(seconds * SECOND), int(seconds * SECOND))


def test_an_owner_is_as_it_was_when_its_pod_was_deleted() -> None:
    made = cluster()
    for seconds, replicas in ((1, 3), (5, 1), (9, 0)):
        made.owner("StatefulSet", "MODIFIED", deployment(seconds, replicas=replicas), at(seconds))
    replicas = [getattr(made.state_at("d", int(when * SECOND)), "replicas", None) for when in (0, 4, 5, 8, 20)]
    assert replicas == [0, 3, 1, 1, 0], "before anything is known it is taken as it is"


def test_an_owner_that_was_deleted_later_had_not_gone() -> None:
    made = cluster()
    made.owner("DaemonSet", "ADDED", deployment(), at(1))
    assert not made.is_gone("d", at(2).at_ns)
    made.owner("DaemonSet", "DELETED", deployment(), at(5))
    assert not made.is_gone("d", at(4).at_ns)
    assert made.is_gone("d", at(5).at_ns)
    assert not made.is_gone("unknown", at(9).at_ns)


def test_a_list_in_which_an_owner_is_missing_says_that_it_went() -> None:
    made = cluster()
    made.owners_listed("Deployment", [deployment(uid="a"), deployment(uid="b")], at(1))
    made.owners_listed("Deployment", [deployment(uid="b")], at(2))
    assert (made.is_gone("a", at(3).at_ns), made.is_gone("b", at(3).at_ns)) == (True, False)


def test_a_namespace_ends_from_its_deletion_on() -> None:
    made = cluster()
    deleted = {"metadata": {"name": "n", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    made.namespace({"metadata": {"name": "n", "uid": "u"}}, at(1), gone=False)
    assert not made.namespace_ends("n", at(9).at_ns)
    made.namespace(deleted, at(2), gone=False)
    assert (made.namespace_ends("n", at(1).at_ns), made.namespace_ends("n", at(2).at_ns)) == (False, True)
    made.namespace({} | deleted, at(3), gone=True)
    assert made.namespace_ends("n", at(3).at_ns), "the stories of its Pods may still be told"


def test_nodes_are_told_when_something_about_them_changed() -> None:
    def node(ready: str, *taints: str) -> dict[str, Any]:
        keys = [{"key": each, "effect": "NoExecute"} for each in taints]
        conditions = [{"type": "Ready", "status": ready}]
        return {"metadata": {"name": "n1"}, "spec": {"taints": keys}, "status": {"conditions": conditions}}

    made = cluster()
    assert made.node_state("n1") is None, "nodes may not be read"
    assert made.node(node("True"), at(1), gone=False)
    assert not made.node(node("True"), at(2), gone=False)
    assert made.node(node("Unknown", "k"), at(3), gone=False)
    state = made.node_state("n1")
    assert state is not None
    assert (state.facts["ready"], state.facts["gone"]) == (None, False)
    assert made.node(node("True"), at(4), gone=True)
    lost = made.node_state("n1")
    assert lost is not None
    assert lost.facts["gone"] is True


def test_lifecycle_conditions_of_a_node_are_told_while_they_are_true() -> None:
    """(KEP-5683; the names are those of Kubernetes 1.37)"""

    def node(**conditions: str) -> dict[str, Any]:
        told = [{"type": type_, "status": status, "reason": "Planned"} for type_, status in conditions.items()]
        ready = {"type": "Ready", "status": "True"}
        return {"metadata": {"name": "n1"}, "spec": {}, "status": {"conditions": [ready, *told]}}

    made = cluster()
    assert made.node(node(), at(1), gone=False)
    state = made.node_state("n1")
    assert state is not None and "lifecycle" not in state.facts
    assert made.node(node(DrainInProgress="True", Drained="False", Fancy="True"), at(2), gone=False)
    state = made.node_state("n1")
    assert state is not None and state.facts["lifecycle"] == ["DrainInProgress (Planned)"]


def test_the_taints_of_a_node_are_those_that_it_had_at_the_time() -> None:
    made = cluster()
    a, b, other = (
        {"key": key, "effect": effect} for key, effect in (("a", "NoExecute"), ("b", "NoExecute"), ("c", "NoSchedule"))
    )
    for seconds, taints in ((1, [a, other]), (5, [a, other]), (6, [a, b]), (7, [])):
        made.node({"metadata": {"name": "n1"}, "spec": {"taints": taints}}, at(seconds), gone=False)
    between = {(2, 3): [[a]], (5.5, 6.5): [[a], [a, b]], (6.5, 7.5): [[a, b], []], (0.1, 0.2): []}
    for (begin, end), states in between.items():
        assert made.taints("n1", int(begin * SECOND), int(end * SECOND)) == states
    assert made.taints("n2", 0, SECOND) == []


def test_a_resize_goes_back_to_the_state_of_its_deployment_that_was_seen_by_then() -> None:
    made = cluster()
    made.owner("Deployment", "ADDED", deployment(7, replicas=3), at(1), changed=False)
    made.owner("ReplicaSet", "ADDED", replica_set(1, 3, "1"), at(1), changed=False)
    made.owner("ReplicaSet", "MODIFIED", replica_set(2, 1, "1"), at(5.0))
    made.owner("Deployment", "MODIFIED", deployment(8, replicas=1), at(5.5))
    made.owner("Deployment", "MODIFIED", deployment(9, replicas=9), at(7))
    (scaled,) = (each for each in made.records("r", "n") if each.kind == kinds.SCALE_DECIDED)
    assert scaled.facts["ownerGeneration"] == 8


def test_a_budget_names_the_pods_whose_eviction_it_allowed() -> None:
    made = cluster()
    made.budget({"metadata": {"name": "pdb", "namespace": "n"}, "status": {"disruptedPods": {"p": "now"}}})
    assert (made.budgets_of("n", "p"), made.budgets_of("n", "q"), made.budgets_of("m", "p")) == (("n/pdb",), (), ())


def test_what_is_kept_of_owners_that_are_gone_is_bounded() -> None:
    made = cluster()
    for number in range(MOST_GONE + 10):
        obj = deployment(uid=f"u{number}")
        made.owner("Job", "ADDED", obj, at(1))
        made.owner("Job", "DELETED", obj, at(2))
    assert made.state("u0") is None
    assert made.state(f"u{MOST_GONE + 9}") is not None
    assert len(made._gone) == len(made._states) == MOST_GONE


@pytest.mark.parametrize(("finished", "cron_uid", "decisions"), [(False, "c", 1), (True, "c", 0), (False, "other", 0)])
def test_a_job_that_its_cron_job_deleted_while_it_ran_was_replaced(
    finished: bool, cron_uid: str, decisions: int
) -> None:
    """The Event comes for finished Jobs above the history limit, too."""
    records: list[Record] = []
    cluster = ClusterState(lambda actor: f"{actor}-{len(records)}", records.append)
    owner = {"kind": "CronJob", "name": "etl", "uid": "c", "controller": True}
    meta = {"name": "etl-29", "namespace": "n", "uid": "j", "generation": 1, "ownerReferences": [owner]}
    status = {"conditions": [{"type": "Complete", "status": "True"}]} if finished else {}
    job = {"metadata": meta, "spec": {"parallelism": 1}, "status": status}
    cluster.owner("Job", "ADDED", job, Moment(1, 1), changed=False)
    cluster.owner("Job", "DELETED", job, Moment(2, 2))
    cluster.job_replaced(cron_uid, "etl", "etl-29", Moment(3, 3))
    found = [each for each in records if each.kind == kinds.DELETION_DECIDED]
    assert len(found) == decisions
    assert all("Job etl-29 of CronJob etl still runs" in each.facts["why"] for each in found)
    assert all(each in cluster.records("j", "n") for each in found)
