"""OpenAPI and discovery over HTTP, and the warnings of answers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from api_server import running_server

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.fixture(params=["1.36"])
async def http(request: pytest.FixtureRequest) -> AsyncIterator[aiohttp.ClientSession]:
    async with running_server(version=request.param) as running:
        headers = {"Authorization": f"Bearer {running.token}"}
        connector = aiohttp.TCPConnector(ssl=running.trust)
        async with aiohttp.ClientSession(running.url, headers=headers, connector=connector) as session:
            yield session


async def get(http: aiohttp.ClientSession, path: str, **headers: str) -> tuple[int, Any, bytes]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with http.get(path, headers=sent, allow_redirects=False) as response:
        return response.status, response.headers, await response.read()


async def test_v2_comes_as_json_or_protobuf_and_is_not_sent_twice(http: aiohttp.ClientSession) -> None:
    status, headers, body = await get(http, "/openapi/v2", Accept=PROTOBUF)
    assert status == 200
    assert headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert body.startswith(b"\x0a\x032.0")
    status, _, body = await get(http, "/openapi/v2", Accept=PROTOBUF, If_None_Match=headers["ETag"])
    assert (status, body) == (304, b"")
    status, headers, body = await get(http, "/openapi/v2?timeout=32s", Accept="application/json")
    assert (status, json.loads(body)["swagger"]) == (200, "2.0")
    status, _, body = await get(http, "/openapi/v2", Accept="text/html")
    assert (status, body) == (406, b"")
    for tags in ("*", f'"x", {headers["ETag"]}', f"W/{headers['ETag']}"):
        assert (await get(http, "/openapi/v2", Accept="application/json", If_None_Match=tags))[0] == 304
    for other in (headers["ETag"].strip('"'), '"x"'):
        assert (await get(http, "/openapi/v2", Accept="application/json", If_None_Match=other))[0] == 200


async def test_v3_documents_are_kept_for_ever_under_their_hash(http: aiohttp.ClientSession) -> None:
    status, headers, body = await get(http, "/openapi/v3")
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert "ETag" not in headers and (await get(http, "/openapi/v3", If_None_Match="*"))[0] == 200
    url = json.loads(body)["paths"]["api/v1"]["serverRelativeURL"]
    status, headers, body = await get(http, url)
    assert (status, headers["Cache-Control"]) == (200, "public, immutable")
    assert json.loads(body)["openapi"] == "3.0.0"
    path, _, hash_ = url.partition("?hash=")
    assert headers["ETag"] == f'"{hash_}"'
    assert (await get(http, path))[1]["Cache-Control"] == "no-cache, private"
    status, headers, _ = await get(http, f"{path}?hash=old")
    assert (status, headers["Location"]) == (301, url)
    assert (await get(http, path, Accept="text/html"))[::2] == (406, b"")
    for unknown in (
        "/openapi/v3/apis/nope/v1",
        "/openapi/v3/api",
        "/openapi/v4",
        "/openapi/v3/",
        "/openapi/v2/",
        f"{path}/",
    ):
        assert (await get(http, unknown))[0] == 404


async def test_documents_are_for_those_who_are_known(http: aiohttp.ClientSession) -> None:
    async with http.get("/openapi/v2", headers={"Impersonate-User": "bob"}) as response:
        assert response.status == 200
    async with http.get("/openapi/v2", headers={"Impersonate-User": "system:anonymous"}) as response:
        assert response.status == 403
    for method in ("POST", "FOO"):
        async with http.request(method, "/openapi/v2") as response:
            assert response.status == 200
        async with http.request(method, "/apis") as response:
            assert response.status == 200
        async with http.request(method, "/version") as response:
            assert (response.status, (await response.json())["reason"]) == (405, "MethodNotAllowed")


async def test_declared_kinds_come_and_go_in_the_documents(http: aiohttp.ClientSession) -> None:
    crds, group = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1"
    status, _, body = await get(http, crds)
    assert (status, json.loads(body)["kind"]) == (200, "CustomResourceDefinitionList")
    assert json.loads(body)["items"] == []
    status, _, text = await get(http, f"{group}/namespaces/default/widgets")
    assert (status, text) == (404, b"404 page not found\n")
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version |= {"deprecated": True, "deprecationWarning": "old"}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    async with http.post(crds, json={"metadata": {"name": "widgets.example.com"}, "spec": spec}) as response:
        assert response.status == 201, await response.text()
    (listed,) = json.loads((await get(http, group))[2])["resources"]
    assert (listed["name"], listed["kind"], listed["namespaced"]) == ("widgets", "Widget", True)
    document = json.loads((await get(http, "/openapi/v3/apis/example.com/v1"))[2])
    assert (
        document["components"]["schemas"]["com.example.v1.Widget"]["properties"]["spec"] == schema["properties"]["spec"]
    )
    assert "com.example.v1.Widget" in json.loads((await get(http, "/openapi/v2"))[2])["definitions"]
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    async with http.post(f"{group}/namespaces/default/widgets", json=widget) as response:
        assert response.status == 201, await response.text()
        assert response.headers["Warning"] == '299 - "old"'
    (item,) = json.loads((await get(http, f"{group}/widgets"))[2])["items"]
    assert (item["kind"], item["apiVersion"]) == ("Widget", "example.com/v1")
    async with http.delete(f"{crds}/widgets.example.com") as response:
        assert (await response.json())["metadata"]["deletionTimestamp"]
    for path in (f"{crds}/widgets.example.com", f"{group}/widgets", group, "/apis/example.com"):
        assert (await get(http, path))[0] == 404


@pytest.mark.parametrize(
    ("http", "served", "refused"),
    [("1.36", "v2", "v2beta1"), ("1.27", "v2beta1", "v2"), ("1.23", None, "v2")],
    indirect=["http"],
)
async def test_aggregated_discovery_is_that_of_the_release(
    http: aiohttp.ClientSession, served: str | None, refused: str
) -> None:
    status, _, body = await get(http, "/apis", Accept=AGGREGATED.format(refused))
    assert status == 406
    both = f"{AGGREGATED.format('v2')},{AGGREGATED.format('v2beta1')},application/json"
    status, headers, body = await get(http, "/apis", Accept=both)
    assert status == 200
    document = json.loads(body)
    if served is None:
        assert document["kind"] == "APIGroupList"
    else:
        assert document["apiVersion"] == f"apidiscovery.k8s.io/{served}"
        assert headers["Content-Type"] == AGGREGATED.format(served)
        assert (await get(http, "/apis", Accept=both, If_None_Match=headers["ETag"]))[0] == 304


async def test_endpoints_warn_of_their_age_and_jobs_of_what_they_leave_behind(http: aiohttp.ClientSession) -> None:
    status, headers, _ = await get(http, "/api/v1/namespaces/default/endpoints/nope")
    assert status == 404
    assert "v1 Endpoints is deprecated in v1.33+" in headers["Warning"]
    assert "Warning" not in (await get(http, "/api/v1/namespaces/default/pods"))[1]
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    for name in ("a", "b"):
        async with http.post(jobs, json={"metadata": {"name": name}, "spec": spec}) as response:
            assert response.status == 201, await response.text()
    async with http.delete(f"{jobs}/a") as response:
        assert "child pods are preserved by default" in response.headers["Warning"]
    async with http.delete(f"{jobs}/b", json={"propagationPolicy": "Background"}) as response:
        assert "Warning" not in response.headers


async def test_a_refused_request_has_its_warnings(http: aiohttp.ClientSession) -> None:
    body = {"metadata": {"name": "Bad"}, "bogus": 1}
    async with http.post("/api/v1/namespaces/default/configmaps", json=body) as response:
        assert response.status == 422
        assert response.headers["Warning"] == '299 - "unknown field \\"bogus\\""'
