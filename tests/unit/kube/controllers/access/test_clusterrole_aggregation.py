"""Which rules a ClusterRole with an aggregationRule has."""

from collections.abc import Awaitable, Callable

import pytest
from fake_api import FakeAPI, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.resources import CLUSTERROLES
from lastcall.kube.apiserver.auth.bootstrap_policy import default_policy
from lastcall.kube.controllers.access.clusterrole_aggregation import aggregated_rules
from lastcall.world.world import World

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


# -- the controller, beside an API -------------------------------------------------------------------------------------


def run(test: Callable[[World, FakeAPI], Awaitable[None]]) -> None:
    play(lambda world, api, _: test(world, api), ["clusterrole-aggregation-controller"], settle=1)


def rules_of(api: FakeAPI, name: str) -> list[dict]:
    return next(each["rules"] for each in api.of(CLUSTERROLES) if each["metadata"]["name"] == name)


def writes(api: FakeAPI) -> int:
    return sum(verb == "patch" for verb, _, _ in api.calls)


def test_a_role_follows_each_change_of_those_that_it_selects() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(CLUSTERROLES, role("whole", selectors=(A,)))
        api.put(CLUSTERROLES, role("part", PODS, to="a"))
        await world.clock.sleep(0.1)
        assert rules_of(api, "whole") == [PODS]
        api.put(CLUSTERROLES, role("part", NODES, to="a"))
        await world.clock.sleep(0.1)
        assert rules_of(api, "whole") == [NODES]
        api.remove(CLUSTERROLES, "part")
        await world.clock.sleep(0.1)
        assert rules_of(api, "whole") == []
        assert writes(api) == 3

    run(test)


def test_a_role_that_has_the_rules_already_is_not_written() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(CLUSTERROLES, role("part", PODS, to="a"))
        api.put(CLUSTERROLES, role("whole", PODS, selectors=(A,)))
        api.put(CLUSTERROLES, role("empty", selectors=(B,)))
        api.put(CLUSTERROLES, {**role("null", selectors=(B,)), "rules": None})
        await world.clock.sleep(1)
        assert writes(api) == 0

    run(test)


def test_a_role_that_somebody_else_wrote_to_gets_its_rules_back_and_one_that_aggregates_no_more_keeps_them() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(CLUSTERROLES, role("part", PODS, to="a"))
        api.put(CLUSTERROLES, role("whole", NODES, selectors=(A,)))
        await world.clock.sleep(0.1)
        assert rules_of(api, "whole") == [PODS]
        api.put(CLUSTERROLES, role("whole", NODES))
        api.put(CLUSTERROLES, role("part", to="a"))
        await world.clock.sleep(0.1)
        assert rules_of(api, "whole") == [NODES]

    run(test)


def test_a_role_that_changed_meanwhile_is_looked_at_again() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("patch", "clusterroles", status_failure(409, "Conflict", "the object has been modified"))
        api.put(CLUSTERROLES, role("part", PODS, to="a"))
        api.put(CLUSTERROLES, role("whole", selectors=(A,)))
        await world.clock.sleep(1)
        assert (rules_of(api, "whole"), writes(api)) == ([PODS], 2)

    run(test)
