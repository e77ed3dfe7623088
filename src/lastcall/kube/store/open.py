"""Opening the durable store of a cluster that stays."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from lastcall.kube.store.index import HISTORY, HISTORY_BYTES
from lastcall.kube.store.log import MOST_BYTES, Log
from lastcall.kube.store.sqlite import SQLiteStore
from lastcall.world.world import World


async def open_store(
    path: str | os.PathLike[str],
    *,
    world: World,
    history: int = HISTORY,
    history_bytes: int = HISTORY_BYTES,
    most_bytes: int = MOST_BYTES,
    reserve: bool = True,
) -> SQLiteStore:
    """Open the store in the SQLite file `path`, and create it with mode 0600 if it is missing (its directory is not).

    An older version of the file is migrated. Raises StoreError for a newer one, for a file that is not a store, for one
    that another process has open, and when the file system refuses. `history` and `history_bytes` as in `Index`,
    `most_bytes` and `reserve` as in `Log`.
    """
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-writer")
    log: Log | None = None
    try:
        log = await loop.run_in_executor(executor, partial(Log, os.fspath(path), most_bytes, reserve=reserve))
        found = await loop.run_in_executor(executor, log.load)
        stage = await loop.run_in_executor(executor, log.settle, 1)
        store = SQLiteStore(log, executor, world=world, history=history, history_bytes=history_bytes, stage=stage)
        store.load(*found)
        return store
    except BaseException:
        if log is not None:
            with suppress(RuntimeError):
                executor.submit(log.close)
        executor.shutdown(wait=False)
        raise
