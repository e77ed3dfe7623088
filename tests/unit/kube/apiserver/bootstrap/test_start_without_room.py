"""An API server starts on a store that has no room, and writes later what found none."""

import logging
from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest
from api_server import ADMIN, ListRecorder

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, CUSTOMRESOURCEDEFINITIONS, NAMESPACES, Resource
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import AUTHENTICATION_CONFIG, FrontProxy
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.store.api import Encode, Entry, StoreFull
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.space import CREATION, DELETION, LAST_STAGE, may_write
from lastcall.kube.store.value import Value
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

CONFIG = APIServerConfig(
    root_ca_pem=b"CA",
    front_proxy=FrontProxy(b"one"),
    storage_classes=({"metadata": {"name": "standard"}, "provisioner": "x"},),
)


class SmallStore(MemoryStore):
    """A store that keeps what may be written at `stage`, and never the write of number `lost`."""

    stage = 0
    lost = -1

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []
        """The kind of each write."""

    def _write(self, key: str, encode: Encode, *, deleted: bool = False) -> Entry:
        def checked(revision: int) -> Value:
            value, before = encode(revision), self._entries.get(key)
            sizes = [len(each.encoded()) for each in (value, *(() if before is None else (before.value,)))]
            growth = DELETION if deleted else CREATION if before is None else sizes[0] - sizes[1]
            self.written.append(key.partition("/")[0])
            if len(self.written) - 1 == self.lost or not may_write(growth, self.stage):
                raise StoreFull(f"no room for {key}")
            return value

        return super()._write(key, checked, deleted=deleted)


def started(world: World, store: MemoryStore, config: APIServerConfig = CONFIG) -> APIServer:
    return APIServer(world=world, store=store, recorder=ListRecorder(), config=config)


async def contents(store: MemoryStore) -> dict[str, object]:
    """What each key has, without what differs from run to run."""
    found = {}
    for entry in (await store.list(""))[0]:
        obj = orjson.loads(entry.value.encoded())
        for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
            obj["metadata"].pop(key, None)
        for condition in (obj.get("status") or {}).get("conditions") or ():
            condition.pop("lastTransitionTime", None)
        found[entry.key] = obj
    return found


async def serve(
    world: World, server: APIServer, seconds: float = 60.0, room: Callable[[], None] = lambda: None
) -> None:
    """Let what goes on beside the requests go on; after half of it `room` is called."""
    async with Tasks() as tasks:
        tasks.spawn(server.serve([], None), name="server")  # type: ignore[arg-type]
        await world.clock.sleep(seconds / 2)
        room()
        await world.clock.sleep(seconds / 2)
        tasks.cancel()


@pytest.mark.parametrize("stage", [1, 2, LAST_STAGE])
def test_a_server_starts_without_room_for_its_new_certificate_and_says_so_once_and_writes_it_later(
    stage: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lastcall")

    async def main(world: World) -> None:
        store = SmallStore()
        await started(world, store).bootstrap()
        store.stage = stage
        certificate = b"t" * 5000
        server = started(world, store, replace(CONFIG, front_proxy=FrontProxy(certificate)))
        await server.bootstrap()
        name = f"ConfigMap kube-system/{AUTHENTICATION_CONFIG}"
        (line,) = [each for each in caplog.messages if name in each]
        assert "mvcc: database space exceeded: no room for configmaps/kube-system/" in line
        await serve(world, server, room=lambda: setattr(store, "stage", 0))
        assert [each for each in caplog.messages if name in each] == [line, f"{name} is written now"]
        written = await server.client(ADMIN).get(CONFIGMAPS, AUTHENTICATION_CONFIG, "kube-system")
        assert written["data"]["requestheader-client-ca-file"] == certificate.decode()

    run_virtual(main)


async def whole(world: World) -> SmallStore:
    """A store as a server leaves it that had room."""
    store = SmallStore()
    server = started(world, store)
    await server.bootstrap()
    await serve(world, server)
    return store


def test_a_server_starts_on_an_empty_store_that_takes_nothing_and_the_cluster_is_whole_when_there_is_room() -> None:
    async def main(world: World) -> None:
        expected = await contents(await whole(world))
        store = SmallStore()
        store.stage = LAST_STAGE
        server = started(world, store)
        await server.bootstrap()
        assert not (await server.client(ADMIN).list(NAMESPACES)).items
        await serve(world, server, room=lambda: setattr(store, "stage", 0))
        assert await contents(store) == expected

    run_virtual(main)


def test_the_first_and_the_last_write_of_each_kind_may_be_lost_alone_and_the_cluster_becomes_whole() -> None:
    async def main(world: World) -> None:
        complete = await whole(world)
        expected, kinds = await contents(complete), complete.written
        last = {kind: number for number, kind in enumerate(kinds)}
        for number in sorted({*last.values(), *(kinds.index(kind) for kind in last)}):
            store = SmallStore()
            store.lost = number
            server = started(world, store)
            await server.bootstrap()
            await serve(world, server)
            assert len(store.written) > number, "one was lost"
            assert await contents(store) == expected, kinds[number]

    run_virtual(main)


def test_the_end_of_a_definition_that_finds_no_room_is_postponed() -> None:
    widgets = Resource("example.com", "v1", "widgets", "Widget", True)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version],
    }
    held = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["a.b/c"]}}

    async def main(world: World) -> None:
        store = await whole(world)
        server = started(world, store)
        await server.bootstrap()
        admin = server.client(ADMIN)
        await admin.create(CUSTOMRESOURCEDEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
        await admin.create(widgets, held, "default")
        store.lost = len(store.written) + 2  # after the definition's own mark and its condition
        with pytest.raises(StatusError, match=r"no room for widgets\.example\.com/default/w"):
            await admin.delete(CUSTOMRESOURCEDEFINITIONS, "widgets.example.com")
        store.stage = LAST_STAGE
        server = started(world, store)
        await server.bootstrap()
        admin = server.client(ADMIN)
        assert "deletionTimestamp" not in (await admin.get(widgets, "w", "default"))["metadata"]
        await serve(world, server, room=lambda: setattr(store, "stage", 0))
        assert "deletionTimestamp" in (await admin.get(widgets, "w", "default"))["metadata"]

    run_virtual(main)
