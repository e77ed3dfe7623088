"""The memory store's bounded history."""

from weakref import ref

import pytest

from lastcall.kube.store.api import Compacted, TooSlow
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.value import Value


class Watched(Value):
    """A value that can be referred to weakly."""


def large(_: int) -> Value:
    return Watched(b"x" * 10_000)


def body(_: int) -> Value:
    return Value(b"x" * 100)


async def test_history_keeps_the_last_writes_only() -> None:
    store = MemoryStore(history=10)
    for index in range(30):
        await store.create(f"k/{index:02}", body)
    last = await store.revision()
    assert len((await store.list("k/", revision=last - 10))[0]) == 20
    with pytest.raises(Compacted):
        await store.list("k/", revision=last - 11)


async def test_a_watch_begins_at_old_writes_of_its_kind_whatever_was_written_since() -> None:
    store = MemoryStore(history=10)
    first = await store.create("few/a", body)
    second = await store.update("few/a", first.revision, body)
    for index in range(200):
        await store.create(f"many/{index:03}", body)
    last = await store.revision()
    await store.compact(last)
    async with store.watch("few/", first.revision) as events:
        assert [(await anext(events)).revision] == [second.revision]
    async with store.watch("few/b", first.revision) as events:
        assert events.take() is None
    async with store.watch("never/", first.revision) as events:
        assert events.take() is None
    async with store.watch("many/", last - 100) as events:
        assert [(await anext(events)).revision for _ in range(100)] == list(range(last - 99, last + 1))
    for prefix, after in (("many/", last - 101), ("", first.revision)):
        with pytest.raises(Compacted):
            async with store.watch(prefix, after):
                pass


async def test_a_watch_goes_on_from_forgotten_writes_to_those_that_are_kept() -> None:
    store = MemoryStore()
    revisions = [(await store.create(f"k/{index}", body)).revision for index in range(6)]
    await store.compact(revisions[3])
    async with store.watch("k/", revisions[0]) as events:
        assert [(await anext(events)).revision for _ in range(5)] == revisions[1:]


async def test_history_is_bounded_in_bytes_but_keeps_ten_writes() -> None:
    store = MemoryStore(history=1000, history_bytes=1)
    for index in range(50):
        await store.create(f"k/{index:02}", body)
    last = await store.revision()
    await store.list("k/", revision=last - 10)
    for prefix in ("k/", ""):
        async with store.watch(prefix, last - 10) as events:
            assert (await anext(events)).revision == last - 9
        with pytest.raises(Compacted):
            async with store.watch(prefix, last - 11):
                pass
    with pytest.raises(Compacted):
        await store.list("k/", revision=last - 11)


async def test_a_watcher_that_falls_too_far_behind_must_list_again() -> None:
    store = MemoryStore(history=10)
    async with store.watch("k/", await store.revision()) as events:
        for index in range(11):
            await store.create(f"k/{index:02}", body)
        with pytest.raises(TooSlow):
            await anext(events)


async def test_what_the_history_keeps_alive_is_bounded_whatever_the_size_of_one_object() -> None:
    store = MemoryStore(history=10_000, history_bytes=100_000)
    entry = await store.create("k/a", large)
    values = [ref(entry.value)]
    for _ in range(200):
        entry = await store.update("k/a", entry.revision, large)
        values.append(ref(entry.value))
    assert 10_000 * sum(value() is not None for value in values) <= 2 * 100_000


async def test_a_deleted_object_counts_with_the_value_that_it_replaced() -> None:
    store = MemoryStore(history=10_000, history_bytes=100_000)
    values = []
    for number in range(100):
        entry = await store.create(f"k/{number:03}", large)
        values.append(ref(entry.value))
    for number in range(100):
        found = await store.get(f"k/{number:03}")
        assert found is not None
        gone = await store.delete(f"k/{number:03}", found.revision, large)
        values.append(ref(gone.value))
    del entry, found, gone
    assert 10_000 * sum(value() is not None for value in values) <= 200_000
