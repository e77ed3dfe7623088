"""The store's files cut off anywhere, and with a byte changed: the last good state, or a clear text.

What a cut write-ahead log lacks at its end is what a machine that lost its power may lack: writes that nobody was
answered for. So each prefix of it is a prefix of the writes.
"""

import asyncio
import random
import shutil
from pathlib import Path

import pytest

from lastcall.kube.store.api import StoreError
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

Contents = dict[str, bytes]
FRAME, HEADER = 4096 + 24, 32


def value(number: int):
    return lambda revision: Value(f'{{"revision": {revision}, "text": "{"x" * (number * 257 % 5000)}"}}'.encode())


async def contents(path: Path) -> Contents:
    """What a store that is opened has. Raises StoreError."""
    store = await open_store(path, world=World(), reserve=False)
    try:
        return {entry.key: entry.value.encoded() for entry in (await store.list(""))[0]}
    finally:
        await store.close()


async def written(directory: Path, count: int = 30) -> list[Contents]:
    """The states after each write, each a group of its own; `directory` has what a killed process would leave."""
    store = await open_store(directory / "live.sqlite", world=World(), reserve=False)
    states: list[Contents] = [{}]
    for number in range(count):
        key = f"k/{number % 12}"
        old = await store.get(key)
        if old is None:
            entry = await store.create(key, value(number))
        elif number % 5:
            entry = await store.update(key, old.revision, value(number))
        else:
            entry = await store.delete(key, old.revision, value(number))
        state = dict(states[-1])
        state.pop(key, None)
        if old is None or number % 5:
            state[key] = entry.value.encoded()
        states.append(state)
    for suffix in ("", "-wal"):
        shutil.copy(directory / f"live.sqlite{suffix}", directory / f"store.sqlite{suffix}")
    await store.close()
    shutil.copy(directory / "live.sqlite", directory / "whole.sqlite")
    return states


async def opened(directory: Path, data: bytes, log: bytes | None) -> Contents | str:
    path = directory / "try.sqlite"
    path.write_bytes(data)
    wal = directory / "try.sqlite-wal"
    wal.unlink(missing_ok=True)
    if log is not None:
        wal.write_bytes(log)
    try:
        return await asyncio.wait_for(contents(path), 30)
    except StoreError as error:
        return str(error)


def says_so(answer: Contents | str, directory: Path) -> bool:
    return isinstance(answer, str) and answer.startswith(f"{directory}/try.sqlite: ") and "move it away" in answer


async def test_a_log_that_is_cut_off_anywhere_is_an_earlier_state(tmp_path: Path) -> None:
    states = await written(tmp_path)
    data, log = (tmp_path / "store.sqlite").read_bytes(), (tmp_path / "store.sqlite-wal").read_bytes()
    frames = (len(log) - HEADER) // FRAME
    ends = [HEADER + FRAME * n for n in range(frames + 1)]
    some = random.Random(1)
    cuts = {0, 1, 16, 31, *ends, *(end - 1 for end in ends), *(end + 23 for end in ends[:-1]), len(log)}
    cuts |= {some.randrange(len(log)) for _ in range(100)}
    last = -1
    for cut in sorted(cuts):
        found = await opened(tmp_path, data, log[:cut])
        assert found in states or (last < 1 and says_so(found, tmp_path)), cut
        if found in states:
            index = max(n for n, state in enumerate(states) if state == found)
            assert index >= last or states[last] == found, f"cut at {cut}: more of the log has less in it"
            last = index
    assert last == len(states) - 1


async def test_a_log_with_a_changed_byte_is_an_earlier_state(tmp_path: Path) -> None:
    states = await written(tmp_path)
    data, log = (tmp_path / "store.sqlite").read_bytes(), (tmp_path / "store.sqlite-wal").read_bytes()
    some = random.Random(2)
    for place in [*range(32), *(some.randrange(len(log)) for _ in range(100))]:
        changed = bytearray(log)
        changed[place] ^= 1 << some.randrange(8)
        found = await opened(tmp_path, data, bytes(changed))
        assert found in states or says_so(found, tmp_path), place


async def test_a_file_that_is_cut_off_anywhere_is_told_of(tmp_path: Path) -> None:
    states = await written(tmp_path)
    data = (tmp_path / "whole.sqlite").read_bytes()
    some = random.Random(3)
    pages = range(4096, len(data), 4096)
    for cut in [1, 15, 16, 99, 100, 4095, *pages, *(some.randrange(1, len(data)) for _ in range(60))]:
        found = await opened(tmp_path, data[:cut], None)
        assert found == states[-1] or says_so(found, tmp_path), cut


async def test_a_file_with_a_changed_byte_has_everything_or_is_told_of(tmp_path: Path) -> None:
    states = await written(tmp_path)
    data = (tmp_path / "whole.sqlite").read_bytes()
    some = random.Random(4)
    told = 0
    for place in [*range(100), *(some.randrange(len(data)) for _ in range(300))]:
        changed = bytearray(data)
        changed[place] ^= 1 << some.randrange(8)
        found = await opened(tmp_path, bytes(changed), None)
        assert found == states[-1] or isinstance(found, str), place
        told += isinstance(found, str)
        assert not isinstance(found, str) or found.startswith(f"{tmp_path}/try.sqlite: "), found
    assert told > 200


async def test_an_emptied_file_is_no_new_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = await open_store(path, world=World())
    await store.create("k", value(1))
    await store.close()
    path.write_bytes(b"")
    with pytest.raises(StoreError, match=r"is damaged \(it has 0 bytes left\); move it away to begin anew"):
        await open_store(path, world=World())


async def test_rows_of_a_version_without_checksums_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lastcall.kube.store import log

    path = tmp_path / "store.sqlite"
    monkeypatch.setattr(log, "_checksum", lambda row: log.NO_CHECKSUM)
    store = await open_store(path, world=World())
    entry = await store.create("k", value(1))
    await store.close()
    monkeypatch.undo()
    assert await contents(path) == {"k": entry.value.encoded()}
