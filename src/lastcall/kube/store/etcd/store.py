"""The store in an etcd that others may use too: an index of it in memory, which a watch keeps in step.

A write is a transaction that compares the key's revision; it is answered when the index shows it, so the client
finds it after the answer. A read asks etcd by quorum for the current revision, and waits until the index has it: what
any API server has acknowledged is seen (as kube-apiserver's ConsistentListFromCache has it, cacher.go,
watch_progress.go).
`cached` reads what the index has, without asking.

An object has no resourceVersion in etcd. `encode(0)` returns what to write; what is handed out is what etcd gave back,
with the revision of the key in it.
"""

# check: many attributes EtcdStore because it has a connection, its health, and the index of what it has read

import asyncio
import logging
from typing import Any

from lastcall.kube.store.api import Compacted, Encode, Entry, Reads, StoreConflict, StoreError
from lastcall.kube.store.etcd import messages
from lastcall.kube.store.etcd.connection import CompactedByServer, Connection, LeaseGone, WatchCall
from lastcall.kube.store.etcd.freshness import Rounds
from lastcall.kube.store.etcd.layout import Layout, range_end
from lastcall.kube.store.etcd.leases import Leases
from lastcall.kube.store.etcd.values import StoredValue, encode
from lastcall.kube.store.index import HISTORY, HISTORY_BYTES, Index
from lastcall.kube.store.value import Value
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Background, whole
from lastcall.world.world import World

PAGE = 2000
"""Keys that are read at once when all are."""
BEHIND_SECONDS = 3.0
"""How long the index may be behind etcd before the watch begins anew at another member."""
PROGRESS_SECONDS = 0.1
"""How often etcd is asked how far a silent watch is (watch_progress.go:progressRequestPeriod)."""
FIRST_PROGRESS_SECONDS = 0.02
RETRY_SECONDS = 0.2
REACH_SECONDS = 10.0

_log = logging.getLogger("lastcall.kube.store")


class Cached:
    """What the index of a store shows now: perhaps not yet the last write of another API server."""

    def __init__(self, index: "EtcdStore") -> None:
        self._index = index

    def holds(self, *kinds: str) -> bool:
        return self._index.holds(*kinds)

    async def get(self, key: str) -> Entry | None:
        return await Index.get(self._index, key)

    async def list(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> tuple[list[Entry], int, int]:
        return await Index.list(self._index, prefix, start=start, limit=limit, revision=revision)


class EtcdStore(Index):
    """`lastcall.kube.store.api.Store` on etcd. Made by `lastcall.kube.store.etcd.open.open_etcd`."""

    shared = True

    def __init__(
        self,
        world: World,
        connection: Connection,
        layout: Layout,
        *,
        history: int = HISTORY,
        history_bytes: int = HISTORY_BYTES,
    ) -> None:
        super().__init__(history, history_bytes)
        self._world, self._clock, self._connection, self._layout = world, world.clock, connection, layout
        self._history_limit = history
        self._leases = Leases(world, connection)
        self._ttls: dict[str, int] = {}
        self._rounds = Rounds(self._current_revision)
        self._waiting: list[asyncio.Future[None]] = []
        self._call: WatchCall | None = None
        self._call_began = 0.0
        self._follower: Background | None = None
        self._logged_error = ""
        self._asking = False
        """Whether a task asks how far the watch is."""
        self._cached = Cached(self)

    @property
    def cached(self) -> Reads:
        return self._cached

    async def check(self) -> None:
        await self._rounds.revision()

    # -- the index ---------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read everything, as it was when the history that can be had began, and follow from there."""
        there = await self._current_revision()
        start = max(1, there - self._history_limit)
        try:
            entries = await self._read_from_etcd(start)
        except CompactedByServer:
            start = min(max(start, await self._compacted_revision(start)), there)
            entries = await self._read_from_etcd(start)
        self.restore(entries, start)
        self._follower = Background(self._follow(), name="etcd watch")
        await self._reach(there)

    async def _current_revision(self) -> int:
        """By quorum."""
        request = messages.RangeRequest(key=self._layout.everything[0], count_only=True)
        answer = await self._connection.read(messages.RANGE, request)
        revision: int = answer.header.revision
        return revision

    async def _read_from_etcd(self, revision: int, prefix: str = "", *, start: str = "") -> list[Entry]:
        """What lies under `prefix`, after `start`, at `revision` (0: now). Raises CompactedByServer."""
        first, end = self._layout.everything
        if prefix:
            first = self._layout.path(prefix)
            end = range_end(first)
        if start:
            first = self._layout.path(start) + b"\0"
        found: list[Entry] = []
        while True:
            request = messages.RangeRequest(key=first, range_end=end, limit=PAGE, revision=revision)
            answer = await self._connection.read(messages.RANGE, request)
            revision = revision or answer.header.revision
            found += [entry for kv in answer.kvs if (entry := self._entry(kv)) is not None]
            if not answer.more or not answer.kvs:
                return found
            first = answer.kvs[-1].key + b"\0"

    def _entry(self, kv: Any) -> Entry | None:
        key = self._layout.key(kv.key)
        return None if key is None else Entry(key, StoredValue(kv.value, kv.mod_revision, key), kv.mod_revision)

    async def _compacted_revision(self, revision: int) -> int:
        """Up to which revision etcd has forgotten, asked by a watch of `revision`, which it has."""
        first, end = self._layout.everything
        request = messages.WatchCreateRequest(key=first, range_end=end, start_revision=revision)
        call = await self._connection.watch(request)
        try:
            async for answer in call.answers():
                if answer.canceled:
                    return int(answer.compact_revision)
                if answer.events:
                    break
        finally:
            call.end()
        return revision

    async def _follow(self) -> None:
        """Keep the index in step, whatever happens to the watch."""
        while True:
            number = self._connection.current
            began = monotonic(self._clock)
            try:
                await self._watch()
            except CompactedByServer:
                _log.warning("etcd: what came after revision %d is compacted: every watch begins anew", self._revision)
                await crash_guard.keep_running("etcd store", self._begin_anew, self._clock)
            except StoreError as error:
                if str(error) != self._logged_error:  # once, until it works again
                    self._logged_error = str(error)
                    _log.warning("%s; the watch goes on at another member", error)
                self._connection.leave(number)
            except Exception as error:
                crash_guard.caught("etcd store", "watch", error)
            if monotonic(self._clock) - began < 1:
                await self._clock.sleep(RETRY_SECONDS)

    async def _begin_anew(self) -> None:
        there = await self._current_revision()
        entries = await self._read_from_etcd(there)
        self.restore(entries, there)
        self._wake()

    async def _watch(self) -> None:
        first, end = self._layout.everything
        request = messages.WatchCreateRequest(
            key=first, range_end=end, start_revision=self._revision + 1, progress_notify=True
        )
        call = self._call = await self._connection.watch(request)
        self._call_began = monotonic(self._clock)
        try:
            async for answer in call.answers():
                if answer.canceled:
                    if answer.compact_revision:
                        raise CompactedByServer
                    raise StoreError(f"etcd {self._connection.server}: the watch was ended: {answer.cancel_reason}")
                self._logged_error = ""
                for event in answer.events:
                    self._event(event)
                # The revision in an answer without events is how far the watch is; not so in that of its creation.
                if not (answer.events or answer.created):
                    self._revision = max(self._revision, answer.header.revision)
                self._wake()
        finally:
            self._call = None
            call.end()

    def _event(self, event: Any) -> None:
        kv = event.kv
        key, revision = self._layout.key(kv.key), kv.mod_revision
        if key is None:
            return
        deleted = event.type == messages.EVENT_DELETE
        value: Value
        if deleted:
            before = self._entries.get(key)
            if before is None:
                return
            value = before.value.at(revision) if isinstance(before.value, StoredValue) else before.value
        else:
            value = StoredValue(kv.value, revision, key)
        try:
            self.apply(key, value, revision, deleted=deleted)
        except Exception:
            _log.exception("etcd: %s at revision %d: every watch begins anew", key, revision)
            self.mend(key, value, revision, deleted=deleted)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _reach(self, revision: int, seconds: float = REACH_SECONDS) -> None:
        """Return when the index has `revision`. Raises StoreError when it takes too long."""
        began = monotonic(self._clock)
        pause = FIRST_PROGRESS_SECONDS
        while self._revision < revision:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                async with asyncio.timeout(pause):
                    await future
                continue
            except TimeoutError:
                pause = PROGRESS_SECONDS
            waited = monotonic(self._clock) - began
            if waited > seconds:
                raise StoreError(
                    f"etcd {self._connection.server}: its watch is behind: at revision {self._revision}, where etcd "
                    f"has {revision}; fix: look whether most members run"
                )
            await self._ask_progress(waited)

    async def _ask_progress(self, waited: float) -> None:
        call = self._call
        if call is None or self._asking:
            return
        if waited > BEHIND_SECONDS < monotonic(self._clock) - self._call_began:
            call.end()  # a member that does not report
            return
        self._asking = True
        try:
            # A request that is given up ends the stream, and the follower begins another one.
            async with asyncio.timeout(BEHIND_SECONDS):
                await call.send(messages.WatchRequest(progress_request=messages.WatchProgressRequest()))
        except (StoreError, TimeoutError):
            pass  # the follower sees it too
        finally:
            self._asking = False

    # -- reading -----------------------------------------------------------------------------------------------------

    async def _fresh(self) -> None:
        await self._reach(await self._rounds.revision())

    async def get(self, key: str) -> Entry | None:
        await self._fresh()
        return self._entries.get(key)

    async def list(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> tuple[list[Entry], int, int]:
        if not revision or revision > self._revision:
            await self._fresh()
        if revision and revision < self._history.oldest:
            try:
                entries = await self._read_from_etcd(revision, prefix, start=start)
            except CompactedByServer:
                raise Compacted(revision, self._history.oldest) from None
            entries.sort(key=lambda entry: entry.key)
            return entries[: limit or None], revision, max(0, len(entries) - limit) if limit else 0
        return await super().list(prefix, start=start, limit=limit, revision=revision)

    # -- writing -----------------------------------------------------------------------------------------------------

    def set_ttl(self, prefix: str, seconds: int) -> bool:
        self._ttls[prefix] = seconds
        return True

    async def create(self, key: str, encode: Encode) -> Entry:
        return await whole(self._put(key, 0, encode))

    async def update(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        if not expected_revision:  # 0 means "not found" to etcd
            raise StoreConflict(key, await self.get(key))
        return await whole(self._put(key, expected_revision, encode))

    async def delete(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        if not expected_revision:
            raise StoreConflict(key, await self.get(key))
        return await whole(self._delete(key, expected_revision, encode))

    async def _put(self, key: str, expected: int, make: Encode) -> Entry:
        value = make(0)
        raw = encode(value.decoded() or value.parsed())
        path = self._layout.path(key)
        while True:
            put = messages.PutRequest(key=path, value=raw, lease=await self._lease(key))
            try:
                revision = await self._transact(key, path, expected, messages.RequestOp(request_put=put))
                break
            except LeaseGone:
                self._leases.forget()
        await self._shown(revision)
        entry = self._entries.get(key)
        if entry is not None and entry.revision == revision:
            return entry
        return Entry(key, StoredValue(raw, revision, key), revision)

    async def _lease(self, key: str) -> int:
        ttl = self._ttls.get(key[: key.find("/") + 1])
        return 0 if ttl is None else await self._leases.take(ttl)

    async def _delete(self, key: str, expected: int, make: Encode) -> Entry:
        path = self._layout.path(key)
        gone = messages.DeleteRangeRequest(key=path)
        revision = await self._transact(key, path, expected, messages.RequestOp(request_delete_range=gone))
        await self._shown(revision)
        return Entry(key, make(revision), revision)

    async def _transact(self, key: str, path: bytes, expected: int, operation: Any) -> int:
        """The revision of the write. Raises StoreConflict, StoreError, LeaseGone."""
        compare = messages.Compare(
            result=messages.COMPARE_EQUAL, target=messages.COMPARE_MOD, key=path, mod_revision=expected
        )
        look = messages.RequestOp(request_range=messages.RangeRequest(key=path))
        request = messages.TxnRequest(compare=[compare], success=[operation], failure=[look])
        answer = await self._connection.write(messages.TXN, request)
        revision: int = answer.header.revision
        if not answer.succeeded:
            kvs = answer.responses[0].response_range.kvs
            raise StoreConflict(key, self._entry(kvs[0]) if kvs else None)
        return revision

    async def _shown(self, revision: int) -> None:
        """The write is made: its answer waits for the index, but not without end."""
        try:
            await self._reach(revision, BEHIND_SECONDS)
        except StoreError as error:
            _log.warning("%s", error)

    async def compact(self, revision: int, *, watches: bool = False) -> None:
        """Forget history before `revision`, here and in etcd, where another API server may have done so already."""
        self._history.compact(min(revision, self._revision), watches=watches)
        try:
            await self._connection.write(messages.COMPACT, messages.CompactionRequest(revision=revision))
        except CompactedByServer:
            pass
        except StoreError as error:
            _log.warning("revision %d cannot be compacted: %s", revision, error)

    async def close(self) -> None:
        """End every watch after what it still has to read. What is in etcd stays."""
        self._history.close()
        if self._follower is not None:
            await self._follower.end()
        await self._connection.close()
