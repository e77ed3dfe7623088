"""A full disk and a read-only one: a write fails with a clear text, nothing acknowledged is lost, the store goes on.

Nothing new is created then; reads, watches and deletions go on, and what they give back is used again.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_kernel

PROGRAM = """
import asyncio, ctypes, os, sys
from lastcall.kube.store.api import StoreError
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

directory = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_RDONLY = 32, 1

def mount(flags, data):
    if libc.mount(b"tmpfs", directory.encode(), b"tmpfs", flags, data):
        raise OSError(ctypes.get_errno(), "mount")

def value(revision):
    return Value(b"%d " % revision + os.urandom(20_000))

async def refused(work):
    try:
        await work
    except StoreError as error:
        return str(error)
    raise AssertionError("was kept")

async def main():
    mount(0, b"size=3m")
    path = f"{directory}/store.sqlite"
    store = await open_store(path, world=World())
    kept, failed = {}, 0
    async with store.watch("", await store.revision()) as events:
        for turn in range(100):
            group = [f"k/{turn}/{n}" for n in range(8)]
            answers = await asyncio.gather(*(store.create(key, value) for key in group), return_exceptions=True)
            for key, answer in zip(group, answers):
                if isinstance(answer, StoreError):
                    failed += 1
                    text = str(answer)
                    assert await store.get(key) is None
                else:
                    kept[key] = answer
        assert failed and kept, (failed, len(kept))
        assert text.startswith(f"{path}: the write was not kept: database or disk is full; free space"), text
        assert (await store.list(""))[0] == sorted(kept.values(), key=lambda entry: entry.key)

        mount(MS_REMOUNT, b"size=16m")
        kept["k/after"] = await store.create("k/after", value)

        # A write through a mount that turned read-only under an open file still works on tmpfs, so the file is
        # opened anew on one.
        seen = [await anext(events) for _ in kept]
        assert [change.revision for change in seen] == sorted(entry.revision for entry in kept.values())
    last = await store.revision()
    await store.close()

    mount(MS_REMOUNT | MS_RDONLY, None)
    print(await refused(open_store(path, world=World())))
    mount(MS_REMOUNT, b"size=16m")

    store = await open_store(path, world=World())
    entries, revision, _ = await store.list("")
    assert revision == last
    assert entries == sorted(kept.values(), key=lambda entry: entry.key)
    assert (await store.create("k/last", value)).revision == last + 1
    await store.close()
    print("done")

asyncio.run(main())
"""


def test_a_full_disk_and_a_read_only_one(tmp_path: Path) -> None:
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    refused, end = done.stdout.splitlines()
    assert refused == (
        f"{tmp_path}/store.sqlite: cannot open the store: Read-only file system; name a writable directory"
    )
    assert end == "done"
    assert "Traceback" not in done.stderr
    assert "the write was not kept: database or disk is full" in done.stderr, "said in the log too"


FULL = """
import asyncio, ctypes, os, sys
from lastcall.kube.store.api import StoreFull
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

directory, who, most = sys.argv[1], sys.argv[2], 24 << 20
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b"tmpfs", directory.encode(), b"tmpfs", 0, b"size=%d" % (most if who != "itself" else 4 * most)) == 0
path, others = f"{directory}/store.sqlite", f"{directory}/others"

def value(size):
    return lambda revision: Value(b"%016d" % revision + bytes(size - 16))

async def opened():
    if who == "itself":
        return await open_store(path, world=World(), most_bytes=most, reserve=False)
    return await open_store(path, world=World())

async def refused(work):
    try:
        await work
    except StoreFull as error:
        assert "database or disk is full" in str(error) or "no room" in str(error), error
        return True
    return False

async def fill(store, kept):
    '''Until creations are refused; with others who take what is left of the disk, again and again.'''
    refusals = 0
    for number in range(5000):
        if who == "others" and number % 10 == 0:
            with open(others, "ab") as file:
                try:
                    file.write(bytes(1 << 20))
                except OSError:
                    pass
        key = f"k/{len(kept)}-{number}"
        try:
            kept[key] = await store.create(key, value(20_000))
            refusals = 0
        except StoreFull:
            refusals += 1  # looking for room may have found some
            if refusals == 5:
                return
    raise AssertionError("never full")

async def rewritten(store, kept, key, size):
    kept[key] = await store.update(key, kept[key].revision, value(size))

async def main():
    store, kept = await opened(), {}
    for number in range(50):
        kept[f"k/{number}"] = await store.create(f"k/{number}", value(20_000))
    for turn in range(3):
        await fill(store, kept)
        assert await refused(store.create("k/one-more", value(20_000)))
        assert await refused(store.create("k/small", value(16)))
        assert await refused(rewritten(store, kept, "k/0", 60_000))
        assert (await store.list(""))[0] == sorted(kept.values(), key=lambda entry: entry.key)
        async with store.watch("", await store.revision()) as events:
            # What goes on: Leases and statuses, marks of deletions, finalizers.
            for _ in range(200):
                await rewritten(store, kept, "k/0", 20_000)
                assert (await anext(events)).revision == kept["k/0"].revision
            await asyncio.gather(*(rewritten(store, kept, f"k/{n}", 20_300) for n in range(1, 40)))
            if turn == 1:  # the same after a restart
                await store.close()
                store = await opened()
                assert (await store.list(""))[0] == sorted(kept.values(), key=lambda entry: entry.key)
                assert await refused(store.create("k/small", value(16)))
            elif who == "others" and turn == 2:
                os.unlink(others)
                kept["k/a"] = await store.create("k/a", value(20_000))
                await fill(store, kept)
        # Everything can be deleted, one by one and at once.
        gone = [key for key in kept if key not in ("k/0", "k/1")]
        for key in gone[:100]:
            await store.delete(key, kept[key].revision, value(20_300))
        await asyncio.gather(*(store.delete(key, kept[key].revision, value(20_000)) for key in gone[100:]))
        kept = {key: kept[key] for key in ("k/0", "k/1")}
        assert (await store.list(""))[0] == sorted(kept.values(), key=lambda entry: entry.key)
        if who == "others" and turn < 2:
            os.truncate(others, os.stat(others).st_size * 9 // 10)
        for number in range(2, 50):
            kept[f"k/{number}"] = await store.create(f"k/{number}", value(20_000))
        for number in range(2):
            await rewritten(store, kept, f"k/{number}", 20_000)
    await store.close()
    store = await opened()
    assert (await store.list(""))[0] == sorted(kept.values(), key=lambda entry: entry.key)
    await store.close()
    print("done")

asyncio.run(main())
"""


@pytest.mark.parametrize("who", ["itself", "disk", "others"])
def test_a_full_store_is_read_and_emptied_and_takes_writes_again(tmp_path: Path, who: str) -> None:
    """By its own limit, by the size of its disk, and by what others write there."""
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", FULL, str(tmp_path), who]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
    assert "Traceback" not in done.stderr
    said = done.stderr.splitlines()
    assert any("deletions go on" in line for line in said)
    assert any("there is room again" in line for line in said)
    assert len(said) < 60, "said when it begins and when it ends"


LIMITED = """
import asyncio, resource, sys
from lastcall.kube.store.api import StoreError
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

async def main():
    store = await open_store(sys.argv[1], world=World())
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    kept = []
    for number in range(50):
        try:
            kept.append(await store.create(f"k/{number}", lambda revision: Value(b"x" * 10_000)))
        except StoreError as error:
            text = str(error)
    assert 0 < len(kept) < 50
    print(text)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    kept.append(await store.create("k/z", lambda revision: Value(b"more")))
    await store.close()
    store = await open_store(sys.argv[1], world=World())
    assert {entry.key for entry in kept} == {entry.key for entry in (await store.list(""))[0]}

asyncio.run(main())
"""


def test_a_limit_on_file_sizes_refuses_writes_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: the write was not kept: disk I/O error; see the kernel's log")


KILLED = """
import asyncio, ctypes, os, sys
from lastcall.kube.store.api import StoreFull
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

directory, size = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b"tmpfs", directory.encode(), b"tmpfs", 0, b"size=24m") == 0
path, others = f"{directory}/store.sqlite", f"{directory}/others"

def value(revision):
    return Value(b"%016d" % revision + bytes(size - 16))

def fill_disk(most=1 << 40):
    with open(others, "ab", buffering=0) as file:
        try:
            while file.tell() < most:
                file.write(bytes(4096))
        except OSError:
            pass

async def writing():
    '''Until nothing is taken any more; nothing is closed, as if the process were killed.'''
    store, refused = await open_store(path, world=World()), 0
    fill_disk(16 << 20)

    async def write(writer):
        nonlocal refused
        number = 0
        while refused < 40:
            try:
                entry = await store.create(f"k/{writer}/{number}", value)
                number += 1
                for _ in range(2):
                    entry = await store.update(entry.key, entry.revision, value)
            except StoreFull:
                refused += 1

    await asyncio.gather(*map(write, range(4)))
    os._exit(0)

async def emptied(part):
    '''How many objects there are after `part` of them were deleted, each of which must be possible.'''
    store = await open_store(path, world=World())
    entries = (await store.list(""))[0]
    gone = entries[: int(len(entries) * part)]
    for entry in gone:
        fill_disk()  # others take all that the store gives back
        await store.delete(entry.key, entry.revision, value)
    left = (await store.list(""))[0]
    assert left == entries[len(gone) :]
    await store.close()
    return len(left)

if not (pid := os.fork()):
    asyncio.run(writing())
os.waitpid(pid, 0)
os.unlink(others)
before = asyncio.run(emptied(0.5))
assert before > 100, before
while before:
    left = asyncio.run(emptied(0.5 if before > 50 else 1))
    assert left < before
    before = left
print("done")
"""


@pytest.mark.parametrize("size", [2000, 20_000])
def test_a_store_that_was_killed_when_full_is_emptied_on_a_disk_that_others_fill(tmp_path: Path, size: int) -> None:
    """Dropping the rows of a long history in one go needs more room than the reserve has."""
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        sys.executable,
        "-c",
        KILLED,
        str(tmp_path),
        str(size),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "done\n"
