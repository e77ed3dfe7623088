"""Whom a change wakes: what it costs does not grow with those it does not concern."""

import asyncio

import pytest

from lastcall.store.memory import MemoryStore
from lastcall.store.value import Value
from lastcall.store.watchers import Watcher


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
