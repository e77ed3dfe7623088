"""`python -m bench.store [DIRECTORY]`: the SQLite store by itself, on the file system of DIRECTORY.

Durable writes by one and by many writers, and the restart of a store with 10 000 Pods. The plain fdatasync beside them
says what the disk allows.
"""

import asyncio
import os
import sys
import tempfile
import time

import orjson
import uvloop

from bench.api_server import pod, status
from bench.figures import HEADER, machine, row
from lastcall.kube.store.api import Entry
from lastcall.kube.store.open import open_store
from lastcall.kube.store.sqlite import SQLiteStore
from lastcall.kube.store.value import Value
from lastcall.world.world import World

PODS = 10_000
BODY = orjson.dumps({**pod("measured"), "status": status("2026-01-01T00:00:00Z")})


def encode(revision: int) -> Value:
    return Value(b"%d " % revision + BODY)


def fdatasync(directory: str) -> list[float]:
    times = []
    with open(f"{directory}/plain", "wb", buffering=0) as file:
        for _ in range(500):
            file.write(BODY)
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - started) * 1e3)
    return times


async def updates(store: SQLiteStore, entries: list[Entry], each: int) -> tuple[float, list[float]]:
    """Make `each` updates of each entry, the entries side by side: return seconds, and each write's milliseconds."""
    times = []

    async def write(entry: Entry) -> None:
        for _ in range(each):
            started = time.perf_counter()
            entry = await store.update(entry.key, entry.revision, encode)
            times.append((time.perf_counter() - started) * 1e3)

    started = time.perf_counter()
    await asyncio.gather(*map(write, entries))
    return time.perf_counter() - started, times


async def main(directory: str) -> None:
    print(f"{machine()}; a Pod of {len(BODY)} bytes\n\n{HEADER}")
    print(row("fdatasync of as many bytes", fdatasync(directory), "ms"))
    path = f"{directory}/store.sqlite"
    store = await open_store(path, world=World())
    for start in range(0, PODS, 100):
        await asyncio.gather(*(store.create(f"pods/default/pod-{start + n:05}", encode) for n in range(100)))
    entries, _, _ = await store.list("")
    footer = []
    for writers, each, first in ((1, 2000, 0), (16, 500, 1000), (100, 100, 2000)):
        seconds, times = await updates(store, entries[first : first + writers], each)
        print(row(f"durable write, {writers} at once", times, "ms"))
        footer.append(f"{writers} at once: {writers * each / seconds:,.0f} writes/s")
    await store.close()
    times = []
    for _ in range(10):
        started = time.perf_counter()
        store = await open_store(path, world=World())
        times.append((time.perf_counter() - started) * 1e3)
        assert len((await store.list(""))[0]) == PODS
        await store.close()
    size = next(each.stat().st_size for each in os.scandir(directory) if each.path == path)
    print(row(f"opening with {PODS} Pods", times, "ms", "seconds"))
    print(f"\n{'; '.join(footer)}; file {size / 2**20:.0f} MB for {PODS} Pods and the history")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-", dir=sys.argv[1] if sys.argv[1:] else None) as place:
        uvloop.run(main(place))
