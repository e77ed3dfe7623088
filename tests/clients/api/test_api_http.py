"""The API server over real HTTPS on loopback: bytes, headers, errors, watches, users."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest
from api_server import RunningServer, running_server

from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.api.resources import (
    BINDINGS,
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    NODES,
    PODS,
    ROLEBINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
)
from lastcall.kube.apiserver.auth.authentication import MASTERS
from lastcall.kube.apiserver.auth.tls import client_context
from lastcall.kube.apiserver.subresources.kubelet_client import PodLogOptions

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "busybox:1.36"}]}}


class Logs:
    """A kubelet that has one line, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple] = []

    async def container_logs(self, node, namespace, pod, container, options: PodLogOptions) -> AsyncIterator[bytes]:
        self.asked.append((node["metadata"]["name"], namespace, pod, container, options.query()))
        yield b"one line\n"


@pytest.fixture
async def logs() -> Logs:
    return Logs()


@pytest.fixture
async def running(logs: Logs) -> AsyncIterator[RunningServer]:
    async with running_server(kubelet_logs=logs) as server:
        await server.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        yield server


@asynccontextmanager
async def session(running: RunningServer, *, token: str | None = None, context: ssl.SSLContext | None = None):
    headers = {} if token == "" else {"Authorization": f"Bearer {token or running.token}"}
    connector = aiohttp.TCPConnector(ssl=context or running.trust)
    async with aiohttp.ClientSession(running.url, headers=headers, connector=connector) as http:
        yield http


async def lines(response: aiohttp.ClientResponse, count: int) -> list[dict]:
    async with asyncio.timeout(60):
        return [json.loads(await response.content.readline()) for _ in range(count)]


async def test_get_answers_the_stored_bytes_unchanged(running: RunningServer) -> None:
    await running.admin.create(PODS, POD, "default")
    entry = await running.server.operations.kind(PODS).entry("default", "p")
    async with session(running) as http, http.get("/api/v1/namespaces/default/pods/p") as response:
        assert await response.read() == entry.value.encoded() + b"\n"  # as Go ends a document
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Cache-Control"] == "no-cache, private"
        assert response.headers["Audit-Id"]


async def test_get_and_list_decode_nothing(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    await running.admin.create(PODS, POD, "default")

    def refuse(_: bytes) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(running.server.operations.kind(PODS).shared.cache, "decode", refuse)
    async with session(running) as http:
        for path in ("/api/v1/namespaces/default/pods/p", "/api/v1/pods"):
            async with http.get(path) as response:
                assert response.status == 200


async def test_list_items_have_no_kind_and_an_empty_list_is_a_list(running: RunningServer) -> None:
    async with session(running) as http:
        async with http.get("/api/v1/pods") as response:
            empty = await response.json()
        assert (empty["kind"], empty["apiVersion"], empty["items"]) == ("PodList", "v1", [])
        created = await running.admin.create(PODS, POD, "default")
        async with http.get("/api/v1/namespaces/default/pods") as response:
            (item,) = (await response.json())["items"]
    assert {"kind": "Pod", "apiVersion": "v1", **item} == created


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/namespaces/default/configmaps/c", 500),
        ("/api/v1/namespaces/default/events/e", 400),
        ("/apis/events.k8s.io/v1/namespaces/default/events/e", 400),
    ],
)
async def test_a_version_that_is_none_is_refused_as_caches_and_the_store_refuse_it(
    running: RunningServer, path: str, status: int
) -> None:
    async with session(running) as http, http.get(f"{path}?resourceVersion=x") as response:
        assert response.status == status


@pytest.mark.parametrize("accept", ["text/html", "text/plain"])
async def test_a_watch_that_is_not_acceptable_is_told_of_streams(running: RunningServer, accept: str) -> None:
    async with session(running) as http, http.get("/api/v1/pods?watch=1", headers={"Accept": accept}) as response:
        assert response.status == 406
        assert "application/json;stream=watch" in (await response.json())["message"]


@pytest.mark.parametrize("path", ["/apis/events.k8s.io/v1/events", "/apis/autoscaling/v1/horizontalpodautoscalers"])
async def test_a_bookmark_is_of_the_group_that_was_asked(running: RunningServer, path: str) -> None:
    async with session(running) as http, http.get(f"{path}?watch=1&allowWatchBookmarks=true") as response:
        async with asyncio.timeout(60):
            while (event := json.loads(await response.content.readline()))["type"] != "BOOKMARK":
                pass
    assert event["object"]["apiVersion"] == path.removeprefix("/apis/").rpartition("/")[0]


async def test_pages_go_on_where_the_last_one_ended_at_the_same_moment(running: RunningServer) -> None:
    for index in range(5):
        await running.admin.create(CONFIGMAPS, {"metadata": {"name": f"c{index}"}}, "default")
    path = "/api/v1/namespaces/default/configmaps?limit=2"
    async with session(running) as http:
        async with http.get(path) as response:
            first = await response.json()
        assert first["metadata"]["remainingItemCount"] == 3
        await running.admin.delete(CONFIGMAPS, "c3", "default")
        async with http.get(f"{path}&continue={first['metadata']['continue']}") as response:
            second = await response.json()
        assert [item["metadata"]["name"] for item in second["items"]] == ["c2", "c3"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        async with http.get(f"{path}&continue=garbage") as response:
            assert response.status == 400


async def test_a_watch_streams_a_line_per_event_and_ends_on_time(running: RunningServer) -> None:
    path = "/api/v1/configmaps?watch=1&timeoutSeconds=2&allowWatchBookmarks=true&labelSelector=app%3Dx"
    version = (await running.admin.list(CONFIGMAPS, "default")).resource_version
    await running.admin.create(CONFIGMAPS, {"metadata": {"name": "c", "labels": {"app": "x"}}}, "default")
    await running.admin.patch(CONFIGMAPS, "c", {"metadata": {"labels": {"app": "y"}}}, "default")
    async with session(running) as http, http.get(f"{path}&resourceVersion={version}") as response:
        assert response.status == 200
        added, deleted = await lines(response, 2)
        assert (added["type"], deleted["type"]) == ("ADDED", "DELETED")
        assert added["object"]["kind"] == "ConfigMap"
        async with asyncio.timeout(60):
            rest = [json.loads(line)["type"] for line in (await response.content.read()).splitlines()]
        assert rest in ([], ["BOOKMARK"]), "the one before the end"


async def test_a_streaming_list_ends_with_its_bookmark(running: RunningServer) -> None:
    await running.admin.create(CONFIGMAPS, {"metadata": {"name": "c"}}, "default")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with session(running) as http, http.get(f"/api/v1/namespaces/default/configmaps?{query}") as response:
        added, bookmark = await lines(response, 2)
    assert added["object"]["metadata"]["name"] == "c"
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize("collection", ["pods", "nodes", "services", "events", "configmaps", "leases"])
async def test_a_bookmark_in_a_table_watch_has_its_mark_in_the_row(running: RunningServer, collection: str) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    group = "/apis/coordination.k8s.io/v1" if collection == "leases" else "/api/v1"
    async with session(running) as http:
        async with http.get(f"{group}/{collection}?{query}", headers={"Accept": TABLE}) as response:
            async with asyncio.timeout(60):
                while (event := json.loads(await response.content.readline()))["type"] != "BOOKMARK":
                    pass
    (row,) = event["object"]["rows"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_forgotten_version_is_an_error_event_in_a_good_stream(running: RunningServer) -> None:
    async with session(running) as http, http.get("/api/v1/pods?watch=1&resourceVersion=1") as response:
        assert response.status == 200
        (event,) = await lines(response, 1)
        assert await response.content.read() == b""
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_table_watch_names_its_columns_once(running: RunningServer) -> None:
    async with session(running) as http:
        async with http.get("/api/v1/configmaps?watch=1", headers={"Accept": TABLE}) as response:
            for name in "ab":
                await running.admin.create(CONFIGMAPS, {"metadata": {"name": name}}, "default")
            first, second = await lines(response, 2)
    assert first["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/api/v1/namespaces/default/pods/nope", 404, 'pods "nope" not found'),
        ("GET", "/api/v1/foos", 404, "the server could not find the requested resource"),
        ("GET", "/api/v2/pods", 404, "the server could not find the requested resource"),
        ("POST", "/api/v1/namespaces/default/pods/p", 405, "the server does not allow this method"),
        ("DELETE", "/api/v1/namespaces", 405, "the server does not allow this method"),
        ("PUT", "/api/v1/pods", 405, "the server does not allow this method"),
        ("GET", "/api/v1/namespaces/default/pods?limit=abc", 400, 'strconv.ParseInt: parsing "abc"'),
        ("GET", "/api/v1/namespaces/default/pods?fieldSelector=bogus%3D1", 400, "field label not supported: bogus"),
        ("GET", "/api/v1/namespaces/default/pods?resourceVersion=99999999", 504, "Too large resource version"),
        ("DELETE", "/api/v1/namespaces/default/pods/p?propagationPolicy=Later", 422, 'Unsupported value: "Later"'),
        ("DELETE", "/api/v1/namespaces/default", 403, "this namespace may not be deleted"),
    ],
)
async def test_refusals_are_status_objects(running: RunningServer, method, path, status, words) -> None:
    await running.admin.create(PODS, POD, "default")
    async with session(running) as http, http.request(method, path) as response:
        body = await response.json()
    assert response.status == status
    assert body["kind"] == "Status"
    assert body["code"] == status
    assert words in body["message"]


@pytest.mark.parametrize(
    "body", [b"", b"{not json", b"[]", b'"text"', b"\xff\xfe", b'{"kind":"Secret","apiVersion":"v1"}']
)
async def test_a_body_that_is_no_configmap_is_a_bad_request(running: RunningServer, body: bytes) -> None:
    async with session(running) as http:
        async with http.post("/api/v1/namespaces/default/configmaps", data=body) as response:
            assert response.status in (400, 415)
        headers = {"Content-Type": "application/json"}
        async with http.post("/api/v1/namespaces/default/configmaps", data=body, headers=headers) as response:
            answer = await response.json()
    assert (response.status, answer["reason"]) == (400, "BadRequest")


async def test_a_body_above_three_mebibytes_is_refused(running: RunningServer) -> None:
    async with session(running) as http:
        body = orjson.dumps({"metadata": {"name": "big"}, "data": {"a": "x" * (3 << 20)}})
        headers = {"Content-Type": "application/json"}
        async with http.post("/api/v1/namespaces/default/configmaps", data=body, headers=headers) as response:
            assert response.status == 413


async def test_yaml_in_and_yaml_out(running: RunningServer) -> None:
    headers = {"Content-Type": "application/yaml", "Accept": "application/yaml"}
    async with session(running) as http:
        body = "metadata: {name: why, creationTimestamp: 2020-01-01T00:00:00Z}\ndata:\n  a: one\n"
        async with http.post("/api/v1/namespaces/default/configmaps", data=body, headers=headers) as response:
            text = await response.text()
    assert response.status == 201
    assert response.headers["Content-Type"] == "application/yaml"
    assert "data:\n  a: one\n" in text


async def test_unknown_fields_warn_and_strict_refuses(running: RunningServer) -> None:
    obj = {"metadata": {"name": "c"}, "datas": {"a": "1"}}
    path = "/api/v1/namespaces/default/configmaps"
    async with session(running) as http:
        async with http.post(f"{path}?fieldValidation=Strict", json=obj) as response:
            assert response.status == 400
            assert 'unknown field "datas"' in (await response.json())["message"]
        async with http.post(path, json=obj) as response:
            assert response.status == 201
            assert response.headers["Warning"] == '299 - "unknown field \\"datas\\""'
            assert "datas" not in await response.json()


async def test_dry_run_does_everything_but_the_write(running: RunningServer) -> None:
    async with session(running) as http:
        async with http.post("/api/v1/namespaces/default/pods?dryRun=All", json=POD) as response:
            created = await response.json()
        assert response.status == 201
        assert created["metadata"]["uid"]
        assert "resourceVersion" not in created["metadata"]
        async with http.get("/api/v1/namespaces/default/pods/p") as response:
            assert response.status == 404


async def test_anonymous_may_ask_for_health_and_version_only(running: RunningServer) -> None:
    async with session(running, token="") as http:
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            async with http.get(path) as response:
                assert response.status == 200
        for path in ("/api", "/api/v1/pods", "/nope"):
            async with http.get(path) as response:
                assert response.status == 403
                assert 'User "system:anonymous" cannot' in (await response.json())["message"]


async def test_a_wrong_token_is_unauthorized_everywhere(running: RunningServer) -> None:
    async with session(running, token="wrong") as http, http.get("/version") as response:
        assert response.status == 401
        assert (await response.json())["message"] == "Unauthorized"


async def test_a_client_certificate_names_user_and_groups(running: RunningServer) -> None:
    for groups, status in ((["system:masters"], 200), (["nobodies"], 403)):
        certificate, key = running.ca.issue_client("alice", groups)
        context = client_context(running.ca.certificate_pem, certificate, key)
        async with session(running, token="", context=context) as http, http.get("/api/v1/pods") as response:
            assert response.status == status
            if status == 403:
                assert 'User "alice" cannot list resource "pods"' in (await response.json())["message"]


async def test_a_service_account_token_lives_as_long_as_its_pod(running: RunningServer) -> None:
    pod = await running.admin.create(PODS, POD, "default")
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod["metadata"]["uid"]}
    request = {"spec": {"expirationSeconds": 3607, "boundObjectRef": bound}}
    answer = await running.admin.create(SERVICEACCOUNTS, request, "default", name="default", subresource="token")
    async with session(running, token=answer["status"]["token"]) as http:
        async with http.get("/api") as response:
            assert response.status == 200
        async with http.get("/api/v1/namespaces/default/secrets") as response:
            assert response.status == 403
            assert "system:serviceaccount:default:default" in (await response.json())["message"]
        await running.admin.delete(PODS, "p", "default", grace_period_seconds=0)
        async with http.get("/api") as response:
            assert response.status == 401


async def test_impersonation_gives_the_rights_of_the_other_user(running: RunningServer) -> None:
    async with session(running) as http:
        async with http.get("/api/v1/pods", headers={"Impersonate-User": "alice"}) as response:
            assert response.status == 403
            assert 'User "alice"' in (await response.json())["message"]


def acts_as(running: RunningServer, user: str, *groups: str):
    """A session of a user with a client certificate."""
    context = client_context(running.ca.certificate_pem, *running.ca.issue_client(user, list(groups)))
    return session(running, token="", context=context)


async def give(running: RunningServer, user: str, *rules: dict) -> None:
    """A role of its own for a user, in all namespaces."""
    await running.admin.create(CLUSTERROLES, {"metadata": {"name": user}, "rules": list(rules)})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
    subjects = [{"kind": "User", "name": user}]
    await running.admin.create(
        CLUSTERROLEBINDINGS, {"metadata": {"name": user}, "roleRef": reference, "subjects": subjects}
    )


def core(verbs: str, resource: str, *names: str) -> dict:
    return {"apiGroups": [""], "resources": [resource], "verbs": verbs.split(), "resourceNames": list(names)}


async def test_a_service_account_does_what_its_role_says_and_no_more(running: RunningServer) -> None:
    role = {"metadata": {"name": "r"}, "rules": [core("list watch", "pods")]}
    await running.admin.create(ROLES, role, "default")
    answer = await running.admin.create(SERVICEACCOUNTS, {}, "default", name="default", subresource="token")
    path = "/api/v1/namespaces/{}/pods"
    async with session(running, token=answer["status"]["token"]) as http:
        async with http.get(path.format("default")) as response:
            assert response.status == 403
        binding = {
            "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "default"}],
        }
        await running.admin.create(ROLEBINDINGS, binding, "default")
        for namespace, query, status in (
            ("default", "", 200),
            ("default", "?watch=1&timeoutSeconds=0", 200),
            ("kube-system", "", 403),
        ):
            async with http.get(path.format(namespace) + query) as response:
                assert response.status == status
        async with http.get("/api/v1/pods") as response:
            assert response.status == 403
        async with http.post(path.format("default"), json=POD) as response:
            assert response.status == 403


async def test_a_list_of_one_name_is_allowed_by_that_name(running: RunningServer) -> None:
    await give(running, "alice", core("list", "secrets", "mine"))
    path = "/api/v1/namespaces/default/secrets"
    async with acts_as(running, "alice") as http:
        for query, status in (("?fieldSelector=metadata.name%3Dmine", 200), ("", 403)):
            async with http.get(path + query) as response:
                assert response.status == status
        async with http.get(f"{path}?fieldSelector=metadata.name%3Dyours") as response:
            assert (await response.json())["message"].startswith('secrets "yours" is forbidden: User "alice" cannot')


async def test_only_who_may_impersonate_acts_as_another(running: RunningServer) -> None:
    await give(running, "alice", core("impersonate", "users", "bob"), core("impersonate", "groups", "devs"))
    await give(running, "carol", core("*", "pods"))
    await give(running, "bob", core("list", "nodes"))
    bob, devs, masters = ("Impersonate-User", "bob"), ("Impersonate-Group", "devs"), ("Impersonate-Group", MASTERS)
    for user, headers, path, status, text in (
        (
            "alice",
            [bob, masters],
            "nodes",
            403,
            'nodes is forbidden: User "alice" cannot impersonate-on:user-info:list',
        ),
        ("alice", [bob], "nodes", 200, ""),
        ("alice", [bob, devs], "nodes", 200, ""),
        ("alice", [bob], "pods", 403, 'User "bob" cannot list'),
        # From here on the mode by which alice acted last, the legacy one, is tried first.
        (
            "alice",
            [bob, masters],
            "nodes",
            403,
            f'groups "{MASTERS}" is forbidden: User "alice" cannot impersonate res',
        ),
        ("alice", [("Impersonate-User", "carol")], "pods", 403, 'users "carol" is forbidden: User "alice" cannot'),
        ("alice", [bob, ("Impersonate-Uid", "u")], "nodes", 403, 'uids.authentication.k8s.io "u" is forbidden'),
        ("alice", [bob, ("Impersonate-Extra-A%2fB", "v")], "nodes", 403, 'impersonate resource "userextras/a/b"'),
        ("alice", [("Impersonate-Group", "devs")], "nodes", 400, 'Groups:[]string{"devs"}, Extra:map[string][]string('),
        ("carol", [bob], "pods", 403, 'User "carol" cannot impersonate:user-info resource "users" in API group "auth'),
    ):
        async with acts_as(running, user) as http:
            async with http.get(f"/api/v1/{path}", headers=headers) as response:
                assert response.status == status
                assert text in (await response.json()).get("message", "")


async def test_a_websocket_into_a_pod_needs_what_a_post_needs(running: RunningServer) -> None:
    await give(running, "alice", core("get", "pods/exec"))
    await give(running, "bob", core("get create", "pods/exec"))
    for user, status in (("alice", 403), ("bob", 404)):
        async with acts_as(running, user) as http:
            async with http.get("/api/v1/namespaces/default/pods/none/exec?command=true&stdout=1") as response:
                assert response.status == status
                if status == 403:
                    assert 'cannot create resource "pods/exec"' in (await response.json())["message"]


async def test_logs_come_from_the_pods_node(running: RunningServer, logs: Logs) -> None:
    await running.admin.create(NODES, {"metadata": {"name": "n1"}})
    await running.admin.create(PODS, POD, "default")
    async with session(running) as http:
        async with http.get("/api/v1/namespaces/default/pods/p/log") as response:
            assert response.status == 204
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
        await running.admin.create(BINDINGS, binding, "default")
        path = "/api/v1/namespaces/default/pods/p/log?follow=true&tailLines=5&timestamps=true"
        async with http.get(path) as response:
            assert await response.text() == "one line\n"
            assert response.headers["Content-Type"] == "text/plain"
        async with http.get("/api/v1/namespaces/default/pods/p/log?container=other") as response:
            assert response.status == 400
            assert (await response.json())["message"] == "container other is not valid for pod p"
    assert logs.asked == [("n1", "default", "p", "m", {"follow": "true", "timestamps": "true", "tailLines": "5"})]


async def test_an_event_has_two_faces(running: RunningServer) -> None:
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Killing",
        "message": "Stopping container m",
        "type": "Normal",
    }
    async with session(running) as http:
        async with http.post("/api/v1/namespaces/default/events", json=event) as response:
            assert response.status == 201
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        async with http.get(f"{path}/e") as response:
            face = await response.json()
        assert face["apiVersion"] == "events.k8s.io/v1"
        assert (face["note"], face["regarding"]["name"]) == ("Stopping container m", "p")
        async with http.get(f"{path}?fieldSelector=regarding.name%3Dp") as response:
            assert len((await response.json())["items"]) == 1


async def test_services_get_addresses_that_nobody_else_has(running: RunningServer) -> None:
    first = await running.admin.create(
        SERVICES, {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}, "default"
    )
    address = first["spec"]["clusterIP"]
    assert address.startswith("10.96.")
    port = first["spec"]["ports"][0]["nodePort"]
    async with session(running) as http:
        path = "/api/v1/namespaces/default/services"
        taken = {"metadata": {"name": "b"}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}}
        async with http.post(path, json=taken) as response:
            assert response.status == 422
            assert "provided IP is already allocated" in (await response.json())["message"]
        taken = {"metadata": {"name": "b"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}}
        async with http.post(path, json=taken) as response:
            assert response.status == 422
            assert "provided port is already allocated" in (await response.json())["message"]
        await running.admin.delete(SERVICES, "a", "default")
        async with http.post(path, json=taken) as response:
            assert response.status == 201


async def test_an_address_is_kept_for_a_service_with_a_name(running: RunningServer) -> None:
    body = {"metadata": {}, "spec": {"ports": [{"port": 80}]}}
    async with session(running) as http, http.post("/api/v1/namespaces/default/services", json=body) as response:
        assert response.status == 422
        message = (await response.json())["message"]
    assert message.startswith('Service "" is invalid: spec.clusterIPs: Invalid value: [""]: failed to allocate IP: ')
    assert message.endswith(" is invalid: spec.parentRef.name: Required value")


async def test_a_service_of_another_name_has_no_traffic_policy_of_the_cluster(running: RunningServer) -> None:
    spec = {"type": "ExternalName", "externalName": "example.com", "internalTrafficPolicy": "Local"}
    made = await running.admin.create(SERVICES, {"metadata": {"name": "away"}, "spec": spec}, "default")
    assert "internalTrafficPolicy" not in made["spec"]


async def test_aggregated_discovery_has_an_etag(running: RunningServer) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    async with session(running) as http:
        async with http.get("/api", headers={"Accept": accept}) as response:
            etag = response.headers["ETag"]
            assert "as=APIGroupDiscoveryList" in response.headers["Content-Type"]
            assert (await response.json(content_type=None))["kind"] == "APIGroupDiscoveryList"
        async with http.get("/api", headers={"Accept": accept, "If-None-Match": etag}) as response:
            assert response.status == 304


async def test_the_server_ends_at_once_although_watches_are_open() -> None:
    async with asyncio.timeout(30):  # aiohttp would wait 60 s for them
        async with running_server() as running:
            connector = aiohttp.TCPConnector(ssl=running.trust)
            headers = {"Authorization": f"Bearer {running.token}"}
            http = aiohttp.ClientSession(running.url, headers=headers, connector=connector)
            response = await http.get("/api/v1/pods?watch=1")
            assert response.status == 200
        with pytest.raises(aiohttp.ClientError):
            await response.content.read()
        await http.close()


async def test_secrets_fold_plain_text_into_data(running: RunningServer) -> None:
    secret = await running.admin.create(
        SECRETS, {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}, "default"
    )
    assert secret["data"] == {"password": "aHVudGVyMg=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


@pytest.mark.parametrize("query", ["", "?watch=1&timeoutSeconds=1", "/x"])
async def test_whatever_is_asked_of_endpoints_is_answered_with_the_warning_that_they_are_deprecated(
    running: RunningServer, query: str
) -> None:
    async with session(running) as http, http.get(f"/api/v1/namespaces/default/endpoints{query}") as response:
        warning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        assert response.headers["Warning"] == f'299 - "{warning}"'


@pytest.mark.parametrize("more", ["", ",application/json"])
async def test_who_prefers_protobuf_gets_it(running: RunningServer, more: str) -> None:
    await running.admin.create(PODS, POD, "default")
    accept = {"Accept": f"application/vnd.kubernetes.protobuf{more}"}
    async with session(running) as http:
        for path, kind in (("/p", "Pod"), ("", "PodList"), ("/nope", "Status")):
            async with http.get(f"/api/v1/namespaces/default/pods{path}", headers=accept) as response:
                assert response.headers["Content-Type"] == "application/vnd.kubernetes.protobuf"
                assert decode_envelope(await response.read())["kind"] == kind
        watch = "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1"
        async with http.get(watch, headers=accept) as response:
            assert response.headers["Content-Type"] == "application/vnd.kubernetes.protobuf;stream=watch"
            size = int.from_bytes(await response.content.readexactly(4), "big")
            assert b"k8s\x00" in await response.content.readexactly(size)


async def test_discovery_comes_in_protobuf_and_the_version_in_json_only(running: RunningServer) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    async with session(running) as http:
        for path, kind in (("/api", "APIVersions"), ("/apis", "APIGroupList"), ("/apis/apps/v1", "APIResourceList")):
            async with http.get(path, headers={"Accept": protobuf}) as response:
                assert (response.status, response.headers["Content-Type"]) == (200, protobuf)
                assert decode_envelope(await response.read())["kind"] == kind
        for accept, status in ((protobuf, 406), (f"{protobuf},application/json", 200)):
            async with http.get("/version", headers={"Accept": accept}) as response:
                assert response.status == status
        async with http.get("/", headers={"Accept": protobuf}) as response:
            assert (response.status, response.headers["Content-Type"]) == (200, "application/json")


async def test_a_custom_resource_has_its_metadata_in_protobuf(running: RunningServer) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    metadata = f"{protobuf};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    schema = {"openAPIV3Schema": {"type": "object"}}
    names = {"plural": "widgets", "kind": "Widget"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    await running.admin.create(CUSTOMRESOURCEDEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    path = "/apis/example.com/v1/widgets"
    async with session(running) as http:
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        async with http.post(path, json=body) as response:
            assert response.status == 201
        for accept, status, sent in (
            (protobuf, 406, protobuf),
            (f"{protobuf},application/json", 200, "application/json"),
            (metadata, 200, protobuf),
        ):
            async with http.get(f"{path}/w", headers={"Accept": accept}) as response:
                assert (response.status, response.headers["Content-Type"]) == (status, sent)
        async with http.get(path, headers={"Accept": metadata.replace("Metadata", "MetadataList")}) as response:
            (item,) = decode_envelope(await response.read())["items"]
            assert item["metadata"]["name"] == "w"
        async with http.get(f"{path}?watch=1&timeoutSeconds=1", headers={"Accept": metadata}) as response:
            assert response.headers["Content-Type"] == f"{protobuf};stream=watch"
            size = int.from_bytes(await response.content.readexactly(4), "big")
            assert b"PartialObjectMetadata" in await response.content.readexactly(size)
