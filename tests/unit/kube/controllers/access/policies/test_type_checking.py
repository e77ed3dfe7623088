"""What type checking writes into a policy's status: ten policies, as a real 1.36.2 answered."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from api_server import running_server
from waiting import until

from lastcall.kube.api.custom.kinds import is_established
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, SERVED, VALIDATINGADMISSIONPOLICIES
from lastcall.kube.client.api import Client
from lastcall.kube.client.discovery import discover, openapi_document
from lastcall.kube.controllers.access.policies.first_use import NAME
from lastcall.kube.controllers.access.policies.schemas import schema_of_kind
from lastcall.kube.controllers.access.policies.typechecking import Kind, kinds_to_check
from lastcall.kube.controllers.manager import run_controllers
from lastcall.records.memory import NoRecorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

RECORDED = json.loads(Path(__file__).with_name("recorded_type_checking.json").read_text())
WIDGETS = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    async with running_server() as running:
        client = running.http()
        async with Tasks() as tasks:
            work = run_controllers(
                gates=FeatureGates(),
                world=World(),
                client=client,
                recorder_for=lambda name: NoRecorder(),
                root_ca_pem=b"",
                names=(NAME,),
                discover=partial(discover, client.request),
                openapi=partial(openapi_document, client.request),
            )
            tasks.spawn(work, name="controllers")
            try:
                yield client
            finally:
                tasks.cancel()
                await client.close()


async def checked(client: Client, name: str, generation: int) -> dict[str, Any]:
    """The policy, as soon as its status is of this generation."""
    found: dict[str, Any] = {}

    async def is_checked() -> bool:
        found.update(await client.get(VALIDATINGADMISSIONPOLICIES, name))
        return (found.get("status") or {}).get("observedGeneration") == generation

    await until(is_checked, f"the status of {name}", said=lambda: found.get("status"))
    return found


@pytest.mark.loopback
@pytest.mark.parametrize("name", RECORDED)
async def test_a_policy_s_expressions_are_checked_as_kubernetes_checks_them(name: str) -> None:
    recorded = RECORDED[name]
    async with cluster() as client:
        await client.create(VALIDATINGADMISSIONPOLICIES, {"metadata": {"name": name}, "spec": recorded["spec"]})
        found = await checked(client, name, 1)
    assert found["status"] == recorded["status"]
    managed = [each for each in found["metadata"]["managedFields"] if each.get("subresource")]
    assert [{key: value for key, value in each.items() if key != "time"} for each in managed] == recorded["managed"]


@pytest.mark.loopback
async def test_each_generation_is_checked_anew_and_a_declared_kind_by_its_schema() -> None:
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"], "operations": ["*"]}
    policy = {
        "metadata": {"name": "widgets"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.spec.size > 1"}, {"expression": "object.spec.weight > 1"}],
        },
    }
    async with cluster() as client:
        await client.create(CUSTOMRESOURCEDEFINITIONS, WIDGETS)

        async def established() -> bool:
            return is_established(await client.get(CUSTOMRESOURCEDEFINITIONS, "widgets.example.com"))

        await until(established, "the definition is established")
        await client.create(VALIDATINGADMISSIONPOLICIES, policy)
        warnings = (await checked(client, "widgets", 1))["status"]["typeChecking"]["expressionWarnings"]
        assert [each["fieldRef"] for each in warnings] == ["spec.validations[1].expression"]
        assert warnings[0]["warning"].startswith("example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field")
        right = {"spec": {"validations": [{"expression": "object.spec.size > 1"}]}}
        await client.patch(VALIDATINGADMISSIONPOLICIES, "widgets", right)
        assert (await checked(client, "widgets", 2))["status"]["typeChecking"] == {}


def test_at_most_ten_kinds_of_a_rule_are_checked() -> None:
    plurals = sorted(each.plural for each in SERVED if each.version == "v1" and not each.group)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": plurals}
    found = kinds_to_check({"spec": {"matchConstraints": {"resourceRules": [rule]}}}, SERVED)
    assert len(plurals) > 10 and len(found) == 10


def test_a_schema_that_is_within_itself_ends_as_an_object_without_fields() -> None:
    tree = {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Tree"}],
        "properties": {"left": {"allOf": [{"$ref": "#/components/schemas/Tree"}]}},
    }
    document = {"components": {"schemas": {"Tree": tree}}}
    found = schema_of_kind(document, *Kind("g", "v1", "Tree"))
    assert found is not None and found["properties"] == {"left": {"type": "object"}}
    assert schema_of_kind(document, *Kind("g", "v1", "Bush")) is None
