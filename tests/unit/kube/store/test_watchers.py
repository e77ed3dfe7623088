"""Whom a change wakes: what it costs does not grow with those it does not concern."""

import asyncio
from contextlib import AsyncExitStack
from weakref import ref

import pytest

from lastcall.kube.store.api import TooSlow
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.value import Value
from lastcall.kube.store.watchers import MOST_UNREAD, Watcher


def node_of(change) -> tuple[str, ...]:
    """Values are `<node>@<revision>`."""
    after = change.value.encoded().decode().partition("@")[0]
    return (after,) if change.previous is None else (after, change.previous.encoded().decode().partition("@")[0])


def on(node: str):
    return lambda revision: Value(f"{node}@{revision}".encode())


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[Watcher]:
    """Every watcher that was given a change, in order."""
    seen: list[Watcher] = []
    feed = Watcher.feed

    def counted(watcher: Watcher, change) -> bool:
        seen.append(watcher)
        return feed(watcher, change)

    monkeypatch.setattr(Watcher, "feed", counted)
    return seen


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.set_trigger("pods/", node_of)
    return store


@pytest.mark.parametrize("nodes", [2, 200])
async def test_a_change_is_told_to_the_watchers_of_its_node_only_however_many_nodes_there_are(
    store: MemoryStore, fed: list[Watcher], nodes: int
) -> None:
    watches = [store.watch("pods/", 1, trigger=f"n{number}") for number in range(nodes)]
    watchers = [await watch.__aenter__() for watch in watches]
    async with store.watch("pods/", 1) as everything:
        first = await store.create("pods/a/x", on("n1"))
        assert fed == [everything, watchers[1]]
        await store.create("pods/a/y", on("elsewhere"))
        await store.delete("pods/a/x", first.revision, on("n1"))
    assert fed == [everything, watchers[1], everything, everything, watchers[1]]
    for watch in watches:
        await watch.__aexit__(None, None, None)


async def test_both_nodes_hear_of_a_pod_that_moves(store: MemoryStore) -> None:
    entry = await store.create("pods/a/x", on(""))
    async with store.watch("pods/", entry.revision, trigger="") as none, store.watch("pods/", 1, trigger="n1") as one:
        await store.update("pods/a/x", entry.revision, on("n1"))
        assert [each.type for each in (none.take(), one.take()) if each is not None] == ["MODIFIED", "ADDED"]


async def test_a_watch_by_trigger_begins_with_the_history(store: MemoryStore) -> None:
    await store.create("pods/a/x", on("n1"))
    async with store.watch("pods/", 1, trigger="n1") as changes:
        change = changes.take()
    assert change is not None and change.key == "pods/a/x"


async def test_a_prefix_without_a_trigger_tells_everything(store: MemoryStore) -> None:
    async with store.watch("pods/a/", 1, trigger="n1") as changes:
        await store.create("pods/a/x", on("n2"))
        assert changes.take() is not None


@pytest.mark.parametrize("nodes", [2, 200])
async def test_watches_of_one_key_cost_the_others_nothing(store: MemoryStore, fed: list[Watcher], nodes: int) -> None:
    watches = [store.watch(f"nodes/n{number:03}", 1) for number in range(nodes)]
    watchers = [await watch.__aenter__() for watch in watches]
    await store.create("nodes/n001", on(""))
    assert fed == [watchers[1]]
    for watch in watches:
        await watch.__aexit__(None, None, None)


async def test_a_watch_of_one_key_is_told_once_beside_watches_of_longer_keys(store: MemoryStore) -> None:
    longer = store.watch("nodes/n1-with-a-longer-name", 1), store.watch("nodes/n1-with-an-even-longer-name", 1)
    async with longer[0], longer[1], store.watch("nodes/n1", 1) as changes:
        await store.create("nodes/n1", on(""))
        assert changes.take() is not None and changes.take() is None


async def test_a_watcher_that_left_is_told_nothing(store: MemoryStore, fed: list[Watcher]) -> None:
    async with store.watch("pods/", 1, trigger="n1"), store.watch("pods/", 1), store.watch("pods/a/x", 1):
        pass
    await store.create("pods/a/x", on("n1"))
    assert fed == []


async def test_closing_ends_watches_by_trigger_too(store: MemoryStore) -> None:
    async with store.watch("pods/", 1, trigger="n1") as changes:
        await store.close()
        assert changes.ended
    async with store.watch("pods/", 1, trigger="n1") as later:
        assert later.ended


async def test_who_reads_for_another_process_is_woken_first(store: MemoryStore) -> None:
    heard: list[str] = []

    async def read(changes: Watcher, name: str) -> None:
        await anext(changes)
        heard.append(name)

    async with store.watch("pods/", 1) as own, store.watch("pods/", 1, trigger="n1", remote=True) as remote:
        tasks = [asyncio.ensure_future(read(own, "own")), asyncio.ensure_future(read(remote, "remote"))]
        await asyncio.sleep(0)
        await store.create("pods/a/x", on("n1"))
        await asyncio.gather(*tasks)
    assert heard == ["remote", "own"]


class Watched(Value):
    """A value that can be referred to weakly."""


def large(_: int) -> Value:
    return Watched(b"x" * 10_000)


async def test_watchers_that_do_not_read_keep_a_bounded_number_of_bytes_however_many_they_are() -> None:
    store = MemoryStore(history=10_000, history_bytes=200_000)
    entry = await store.create("k/a", large)
    values = [ref(entry.value)]
    async with AsyncExitStack() as stack:
        for _ in range(100):
            # Each begins at another moment, so that each would keep other values.
            await stack.enter_async_context(store.watch("k/", entry.revision, remote=True))
            for _ in range(5):
                entry = await store.update("k/a", entry.revision, large)
                values.append(ref(entry.value))
        assert 10_000 * sum(value() is not None for value in values) <= 2 * 200_000


async def test_a_watcher_that_began_with_the_history_and_reads_nothing_lets_go_of_it() -> None:
    store = MemoryStore(history=10_000, history_bytes=400_000)
    entry = await store.create("k/a", large)
    values = [ref(entry.value)]
    async with AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(store.watch("k/", max(1, entry.revision - 10), remote=True))
            for _ in range(30):
                entry = await store.update("k/a", entry.revision, large)
                values.append(ref(entry.value))
        assert 10_000 * sum(value() is not None for value in values) <= 2 * 400_000


async def test_a_watcher_that_reads_is_not_ended_because_another_does_not() -> None:
    store = MemoryStore(history=10_000, history_bytes=200_000)
    entry = await store.create("k/a", large)
    async with store.watch("k/", entry.revision) as reads, store.watch("k/", entry.revision) as sleeps:
        for _ in range(100):
            entry = await store.update("k/a", entry.revision, large)
            change = reads.take()
            assert change is not None and change.revision == entry.revision
        with pytest.raises(TooSlow):
            sleeps.take()


async def test_a_list_that_a_watcher_has_not_sent_yet_is_let_go_of_when_too_much_was_written_since() -> None:
    store = MemoryStore(history=10_000, history_bytes=200_000)
    entry = await store.create("k/a", large)
    lost = []
    async with store.watch("k/", entry.revision) as changes:
        changes.snapshot, changes.on_lost = entry.revision, lambda: lost.append(True)
        while not lost and entry.revision < 1000:
            entry = await store.update("k/a", entry.revision, large)
        assert lost == [True] and entry.revision < 40
        with pytest.raises(TooSlow):
            changes.take()


@pytest.mark.parametrize("remote", [True, False])
async def test_a_watcher_of_another_process_may_leave_a_thousand_changes_unread(remote: bool) -> None:
    store = MemoryStore()
    entry = await store.create("k/a", on("n1"))
    async with store.watch("k/", entry.revision, remote=remote) as changes:
        for _ in range(MOST_UNREAD):
            entry = await store.update("k/a", entry.revision, on("n1"))
        assert not changes._lost
        await store.update("k/a", entry.revision, on("n1"))
        if remote:
            with pytest.raises(TooSlow):
                changes.take()
        else:
            assert changes.take() is not None
