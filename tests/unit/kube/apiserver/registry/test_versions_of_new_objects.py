"""What a new object may say of its version, and how a refusal names what is kept elsewhere in Kubernetes."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver.deletion import DeleteOptions, DeleteRules, GarbageCollectionPolicy, check_preconditions
from lastcall.kube.apiserver.registry.objectmeta import check_new_version, for_update


@pytest.mark.parametrize("version", ["", "0", "x", "*", "-1", None])
def test_what_is_no_version_does_not_count(version):
    check_new_version(version)


def test_a_new_object_has_no_version():
    with pytest.raises(StatusError, match="resourceVersion should not be set on objects to be created"):
        check_new_version("1")


def test_a_namespace_that_a_patch_takes_away_stays():
    old = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"}
    assert for_update({"name": "a", "namespace": None}, old)["namespace"] == "n"


def test_a_precondition_that_fails_tells_the_kind_and_its_group():
    rules = DeleteRules("RuntimeClass", "node.k8s.io", None, GarbageCollectionPolicy.DELETE_DEPENDENTS)
    with pytest.raises(StatusError) as refused:
        check_preconditions(rules, {"metadata": {"name": "r", "uid": "u"}}, DeleteOptions(uid="other"))
    assert refused.value.status["details"] == {"name": "r", "group": "node.k8s.io", "kind": "RuntimeClass"}
