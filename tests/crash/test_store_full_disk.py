"""A full disk and a read-only one: a write fails with a clear text, nothing acknowledged is lost, the store goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_kernel

PROGRAM = """
import asyncio, ctypes, os, sys
from lastcall.store.api import StoreError
from lastcall.store.open import open_store
from lastcall.store.value import Value
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


LIMITED = """
import asyncio, resource, sys
from lastcall.store.api import StoreError
from lastcall.store.open import open_store
from lastcall.store.value import Value
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
