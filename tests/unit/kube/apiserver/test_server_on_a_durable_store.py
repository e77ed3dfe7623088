"""The API server on the SQLite store: a restart keeps what was acknowledged, and a full disk is an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from api_server import ADMIN, ListRecorder

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    ENDPOINTS,
    ENDPOINTSLICES,
    LIMITRANGES,
    NODES,
    PODS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.store.open import open_store
from lastcall.kube.store.sqlite import SQLiteStore
from lastcall.world.world import World


@asynccontextmanager
async def server_on(
    path: Path, endpoint: tuple[str, int] = ("172.18.0.1", 6443), most_bytes: int = 1 << 30
) -> AsyncIterator[tuple[Client, SQLiteStore]]:
    store = await open_store(path, world=World(), most_bytes=most_bytes)
    config = APIServerConfig(endpoint=endpoint)
    server = APIServer(world=World(), store=store, recorder=ListRecorder(), config=config)
    await server.bootstrap()
    yield server.client(ADMIN), store
    await store.close()


def config_map(name: str) -> Object:
    return {"metadata": {"name": name}, "data": {"key": "value"}}


def service(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}


async def test_a_restarted_server_serves_the_same_objects_and_goes_on_with_the_same_watch(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path) as (client, store):
        one = await client.create(CONFIGMAPS, config_map("one"), "default")
        ip = (await client.create(SERVICES, service("web"), "default"))["spec"]["clusterIP"]
        two = await client.create(CONFIGMAPS, config_map("two"), "default")
        revision = await store.revision()
    async with server_on(path) as (client, store):
        assert await store.revision() == revision, "what a cluster has from the start is there already"
        assert await client.get(CONFIGMAPS, "one", "default") == one
        async with client.watch(CONFIGMAPS, "default", resource_version=one["metadata"]["resourceVersion"]) as events:
            assert (await anext(events)).object == two
        other = await client.create(SERVICES, {**service("other")}, "default")
        assert other["spec"]["clusterIP"] != ip
        taken = service("taken")
        taken["spec"]["clusterIP"] = ip
        with pytest.raises(StatusError, match="already allocated"):
            await client.create(SERVICES, taken, "default")


async def test_the_kubernetes_service_leads_to_where_the_server_answers_also_after_a_move(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    for endpoint in (("10.96.0.1", 443), ("172.18.0.1", 6443)):
        async with server_on(path, endpoint) as (client, _):
            endpoint_slice = await client.get(ENDPOINTSLICES, "kubernetes", "default")
            endpoints = await client.get(ENDPOINTS, "kubernetes", "default")
        ports = [{"name": "https", "protocol": "TCP", "port": endpoint[1]}]
        assert endpoint_slice["endpoints"] == [{"addresses": [endpoint[0]], "conditions": {"ready": True}}]
        assert endpoint_slice["ports"] == ports
        assert endpoints["subsets"] == [{"addresses": [{"ip": endpoint[0]}], "ports": ports}]


async def test_a_restarted_server_serves_declared_kinds_and_goes_on_with_a_deletion(tmp_path: Path) -> None:
    path, widgets = tmp_path / "store.sqlite", Resource("example.com", "v1", "widgets", "Widget", True)
    definition = {
        "metadata": {"name": "widgets.example.com", "finalizers": ["example.com/hold"]},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    held = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["a.b/c"]}}
    async with server_on(path) as (client, _):
        await client.create(CUSTOMRESOURCEDEFINITIONS, definition)
        await client.create(widgets, held, "default")
    async with server_on(path) as (client, _):
        assert [each["metadata"]["name"] for each in (await client.list(widgets)).items] == ["w"]
        await client.delete(CUSTOMRESOURCEDEFINITIONS, "widgets.example.com")
    async with server_on(path) as (client, _):
        with pytest.raises(StatusError, match="create not allowed while custom resource definition is terminating"):
            await client.create(widgets, {**held, "metadata": {"name": "late"}}, "default")
        await client.patch(widgets, "w", {"metadata": {"finalizers": None}}, "default")
        left = await client.get(CUSTOMRESOURCEDEFINITIONS, "widgets.example.com")
        assert left["metadata"]["finalizers"] == ["example.com/hold"]


async def test_a_write_that_the_store_cannot_keep_is_answered_500_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server_on(tmp_path / "store.sqlite") as (client, store):
        old = await client.create(CONFIGMAPS, config_map("old"), "default")
        store._log._connection.execute("PRAGMA query_only = 1")
        big = {**config_map("big"), "data": {"key": "x" * 100_000}}
        with pytest.raises(StatusError) as caught:
            await client.create(CONFIGMAPS, big, "default")
        assert (caught.value.code, caught.value.reason) == (500, "InternalError")
        assert "the write was not kept: attempt to write a readonly database; make the file" in caught.value.message
        with pytest.raises(StatusError, match="not found"):
            await client.get(CONFIGMAPS, "big", "default")
        assert await client.get(CONFIGMAPS, "old", "default") == old

        store._log._connection.execute("PRAGMA query_only = 0")
        assert (await client.create(CONFIGMAPS, big, "default"))["data"] == big["data"]


async def test_a_caller_that_is_cancelled_while_its_write_is_kept_leaves_no_address_free_that_is_taken(
    tmp_path: Path,
) -> None:
    async with server_on(tmp_path / "store.sqlite") as (client, _):
        for index in range(20):
            obj = service(f"web-{index}")
            task = asyncio.ensure_future(client.create(SERVICES, obj, "default"))
            for _ in range(index):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
        kept = (await client.list(SERVICES, "default")).items
        for item in kept:
            if item["metadata"]["name"] == "kubernetes":
                continue
            obj = service("again")
            obj["spec"]["clusterIP"] = item["spec"]["clusterIP"]
            with pytest.raises(StatusError, match="already allocated"):
                await client.create(SERVICES, obj, "default")
        assert len(kept) > 1, "some were cancelled on their way"


async def test_a_full_store_says_so_and_everything_can_be_read_changed_and_deleted(tmp_path: Path) -> None:
    """A real API server on an etcd with the NOSPACE alarm answers 500 without a reason, also to a graceful deletion."""
    async with server_on(tmp_path / "store.sqlite", most_bytes=12 << 20) as (client, _):
        node = await client.create(NODES, {"metadata": {"name": "n", "finalizers": ["example.com/held"]}})
        body = config_map("big")
        body["data"]["key"] = "x" * 200_000
        names: list[str] = []
        status: Object = {}
        while not status:
            try:
                await client.create(CONFIGMAPS, {**body, "metadata": {"name": f"c-{len(names)}"}}, "default")
                names.append(f"c-{len(names)}")
            except StatusError as error:
                status = error.status
        assert (status["code"], status["reason"]) == (507, "InsufficientStorage")
        assert status["message"].startswith("mvcc: database space exceeded: ")
        with pytest.raises(StatusError, match="database space exceeded"):
            await client.create(CONFIGMAPS, config_map("small"), "default")
        assert len((await client.list(CONFIGMAPS, "default")).items) == len(names)
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
        node = await client.update(NODES, {**node, "status": {"conditions": conditions}}, subresource="status")
        assert (await client.delete(NODES, "n"))["metadata"]["deletionTimestamp"]
        node = await client.get(NODES, "n")
        await client.update(NODES, {**node, "metadata": {**node["metadata"], "finalizers": []}})
        with pytest.raises(StatusError, match="not found"):
            await client.get(NODES, "n")
        for name in names[1:]:
            await client.delete(CONFIGMAPS, name, "default")
        await client.create(CONFIGMAPS, config_map("small"), "default")
        await client.create(CONFIGMAPS, {**body, "metadata": {"name": "c"}}, "default")


async def test_a_limit_that_comes_while_the_first_pod_is_stored_holds_for_the_next_pod_of_its_body(
    tmp_path: Path,
) -> None:
    """What was made of the first Pod belongs to what admission saw then, not to what is there once it is stored."""
    body = {"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}]}
    async with server_on(tmp_path / "store.sqlite") as (client, _):
        await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        first, _ = await asyncio.gather(
            client.create(PODS, body, "default"),
            client.create(LIMITRANGES, {"metadata": {"name": "small"}, "spec": limits}, "default"),
        )
        assert "resources" not in first["spec"]["containers"][0] or not first["spec"]["containers"][0]["resources"]
        for _ in range(2):
            pod = await client.create(PODS, body, "default")
            assert pod["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}
