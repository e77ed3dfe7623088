"""What the SQLite store keeps in its file: restarts, versions, history, size, and what it says when it cannot."""

# ruff: noqa: ASYNC240 (small files of a test)

import asyncio
import os
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lastcall.kube.store import schema
from lastcall.kube.store.api import Compacted, StoreError
from lastcall.kube.store.open import open_store
from lastcall.kube.store.sqlite import SQLiteStore
from lastcall.kube.store.value import Value
from lastcall.world.world import World


def text(body: str):
    return lambda revision: Value(f"{body}@{revision}".encode())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@asynccontextmanager
async def opened(path: Path, **bounds: int) -> AsyncIterator[SQLiteStore]:
    store = await open_store(path, world=World(), **bounds)
    try:
        yield store
    finally:
        await store.close()


async def contents(store: SQLiteStore) -> dict[str, tuple[Value, int]]:
    entries, _, _ = await store.list("")
    return {entry.key: (entry.value, entry.revision) for entry in entries}


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    count: int = connection.execute("SELECT count(*) FROM changes").fetchone()[0]
    connection.close()
    return count


async def test_everything_is_there_after_a_restart(path: Path) -> None:
    async with opened(path) as store:
        first = await store.create("k/a", text("one"))
        await store.create("k/b", text("b"))
        second = await store.update("k/a", first.revision, text("two"))
        gone = await store.create("k/c", text("c"))
        await store.delete("k/c", gone.revision, text("c"))
        before, revision = await contents(store), await store.revision()
    async with opened(path) as store:
        assert await contents(store) == before
        assert await store.revision() == revision
        assert await store.get("k/a") == second
        assert (await store.create("k/d", text("d"))).revision == revision + 1


async def test_a_watch_from_before_a_restart_goes_on_after_it(path: Path) -> None:
    async with opened(path) as store:
        first = await store.create("k/a", text("one"))
        async with store.watch("k/", 1) as events:
            seen = await anext(events)
        second = await store.update("k/a", first.revision, text("two"))
        await store.delete("k/a", second.revision, text("last"))
    async with opened(path) as store, store.watch("k/", seen.revision) as events:
        await store.create("k/b", text("b"))
        changes = [await anext(events) for _ in range(3)]
        assert [(change.type, change.key, change.previous) for change in changes] == [
            ("MODIFIED", "k/a", first.value),
            ("DELETED", "k/a", second.value),
            ("ADDED", "k/b", None),
        ]
        entries, _, _ = await store.list("k/", revision=second.revision)
        assert entries == [second]


async def test_forgotten_history_stays_forgotten_and_revisions_never_go_back(path: Path) -> None:
    async with opened(path) as store:
        entry = await store.create("k/a", text("one"))
        gone = await store.delete("k/a", entry.revision, text("one"))
        await store.compact(gone.revision)
    assert rows(path) == 0
    async with opened(path) as store:
        assert await store.revision() == gone.revision
        with pytest.raises(Compacted):
            async with store.watch("k/", entry.revision):
                pass
        assert (await store.create("k/a", text("two"))).revision == gone.revision + 1


async def test_the_file_keeps_one_row_for_each_object_and_each_write_of_the_history(path: Path) -> None:
    async with opened(path, history=100) as store:
        for name in "abc":
            await store.create(f"old/{name}", text(name))
        entry = await store.create("k/a", text("0"))
        for turn in range(3000):
            entry = await store.update("k/a", entry.revision, text(str(turn)))
        await store.compact(1)
        assert await store.get("k/a") == entry
    # 3 old objects, 100 writes of history, and the state before the oldest of them.
    assert rows(path) <= 104
    async with opened(path, history=100) as store:
        assert len(await contents(store)) == 4
        async with store.watch("k/", entry.revision - 100) as events:
            assert (await anext(events)).revision == entry.revision - 99


async def test_the_file_does_not_grow_with_the_number_of_writes(path: Path) -> None:
    async with opened(path, history=100) as store:
        sizes = []
        for turn in range(10):
            for batch in range(8):
                writes = (store.create(f"k/{turn}-{batch}-{n}", lambda _: Value(os.urandom(4000))) for n in range(100))
                entries = await asyncio.gather(*writes)
                await asyncio.gather(*(store.delete(each.key, each.revision, text("gone")) for each in entries))
            files = [file for file in path.parent.iterdir() if file.suffix != ".reserve"]
            sizes.append(sum(file.stat().st_size for file in files))
    # 800 objects of 4 kB a turn, 32 MB in all; the write-ahead log grows to 16 MB and is used again.
    assert sizes[-1] <= sizes[6] + (1 << 20)
    assert sizes[-1] < 24 << 20


async def test_a_history_shortened_between_two_starts_is_trimmed(path: Path) -> None:
    async with opened(path) as store:
        entry = await store.create("k/a", text("0"))
        for turn in range(50):
            entry = await store.update("k/a", entry.revision, text(str(turn)))
    async with opened(path, history=10) as store:
        with pytest.raises(Compacted):
            await store.list("k/", revision=entry.revision - 11)
        await store.compact(1)
    assert rows(path) == 11


async def test_the_files_are_for_their_owner_only(path: Path) -> None:
    path.touch(mode=0o644)
    async with opened(path) as store:
        await store.create("k", text("one"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("store.sqlite", "store.sqlite-wal", "store.sqlite.reserve"), 0o600)


async def test_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    async with opened(path) as store:
        await store.create("k", text("one"))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        await open_store(path, world=World())
    assert str(path) in str(caught.value)
    assert "version 99" in str(caught.value)
    assert f"up to {len(schema.MIGRATIONS)}" in str(caught.value)
    assert "use the newer lastcall" in str(caught.value)
    assert path.read_bytes() == before


async def test_an_older_version_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:
        entry = await store.create("k", text("one"))

    def add_column(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE changes ADD COLUMN note TEXT")

    def fail(connection: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("no such thing")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_column, fail))
        with pytest.raises(StoreError, match="no such thing"):
            await open_store(path, world=World())
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
    with pytest.raises(sqlite3.OperationalError, match="note"):
        connection.execute("SELECT note FROM changes")
    connection.close()

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_column))
    async with opened(path) as store:
        assert await store.get("k") == entry
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
    assert connection.execute("SELECT note FROM changes").fetchall() == [(None,)]
    connection.close()


async def test_other_files_are_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"shopping list\n" * 100)
    with pytest.raises(StoreError, match="is not a store of lastcall"):
        await open_store(path, world=World())
    assert path.read_bytes() == b"shopping list\n" * 100
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="no store of lastcall; name another directory"):
        await open_store(path, world=World())


@pytest.mark.loopback
async def test_a_second_process_is_told_that_the_store_is_in_use(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.kube.store.log.LOCK_SECONDS", 0.05)
    async with opened(path):
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SECOND, str(path), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await other.communicate()
    assert out.decode() == f"{path}: the store is in use by another process; end that one, or name another directory\n"


SECOND = """
import asyncio, sys
from lastcall.kube.store import log
from lastcall.kube.store.api import StoreError
from lastcall.kube.store.open import open_store
from lastcall.world.world import World
log.LOCK_SECONDS = 0.05
try:
    asyncio.run(open_store(sys.argv[1], world=World()))
except StoreError as error:
    print(error)
"""


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory; name a writable directory"):
        await open_store(tmp_path / "absent" / "store.sqlite", world=World())


async def test_a_closed_store_refuses_writes_and_can_be_closed_again(path: Path) -> None:
    async with opened(path) as store:
        await store.create("k", text("one"))
        await store.close()
        with pytest.raises(StoreError, match="is closed"):
            await store.create("j", text("two"))


async def test_closing_finishes_the_writes_on_their_way(path: Path) -> None:
    store = await open_store(path, world=World())
    writes = [asyncio.ensure_future(store.create(f"k/{n}", text("v"))) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert len(await asyncio.gather(*writes)) == 50
    async with opened(path) as store:
        assert len(await contents(store)) == 50


async def test_nobody_sees_a_write_before_it_is_durable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:
        durable = asyncio.Event()
        loop = asyncio.get_running_loop()
        append = store._log.append

        def slow(group: list) -> None:
            asyncio.run_coroutine_threadsafe(durable.wait(), loop).result()
            append(group)

        monkeypatch.setattr(store._log, "append", slow)
        async with store.watch("k/", await store.revision()) as events:
            revision = await store.revision()
            write = asyncio.ensure_future(store.create("k/a", text("one")))
            seen = asyncio.ensure_future(anext(events))
            again = asyncio.ensure_future(store.create("k/a", text("two")))
            done, _ = await asyncio.wait({write, seen, again}, timeout=0.05)
            assert not done
            assert await store.get("k/a") is None
            assert (await store.list("k/"))[:2] == ([], revision)
            durable.set()
            entry = await write
            assert (await seen).revision == entry.revision
            with pytest.raises(Exception, match="has changed"):
                await again


async def test_a_trim_that_was_killed_halfway_brings_no_deleted_object_back(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = await open_store(path, world=World())
    entry = await store.create("k/gone", lambda revision: Value(b"1"))
    await store.delete("k/gone", entry.revision, lambda revision: Value(b"2"))
    await store.create("k/there", lambda revision: Value(b"3"))
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE meta SET value = 1000 WHERE name = 'compacted'")
    connection.commit()
    connection.close()
    store = await open_store(path, world=World())
    assert [each.key for each in (await store.list(""))[0]] == ["k/there"]
    await store.close()
