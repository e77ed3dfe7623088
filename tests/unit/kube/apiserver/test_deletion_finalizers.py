"""What holds an object that is deleted: finalizers of each kind, preconditions, marks that are already there."""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver.deletion import (
    DeleteOptions,
    DeleteRules,
    before_delete,
    check_graceful_delete_pod,
    decide_delete,
    decide_namespace_delete,
    mark_as_deleting,
)
from lastcall.world.clock import rfc3339

POD = DeleteRules("Pod", "", check_graceful_delete_pod)
DEPLOYMENT = DeleteRules("Deployment", "apps")
DEFINITION = DeleteRules("CustomResourceDefinition", "apiextensions.k8s.io")
NOW = datetime(2030, 1, 1, 0, 1, 0, tzinfo=UTC)


def a_pod(**meta: object) -> dict:
    return {
        "metadata": {"name": "p", "uid": "u1", "resourceVersion": "7", **meta},
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("had", "options", "expected"),
    [
        ([], DeleteOptions(), None),
        (["x/y"], DeleteOptions(), ["x/y"]),
        ([], DeleteOptions(propagation_policy="Orphan"), ["orphan"]),
        ([], DeleteOptions(propagation_policy="Foreground"), ["foregroundDeletion"]),
        (["orphan"], DeleteOptions(propagation_policy="Foreground"), ["foregroundDeletion"]),
        (["foregroundDeletion"], DeleteOptions(propagation_policy="Orphan"), ["orphan"]),
        (["orphan", "x/y"], DeleteOptions(propagation_policy="Background"), ["x/y"]),
        (["orphan", "foregroundDeletion"], DeleteOptions(), ["orphan", "foregroundDeletion"]),
        (["orphan"], DeleteOptions(propagation_policy="Orphan"), ["orphan"]),
        ([], DeleteOptions(orphan_dependents=True), ["orphan"]),
        (["orphan"], DeleteOptions(orphan_dependents=False), ["foregroundDeletion"]),
        (["foregroundDeletion"], DeleteOptions(orphan_dependents=True), ["orphan"]),
        ([], DeleteOptions(orphan_dependents=True, propagation_policy="Foreground"), ["orphan"]),
    ],
)
def test_a_namespace_gets_the_finalizer_of_the_policy_and_loses_the_other(had, options, expected) -> None:
    namespace = {"metadata": {"name": "n", "finalizers": had}, "spec": {"finalizers": ["kubernetes"]}}
    decision = decide_namespace_delete(namespace, options, NOW)
    assert decision.object["metadata"].get("finalizers") == expected
    assert namespace["metadata"]["finalizers"] is had


def test_foreground_deletion_is_a_finalizer_of_the_stored_object() -> None:
    obj = {"metadata": {"name": "d"}}
    decision = decide_delete(DEPLOYMENT, obj, DeleteOptions(propagation_policy="Foreground"), NOW)
    assert decision.action == "mark"
    assert decision.object["metadata"]["finalizers"] == ["foregroundDeletion"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (DeleteOptions(uid="u2"), "UID in precondition: u2, UID in object meta: u1"),
        (DeleteOptions(resource_version="6"), "ResourceVersion in precondition: 6, ResourceVersion in object meta: 7"),
    ],
)
def test_a_failed_precondition_of_a_definition_has_words_of_its_own(options: DeleteOptions, words: str) -> None:
    definition = {"metadata": {"name": "a.b", "uid": "u1", "resourceVersion": "7"}}
    with pytest.raises(StatusError) as caught:
        decide_delete(DEFINITION, definition, options, NOW)
    assert caught.value.code == 409
    assert caught.value.message.endswith(f'"a.b": Precondition failed: {words}')
    assert "customresourcedefinitions.apiextensions.k8s.io" in caught.value.message


def test_a_definition_whose_preconditions_hold_is_deleted() -> None:
    definition = {"metadata": {"name": "a.b", "uid": "u1", "resourceVersion": "7"}}
    for options in (DeleteOptions(), DeleteOptions(uid="u1", resource_version="7")):
        assert decide_delete(DEFINITION, definition, options, NOW).action == "remove"


def test_a_failed_precondition_names_kind_and_group_apart() -> None:
    with pytest.raises(StatusError) as caught:
        decide_delete(DEPLOYMENT, {"metadata": {"name": "d", "uid": "u1"}}, DeleteOptions(uid="u2"), NOW)
    assert 'on Deployment.apps "d"' in caught.value.message
    assert caught.value.status["details"] == {"name": "d", "kind": "Deployment", "group": "apps"}


def test_a_negative_grace_period_that_is_stored_becomes_one_second() -> None:
    stored = a_pod(deletionTimestamp=rfc3339(NOW), deletionGracePeriodSeconds=-1)
    before = before_delete(POD, stored, DeleteOptions(), NOW)
    assert before == (False, True, before.object) and before.object["metadata"]["deletionGracePeriodSeconds"] == 1
    assert stored["metadata"]["deletionGracePeriodSeconds"] == -1
    other = {"metadata": {"name": "d"}}
    assert before_delete(DEPLOYMENT, other, DeleteOptions(), NOW) == (False, False, {"metadata": {"name": "d"}})


@pytest.mark.parametrize("generation", [None, 0])
def test_a_pod_without_a_generation_gets_none_by_its_deletion(generation: int | None) -> None:
    meta = {} if generation is None else {"generation": generation}
    decision = decide_delete(POD, a_pod(**meta), DeleteOptions(), NOW)
    assert decision.object["metadata"].get("generation") == generation


def test_an_object_of_the_first_generation_is_marked_in_its_second() -> None:
    obj = {"metadata": {"name": "d", "generation": 1}}
    mark_as_deleting(obj, NOW)
    assert obj["metadata"]["generation"] == 2


def test_a_shorter_grace_period_that_ends_now_stays_as_it_was_asked() -> None:
    stored = a_pod(deletionTimestamp=rfc3339(NOW + timedelta(seconds=20)), deletionGracePeriodSeconds=30)
    decision = decide_delete(POD, stored, DeleteOptions(grace_period_seconds=10), NOW)
    meta = decision.object["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == (rfc3339(NOW), 10)
