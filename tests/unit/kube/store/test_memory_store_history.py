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
    async with store.watch("k/", last - 10) as events:
        assert (await anext(events)).revision == last - 9
    with pytest.raises(Compacted):
        async with store.watch("k/", last - 11):
            pass


async def test_history_is_bounded_in_bytes_but_keeps_ten_writes() -> None:
    store = MemoryStore(history=1000, history_bytes=1)
    for index in range(50):
        await store.create(f"k/{index:02}", body)
    last = await store.revision()
    async with store.watch("k/", last - 10) as events:
        assert (await anext(events)).revision == last - 9
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
