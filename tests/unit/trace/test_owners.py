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


def test_who_wrote_the_spec_last_is_told_by_its_managed_fields() -> None:
    def entry(manager: str, time: str, fields: str = "f:spec", subresource: str | None = None) -> dict[str, Any]:
        return {"manager": manager, "time": time, "fieldsV1": {fields: {}}, "subresource": subresource}

    entries = [
        entry("kubectl-create", "2026-01-01T00:00:00Z"),
        entry("kubectl-scale", "2026-01-02T00:00:00Z", subresource="scale"),
        entry("kubelet", "2026-01-03T00:00:00Z", "f:status"),
        entry("someone", "2026-01-04T00:00:00Z", subresource="status"),
    ]
    assert writer_of({"metadata": {"managedFields": entries}}) == "kubectl-scale"
    assert writer_of({"metadata": {}}) == ""
    controller = [*entries, entry("kube-controller-manager", "2026-01-05T00:00:00Z")]
    assert writer_of({"metadata": {"managedFields": controller}}) == ""


@pytest.mark.parametrize(
    ("change", "other"),
    [
        ({"generation": 2}, True),
        ({"update_revision": "b"}, True),
        ({"finished": "Failed"}, True),
        ({"suspended": True}, True),
        ({"template_generation": "2"}, True),
        ({"manager": "x"}, False),
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
    assert made.node(node("True"), gone=False)
    assert not made.node(node("True"), gone=False)
    assert made.node(node("Unknown", "k"), gone=False)
    state = made.node_state("n1")
    assert state is not None
    assert (state.facts["ready"], state.facts["gone"], made.taints("n1")) == (None, False, ("k:NoExecute",))
    assert made.node(node("True"), gone=True)
    lost = made.node_state("n1")
    assert lost is not None
    assert lost.facts["gone"] is True


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
