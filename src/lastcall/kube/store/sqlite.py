"""The durable store: the index in memory, and a log in an SQLite file that a write joins before anybody sees it.

Writes are kept in groups. While one group is made durable in the writer thread, further writes gather; they go
together as the next one. A write gets its revision and its bytes when it is asked for, so groups and revisions have one
order. Its group durable, the index shows it: the writer is answered first, then watchers read it.

Reads see durable writes only. So does a compare: a second write to a key waits for the first one's group.

Without room (`space.py`) a group is taken apart: what still may be written is asked for once more, with more of the
reserve, and the rest is refused. While that lasts history is not kept, so that each write that replaces or deletes
gives back its room, and before a write of more the store looks whether there is room again.
"""

# check: many attributes SQLiteStore because it has the log, the writer's queue and what is to be trimmed

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from lastcall.kube.store.api import Encode, Entry, StoreError, StoreFull
from lastcall.kube.store.history import Past
from lastcall.kube.store.index import HISTORY, HISTORY_BYTES, Index
from lastcall.kube.store.log import Log, Row
from lastcall.kube.store.space import CREATION, DELETION, LAST_STAGE, may_write
from lastcall.kube.store.value import Value
from lastcall.world.clock import monotonic
from lastcall.world.world import World

GROUP_WRITES = 256
GROUP_BYTES = 4 << 20
GROUP_BYTES_WHEN_FULL = 1 << 18
"""A group is at most this large (one write always fits)."""
TRIM_ROWS = 250
"""How many rows wait to be dropped from the file together."""
SLOW_SECONDS = 1.0
"""A group that takes longer is worth a warning, as etcd's is."""

_log = logging.getLogger("lastcall.kube.store")


class _Write:
    """One write on its way. `future` is what its caller awaits now; `others` wait for the key."""

    __slots__ = ("entry", "failure", "future", "growth", "others", "row", "settled", "value")

    def __init__(self, row: Row, value: Value, growth: int, future: asyncio.Future[None]) -> None:
        self.row = row
        self.value = value
        self.growth = growth
        self.future = future
        self.others: list[asyncio.Future[None]] = []
        self.settled = False
        self.entry: Entry | None = None
        self.failure: StoreError | None = None

    def settle(self) -> None:
        self.settled = True
        for future in (self.future, *self.others):
            if not future.done():
                future.set_result(None)


class SQLiteStore(Index):
    """`lastcall.kube.store.api.Store` on an SQLite file. Made by `lastcall.kube.store.open.open_store`."""

    def __init__(
        self,
        log: Log,
        executor: ThreadPoolExecutor,
        *,
        world: World,
        history: int = HISTORY,
        history_bytes: int = HISTORY_BYTES,
        stage: int = 0,
    ) -> None:
        """`executor` has one thread, the writer; the store ends it. `stage` is as in `space.py`."""
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
        self._stage = 0
        self._full: StoreError = StoreFull(f"{log.path}: has no room for more; delete objects, or free space")
        self._enter(stage)
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
        row = (self._next, key, deleted, value.encoded())
        before = self._entries.get(key)
        growth = DELETION if deleted else CREATION if before is None else value.size - before.value.size
        write = _Write(row, value, growth, self._loop.create_future())
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
            raise write.failure or StoreError(f"{self._log.path}: the write was lost")
        return write.entry

    def _next_group(self) -> None:
        """Give the writer thread what there is to do; called when it has nothing to do."""
        if self._stage and not all(may_write(write.growth, self._stage) for write in self._waiting):
            self._look_again()
        elif len(self._garbage) >= self._trim_at:
            self._trim()
        elif self._waiting:
            group = self._take_group()
            rows = [write.row for write in group]
            future = self._do(self._log.append, rows)
            future.add_done_callback(partial(self._committed, group, monotonic(self._clock)))
        else:
            self._idle.set()

    def _take_group(self) -> list[_Write]:
        size = count = 0
        for write in self._waiting[:GROUP_WRITES]:
            size += len(write.row[3])
            if count and size > (GROUP_BYTES if self._stage == 0 else GROUP_BYTES_WHEN_FULL):
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    def _committed(self, group: list[_Write], started: float, done: asyncio.Future[Any]) -> None:
        failure = _failure(done, self._log.path)
        seconds = monotonic(self._clock) - started
        if self._climb(failure):
            self._waiting = self._refuse(group) + self._waiting
            return
        if failure is not None:
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
                if failure is None:
                    write.entry = self._show(write)
            if self._stage:
                self._history.compact(self._revision)
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
        future = self._do(partial(self._log.trim, full=self._stage > 0), revisions, self._history.oldest)
        future.add_done_callback(partial(self._trimmed, revisions))

    def _trimmed(self, revisions: list[int], done: asyncio.Future[Any]) -> None:
        self._trim_at = TRIM_ROWS if self._stage == 0 else 1
        if failure := _failure(done, self._log.path):
            self._garbage = revisions + self._garbage
            if self._climb(failure):
                return
            _log.error("%s", failure)
            self._trim_at = len(self._garbage) + TRIM_ROWS
        self._next_group()

    async def compact(self, revision: int, *, watches: bool = False) -> None:
        """Forget history up to `revision` at once; its rows leave the file soon after."""
        self._history.compact(min(revision, self._revision), watches=watches)
        if self._garbage and not self._closed:
            self._trim_at = len(self._garbage)
            self._wake()

    # -- without room ------------------------------------------------------------------------------------------------

    def _climb(self, failure: StoreError | None) -> bool:
        """Whether there is a next stage, at which the writer thread now makes room, for what failed for lack of it."""
        if not isinstance(failure, StoreFull) or self._stage == LAST_STAGE:
            return False
        self._full = failure
        self._enter(self._stage + 1)
        self._do(self._log.make_room, self._stage).add_done_callback(lambda _: self._next_group())
        return True

    def _enter(self, stage: int) -> None:
        if stage > self._stage == 0:
            _log.error("%s; until then nothing is created and nothing grows, deletions go on", self._full)
        elif self._stage > stage == 0:
            _log.warning("%s: there is room again", self._log.path)
        self._stage = stage
        self._trim_at = TRIM_ROWS if stage == 0 else 1

    def _refuse(self, writes: list[_Write]) -> list[_Write]:
        """Those of `writes` that may go on at this stage; the others are answered."""
        kept = []
        for write in writes:
            if may_write(write.growth, self._stage):
                kept.append(write)
                continue
            write.failure = self._full
            write.settle()
            del self._by_key[write.row[1]]
        return kept

    def _look_again(self) -> None:
        self._history.compact(self._revision)
        revisions, self._garbage = self._garbage, []
        future = self._do(self._log.look_again, self._stage, revisions, self._history.oldest)
        future.add_done_callback(partial(self._looked, revisions))

    def _looked(self, revisions: list[int], done: asyncio.Future[Any]) -> None:
        if failure := _failure(done, self._log.path):
            _log.error("%s", failure)
            self._garbage = revisions + self._garbage
        else:
            self._enter(done.result())
        self._waiting = self._refuse(self._waiting)
        self._next_group()

    def _do(self, work: Callable[..., object], *arguments: object) -> asyncio.Future[Any]:
        """In the writer thread, which has nothing else to do now."""
        return self._loop.run_in_executor(self._executor, work, *arguments)

    async def close(self) -> None:
        """Finish the writes on their way, end every watch after what it still has to read, close the file."""
        if not self._closed:
            self._closed = True
            await self._idle.wait()
            self._history.close()
            await self._loop.run_in_executor(self._executor, self._log.close)
            self._executor.shutdown(wait=False)


def _failure(done: asyncio.Future[Any], path: str) -> StoreError | None:
    """Why the writer thread could not do it."""
    if done.cancelled():
        return StoreError(f"{path}: the store is closed")
    error = done.exception()
    if error is None or isinstance(error, StoreError):
        return error
    return StoreError(f"{path}: {type(error).__name__}: {error}")
