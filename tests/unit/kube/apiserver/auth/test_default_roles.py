"""Default roles and bindings that are there already are completed, and lose nothing."""

import pytest

from lastcall.kube.apiserver.auth.default_roles import Step, reconciled

READ = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
WRITE = {"verbs": ["patch"], "apiGroups": [""], "resources": ["pods"]}
BOTH = {"verbs": ["get", "patch"], "apiGroups": [""], "resources": ["pods"]}
AUTO = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
ROLE = {"kind": "ClusterRole", "name": "reader"}
BOB = {"kind": "User", "name": "bob"}
ANN = {"kind": "User", "name": "ann"}
VIEW = {"matchLabels": {"to-view": "true"}}
EDIT = {"matchLabels": {"to-edit": "true"}}


def obj(labels: dict | None = None, annotations: dict | None = None, **fields: object) -> dict:
    marks = {"labels": labels or {}, "annotations": AUTO if annotations is None else annotations}
    return {"metadata": {"name": "one", **marks}, **fields}


@pytest.mark.parametrize(
    ("found", "wanted", "step", "becomes"),
    [
        pytest.param(obj(rules=[READ]), obj(rules=[READ]), Step.NONE, {}, id="the same"),
        pytest.param(obj(rules=[BOTH]), obj(rules=[READ]), Step.NONE, {}, id="it allows more"),
        pytest.param(obj(rules=[READ]), obj(rules=[READ, WRITE]), Step.UPDATE, {"rules": [READ, WRITE]}, id="a rule"),
        pytest.param(obj(rules=None), obj(rules=[READ]), Step.UPDATE, {"rules": [READ]}, id="no rules"),
        pytest.param(obj(annotations={}, rules=[READ]), obj(rules=[READ]), Step.UPDATE, {}, id="an annotation"),
        pytest.param(obj(rules=[READ]), obj({"a": "b"}, rules=[READ]), Step.UPDATE, {}, id="a label"),
        pytest.param(obj({"a": "own"}, rules=[READ]), obj({"a": "b"}, rules=[READ]), Step.NONE, {}, id="an own label"),
        pytest.param(
            obj(annotations={"rbac.authorization.kubernetes.io/autoupdate": "false"}, rules=[]),
            obj(rules=[READ]),
            Step.NONE,
            {},
            id="it opted out",
        ),
        pytest.param(
            obj(roleRef=ROLE, subjects=[ANN]),
            obj(roleRef=ROLE, subjects=[BOB]),
            Step.UPDATE,
            {"subjects": [ANN, BOB]},
            id="a subject",
        ),
        pytest.param(obj(roleRef=ROLE), obj(roleRef=ROLE), Step.NONE, {}, id="a binding without subjects"),
        pytest.param(
            obj(roleRef={**ROLE, "name": "other"}),
            obj(roleRef=ROLE),
            Step.RECREATE,
            {"roleRef": ROLE},
            id="another role",
        ),
        pytest.param(
            obj(rules=[WRITE], aggregationRule={"clusterRoleSelectors": [EDIT]}),
            obj(rules=[READ], aggregationRule={"clusterRoleSelectors": [VIEW]}),
            Step.UPDATE,
            {"rules": [WRITE], "aggregationRule": {"clusterRoleSelectors": [EDIT, VIEW]}},
            id="a selector of roles to take over",
        ),
    ],
)
def test_what_is_missing_is_added(found: dict, wanted: dict, step: Step, becomes: dict) -> None:
    done, result = reconciled(found, wanted)
    assert done is step
    assert {key: result[key] for key in becomes} == becomes
    if step is Step.UPDATE:
        assert reconciled(result, wanted)[0] is Step.NONE
        assert result["metadata"]["labels"].keys() >= wanted["metadata"]["labels"].keys()
    if step is Step.NONE:
        assert result == found
