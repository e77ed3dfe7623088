"""A process that writes to an SQLite store until it is killed, and says what it was answered.

    python store_writer.py PATH TURN HISTORY

Lines on standard output, each by one write(2); a SIGKILL may tear the last one, which has no end then:
`ready REVISION`, `acked VERB KEY REVISION VALUE` after each acknowledged write, `seen TYPE KEY REVISION VALUE` for each
change that a watch shows, `failed TEXT` for a write that raised StoreError.
"""

import asyncio
import os
import random
import sys

from lastcall.kube.store import sqlite
from lastcall.kube.store.api import Store, StoreError
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

WRITERS = 16
KEYS = 6
"""Each writer has keys of its own, so at most one write to a key is on its way."""


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def write(store: Store, prefix: str, turn: str) -> None:
    pick = random.Random(f"{turn}{prefix}")
    number = 0
    while True:
        number += 1
        key = f"{prefix}{pick.randrange(KEYS)}"
        current = await store.get(key)
        body = f"{turn}.{number}." + "x" * pick.choice((10, 300, 5000))

        def encode(revision: int, body: str = body) -> Value:
            return Value(f"{body}@{revision}".encode())

        try:
            if current is None:
                verb, entry = "create", await store.create(key, encode)
            elif pick.random() < 0.3:
                verb, entry = "delete", await store.delete(key, current.revision, encode)
            else:
                verb, entry = "update", await store.update(key, current.revision, encode)
        except StoreError as error:
            say("failed", error)
            await asyncio.sleep(0.005)  # pause of a retry
        else:
            say("acked", verb, key, entry.revision, entry.value.encoded().decode())


async def watch(store: Store, after: int) -> None:
    async with store.watch("k/", after) as events:
        async for change in events:
            say("seen", change.type, change.key, change.revision, change.value.encoded().decode())


async def main(path: str, turn: str, history: str) -> None:
    sqlite.TRIM_ROWS = 20
    store = await open_store(path, world=World(), history=int(history), history_bytes=1 << 40)
    revision = await store.revision()
    say("ready", revision)
    async with asyncio.TaskGroup() as group:
        group.create_task(watch(store, revision))
        for index in range(WRITERS):
            group.create_task(write(store, f"k/{index}/", turn))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
