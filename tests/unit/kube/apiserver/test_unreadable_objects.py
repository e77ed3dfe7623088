"""A server that starts on a store with values that are no objects, or that lie under another object's key."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from api_server import ADMIN, ListRecorder, running_server
from extreme_values import BASES

from lastcall.kube.api.errors import StatusError, insufficient_storage
from lastcall.kube.api.resources import (
    APISERVICES,
    BINDINGS,
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    NAMESPACES,
    NODES,
    PODS,
    SERVED,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from lastcall.kube.apiserver.conversions.table import CONVERSIONS
from lastcall.kube.apiserver.registry.definitions import Definitions
from lastcall.kube.apiserver.registry.unreadable import UnreadableError, read_stored, warning_of
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.store.open import open_store
from lastcall.kube.store.sqlite import SQLiteStore
from lastcall.kube.store.value import Value
from lastcall.world import crash_guard
from lastcall.world.world import World

Object = dict[str, Any]
STORED = [each for each in SERVED if each not in CONVERSIONS and each != BINDINGS]
META = {"uid": "u", "resourceVersion": "5", "creationTimestamp": "2026-01-01T00:00:00Z"}


@asynccontextmanager
async def server_on(path: Path) -> AsyncIterator[tuple[Client, SQLiteStore, crash_guard.Faults]]:
    with crash_guard.installed() as faults:
        store = await open_store(path, world=World())
        server = APIServer(world=World(), store=store, recorder=ListRecorder(), config=APIServerConfig())
        await server.bootstrap()
        yield server.client(ADMIN), store, faults
        await store.close()


async def put(path: Path, rows: dict[str, bytes]) -> None:
    """Write values past every check, in the place of what is there."""
    store = await open_store(path, world=World())
    for key, encoded in rows.items():
        there = await store.get(key)

        def encode(revision: int, encoded: bytes = encoded) -> Value:
            return Value(encoded)

        await (store.create(key, encode) if there is None else store.update(key, there.revision, encode))
    await store.close()


def stored(resource: Resource, name: str, namespace: str = "", **more: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {}), **META}
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta, **more}


async def names(client: Client, resource: Resource, namespace: str = "") -> list[str]:
    return [each["metadata"]["name"] for each in (await client.list(resource, namespace)).items]


async def test_an_object_under_another_key_is_set_aside_named_by_its_key_and_deleted_by_it(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path) as (client, _, _):
        await client.create(CONFIGMAPS, {"metadata": {"name": "sound"}}, "default")
    await put(path, {"configmaps/default/torn": orjson.dumps(stored(CONFIGMAPS, "torn", "kube-system"))})
    async with server_on(path) as (client, _, faults):
        (fault,) = faults.of(crash_guard.STORED_OBJECTS)
        assert fault.key == "configmaps/default/torn"
        assert "metadata.namespace is 'kube-system', its key says 'default'" in fault.error
        assert fault.error.endswith("kubectl delete configmaps torn -n default")
        assert await names(client, CONFIGMAPS, "default") == ["sound"]
        assert "torn" not in await names(client, CONFIGMAPS, "kube-system")
        for request in (
            client.get(CONFIGMAPS, "torn", "default"),
            client.patch(CONFIGMAPS, "torn", {"data": {"a": "b"}}, "default"),
        ):
            with pytest.raises(StatusError) as refused:
                await request
            assert (refused.value.code, refused.value.reason) == (500, "StorageReadError")
            assert "configmaps/default/torn cannot be read" in refused.value.message
        with pytest.raises(StatusError, match="already exists"):
            await client.create(CONFIGMAPS, {"metadata": {"name": "torn"}}, "default")
        with pytest.raises(StatusError, match="not found"):
            await client.get(CONFIGMAPS, "torn", "kube-system")
    async with server_on(path) as (client, store, _):  # nothing was lost by the first start
        await client.delete(CONFIGMAPS, "torn", "default")
        with pytest.raises(StatusError, match="not found"):
            await client.get(CONFIGMAPS, "torn", "default")
        await client.create(CONFIGMAPS, {"metadata": {"name": "torn"}}, "default")
        await store.compact(await store.revision())
    async with server_on(path) as (client, _, faults):
        assert faults.all() == []
        assert sorted(await names(client, CONFIGMAPS, "default")) == ["sound", "torn"]


async def test_an_unreadable_object_stays_deleted_after_its_history_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path):
        pass
    await put(path, {"configmaps/default/torn": b"[]"})
    async with server_on(path) as (client, store, _):
        await client.delete(CONFIGMAPS, "torn", "default")
        await client.create(CONFIGMAPS, {"metadata": {"name": "later"}}, "default")
        await store.compact(await store.revision())
    async with server_on(path) as (client, _, faults):
        assert faults.all() == []
        assert await names(client, CONFIGMAPS, "default") == ["later"]


BAD = {
    "no JSON": b"{",
    "a list": b"[]",
    "no kind": b"{}",
    "another kind": orjson.dumps(stored(SERVICEACCOUNTS, "bad")),
    "kind alone": b"KIND",
    "metadata is a list": b"METALIST",
}


@pytest.mark.parametrize("bad", BAD)
async def test_one_bad_object_of_each_kind_spoils_neither_the_start_nor_a_list(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path) as (client, _, _):
        usual = {each: len(await names(client, each)) for each in STORED}
    rows = {}
    for each in STORED:
        head = {"kind": each.kind, "apiVersion": each.api_version}
        value = {b"KIND": orjson.dumps(head), b"METALIST": orjson.dumps({**head, "metadata": []})}.get(BAD[bad])
        rows[f"{each.plural}/default/bad" if each.namespaced else f"{each.plural}/bad"] = value or BAD[bad]
    rows.pop("serviceaccounts/default/bad") if bad == "another kind" else None
    await put(path, rows)
    async with server_on(path) as (client, store, _):
        assert {each: len(await names(client, each)) for each in STORED} == usual
        assert {each.entry.key for each in store.unreadable("")} == rows.keys()
        for each in STORED:
            key = f"{each.plural}/default/bad" if each.namespaced else f"{each.plural}/bad"
            if key in rows:
                await client.delete(each, "bad", "default" if each.namespaced else "")
        assert store.unreadable("") == []


async def test_services_and_api_services_without_a_spec_do_not_keep_a_server_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path):
        pass
    rows: dict[str, Object] = {"services/default/none": stored(SERVICES, "none", "default")}
    rows["services/default/text"] = stored(SERVICES, "text", "default", spec="x")
    rows["services/default/null"] = stored(SERVICES, "null", "default", spec=None)
    for number, spec in enumerate(({}, [], "x", {"service": []}, {"group": 5})):
        rows[f"apiservices/v{number}.odd"] = stored(APISERVICES, f"v{number}.odd", spec=spec)
    rows["apiservices/v9.odd"] = stored(APISERVICES, "v9.odd")
    await put(path, {key: orjson.dumps(row) for key, row in rows.items()})
    async with server_on(path) as (client, store, faults):
        aside = {each.entry.key for each in store.unreadable("")}
        assert {key for key in rows if key.startswith("services/")} <= aside
        assert {fault.key for fault in faults.of(crash_guard.STORED_OBJECTS)} == aside, "each is named, and no other"
        assert await names(client, SERVICES, "default") == ["kubernetes"]
        for key in rows.keys() - aside:
            assert key.startswith("apiservices/")


async def test_an_object_stored_with_blanks_is_served_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path) as (client, _, _):
        await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        made = await client.create(PODS, {"metadata": {"name": "p"}, **{"spec": BASES[PODS]["spec"]}}, "default")
    blanks = orjson.dumps(dict(reversed(made.items())), option=orjson.OPT_INDENT_2)
    await put(path, {"pods/default/p": blanks})
    async with server_on(path) as (client, store, faults):
        assert faults.all() == []
        entry = await store.get("pods/default/p")
        assert entry is not None
        assert entry.value.encoded().startswith(b'{"kind":"Pod","apiVersion":"v1",')
        assert b"\n" not in entry.value.encoded()
        assert (await client.get(PODS, "p", "default"))["spec"] == made["spec"]


async def test_what_every_cluster_has_is_made_anew_in_the_place_of_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path) as (client, store, _):
        keys = [each.key for each in (await store.list(""))[0]]
        usual = {each: sorted(await names(client, each)) for each in STORED}
    await put(path, dict.fromkeys(keys, b"{}"))
    async with server_on(path) as (client, store, _):
        left = {each.entry.key for each in store.unreadable("")}
        assert {each: sorted(await names(client, each)) for each in STORED if each.plural != "storageclasses"} == {
            each: found for each, found in usual.items() if each.plural != "storageclasses"
        }
        assert left <= {key for key in keys if key.startswith("storageclasses/")}


async def test_a_node_that_cannot_be_read_makes_way_for_its_kubelet(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path):
        pass
    await put(path, {"nodes/node-1": b'{"kind":"Node","apiVersion":"v1"}'})
    async with server_on(path) as (client, store, _):
        await client.create(NODES, {"metadata": {"name": "node-1"}})
        assert await names(client, NODES) == ["node-1"]
        assert store.unreadable("") == []


async def test_what_cannot_be_read_ends_with_its_namespace(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    async with server_on(path) as (client, _, _):
        await client.create(NAMESPACES, {"metadata": {"name": "t2"}})
    await put(path, {"pods/t2/torn": orjson.dumps(stored(PODS, "torn", "default")), "pods/t22/torn": b"{}"})
    async with server_on(path) as (client, store, _):
        ended = await client.delete(NAMESPACES, "t2")
        await client.update(NAMESPACES, {**ended, "spec": {"finalizers": []}}, subresource="finalize")
        assert [each.entry.key for each in store.unreadable("")] == ["pods/t22/torn"]


async def test_objects_of_a_declared_kind_are_looked_over_as_well(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "e.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    things = Resource("e.com", "v1", "things", "Thing", True)
    async with server_on(path) as (client, _, _):
        await client.create(CUSTOMRESOURCEDEFINITIONS, {"metadata": {"name": "things.e.com"}, "spec": spec})
    await put(path, {"things.e.com/default/torn": b'{"kind":"Thing","apiVersion":"e.com/v1"}'})
    async with server_on(path) as (client, store, faults):
        assert [each.key for each in faults.all()] == ["things.e.com/default/torn"]
        assert await names(client, things) == []
        await client.delete(CUSTOMRESOURCEDEFINITIONS, "things.e.com")
        assert store.unreadable("") == []


async def test_a_definition_is_not_set_aside_because_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    spec = {
        "group": "e.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    }
    async with server_on(path) as (client, _, _):
        await client.create(CUSTOMRESOURCEDEFINITIONS, {"metadata": {"name": "things.e.com"}, "spec": spec})

    async def full(self: Definitions, name: str) -> None:
        raise insufficient_storage("no space")

    monkeypatch.setattr(Definitions, "follow", full)
    async with server_on(path) as (client, store, _):
        assert store.unreadable("") == []
        assert await names(client, Resource("e.com", "v1", "things", "Thing", True)) == []


@pytest.mark.loopback
async def test_lists_warn_of_what_they_leave_out(tmp_path: Path) -> None:
    async with running_server() as running, aiohttp.ClientSession() as session:
        for name in ("one", "two"):
            await running.admin.create(CONFIGMAPS, {"metadata": {"name": name}}, "default")
        running.server.storage.store.set_aside("configmaps/default/two", "it is not JSON")
        warned = {}
        for path in ("configmaps", "namespaces/default/configmaps", "namespaces/kube-system/configmaps", "secrets"):
            url, headers = f"{running.url}/api/v1/{path}", {"Authorization": f"Bearer {running.token}"}
            async with session.get(url, headers=headers, ssl=running.trust) as answer:
                assert answer.status == 200
                warned[path] = answer.headers.get("Warning")
        said = '299 - "1 stored object cannot be read and is missing here: configmaps/default/two"'
        assert list(warned.values()) == [said, said, None, None]


def test_a_warning_names_some_of_many_objects() -> None:
    assert warning_of([f"k/{number}" for number in range(7)]) == (
        "7 stored objects cannot be read and are missing here: k/0, k/1, k/2, k/3, k/4 and 2 more"
    )


# -- the rule ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda obj: obj["metadata"].pop("name"), "its metadata.name is None, its key says 'c'"),
        (lambda obj: obj["metadata"].update(name=5), "its metadata.name is 5, its key says 'c'"),
        (lambda obj: obj["metadata"].pop("uid"), "it has no metadata.uid"),
        (lambda obj: obj["metadata"].update(uid=7), "it has no metadata.uid"),
        (lambda obj: obj["metadata"].pop("creationTimestamp"), "it has no metadata.creationTimestamp"),
        (lambda obj: obj["metadata"].update(resourceVersion="x"), "its metadata.resourceVersion is 'x'"),
        (lambda obj: obj.pop("metadata"), "it has no metadata"),
        (lambda obj: obj.update(kind="Secret"), "it is a Secret of v1, not a ConfigMap of v1"),
        (lambda obj: obj.update(data=[]), "json: cannot unmarshal array into Go struct field ConfigMap.data"),
        (
            lambda obj: obj["metadata"].update(creationTimestamp="yesterday"),
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00"',
        ),
    ],
)
def test_what_is_no_object_of_its_key_is_said_in_one_sentence(change: Callable[[Object], Any], words: str) -> None:
    obj = stored(CONFIGMAPS, "c", "default", data={"a": "b"})
    assert read_stored(CONFIGMAPS, "default", "c", orjson.dumps(obj)) == orjson.dumps(obj)
    change(obj)
    with pytest.raises(UnreadableError) as found:
        read_stored(CONFIGMAPS, "default", "c", orjson.dumps(obj))
    assert str(found.value).startswith(words)
