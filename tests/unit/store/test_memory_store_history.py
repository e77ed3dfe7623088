"""The memory store's bounded history."""

import pytest

from lastcall.store.api import Compacted
from lastcall.store.memory import MemoryStore
from lastcall.store.value import Value


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


async def test_history_is_bounded_in_bytes_but_keeps_a_tenth() -> None:
    store = MemoryStore(history=100, history_bytes=1)
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
        with pytest.raises(Compacted):
            await anext(events)
