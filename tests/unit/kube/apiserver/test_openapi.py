"""The OpenAPI documents."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.resources import PODS, REVIEWS, SERVED, SERVICES
from lastcall.kube.apiserver.discovery import verbs_of
from lastcall.kube.apiserver.openapi.documents import PROTOBUF_NAMES, V2_PROTOBUF, OpenAPI
from lastcall.world.world import World

EVERYTHING = (*SERVED, *REVIEWS)


def openapi() -> OpenAPI:
    return OpenAPI(World().clock, EVERYTHING, "v1.36.2")


def v2() -> dict[str, Any]:
    document = asyncio.run(openapi().v2("application/json"))
    assert document is not None
    return json.loads(document.body)


def v3(name: str) -> dict[str, Any]:
    return json.loads(asyncio.run(openapi().v3(name)).body)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            else:
                yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_reference_leads_somewhere() -> None:
    document = v2()
    for reference in references(document):
        assert reference.removeprefix("#/definitions/") in document["definitions"]
    for group, version in {(each.group, each.version) for each in EVERYTHING}:
        document = v3(f"apis/{group}/{version}" if group else f"api/{version}")
        for reference in references(document):
            assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


def test_a_schema_has_fields_types_required_merge_keys_and_list_types() -> None:
    schemas = v3("api/v1")["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    reference = {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}
    assert pod["properties"]["spec"] == {"allOf": [reference], "default": {}}
    spec = schemas["io.k8s.api.core.v1.PodSpec"]
    assert spec["required"] == ["containers"]
    assert spec["properties"]["containers"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }
    port = schemas["io.k8s.api.core.v1.ServicePort"]["properties"]
    assert port["protocol"] == {"type": "string", "default": "TCP", "enum": ["SCTP", "TCP", "UDP"]}
    assert schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["format"] == "int-or-string"
    strategy = v3("apis/apps/v1")["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"][
        "strategy"
    ]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    any_json = v3("apis/apiextensions.k8s.io/v1")["components"]["schemas"]
    assert any_json["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"] == {}


def test_v2_writes_what_v3_does_in_its_own_dialect() -> None:
    document = v2()
    spec = document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["affinity"] == {"$ref": "#/definitions/io.k8s.api.core.v1.Affinity"}
    assert "default" not in document["definitions"]["io.k8s.api.core.v1.ServicePort"]["properties"]["protocol"]
    assert document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"] == {"type": "string"}
    parameters = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]["parameters"]
    assert {"dryRun", "fieldManager", "fieldValidation", "force", "body"} == {each["name"] for each in parameters}


@pytest.mark.parametrize("resource", EVERYTHING, ids=lambda resource: resource.group_resource)
def test_what_can_be_asked_of_a_resource_stands_in_the_paths(resource) -> None:
    words = {"create": "post", "update": "put", "deletecollection": "delete", "list": "get", "watch": "get"}
    paths = v2()["paths"]
    for verb in verbs_of(resource):
        on_collection = verb in ("create", "list", "watch", "deletecollection")
        item = paths[resource.path("{namespace}", "" if on_collection else "{name}")]
        operation = item[words.get(verb, verb)]
        kind = {"group": resource.group, "kind": resource.kind, "version": resource.version}
        assert operation["x-kubernetes-group-version-kind"] == kind
    assert [name for name in resource.subresources if resource.path("{namespace}", "{name}", name) not in paths] == []


def test_operation_names_are_unique_and_those_that_client_generators_know() -> None:
    names = [
        operation["operationId"]
        for item in v2()["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    assert len(names) == len(set(names))
    assert {"listCoreV1NamespacedPod", "listCoreV1PodForAllNamespaces", "readCoreV1NamespacedPodLog",
            "deleteCoreV1CollectionNode", "replaceCoreV1NamespaceFinalize",
            "createAuthorizationV1SelfSubjectAccessReview"} <= set(names)  # fmt: skip


def messages(data: bytes, number: int) -> list[bytes]:
    """The length-delimited fields of this number."""
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            _, at = varint(data, at)
            continue
        assert tag & 7 == 2
        size, at = varint(data, at)
        if tag >> 3 == number:
            found.append(data[at : at + size])
        at += size
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


@pytest.mark.parametrize("name", PROTOBUF_NAMES)
def test_v2_as_protobuf_has_the_same_paths_and_definitions(name: str) -> None:
    document = asyncio.run(openapi().v2(name))
    assert document is not None
    assert document.media_type == V2_PROTOBUF
    expected = v2()
    paths, definitions = messages(document.body, 8), messages(document.body, 9)
    assert [messages(each, 1)[0].decode() for each in messages(paths[0], 2)] == list(expected["paths"])
    named = {messages(each, 1)[0].decode(): messages(each, 2)[0] for each in messages(definitions[0], 1)}
    assert list(named) == list(expected["definitions"])
    spec = named["io.k8s.api.core.v1.PodSpec"]
    properties = {messages(each, 1)[0].decode(): messages(each, 2)[0] for each in messages(messages(spec, 25)[0], 1)}
    assert list(properties) == list(expected["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"])
    extensions = {messages(each, 1)[0]: messages(messages(each, 2)[0], 2)[0] for each in messages(
        properties["containers"], 31)}  # fmt: skip
    assert extensions[b"x-kubernetes-patch-merge-key"] == b'"name"\n'
    assert messages(spec, 19) == [b"containers"]


def test_documents_are_made_once_and_their_hashes_tell_contents_apart() -> None:
    async def scenario() -> None:
        documents = openapi()
        first = await documents.v2("*/*")
        assert await documents.v2("application/json") is first
        assert await documents.v2("text/html") is None
        index = json.loads((await documents.index()).body)
        assert next(iter(index["paths"])) == "api/v1"
        hashes = {entry["serverRelativeURL"].partition("hash=")[2] for entry in index["paths"].values()}
        assert len(hashes) == len(index["paths"])
        assert (await documents.v3("api/v1")).hash in hashes

    asyncio.run(scenario())
    fewer = asyncio.run(OpenAPI(World().clock, (PODS, SERVICES), "v1.36.2").v3("api/v1"))
    assert fewer.hash != asyncio.run(openapi().v3("api/v1")).hash


def test_others_get_their_turn_while_a_document_is_made() -> None:
    async def scenario() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        await openapi().v2(V2_PROTOBUF)
        counting.cancel()
        return turns

    assert asyncio.run(scenario()) > 50


def test_no_operation_on_a_declared_kind_claims_a_strategic_merge_patch_and_its_scale_is_a_scale() -> None:
    widgets = CustomResource(
        "example.com", "v1", "widgets", "Widget", True, subresources=frozenset({"status", "scale"})
    )
    documents = OpenAPI(World().clock, (*EVERYTHING, widgets), "v1.36.2")
    document = json.loads(asyncio.run(documents.v3("apis/example.com/v1")).body)
    own = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    for path in (own, f"{own}/status", f"{own}/scale"):
        patches = document["paths"][path]["patch"]["requestBody"]["content"]
        assert list(patches) == [
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ]
    kind = document["paths"][f"{own}/scale"]["patch"]["x-kubernetes-group-version-kind"]
    assert kind == {"group": "autoscaling", "kind": "Scale", "version": "v1"}
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
