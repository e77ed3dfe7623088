"""Who decided an end, from records alone: what is missing is left out, and nobody is blamed for another's decision."""

import pytest

from lastcall.endings.render.plain import plain_text
from lastcall.endings.verdict import why
from lastcall.records import kinds as k

KUBECTL = "kubectl/v1.36.2 (linux/amd64) kubernetes/abc"
RANKS = "pkg/controller/replicaset/replica_set.go:getPodsToDelete"
SIZES = "ReplicaSet web-5c goes from 3 to 2 Pods, and this one is number 1 to go: not Ready"


def owner(tape, at, kind, uid="d", **facts):
    """A record about the Deployment `web` (uid d) or another owner."""
    record = tape.add(at, "apiserver", kind, **{"ofKind": "Deployment", "name": "web", "uid": uid, **facts})
    tape.records[-1] = _of_no_pod(tape.records[-1])
    return record


def _of_no_pod(record):
    from dataclasses import replace

    return replace(record, pod_uid="")


def decision(tape, at=-0.01, **facts):
    more = {"why": SIZES, "ownerKind": "ReplicaSet", "owner": "web-5c", "ownerUid": "rs", "ownerGeneration": 4}
    tape.add(at, "replicaset-controller", k.DELETION_DECIDED, rule=RANKS, step="scaling", **{**more, **facts})


def deleted(tape, user="system:kube-controller-manager", agent="", at=0.0):
    tape.add(at, "apiserver", k.DELETE_ACCEPTED, user=user, userAgent=agent, gracePeriodSeconds=30)


def resized(tape, at=-0.02, step="rollout", generation=4, observed=7):
    owner(
        tape, at, k.SCALE_DECIDED, uid="rs", ofKind="ReplicaSet", name="web-5c", step=step, revision="2",
        generation=generation, ownerKind="Deployment", owner="web", ownerUid="d", ownerGeneration=observed,
    )  # fmt: skip


def written(tape, at, generation, *changed, user="kubernetes-admin", agent=KUBECTL, **sizes):
    owner(tape, at, k.OWNER_WRITTEN, generation=generation, changed=list(changed), user=user, userAgent=agent, **sizes)


def decided(tape):
    found = tape.ending().decided_by
    assert found is not None
    return found


def test_the_chain_of_a_rollout_as_people_say_it(new_tape):
    tape = new_tape("web-5c-abcde")
    written(tape, -9.0, 7, "template")
    resized(tape)
    decision(tape)
    deleted(tape)
    assert why(tape.ending()) == (
        "web-5c-abcde ended because Deployment web was rolled out to revision 2 by kubectl (user kubernetes-admin): "
        f"{SIZES}"
    )
    text = plain_text([tape.ending()], 100)
    assert "web-5c-abcde ended because Deployment web was rolled out" in text
    assert "scales ReplicaSet web-5c from" in text


def test_a_resize_after_the_observed_one_is_not_its_cause(new_tape):
    tape = new_tape()
    resized(tape, generation=5)
    decision(tape, ownerGeneration=4)
    deleted(tape)
    assert decided(tape).why == SIZES
    assert len(decided(tape).chain) == 1


def test_a_write_of_something_else_between_the_resize_and_the_decision_does_not_hide_it(new_tape):
    tape = new_tape()
    resized(tape, generation=3)
    owner(tape, -0.019, k.OWNER_WRITTEN, uid="rs", generation=3, changed=["replicas"])
    owner(tape, -0.015, k.OWNER_WRITTEN, uid="rs", generation=4, changed=["minReadySeconds"])
    decision(tape, ownerGeneration=4)
    deleted(tape)
    assert decided(tape).reason == "rolledOut"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("rollout", "Deployment web was rolled out to revision 2 by kubectl (user alice)"),
        ("scaling", "Deployment web was scaled from 3 to 2 by kubectl (user bob)"),
    ],
)
def test_of_several_writes_the_one_of_the_right_field_counts(new_tape, step, expected):
    tape = new_tape()
    written(tape, -9.0, 5, "template", user="alice")
    written(tape, -8.0, 6, "replicas", user="bob", **{"from": 3, "to": 2})
    written(tape, -0.001, 8, "template", "replicas", user="too late")
    resized(tape, step=step)
    decision(tape)
    deleted(tape)
    assert decided(tape).why == f"{expected}: {SIZES}"


def test_a_user_who_was_faster_than_the_controller_is_the_one(new_tape):
    tape = new_tape()
    decision(tape)
    deleted(tape, "kubernetes-admin", KUBECTL)
    found = decided(tape)
    assert (found.actor, found.why) == ("user", "it was deleted by kubectl (user kubernetes-admin)")


def test_a_decision_that_comes_after_the_delete_did_not_lead_to_it(new_tape):
    tape = new_tape()
    deleted(tape, "kubernetes-admin", "")
    decision(tape, at=0.01)
    assert decided(tape).why == "it was deleted by user kubernetes-admin"


def test_a_controller_of_which_nothing_else_is_known_is_named(new_tape):
    tape = new_tape()
    deleted(tape, agent="")
    assert decided(tape).why == "it was deleted by system:kube-controller-manager"


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("Evicted", "nodePressure", "the kubelet evicted it"),
        ("DeadlineExceeded", "deadline", "it had run for its activeDeadlineSeconds"),
        ("Terminated", "nodeShutdown", "its node shuts down"),
        ("", "kubelet", "the kubelet ended it"),
    ],
)
def test_what_the_kubelet_decided_is_told_by_the_status_it_wrote(new_tape, reason, code, words):
    tape = new_tape()
    tape.add(-5.0, "kubelet", k.TERMINATION_OBSERVED, cause="kill")
    tape.add(-4.0, "apiserver", k.POD_STATUS_WRITTEN, phase="Failed", reason=reason)
    deleted(tape, "kubernetes-admin", KUBECTL)
    found = decided(tape)
    assert (found.actor, found.reason) == ("kubelet", code)
    assert found.why.startswith(words)


def test_a_controller_that_deletes_an_owner_says_why_in_its_own_record(new_tape):
    tape = new_tape()
    owner(tape, -0.05, k.DELETION_DECIDED, uid="j", why="Job nightly-1 of CronJob nightly is replaced by the next one")
    owner(tape, -0.04, k.OWNER_DELETED, uid="j", ofKind="Job", name="nightly-1", user="system:kube-controller-manager")
    gone = {"why": "its owner is gone: Job nightly-1", "ownerKind": "Job", "owner": "nightly-1", "ownerUid": "j"}
    rule = "pkg/controller/garbagecollector/garbagecollector.go:attemptToDeleteItem"
    tape.add(-0.01, "garbage-collector-controller", k.DELETION_DECIDED, rule=rule, **gone)
    deleted(tape)
    assert decided(tape).reason == "ownerDeleted"
    assert decided(tape).why == "Job nightly-1 of CronJob nightly is replaced by the next one: that removed this Pod"


def test_without_any_record_of_an_end_nobody_is_named(new_tape):
    tape = new_tape()
    tape.started()
    assert tape.ending().decided_by is None
    assert why(tape.ending()) == ""
