"""Whatever depth the door lets in, everything behind it survives; what is deeper is refused with Kubernetes's words.

Over HTTP, on a server of its own: every way in which an object is read, changed, managed, told and printed.
"""

import json
from typing import Any

import pytest
from api_server import running_server
from asker import Asker
from waiting import until

from lastcall.kube.api.errors import MAX_ERRORS
from lastcall.kube.api.text.json_bounds import MAX_DEPTH, MAX_VALUES
from lastcall.kube.apiserver.wire.requests import MAX_REVIEW_BYTES

pytestmark = pytest.mark.loopback

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DOORS = "/apis/example.com/v1/namespaces/default/doors"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
STRATEGIC, PATCH = "application/strategic-merge-patch+json", "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"

REVIEWS = (
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/api/v1/namespaces/default/serviceaccounts/default/token",
    "/api/v1/namespaces/default/pods/x/eviction",
    "/api/v1/namespaces/default/pods/x/binding",
    "/api/v1/namespaces/default/bindings",
)


def maps(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


def lists(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def mixed(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = [value] if level % 2 else {"name": value}
    return value


def definition(name: str, schema: dict) -> dict:
    plural = f"{name}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": name, "kind": name.title()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [{"name": "V", "type": "string", "jsonPath": ".v.a"}],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def made(ask: Asker, name: str, schema: dict) -> None:
    status, answer = await ask("POST", DEFINITIONS, definition(name, schema))
    assert status == 201, answer

    async def is_served() -> bool:
        return (await ask("GET", f"/apis/example.com/v1/namespaces/default/{name}s"))[0] == 200

    await until(is_served, "the definition to be served")


@pytest.mark.parametrize("shape", [maps, lists, mixed])
async def test_an_object_of_a_declared_kind_survives_at_any_depth_that_is_let_in(shape) -> None:
    value = shape(MAX_DEPTH - 1)
    door = {"apiVersion": "example.com/v1", "kind": "Door", "metadata": {"name": "d"}, "v": value}
    async with running_server() as running:
        ask = Asker(running)
        await made(ask, "door", OPEN)
        assert (await ask("POST", DOORS, door))[0] == 201
        assert json.loads((await ask("GET", f"{DOORS}/d"))[1])["v"] == value
        for accept in ("", YAML, TABLE, PARTIAL):
            assert (await ask("GET", f"{DOORS}/d", accept=accept))[0] == 200
            assert (await ask("GET", DOORS, accept=accept.replace("Metadata;", "MetadataList;")))[0] == 200
            watched, _ = await ask("GET", f"{DOORS}?watch=1&timeoutSeconds=1", accept=accept)
            assert (accept, watched) == (accept, 406 if accept == YAML else 200)
        assert (await ask("GET", f"{DOORS}/d?pretty=1"))[0] == 200
        assert (await ask("PATCH", f"{DOORS}/d", {"v2": value}, MERGE))[0] == 200
        assert (await ask("PATCH", f"{DOORS}/d", {"metadata": {"labels": maps(MAX_DEPTH - 2)}}, MERGE))[0] == 422
        deep = maps(MAX_DEPTH - 2)
        operations = [
            {"op": "add", "path": "/v3", "value": deep},
            {"op": "copy", "from": "/v3", "path": "/v4"},
            {"op": "test", "path": "/v4", "value": deep},
        ]
        assert (await ask("PATCH", f"{DOORS}/d", operations, PATCH))[0] == 200
        deeper = [*operations, {"op": "copy", "from": "/v4", "path": "/v3/a/a/a"}]
        assert (await ask("PATCH", f"{DOORS}/d", deeper, PATCH))[0] == 422
        for body, path, expected in (
            (door, "d?fieldManager=one&force=true", 200),
            ({**door, "v": shape(MAX_DEPTH - 2)}, "d?fieldManager=one&force=true", 200),
            ({**door, "v": shape(MAX_DEPTH - 3)}, "d?fieldManager=two", 409),
            ({**door, "metadata": {"name": "e"}}, "e?fieldManager=two", 201),
        ):
            status, answer = await ask("PATCH", f"{DOORS}/{path}", body, APPLY)
            assert status == expected, answer[-300:]
        stored = (await ask("GET", f"{DOORS}/d"))[1]
        assert (await ask("PUT", f"{DOORS}/d", stored))[0] == 200
        assert (await ask("PUT", f"{DOORS}/d", (await ask("GET", f"{DOORS}/d", accept=YAML))[1], YAML))[0] == 200
        changed = json.loads(stored)
        changed["metadata"]["managedFields"][0]["fieldsV1"] = {"f:v": maps(MAX_DEPTH - 10, {})}
        assert (await ask("PUT", f"{DOORS}/d", {**changed, "v": maps(MAX_DEPTH - 1, 7)}))[0] == 200
        assert (await ask("PATCH", f"{DOORS}/d?fieldManager=one&force=true", door, APPLY))[0] == 200
        assert (await ask("DELETE", f"{DOORS}/d"))[0] == 200
        assert (await ask("DELETE", DOORS))[0] == 200


@pytest.mark.parametrize("shape", [maps, lists, mixed])
async def test_what_does_not_fit_a_known_kind_is_refused_at_any_depth_that_is_let_in(shape) -> None:
    value = shape(MAX_DEPTH - 7)
    async with running_server() as running:
        ask = Asker(running)
        await ask("POST", CONFIGMAPS, {"metadata": {"name": "c"}})
        for body in (
            {"metadata": {"name": "x"}, "foo": value},
            {"metadata": {"name": "x"}, "data": value},
            {"metadata": {"name": "x"}, "data": {"a": value}},
            {"metadata": {"name": value}},
            {"metadata": value},
            {"kind": value},
            {"metadata": {"name": "x", "managedFields": [{"fieldsV1": value, "fieldsType": "FieldsV1"}]}},
        ):
            for query in ("", "&fieldValidation=Strict", "&fieldValidation=Ignore"):
                await ask("POST", f"{CONFIGMAPS}?dryRun=All{query}", body)
                await ask("POST", f"{CONFIGMAPS}?dryRun=All{query}", json.dumps(body), YAML)
                for kind in (MERGE, STRATEGIC):
                    await ask("PATCH", f"{CONFIGMAPS}/c?dryRun=All{query}", body, kind)
                body_of_apply = {"apiVersion": "v1", "kind": "ConfigMap", **body}
                await ask("PATCH", f"{CONFIGMAPS}/c?dryRun=All&fieldManager=x{query}", body_of_apply, APPLY)
        for directive in ("$patch", "$retainKeys", "$deleteFromPrimitiveList/a", "$setElementOrder/a"):
            await ask("PATCH", f"{CONFIGMAPS}/c?dryRun=All", {"data": {directive: value}}, STRATEGIC)
        for path, spec in (
            (
                "/api/v1/namespaces/default/pods",
                {"containers": [{"name": "a", "image": "b", "foo": value, "env": value}]},
            ),
            ("/apis/apps/v1/namespaces/default/deployments", value),
            ("/apis/apps/v1/namespaces/default/statefulsets", {"template": value}),
            ("/apis/batch/v1/namespaces/default/jobs", {"template": {"spec": {"volumes": value}}}),
        ):
            for query in ("", "&fieldValidation=Strict"):
                await ask("POST", f"{path}?dryRun=All{query}", {"metadata": {"name": "a"}, "spec": spec})
        for body in ({"foo": value}, {"preconditions": value}, {"dryRun": value}):
            await ask("DELETE", f"{CONFIGMAPS}/nope", body)


async def test_what_everybody_may_send_survives_at_any_depth_that_is_let_in() -> None:
    async with running_server() as running:
        ask = Asker(running)
        for value in (maps(MAX_DEPTH - 5), lists(MAX_DEPTH - 5)):
            for body in (
                {"foo": value},
                {"spec": value},
                {"spec": {"user": "a", "extra": {"a": value}}},
                {"spec": {"resourceAttributes": value}},
                {"status": value},
                {"metadata": {"annotations": value}},
                {"metadata": {"managedFields": [{"fieldsV1": value, "manager": "x", "operation": "Update"}]}},
                {"deleteOptions": value},
            ):
                for path in REVIEWS:
                    await ask("POST", path, body)
                    await ask("POST", path, json.dumps(body), YAML)


async def test_schemas_and_revisions_survive_at_any_depth_that_is_let_in() -> None:
    async with running_server() as running:
        ask = Asker(running)
        for word in ("default", "example", "enum", "foo"):
            inner = {**OPEN, word: [maps(MAX_DEPTH - 10)] if word == "enum" else maps(MAX_DEPTH - 9)}
            body = definition("odd", {"type": "object", "properties": {"v": inner}})
            assert (await ask("POST", f"{DEFINITIONS}?dryRun=All", body))[0] in (201, 422)
        schema: Any = {"type": "string"}
        value: Any = "x"
        for level in range((MAX_DEPTH - 8) // 2):
            schema = (
                {"type": "array", "items": schema} if level % 2 else {"type": "object", "properties": {"a": schema}}
            )
            value = [value] if level % 2 else {"a": value}
        deep = {"apiVersion": "example.com/v1", "kind": "Deep", "metadata": {"name": "d"}, "v": value}
        schema = {"type": "object", "properties": {"v": schema}}
        await made(ask, "deep", schema)
        path = "/apis/example.com/v1/namespaces/default/deeps"
        assert (await ask("POST", path, deep))[0] == 201
        assert (await ask("PATCH", f"{path}/d?fieldManager=x&force=true", deep, APPLY))[0] == 200
        assert (await ask("GET", path, accept=YAML))[0] == 200
        for accept in ("", YAML, PROTOBUF):
            assert (await ask("GET", f"{DEFINITIONS}/deeps.example.com", accept=accept))[0] == 200
        for where in ("/openapi/v2", "/openapi/v3/apis/example.com/v1"):
            for accept in ("", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"):
                await ask("GET", where, accept=accept)
        assert (await ask("PATCH", f"{DEFINITIONS}/deeps.example.com?fieldManager=x&force=true",
                          definition("deep", schema), APPLY))[0] == 200  # fmt: skip
        for name, data in (("m", maps(MAX_DEPTH - 1)), ("l", {"a": lists(MAX_DEPTH - 2)})):
            body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": data}
            assert (await ask("POST", REVISIONS, {**body, "metadata": {"name": name}}))[0] == 201
            applied = {**body, "metadata": {"name": f"{name}a"}}
            assert (await ask("PATCH", f"{REVISIONS}/{name}a?fieldManager=x", applied, APPLY))[0] == 201
        for accept in ("", YAML, TABLE, PROTOBUF):
            assert (await ask("GET", REVISIONS, accept=accept))[0] == 200


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 1000, 1025, 10_000])
async def test_what_is_nested_deeper_is_refused_in_kubernetes_s_words(levels: int) -> None:
    async with running_server() as running:
        ask = Asker(running)
        await ask("POST", CONFIGMAPS, {"metadata": {"name": "c"}})
        for begin, end in (("[", "]"), ('{"a":', "}")):
            body = '{"metadata":{"name":"x"},"foo":' + begin * (levels - 1) + "1" + end * (levels - 1) + "}"
            words = f"invalid character '{begin[0]}' exceeded max depth"
            for method, path, ct, said in (
                ("POST", CONFIGMAPS, "application/json", f"json parse error: {words} ("),
                ("POST", REVIEWS[0], "application/json", f"json parse error: {words} ("),
                ("PATCH", f"{CONFIGMAPS}/c", MERGE, f"error decoding patch: {words}"),
                ("PATCH", f"{CONFIGMAPS}/c", STRATEGIC, words),
                ("DELETE", f"{CONFIGMAPS}/nope", "application/json", f"json parse error: {words}"),
                ("POST", REVIEWS[0], YAML, f"yaml: line 1: exceeded max depth of {MAX_DEPTH}"),
                ("PATCH", f"{CONFIGMAPS}/x?fieldManager=x", APPLY, f"yaml: line 1: exceeded max depth of {MAX_DEPTH}"),
            ):
                status, answer = await ask(method, path, body, ct)
                assert status == 400, answer
                assert said in json.loads(answer)["message"]
            unfinished = begin * levels
            assert (await ask("POST", CONFIGMAPS, unfinished))[0] == 400
        operations = f'[{{"op":"add","path":"/foo","value":{"[" * (levels - 2) + "]" * (levels - 2)}}}]'
        status, answer = await ask("PATCH", f"{CONFIGMAPS}/c", operations, PATCH)
        assert "error decoding patch: invalid character '[' exceeded max depth" in json.loads(answer)["message"]


async def test_what_everybody_may_send_is_small_and_what_others_may_send_has_only_so_many_values() -> None:
    async with running_server() as running:
        ask = Asker(running)
        big = b'{"metadata":{"annotations":{"a":"' + b"x" * MAX_REVIEW_BYTES + b'"}}}'
        for path in REVIEWS[:5]:
            assert (await ask("POST", path, big))[0] == 413
        assert (await ask("DELETE", f"{CONFIGMAPS}/c", big))[0] == 413
        status, answer = await ask("POST", CONFIGMAPS, b'{"foo":[' + b"{}," * MAX_VALUES + b"1]}")
        assert (status, f"more than {MAX_VALUES} values" in json.loads(answer)["message"]) == (400, True)
        labels = {f"-{number}": "-" for number in range(5000)}
        status, answer = await ask("POST", CONFIGMAPS, {"metadata": {"name": "c", "labels": labels}})
        assert (status, len(json.loads(answer)["details"]["causes"])) == (422, MAX_ERRORS)
