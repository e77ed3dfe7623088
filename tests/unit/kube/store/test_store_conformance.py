"""What every store must do. A new store joins by one line in STORES."""

import asyncio
import atexit
import itertools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import orjson
import pytest
from engines.etcd import Etcd, missing_etcd
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.store.api import Change, Compacted, Store, StoreConflict
from lastcall.kube.store.etcd.open import open_etcd
from lastcall.kube.store.etcd.options import etcd_options
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World


@asynccontextmanager
async def memory_store() -> AsyncIterator[Store]:
    store = MemoryStore()
    yield store
    await store.close()


@asynccontextmanager
async def sqlite_store() -> AsyncIterator[Store]:
    with tempfile.TemporaryDirectory() as directory:
        store = await open_store(f"{directory}/store.sqlite", world=World())
        yield store
        await store.close()


@cache
def one_etcd() -> Etcd:
    """For all tests of this process, each of which has a prefix of its own."""
    directory = tempfile.TemporaryDirectory()
    etcd = Etcd(Path(directory.name) / "etcd", more=("--unsafe-no-fsync",)).__enter__()
    _to_end.extend((directory.cleanup, etcd.stop))
    return etcd


_to_end: list[Callable[[], object]] = []


@pytest.fixture(scope="module", autouse=True)
def what_was_started_ends() -> Iterator[None]:
    """A worker of several ends without its atexit."""
    yield
    while _to_end:
        _to_end.pop(0)()
    one_etcd.cache_clear()


_prefixes = itertools.count()


@asynccontextmanager
async def etcd_store() -> AsyncIterator[Store]:
    if why := missing_etcd():
        pytest.skip(why)
    options = etcd_options(one_etcd().servers, prefix=f"/registry-{next(_prefixes)}")
    store = await open_etcd(options, world=World())
    try:
        yield store
    finally:
        await store.close()


Make = Callable[[], AbstractAsyncContextManager[Store]]
STORES = [
    pytest.param(memory_store, id="memory"),
    pytest.param(sqlite_store, id="sqlite"),
    pytest.param(etcd_store, id="etcd", marks=pytest.mark.loopback),
]
"""Each a `Make`."""


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    async with request.param() as store:
        yield store


def text(body: str):
    """An object that says `body`, with the revision in it."""
    return lambda revision: Value(said(body, revision))


def said(body: str, revision: int) -> bytes:
    return orjson.dumps({"metadata": {"resourceVersion": str(revision)}, "data": body})


def body_of(value: Value) -> str:
    return orjson.loads(value.encoded())["data"]


async def take(events: AsyncIterator[Change], count: int) -> list[Change]:
    async with asyncio.timeout(60):
        return [await anext(events) for _ in range(count)]


async def test_a_created_value_is_encoded_for_the_revision_it_is_stored_at(store: Store) -> None:
    entry = await store.create("pods/a/x", text("one"))
    assert entry.value.encoded() == said("one", entry.revision)
    assert await store.get("pods/a/x") == entry
    assert await store.revision() == entry.revision


async def test_a_missing_key_is_none(store: Store) -> None:
    assert await store.get("pods/a/x") is None


async def test_an_empty_store_has_a_revision_above_zero(store: Store) -> None:
    assert await store.revision() > 0


async def test_creating_an_existing_key_is_a_conflict_that_shows_it(store: Store) -> None:
    entry = await store.create("k", text("one"))
    with pytest.raises(StoreConflict) as caught:
        await store.create("k", text("two"))
    assert caught.value.current == entry
    assert await store.revision() == entry.revision


async def test_an_update_needs_the_current_revision(store: Store) -> None:
    first = await store.create("k", text("one"))
    second = await store.update("k", first.revision, text("two"))
    assert second.revision > first.revision
    with pytest.raises(StoreConflict) as caught:
        await store.update("k", first.revision, text("three"))
    assert caught.value.current == second


async def test_updating_or_deleting_nothing_is_a_conflict_without_current(store: Store) -> None:
    for attempt in (store.update("k", 1, text("x")), store.delete("k", 1, text("x"))):
        with pytest.raises(StoreConflict) as caught:
            await attempt
        assert caught.value.current is None


async def test_a_delete_has_a_revision_of_its_own(store: Store) -> None:
    entry = await store.create("k", text("one"))
    with pytest.raises(StoreConflict):
        await store.delete("k", entry.revision + 7, text("x"))
    gone = await store.delete("k", entry.revision, text("one"))
    assert gone.revision > entry.revision
    assert gone.value.encoded() == said("one", gone.revision)
    assert await store.get("k") is None


async def test_lists_are_in_key_order_under_the_prefix_only(store: Store) -> None:
    for key in ("pods/b/x", "pods/a/y", "podsecurity/a", "pods/a/x", "services/a/x"):
        await store.create(key, text(key))
    entries, revision, more = await store.list("pods/")
    assert [entry.key for entry in entries] == ["pods/a/x", "pods/a/y", "pods/b/x"]
    assert (revision, more) == (await store.revision(), 0)


async def test_a_list_can_be_read_in_pages(store: Store) -> None:
    for index in range(7):
        await store.create(f"k/{index}", text("v"))
    seen: list[str] = []
    start = ""
    while True:
        entries, _, more = await store.list("k/", start=start, limit=3)
        seen += [entry.key for entry in entries]
        assert more == 7 - len(seen)
        if not more:
            break
        start = entries[-1].key
    assert seen == [f"k/{index}" for index in range(7)]


async def test_a_list_at_an_older_revision_shows_that_moment(store: Store) -> None:
    first = await store.create("k/a", text("a"))
    await store.create("k/b", text("b"))
    then = await store.revision()
    await store.update("k/a", first.revision, text("changed"))
    await store.create("k/c", text("c"))
    b = await store.get("k/b")
    assert b is not None
    await store.delete("k/b", b.revision, text("b"))
    entries, revision, _ = await store.list("k/", revision=then)
    assert revision == then
    assert [(entry.key, entry.value) for entry in entries] == [("k/a", first.value), ("k/b", b.value)]
    assert entries[0].revision == first.revision


async def test_a_watch_sees_history_first_and_then_every_write_in_order(store: Store) -> None:
    start = await store.revision()
    first = await store.create("k/a", text("one"))
    await store.create("other/a", text("x"))
    async with store.watch("k/", start) as events:
        second = await store.update("k/a", first.revision, text("two"))
        await store.delete("k/a", second.revision, text("two"))
        changes = await take(events, 3)
    assert [change.type for change in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert [change.previous for change in changes] == [None, first.value, second.value]
    revisions = [change.revision for change in changes]
    assert revisions == sorted(set(revisions))


async def test_a_watch_after_a_revision_does_not_repeat_it(store: Store) -> None:
    entry = await store.create("k/a", text("one"))
    async with store.watch("k/", entry.revision) as events:
        await store.create("k/b", text("two"))
        assert [change.key for change in await take(events, 1)] == ["k/b"]


async def test_a_waiting_watcher_wakes_for_a_write(store: Store) -> None:
    async with store.watch("k/", await store.revision()) as events:
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await store.create("k/a", text("one"))
        assert (await asyncio.wait_for(waiting, 60)).key == "k/a"


async def test_a_cancelled_wait_loses_no_change(store: Store) -> None:
    async with store.watch("k/", await store.revision()) as events:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(events)
        await store.create("k/a", text("one"))
        assert (await take(events, 1))[0].key == "k/a"


async def test_a_watch_may_start_in_the_future(store: Store) -> None:
    start = await store.revision() + 2
    async with store.watch("k/", start) as events:
        for name in "abc":
            await store.create(f"k/{name}", text("v"))
        assert (await take(events, 1))[0].revision == start + 1


async def test_two_watchers_see_the_same_changes(store: Store) -> None:
    start = await store.revision()
    async with store.watch("k/", start) as one, store.watch("k/", start) as two:
        for index in range(5):
            await store.create(f"k/{index}", text("v"))
        assert await take(one, 5) == await take(two, 5)


async def test_a_very_large_audience_sees_every_write(store: Store) -> None:
    start = await store.revision()
    async with AsyncExitStack() as stack:
        audience = [await stack.enter_async_context(store.watch("k/", start)) for _ in range(333)]
        reading = [asyncio.ensure_future(take(events, 4)) for events in audience]
        await asyncio.sleep(0)
        for index in range(4):
            await store.create(f"k/{index}", text("v"))
        for changes in await asyncio.gather(*reading):
            assert [change.key for change in changes] == [f"k/{index}" for index in range(4)]


async def test_a_watch_can_be_read_without_waiting_and_be_woken(store: Store) -> None:
    async with store.watch("k/", await store.revision()) as events:
        assert events.take() is None
        waiting = asyncio.ensure_future(events.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        events.wake()
        await asyncio.wait_for(waiting, 60)
        entry = await store.create("k/a", text("one"))
        await asyncio.wait_for(events.wait(), 60)
        change = events.take()
        assert change is not None
        assert change.revision == entry.revision
        assert events.take() is None
        assert not events.ended
        await store.close()
        assert events.ended


async def test_compacted_history_cannot_be_listed_and_a_watch_can_begin_in_it(store: Store) -> None:
    first = await store.create("k/a", text("one"))
    second = await store.update("k/a", first.revision, text("two"))
    third = await store.update("k/a", second.revision, text("three"))
    await store.compact(second.revision)
    with pytest.raises(Compacted) as caught:
        await store.list("k/", revision=first.revision)
    assert caught.value.oldest == second.revision
    async with store.watch("k/", first.revision) as events:
        assert [change.revision for change in await take(events, 2)] == [second.revision, third.revision]
    await store.compact(second.revision, watches=True)
    with pytest.raises(Compacted):
        async with store.watch("k/", first.revision):
            pass
    async with store.watch("k/", second.revision) as events:
        assert [change.type for change in await take(events, 1)] == ["MODIFIED"]


async def test_closing_ends_watches_after_what_they_have_to_read(store: Store) -> None:
    async with store.watch("k/", await store.revision()) as events:
        await store.create("k/a", text("one"))
        await store.close()
        async with asyncio.timeout(60):
            assert [change.key async for change in events] == ["k/a"]


async def test_of_many_writers_to_one_key_each_compares_with_what_is_stored(store: Store) -> None:
    first = await store.create("k", text("0"))

    async def add_one() -> None:
        entry = first
        while True:
            body = int(body_of(entry.value)) + 1
            try:
                await store.update("k", entry.revision, text(str(body)))
                return
            except StoreConflict as conflict:
                entry = conflict.current or first

    async with store.watch("k", first.revision) as events:
        await asyncio.gather(*(add_one() for _ in range(20)))
        changes = await take(events, 20)
    assert [body_of(change.value) for change in changes] == [str(n) for n in range(1, 21)]


async def test_of_many_creates_of_one_key_one_wins(store: Store) -> None:
    results = await asyncio.gather(*(store.create("k", text(str(n))) for n in range(10)), return_exceptions=True)
    winners = [result for result in results if not isinstance(result, StoreConflict)]
    assert [await store.get("k")] == winners
    for result in results:
        assert not isinstance(result, StoreConflict) or result.current == winners[0]


async def test_writes_at_the_same_time_are_watched_in_the_order_of_their_revisions(store: Store) -> None:
    start = await store.revision()
    async with store.watch("k/", start) as events:
        entries = await asyncio.gather(*(store.create(f"k/{n % 50:03}-{n}", text(str(n))) for n in range(500)))
        changes = await take(events, 500)
    assert [change.revision for change in changes] == list(range(start + 1, start + 501))
    assert {change.key: change.value for change in changes} == {entry.key: entry.value for entry in entries}


async def test_an_encoder_that_fails_leaves_no_trace(store: Store) -> None:
    before = await store.revision()

    def fails(_: int) -> Value:
        raise ValueError("cannot be encoded")

    with pytest.raises(ValueError, match="cannot be encoded"):
        await store.create("k", fails)
    entry = await store.create("k", text("one"))
    assert entry.revision == before + 1


@pytest.mark.loopback
async def test_a_cancelled_write_is_answered_first_and_cancels_afterwards(store: Store) -> None:
    answers = []

    async def caller() -> None:
        answers.append(await store.create("k", text("one")))
        await asyncio.sleep(10)  # ends by the cancellation
        answers.append("not cancelled")

    task = asyncio.ensure_future(caller())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert answers == [await store.get("k")]


@pytest.mark.loopback
async def test_a_timeout_around_a_write_still_is_a_timeout(store: Store) -> None:
    async def late() -> None:
        async with asyncio.timeout(0):
            await store.create("k", text("one"))
            await asyncio.sleep(10)  # ends by the timeout

    with pytest.raises(TimeoutError):
        await late()
    assert await store.get("k") is not None


@cache
def one_loop() -> asyncio.Runner:
    """For all examples: gRPC's asyncio side is not made for a new event loop each time."""
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


OPERATIONS = st.lists(st.tuples(st.sampled_from(["create", "update", "delete"]), st.sampled_from("abcd")), max_size=40)


@pytest.mark.parametrize("make", STORES)
@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS)
def test_replaying_a_watch_gives_the_list_at_every_revision(make: Make, operations: list) -> None:
    async def run() -> None:
        async with make() as store:
            await replay(store)

    async def replay(store: Store) -> None:
        start = await store.revision()
        snapshots = {start: {}}
        writes = 0
        for verb, name in operations:
            current = await store.get(f"k/{name}")
            with suppress(StoreConflict):
                if verb == "create":
                    await store.create(f"k/{name}", text(name))
                else:
                    revision = current.revision if current else 0
                    await getattr(store, verb)(f"k/{name}", revision, text(name))
                writes += 1
            entries, revision, _ = await store.list("k/")
            snapshots[revision] = {entry.key: entry for entry in entries}
        state: dict[str, Value] = {}
        async with store.watch("k/", start) as events:
            for change in await take(events, writes):
                if change.type == "DELETED":
                    del state[change.key]
                else:
                    state[change.key] = change.value
                assert state == {key: entry.value for key, entry in snapshots[change.revision].items()}
        for revision, snapshot in snapshots.items():
            entries, _, _ = await store.list("k/", revision=revision)
            assert {entry.key: entry for entry in entries} == snapshot

    one_loop().run(run())
