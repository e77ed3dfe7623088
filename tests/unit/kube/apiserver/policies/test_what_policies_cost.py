"""What expressions of policies may cost, and what is done but once for many of them.

The budgets were confirmed on a real Kubernetes 1.36.2, with expressions that cost 880 401 each of its 10 000 000; here
they are as much cheaper as the budget is smaller.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from api_server import RunningServer, running_server

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    NAMESPACES,
    PODS,
    SERVICEACCOUNTS,
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    VALIDATINGWEBHOOKCONFIGURATIONS,
)
from lastcall.kube.apiserver.policies import configured, deciding, dispatch, validating
from lastcall.kube.apiserver.policies.deciding import QUICK
from lastcall.kube.apiserver.policies.evaluation import Input
from lastcall.kube.apiserver.policies.language import validating_programs
from lastcall.kube.apiserver.policies.validating import verdict
from lastcall.kube.apiserver.registry.repeated_pods import RepeatedPods
from lastcall.kube.cel.admission import environment

pytestmark = pytest.mark.loopback

Object = dict[str, Any]
OUT = "validation failed due to running out of cost budget, no further validation rules will be run"


def loop(steps: int) -> str:
    """An expression that is true after so many steps."""
    return f"[{', '.join(map(str, range(steps)))}].all(x, x >= 0)"


COST = environment().compile(loop(100)).run({}, limit=10_000).cost
NO = {"expression": "!variables.v", "messageExpression": "'m' + string(variables.v)"}


@pytest.mark.parametrize(
    ("validations", "messages"),
    [
        ([{"expression": "variables.v"}] * 15, []),
        ([{"expression": loop(100)}] * 15, [OUT]),
        ([{**NO, "messageExpression": "string(variables.v)"}] * 15, ["true"] * 15),
        ([{"expression": loop(100)}] * 8 + [NO], ["mtrue"]),
        ([{"expression": loop(100)}] * 10 + [NO], [f"failed messageExpression: {OUT}"] * 11),
    ],
    ids=["one variable for all", "without variables", "one for all messages", "enough for both", "not for messages"],
)
def test_a_variable_is_paid_for_once_by_validations_and_once_by_messages(
    validations: list[Object], messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validating, "BUDGET", int(COST * 10_000_000 / 880_401))
    spec = {"validations": validations, "variables": [{"name": "v", "expression": loop(100)}]}
    found = verdict(validating_programs(spec), Input({}, None, {}), "Fail")
    assert [each.message for each in found.denials] == messages


# -- on a server -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    async with running_server() as running:
        await running.admin.create(NAMESPACES, {"metadata": {"name": "ns"}})
        yield running


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each time that something was decided in a thread."""
    made: list[int] = []
    to_thread = asyncio.to_thread

    async def noted(do: Callable[..., Any], *arguments: Any) -> Any:
        made.append(1)
        return await to_thread(do, *arguments)

    monkeypatch.setattr(deciding.asyncio, "to_thread", noted)
    return made


def policy_of(*expressions: str, kind: str = "configmaps", **more: Any) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [kind]}
    validations = [{"expression": each} for each in expressions]
    return {"matchConstraints": {"resourceRules": [rule]}, "validations": validations, **more}


async def install(server: RunningServer, name: str, policy: Object, *actions: str) -> Object:
    made = await server.admin.create(VALIDATINGADMISSIONPOLICIES, {"metadata": {"name": name}, "spec": policy})
    binding = {"policyName": name, "validationActions": list(actions) or ["Deny"]}
    await server.admin.create(VALIDATINGADMISSIONPOLICYBINDINGS, {"metadata": {"name": name}, "spec": binding})
    return made


async def write(server: RunningServer, name: str) -> Object:
    return await server.admin.create(CONFIGMAPS, {"metadata": {"name": name}}, "ns")


async def test_cheap_policies_are_decided_at_once_and_dear_ones_in_one_thread(
    server: RunningServer, hops: list[int]
) -> None:
    for number in range(3):
        await install(server, f"cheap-{number}", policy_of(loop(10)))
    await write(server, "a")
    assert hops == []
    dear = f"{loop(300)} && [{', '.join(['1'] * 30)}].all(y, {loop(300)})"
    assert environment().compile(dear).run({}, limit=1_000_000).cost > QUICK
    for number in range(3):
        await install(server, f"dear-{number}", policy_of(dear))
    await write(server, "b")
    assert hops == [1]


async def test_many_policies_that_are_cheap_each_do_not_hold_up_others(server: RunningServer, hops: list[int]) -> None:
    expression = loop(300)
    cost = environment().compile(expression).run({}, limit=1_000_000).cost
    for number in range(QUICK // cost + 1):
        await install(server, f"p-{number}", policy_of(expression))
    await write(server, "a")
    assert hops == [1]


async def test_what_is_decided_in_a_thread_has_its_place_among_the_others(server: RunningServer) -> None:
    dear = f"[{', '.join(['1'] * 30)}].all(y, {loop(300)})"
    await install(server, "a", policy_of("false"), "Warn")
    await install(server, "b", policy_of(f"!{dear}"), "Deny")
    await install(server, "c", policy_of("false"), "Deny")
    with pytest.raises(StatusError, match="'b' with binding 'b' denied request"):
        await write(server, "x")


async def test_a_rule_that_asks_the_authorizer_begins_again_when_that_has_answered(
    server: RunningServer, hops: list[int]
) -> None:
    asks = "authorizer.path('/healthz').check('get').allowed()"
    await install(server, "a", policy_of(asks, f"!{asks}"))
    with pytest.raises(StatusError, match="'a' with binding 'a' denied request: failed expression: !authorizer"):
        await write(server, "x")
    assert hops == [1, 1], "a check costs 350 000"


async def test_a_policy_is_compiled_again_when_its_spec_has_changed_and_only_then(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Object] = []

    def noted(spec: Object) -> Any:
        compiled.append(spec)
        return validating_programs(spec)

    monkeypatch.setattr(dispatch, "validating_programs", noted)
    made = await install(server, "a", policy_of("true"))
    await write(server, "a")
    await write(server, "b")
    await install(server, "b", policy_of("true"))
    await write(server, "c")
    condition = {"type": "Seen", "status": "True", "reason": "r", "message": "", "lastTransitionTime": None}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    await server.admin.patch(
        VALIDATINGADMISSIONPOLICIES, "a", {"status": {"conditions": [condition]}}, subresource="status"
    )
    await write(server, "d")
    assert len(compiled) == 2
    denies = {"spec": policy_of("false")}
    await server.admin.patch(VALIDATINGADMISSIONPOLICIES, "a", denies)
    with pytest.raises(StatusError, match="failed expression: false"):
        await write(server, "e")
    assert len(compiled) == 3
    await server.admin.delete(VALIDATINGADMISSIONPOLICIES, "a")
    await write(server, "e")
    again = await server.admin.create(VALIDATINGADMISSIONPOLICIES, {"metadata": {"name": "a"}, "spec": made["spec"]})
    assert again["metadata"]["generation"] == made["metadata"]["generation"]
    await write(server, "f")
    assert len(compiled) == 4, "one of the same name is another"


async def test_rules_are_gone_through_once_for_writes_of_one_shape(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    class Noted(configured.Wanted):
        __slots__ = ()

        def _kind(self, write: Any) -> Any:
            looked.append(write.name)
            return super()._kind(write)

    monkeypatch.setattr(configured, "Wanted", Noted)
    await install(server, "a", policy_of("true", kind="secrets"))
    named = policy_of("object.data.x == '1'")
    named["matchConstraints"]["resourceRules"][0]["resourceNames"] = ["b"]
    await install(server, "named", named)
    await write(server, "a")
    await write(server, "a2")
    with pytest.raises(StatusError, match="no such key: data"):
        await write(server, "b")
    assert looked == ["a", "a", "a2", "b"], "names are looked at each time"


@pytest.mark.parametrize("kind", ["policy", "webhook"])
async def test_pods_of_one_body_are_not_looked_at_again_where_nobody_asks_about_pods(
    server: RunningServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[bool] = []
    another = RepeatedPods.another

    async def noted(self: RepeatedPods, key: Any) -> Any:
        found = await another(self, key)
        known.append(found is not None)
        return found

    monkeypatch.setattr(RepeatedPods, "another", noted)
    await server.admin.create(NAMESPACES, {"metadata": {"name": "pods"}})
    pod = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    async def create() -> None:
        await server.admin.create(PODS, pod, "pods")

    await server.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "pods")
    if kind == "policy":
        await install(server, "other", policy_of("true", kind="secrets"))
    else:
        await hook(server, "secrets")
    await create()
    await create()
    assert known == [False, True]
    if kind == "policy":
        await install(server, "pods", policy_of("object.metadata.name != ''", kind="pods"))
        await create()
        await create()
        assert known == [False, True, False, False]
    else:
        await hook(server, "pods")
        for _ in range(2):
            with pytest.raises(StatusError, match="failed calling webhook"):
                await create()
        assert known == [False, True, False, False]


async def hook(server: RunningServer, kind: str) -> None:
    """One that nobody answers."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [kind]}
    webhook = {
        "name": f"{kind}.example.com",
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
    }
    await server.admin.create(VALIDATINGWEBHOOKCONFIGURATIONS, {"metadata": {"name": kind}, "webhooks": [webhook]})
