"""Which rules a ClusterRole with an aggregationRule has."""

import pytest

from lastcall.kube.api.resources import CLUSTERROLES
from lastcall.kube.apiserver.auth.bootstrap_policy import default_policy
from lastcall.kube.controllers.access.clusterrole_aggregation import aggregated_rules

PODS, NODES = ({"apiGroups": [""], "resources": [each], "verbs": ["get"]} for each in ("pods", "nodes"))


def role(name: str, *rules: dict, selectors: tuple[dict, ...] = (), **labels: str) -> dict:
    made: dict = {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}
    return {**made, "aggregationRule": {"clusterRoleSelectors": list(selectors)}} if selectors else made


A, B = {"matchLabels": {"to": "a"}}, {"matchExpressions": [{"key": "to", "operator": "In", "values": ["b"]}]}


@pytest.mark.parametrize(
    ("selectors", "roles", "rules"),
    [
        ((A,), (), []),
        ((A,), (role("z", PODS, to="a"), role("y", NODES, to="a")), [NODES, PODS]),
        ((A,), (role("z", PODS, to="b"), role("y", NODES)), []),
        ((A, B), (role("y", NODES, to="b"), role("z", PODS, to="a")), [PODS, NODES]),
        ((A,), (role("y", PODS, to="a"), role("z", PODS, NODES, to="a")), [PODS, NODES]),
        ((A,), (role("whole", PODS, to="a"),), []),
    ],
)
def test_a_role_has_the_rules_of_those_it_selects_but_itself(selectors, roles, rules) -> None:
    assert aggregated_rules(role("whole", selectors=selectors), roles) == rules


def test_the_default_roles_are_made_as_the_controller_would_have_them() -> None:
    roles = [obj for resource, obj in default_policy() if resource is CLUSTERROLES]
    aggregating = [each for each in roles if "aggregationRule" in each]
    assert [each["metadata"]["name"] for each in aggregating] == ["admin", "edit", "view"]
    for each in aggregating:
        assert each["rules"] == aggregated_rules(each, roles)


def test_roles_of_controllers_are_there_where_controllers_are_processes_of_their_own() -> None:
    beside, elsewhere = ({obj["metadata"]["name"] for _, obj in default_policy(each)} for each in (False, True))
    assert beside < elsewhere
    assert {"system:kube-scheduler", "system:controller:job-controller"} <= elsewhere - beside
    assert {"system:node-bootstrapper", "system:persistent-volume-provisioner", "admin"} <= beside
