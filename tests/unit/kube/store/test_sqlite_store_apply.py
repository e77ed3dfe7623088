"""A durable write whose way into the index fails: it is answered and seen, and the others go on."""

import asyncio
from pathlib import Path

import pytest

from lastcall.kube.store.api import Change, Changes, Compacted
from lastcall.kube.store.history import History
from lastcall.kube.store.keys import Keys
from lastcall.kube.store.open import open_store
from lastcall.kube.store.sqlite import SQLiteStore
from lastcall.kube.store.value import Value
from lastcall.world.world import World

pytestmark = pytest.mark.timeout(30)


def text(body: str):
    return lambda revision: Value(f"{body}@{revision}".encode())


async def test_a_trigger_that_cannot_read_an_object_tells_everybody(tmp_path: Path) -> None:
    def trigger(change: Change) -> tuple[str, ...]:
        raise KeyError("spec")

    store = await open_store(tmp_path / "store.sqlite", world=World())
    store.set_trigger("k/", trigger)
    async with store.watch("k/", await store.revision(), trigger="node-1") as events:
        entry = await asyncio.wait_for(store.create("k/a", text("one")), 60)
        assert (await asyncio.wait_for(anext(events), 60)).revision == entry.revision
    await store.close()


@pytest.mark.parametrize("broken", [(Keys, "add"), (History, "add")])
async def test_a_write_that_is_durable_is_answered_and_seen_and_the_next_ones_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: tuple[type, str], caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_store(tmp_path / "store.sqlite", world=World())
    before = await store.create("k/0", text("zero"))
    owner, name = broken
    good = getattr(owner, name)
    failures = 1

    def add(self: object, *arguments: object) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise RuntimeError("broken")
        good(self, *arguments)

    async with store.watch("k/", before.revision) as events:
        monkeypatch.setattr(owner, name, add)
        group = await asyncio.wait_for(asyncio.gather(*(store.create(f"k/{n}", text("x")) for n in (1, 2, 3))), 60)
        assert [entry.key for entry in group] == ["k/1", "k/2", "k/3"]
        await _sees_all(store, 4)
        # Nobody is left to believe that he has seen everything.
        with pytest.raises(Compacted):
            await asyncio.wait_for(_to_the_end(events), 60)
    with pytest.raises(Compacted):
        async with store.watch("k/", before.revision):
            pass
    assert "broken" in caplog.text
    last = await asyncio.wait_for(store.update("k/1", group[0].revision, text("more")), 60)
    await store.delete("k/2", group[1].revision, text("x"))
    assert (await store.list("k/", revision=last.revision))[1] == last.revision
    await _sees_all(store, 3)
    await store.close()
    store = await open_store(tmp_path / "store.sqlite", world=World())
    await _sees_all(store, 3)
    await store.close()


async def _to_the_end(events: Changes) -> None:
    async for _ in events:
        pass


async def _sees_all(store: SQLiteStore, count: int) -> None:
    entries, revision, _ = await store.list("k/")
    assert len(entries) == count
    assert revision == await store.revision()
    for entry in entries:
        assert await store.get(entry.key) == entry
