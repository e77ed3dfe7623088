"""SIGKILL of a process that writes to the SQLite store, again and again on one file."""

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import store_writer
from store_writer import WRITERS

from lastcall.kube.store.api import Change, Compacted
from lastcall.kube.store.open import open_store
from lastcall.world.world import World

TURNS = 10
EVERYTHING = 1_000_000
"""A history that forgets nothing."""
VERBS = {"create": "ADDED", "update": "MODIFIED", "delete": "DELETED"}


@dataclass
class Turn:
    """What one process said before it was killed."""

    ready: int = 0
    acked: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    """revision -> (type, key, value)"""
    seen: list[tuple[int, tuple[str, str, str]]] = field(default_factory=list)


def run_and_kill(path: Path, turn: int, writes: int, history: int = EVERYTHING) -> Turn:
    """Start a writer and kill it after `writes` acknowledged writes, at whatever it is doing then."""
    said = Turn()
    process = subprocess.Popen(
        [sys.executable, store_writer.__file__, str(path), str(turn), str(history)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.endswith("\n"):
                break  # it was killed while it waited for room in the pipe: nobody knows the rest
            kind, *words = line.split()
            if kind == "ready":
                said.ready = int(words[0])
            elif kind == "acked":
                verb, key, revision, value = words
                assert int(revision) not in said.acked
                said.acked[int(revision)] = (VERBS[verb], key, value)
                if len(said.acked) == writes:
                    process.kill()
            else:
                assert kind == "seen", line
                type_, key, revision, value = words
                said.seen.append((int(revision), (type_, key, value)))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    return said


@pytest.mark.core
@pytest.mark.proof
async def test_every_acknowledged_write_outlives_a_kill_and_no_revision_is_used_twice(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    pick = random.Random(7)
    acked: dict[int, tuple[str, str, str]] = {}
    revision = 1
    for turn in range(TURNS):
        said = run_and_kill(path, turn, pick.randrange(1, 600))
        assert said.ready == revision, "a restart does not change the revision"
        assert min(said.acked) > revision
        acked |= said.acked

        store = await open_store(path, world=World(), history=EVERYTHING, history_bytes=1 << 40)
        revision = await store.revision()
        async with store.watch("", 1) as events:
            kept = [await anext(events) for _ in range(revision - 1)]
        entries, _, _ = await store.list("")
        await store.close()

        history = {change.revision: (change.type, change.key, change.value.encoded().decode()) for change in kept}
        assert list(history) == list(range(2, revision + 1)), "in order, each revision once"
        assert {number: history.get(number) for number in acked} == acked
        assert_watched_in_order(said, history)
        assert {entry.key: entry.value.encoded() for entry in entries} == dict(replay(kept))
        # Whatever was kept without an answer was on its way when the process was killed: one write a writer.
        assert sum(number not in acked for number in history) <= (turn + 1) * WRITERS
    assert len(acked) > TURNS


@pytest.mark.proof
async def test_a_kill_while_the_file_is_trimmed_loses_nothing_either(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    history = 50
    pick = random.Random(8)
    last: dict[str, tuple[int, str, str]] = {}
    revision = 1
    for turn in range(TURNS):
        said = run_and_kill(path, turn, pick.randrange(100, 400), history)
        assert said.ready == revision
        for number, (type_, key, value) in sorted(said.acked.items()):
            last[key] = (number, type_, value)

        store = await open_store(path, world=World(), history=history)
        revision = await store.revision()
        entries = {entry.key: entry for entry in (await store.list(""))[0]}
        for key, (number, type_, value) in last.items():
            entry = entries.get(key)
            if entry is not None and entry.revision == number:
                assert (entry.value.encoded().decode(), type_ == "DELETED") == (value, False)
            elif entry is not None or type_ != "DELETED":
                # Written once more by the write of its writer that was on its way.
                assert (entry.revision if entry else revision) > max(said.acked) - 2 * WRITERS
        last = {key: (entry.revision, "ADDED", entry.value.encoded().decode()) for key, entry in entries.items()}
        async with store.watch("", revision - history) as events:
            numbers = [(await anext(events)).revision for _ in range(history)]
        assert numbers == list(range(revision - history + 1, revision + 1))
        with pytest.raises(Compacted):
            async with store.watch("", revision - history - 1):
                pass
        await store.close()
    connection = sqlite3.connect(path)
    kept = connection.execute("SELECT count(*) FROM changes").fetchone()[0]
    connection.close()
    assert kept < len(last) + 2 * history + 1000, "rows were dropped"


def assert_watched_in_order(said: Turn, history: dict[int, tuple[str, str, str]]) -> None:
    """The watch in the killed process showed every write from its beginning on, durable ones only."""
    assert [number for number, _ in said.seen] == list(range(said.ready + 1, said.ready + 1 + len(said.seen)))
    assert all(history[number] == change for number, change in said.seen)


def replay(changes: list[Change]) -> Iterator[tuple[str, bytes]]:
    """What stands in the store after `changes`, each of which fits what stood there before."""
    state: dict[str, bytes] = {}
    for change in changes:
        assert (change.previous.encoded() if change.previous else None) == state.get(change.key)
        if change.type == "DELETED":
            del state[change.key]
        else:
            assert (change.type == "MODIFIED") is (change.key in state)
            state[change.key] = change.value.encoded()
        assert change.value.encoded().endswith(f"@{change.revision}".encode())
    return iter(state.items())
