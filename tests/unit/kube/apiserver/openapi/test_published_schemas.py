"""What the OpenAPI documents say of declared kinds, as Kubernetes 1.36.2 said it of the same definitions."""

import asyncio
import json
from pathlib import Path

import pytest

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.apiserver.openapi import protobuf
from lastcall.kube.apiserver.openapi.documents import OpenAPI
from lastcall.world.world import World

RECORDED = json.loads(Path(__file__).with_name("data").joinpath("published.json").read_text())
PRESERVE = "x-kubernetes-preserve-unknown-fields"
GROUP = "oas.crd.example.com"


def kind(name: str, schema: dict, *, version: str = "v1", namespaced: bool = True, **more) -> CustomResource:
    return CustomResource(GROUP, version, f"{name.lower()}s", name, namespaced, schema=schema, **more)


KINDS = (
    kind("Foo", RECORDED["schema"], selectable=(".spec.a",), subresources=("scale", "status")),
    kind("Foo", {"type": "object", PRESERVE: True}, version="v1beta1"),
    kind("Bar", {"type": "object"}, namespaced=False),
    kind("Baz", {"type": "object", PRESERVE: True, "properties": {"spec": {"type": "object"}}}),
)


def documents() -> OpenAPI:
    return OpenAPI(World().clock, KINDS, "v1.36.2")


@pytest.mark.parametrize("name", sorted(RECORDED["v2"]))
def test_v2_says_of_a_kind_what_kubernetes_says(name: str) -> None:
    document = asyncio.run(documents().v2("application/json"))
    assert document is not None
    assert json.loads(document.body)["definitions"][name] == RECORDED["v2"][name]


@pytest.mark.parametrize("name", sorted(RECORDED["v3"]))
def test_v3_says_of_a_kind_what_kubernetes_says(name: str) -> None:
    document = asyncio.run(documents().v3(f"apis/{GROUP}/v1"))
    assert json.loads(document.body)["components"]["schemas"][name] == RECORDED["v3"][name]


def test_all_of_v2_can_be_written_as_protobuf() -> None:
    document = asyncio.run(documents().v2("application/json"))
    assert document is not None
    body = b"".join(protobuf.document(json.loads(document.body)))
    assert b"x-kubernetes-embedded-resource" in body
    assert b"partially update scale of the specified Foo" in body


def test_operations_have_the_name_of_the_whole_group() -> None:
    document = asyncio.run(documents().v3(f"apis/{GROUP}/v1"))
    operation = json.loads(document.body)["paths"][f"/apis/{GROUP}/v1/bars"]["get"]
    assert operation["operationId"] == "listOasCrdExampleComV1Bar"
    assert operation["tags"] == ["oasCrdExampleCom_v1"]
