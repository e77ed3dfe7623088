"""The durable store: the index in memory, and a log in an SQLite file that a write joins before anybody sees it.

Writes are kept in groups. While one group is made durable in the writer thread, further writes gather; they go
together as the next one. A write gets its revision and its bytes when it is asked for, so groups and revisions have one
order. Its group durable, the index shows it: the writer is answered first, then watchers read it.

Reads see durable writes only. So does a compare: a second write to a key waits for the first one's group.
"""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lastcall.store.api import Encode, Entry, StoreError
from lastcall.store.history import Past
from lastcall.store.index import HISTORY, HISTORY_BYTES, Index
from lastcall.store.log import Log, Row
from lastcall.store.value import Value
from lastcall.world.clock import monotonic
from lastcall.world.world import World

GROUP_WRITES = 256
GROUP_BYTES = 4 << 20
"""A group is at most this large (one write always fits)."""
TRIM_ROWS = 250
"""So many rows wait to be dropped from the file together."""
SLOW_SECONDS = 1.0
"""A group that takes longer is worth a warning, as etcd's is."""

_log = logging.getLogger("lastcall.store")


class _Write:
    """One write on its way. `future` is what its caller awaits now; `others` wait for the key."""

    __slots__ = ("entry", "failure", "future", "others", "row", "settled", "value")

    def __init__(self, row: Row, value: Value, future: asyncio.Future[None]) -> None:
        self.row = row
        self.value = value
        self.future = future
        self.others: list[asyncio.Future[None]] = []
        self.settled = False
        self.entry: Entry | None = None
        self.failure = ""

    def settle(self) -> None:
        self.settled = True
        for future in (self.future, *self.others):
            if not future.done():
                future.set_result(None)


class SQLiteStore(Index):
    """`lastcall.store.api.Store` on an SQLite file. Made by `lastcall.store.open.open_store`."""

    def __init__(
        self,
        log: Log,
        executor: ThreadPoolExecutor,
        *,
        world: World,
        history: int = HISTORY,
        history_bytes: int = HISTORY_BYTES,
    ) -> None:
        """`executor` has one thread, the writer; the store ends it."""
        super().__init__(history, history_bytes, self._forgotten)
        self._log = log
        self._executor = executor
        self._clock = world.clock
        self._loop = asyncio.get_running_loop()
        self._next = self._revision + 1
        self._waiting: list[_Write] = []
        self._by_key: dict[str, _Write] = {}
        self._garbage: list[int] = []
        self._trim_at = TRIM_ROWS
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    def load(self, compacted: int, base: Sequence[Entry], later: Sequence[Row]) -> None:
        """Begin with what `Log.load` found. Raises StoreError when it contradicts itself."""
        self.restore(base, compacted)
        for revision, key, deleted, value in later:
            if deleted and key not in self._entries:
                raise StoreError(f"{self._log.path}: is damaged: {key} is deleted twice; move it away to begin anew")
            self.apply(key, Value(value), revision, deleted=bool(deleted))
        self._next = self._revision + 1

    # -- writing -----------------------------------------------------------------------------------------------------

    async def create(self, key: str, encode: Encode) -> Entry:
        await self._settled(key)
        self.expect_none(key)
        return await self._write(key, encode)

    async def update(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        await self._settled(key)
        self.expect(key, expected_revision)
        return await self._write(key, encode)

    async def delete(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        await self._settled(key)
        self.expect(key, expected_revision)
        return await self._write(key, encode, deleted=True)

    async def _settled(self, key: str) -> None:
        """Wait for the write to `key` that is on its way: what is compared with is durable."""
        while (write := self._by_key.get(key)) is not None:
            future = self._loop.create_future()
            write.others.append(future)
            await future

    async def _write(self, key: str, encode: Encode, *, deleted: bool = False) -> Entry:
        if self._closed:
            raise StoreError(f"{self._log.path}: the store is closed")
        value = encode(self._next)
        write = _Write((self._next, key, deleted, value.encoded()), value, self._loop.create_future())
        self._next += 1
        self._by_key[key] = write
        self._waiting.append(write)
        self._wake()
        return await self._answer(write)

    def _wake(self) -> None:
        if self._idle.is_set():
            # Not at once: the other tasks of this turn of the loop may write too.
            self._idle.clear()
            self._loop.call_soon(self._next_group)

    async def _answer(self, write: _Write) -> Entry:
        """The end of a write. A cancellation waits for it, and is delivered at the caller's next await."""
        cancelled = False
        while not write.settled:
            try:
                await write.future
            except asyncio.CancelledError:
                cancelled = True
                if not write.settled:
                    write.future = self._loop.create_future()
        if cancelled and (task := asyncio.current_task()) is not None:
            task.uncancel()
            task.cancel()
        if write.entry is None:
            raise StoreError(write.failure)
        return write.entry

    def _next_group(self) -> None:
        """Give the writer thread what there is to do; called when it has nothing to do."""
        if len(self._garbage) >= self._trim_at:
            self._trim()
        elif self._waiting:
            group = self._take_group()
            rows = [write.row for write in group]
            future = self._loop.run_in_executor(self._executor, self._log.append, rows)
            future.add_done_callback(partial(self._committed, group, monotonic(self._clock)))
        else:
            self._idle.set()

    def _take_group(self) -> list[_Write]:
        size = count = 0
        for write in self._waiting[:GROUP_WRITES]:
            size += len(write.row[3])
            if count and size > GROUP_BYTES:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    def _committed(self, group: list[_Write], started: float, done: asyncio.Future[None]) -> None:
        failure = _failure(done)
        seconds = monotonic(self._clock) - started
        if failure:
            _log.error("%s", failure)
        elif seconds > SLOW_SECONDS:
            _log.warning("%s: %d writes took %.1f s to be durable: a slow disk", self._log.path, len(group), seconds)
        # Callers go on before watchers do: each is called back in the order in which it is woken here.
        for write in group:
            write.failure = failure
            write.settle()
        try:
            for write in group:
                del self._by_key[write.row[1]]
                if not failure:
                    write.entry = self._show(write)
        finally:
            self._next_group()

    def _show(self, write: _Write) -> Entry:
        """A write that is durable is seen and answered, whatever goes wrong on its way into the index."""
        revision, key, deleted, _ = write.row
        try:
            return self.apply(key, write.value, revision, deleted=deleted)
        except Exception:
            _log.exception("%s: %s at revision %d: every watch begins anew", self._log.path, key, revision)
            return self.mend(key, write.value, revision, deleted=deleted)

    # -- forgetting --------------------------------------------------------------------------------------------------

    def _forgotten(self, past: Past) -> None:
        """What nobody can ask for any more: the state before the oldest write, and that of a deleted object."""
        if past.before is not None:
            self._garbage.append(past.before.revision)
        if past.change.type == "DELETED":
            self._garbage.append(past.change.revision)

    def _trim(self) -> None:
        revisions, self._garbage = self._garbage, []
        future = self._loop.run_in_executor(self._executor, self._log.trim, revisions, self._history.oldest)
        future.add_done_callback(partial(self._trimmed, revisions))

    def _trimmed(self, revisions: list[int], done: asyncio.Future[None]) -> None:
        self._trim_at = TRIM_ROWS
        if failure := _failure(done):
            _log.error("%s", failure)
            self._garbage = revisions + self._garbage
            self._trim_at += len(self._garbage)
        self._next_group()

    async def compact(self, revision: int) -> None:
        """Forget history up to `revision` at once; its rows leave the file soon after."""
        self._history.compact(min(revision, self._revision))
        if self._garbage and not self._closed:
            self._trim_at = len(self._garbage)
            self._wake()

    async def close(self) -> None:
        """Finish the writes on their way, end every watch after what it still has to read, close the file."""
        if not self._closed:
            self._closed = True
            await self._idle.wait()
            self._history.close()
            await self._loop.run_in_executor(self._executor, self._log.close)
            self._executor.shutdown(wait=False)


def _failure(done: asyncio.Future[None]) -> str:
    """Why the writer thread could not do it, "" when it could."""
    if done.cancelled():
        return "the store is closed"
    error = done.exception()
    if error is None:
        return ""
    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
