"""The deletion rules as tables (control plane reference, cases 1-29) and as properties."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.apiserver.deletion import (
    DeleteOptions,
    DeleteRules,
    GarbageCollectionPolicy,
    before_delete,
    check_graceful_delete_pod,
    decide_delete,
    decide_namespace_delete,
    deletion_finalizers,
    should_delete_during_update,
    should_delete_namespace_during_update,
)
from lastcall.world.clock import rfc3339

POD = DeleteRules("Pod", "", check_graceful_delete_pod)
OTHER = DeleteRules("ConfigMap")
NOW = datetime(2030, 1, 1, 0, 1, 0, 500_000, UTC)
T0 = NOW.replace(microsecond=0)


def pod(*, node: str = "n1", phase: str = "Running", grace: int | None = 30, **meta) -> dict:
    spec = {"nodeName": node} if node else {}
    if grace is not None:
        spec["terminationGracePeriodSeconds"] = grace
    return {
        "metadata": {"name": "p", "uid": "u1", "resourceVersion": "7", "generation": 1, **meta},
        "spec": spec,
        "status": {"phase": phase},
    }


def terminating(seconds_ago: float, grace: int, **meta) -> dict:
    deadline = NOW - timedelta(seconds=seconds_ago) + timedelta(seconds=grace)
    return pod(deletionTimestamp=rfc3339(deadline), deletionGracePeriodSeconds=grace, **{"generation": 2, **meta})


def mark(decision) -> tuple:
    meta = decision.object["metadata"]
    return meta["deletionGracePeriodSeconds"], parse_rfc3339(meta["deletionTimestamp"]) - T0, meta["generation"]


@pytest.mark.rule("node-semantics 2/api-grace, 1/api-grace")
@pytest.mark.parametrize(
    ("case", "obj", "asked", "action", "grace"),
    [
        ("the Pod's own grace", pod(), None, "mark", 30),
        ("the asked grace", pod(), 5, "mark", 5),
        ("a longer grace may be asked", pod(), 300, "mark", 300),
        ("zero is two writes", pod(), 0, "mark and remove", 0),
        ("negative means one", pod(), -7, "mark", 1),
        ("a negative grace in the spec means one", pod(grace=-1), None, "mark", 1),
        ("no grace in the spec", pod(grace=None), None, "mark and remove", 0),
        ("zero grace in the spec", pod(grace=0), None, "mark and remove", 0),
        ("an unscheduled Pod goes at once", pod(node=""), 300, "mark and remove", 0),
        ("a succeeded Pod goes at once", pod(phase="Succeeded"), None, "mark and remove", 0),
        ("a failed Pod goes at once", pod(phase="Failed"), 60, "mark and remove", 0),
        ("a finalizer keeps a Pod with grace 0", pod(finalizers=["x/y"]), 0, "mark", 0),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_the_first_delete_of_a_pod(case: str, obj: dict, asked: int | None, action: str, grace: int) -> None:
    decision = decide_delete(POD, obj, DeleteOptions(grace_period_seconds=asked), NOW)
    assert decision.action == action
    assert mark(decision) == (grace, timedelta(seconds=grace), 2)


@pytest.mark.rule("node-semantics 2/api-grace")
@pytest.mark.parametrize(
    ("case", "obj", "asked", "action", "grace", "deadline"),
    [
        ("nothing asked keeps it", terminating(1, 30), None, "pending", None, None),
        ("longer keeps it", terminating(1, 30), 60, "pending", None, None),
        ("equal keeps it", terminating(1, 30), 30, "pending", None, None),
        ("shorter counts from the first delete", terminating(2, 30), 10, "mark", 10, 8),
        ("a deadline in the past becomes now with grace one", terminating(20, 30), 5, "mark", 1, 0),
        ("zero removes it", terminating(1, 30), 0, "mark and remove", 0, 0),
        ("zero with a finalizer only marks", terminating(1, 30, finalizers=["x/y"]), 0, "mark", 0, 0),
        ("negative means one", terminating(0, 30), -1, "mark", 1, 1),
        ("longer keeps it although a finalizer is there", terminating(1, 30, finalizers=["x/y"]), 60, "pending", 0, 0),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_second_delete_can_only_shorten_the_grace_period(case, obj, asked, action, grace, deadline) -> None:
    decision = decide_delete(POD, obj, DeleteOptions(grace_period_seconds=asked), NOW)
    assert decision.action == action
    if action == "pending":
        assert decision.object is None
    else:
        assert mark(decision) == (grace, timedelta(seconds=deadline), 2)


def test_an_interrupted_final_delete_is_taken_up_again() -> None:
    decision = decide_delete(POD, terminating(5, 0), DeleteOptions(), NOW)
    assert (decision.action, decision.object) == ("remove", None)


def test_a_pod_that_a_finalizer_holds_with_grace_zero_is_not_written_again() -> None:
    held = terminating(5, 0, finalizers=["x/y"])
    decision = decide_delete(POD, held, DeleteOptions(grace_period_seconds=0), NOW)
    assert (decision.action, decision.object) == ("mark", None)


def test_kinds_without_grace_are_removed_in_one_write() -> None:
    obj = {"metadata": {"name": "c", "uid": "u"}}
    assert decide_delete(OTHER, obj, DeleteOptions(grace_period_seconds=30), NOW).action == "remove"


def test_a_finalizer_marks_an_object_without_generation_and_with_it() -> None:
    for generation, expected in ((None, None), (9, 10)):
        obj = {"metadata": {"name": "c", "finalizers": ["x/y"]}}
        if generation:
            obj["metadata"]["generation"] = generation
        decision = decide_delete(OTHER, obj, DeleteOptions(), NOW)
        assert decision.action == "mark"
        assert decision.object["metadata"].get("generation") == expected
        assert decision.object["metadata"]["deletionGracePeriodSeconds"] == 0
        assert decision.object["metadata"]["deletionTimestamp"] == rfc3339(NOW)


@pytest.mark.parametrize(
    ("had", "options", "expected"),
    [
        ([], DeleteOptions(), []),
        ([], DeleteOptions(propagation_policy="Background"), []),
        (["x/y"], DeleteOptions(propagation_policy="Foreground"), ["x/y", "foregroundDeletion"]),
        (["x/y", "foregroundDeletion"], DeleteOptions(propagation_policy="Orphan"), ["x/y", "orphan"]),
        (["x/y", "orphan"], DeleteOptions(propagation_policy="Background"), ["x/y"]),
        (["foregroundDeletion"], DeleteOptions(), ["foregroundDeletion"]),
        (["orphan"], DeleteOptions(), ["orphan"]),
        (["x/y"], DeleteOptions(orphan_dependents=True), ["x/y", "orphan"]),
        (["orphan"], DeleteOptions(orphan_dependents=False), []),
        (["foregroundDeletion"], DeleteOptions(orphan_dependents=False), []),
    ],
)
def test_the_garbage_collectors_finalizers_follow_the_options(had, options, expected) -> None:
    assert deletion_finalizers(GarbageCollectionPolicy.DELETE_DEPENDENTS, had, options) == expected


def test_kinds_that_orphan_by_default_and_kinds_outside_garbage_collection() -> None:
    orphaning, none = GarbageCollectionPolicy.ORPHAN_DEPENDENTS, GarbageCollectionPolicy.UNSUPPORTED
    assert deletion_finalizers(orphaning, [], DeleteOptions()) == ["orphan"]
    assert deletion_finalizers(orphaning, [], DeleteOptions(propagation_policy="Background")) == []
    assert deletion_finalizers(none, [], DeleteOptions(propagation_policy="Foreground")) == []


def test_cancelling_foreground_deletion_removes_the_object() -> None:
    waiting = terminating(5, 0, finalizers=["foregroundDeletion"])
    decision = decide_delete(OTHER, waiting, DeleteOptions(propagation_policy="Background"), NOW)
    assert decision.action == "mark and remove"
    assert "finalizers" not in decision.object["metadata"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (DeleteOptions(uid="u2"), "the UID in the precondition (u2) does not match the UID in record (u1)"),
        (
            DeleteOptions(resource_version="6"),
            "the ResourceVersion in the precondition (6) does not match the ResourceVersion in record (7)",
        ),
    ],
)
def test_a_failed_precondition_is_a_conflict_that_names_the_kind(options: DeleteOptions, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        decide_delete(POD, pod(), options, NOW)
    assert caught.value.code == 409
    assert caught.value.message.startswith('Operation cannot be fulfilled on Pod "p": ' + words)
    assert caught.value.status["details"] == {"name": "p", "kind": "Pod"}


@pytest.mark.parametrize(
    ("old", "new_finalizers", "expected"),
    [
        (terminating(1, 0, finalizers=["x/y"]), [], True),
        (terminating(1, 0, finalizers=["x/y", "z/w"]), ["z/w"], False),
        (terminating(1, 30, finalizers=["x/y"]), [], False),
        (pod(finalizers=["x/y"]), [], False),
    ],
    ids=["last finalizer goes", "one is left", "grace still runs", "not terminating"],
)
def test_an_update_completes_a_deletion_only_when_nothing_holds_it(old, new_finalizers, expected) -> None:
    new = copy_object(old)
    new["metadata"]["finalizers"] = new_finalizers
    assert should_delete_during_update(new, old) is expected


def namespace(**meta) -> dict:
    return {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "3", **meta},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def test_a_namespace_first_turns_terminating_without_grace_fields() -> None:
    decision = decide_namespace_delete(namespace(), DeleteOptions(), NOW)
    assert decision.action == "mark"
    assert decision.object["status"]["phase"] == "Terminating"
    assert decision.object["metadata"]["deletionTimestamp"] == rfc3339(NOW)
    assert "deletionGracePeriodSeconds" not in decision.object["metadata"]


def test_a_terminating_namespace_waits_for_its_spec_finalizers() -> None:
    waiting = namespace(deletionTimestamp=rfc3339(NOW))
    assert decide_namespace_delete(waiting, DeleteOptions(), NOW).action == "pending"
    empty = copy_object(waiting)
    empty["spec"] = {}
    assert decide_namespace_delete(empty, DeleteOptions(), NOW).action == "remove"
    assert should_delete_namespace_during_update(empty, waiting)
    assert not should_delete_namespace_during_update(waiting, waiting)


def test_a_namespace_precondition_has_its_own_words() -> None:
    with pytest.raises(StatusError) as caught:
        decide_namespace_delete(namespace(), DeleteOptions(uid="other"), NOW)
    assert "Precondition failed: UID in precondition: other, UID in object meta: u" in caught.value.message


GRACES = st.one_of(st.none(), st.integers(-3, 120))
PODS = st.builds(
    pod,
    node=st.sampled_from(["", "n1"]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    grace=GRACES,
    finalizers=st.lists(st.sampled_from(["x/y", "orphan", "foregroundDeletion"]), unique=True, max_size=2),
)
OPTIONS = st.builds(
    DeleteOptions,
    grace_period_seconds=GRACES,
    propagation_policy=st.sampled_from([None, "Background", "Foreground", "Orphan"]),
)
STEPS = st.lists(st.tuples(st.floats(0, 60), OPTIONS), min_size=1, max_size=6)


@given(PODS, STEPS)
def test_whatever_is_asked_the_deadline_and_the_grace_never_grow(obj: dict, steps: list) -> None:
    now = NOW
    marks: list[tuple[datetime, datetime, int]] = []
    for pause, options in steps:
        now += timedelta(seconds=pause)
        frozen = copy_object(obj)
        decision = decide_delete(POD, obj, options, now)
        assert obj == frozen, "the stored object is never changed"
        if decision.object is not None:
            obj = decision.object
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            marks.append((now, parse_rfc3339(meta["deletionTimestamp"]), meta["deletionGracePeriodSeconds"]))
            assert meta["generation"] == 2
        if decision.action in ("remove", "mark and remove"):
            assert not obj["metadata"].get("finalizers")
            assert meta["deletionGracePeriodSeconds"] == 0
            return
    assert marks, "every accepted delete leaves a mark"
    for (_, deadline, grace), (moment, later, shorter) in itertools.pairwise(marks):
        assert shorter <= grace
        assert later <= max(deadline, moment), "a deadline only moves forward to be now, when it has passed"


@given(PODS, OPTIONS, OPTIONS)
def test_a_delete_repeated_with_the_same_answer_changes_nothing_more(obj: dict, first: DeleteOptions, again) -> None:
    decision = decide_delete(POD, obj, first, NOW)
    if decision.action != "mark":
        return
    repeated = decide_delete(POD, decision.object, first, NOW)
    assert repeated.object is None
    assert repeated.action in ("pending", "mark")


@given(PODS, GRACES)
def test_before_delete_answers_either_pending_or_a_mark(obj: dict, asked: int | None) -> None:
    before = before_delete(POD, obj, DeleteOptions(grace_period_seconds=asked), NOW)
    assert before.graceful
    assert not before.pending
    assert before.object["metadata"]["deletionGracePeriodSeconds"] >= 0
