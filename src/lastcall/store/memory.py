"""The store in memory: a sorted key space, a bounded history, and watchers that are fed at the write.

Nothing here suspends except a watcher with nothing to read, so every call is atomic on its event loop.
"""

import asyncio
import bisect
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lastcall.store.api import Change, Compacted, Encode, Entry, StoreConflict

Keys = list[str]
Entries = list[Entry]

FIRST_REVISION = 1
"""The revision of an empty store, as in etcd; 0 always means "no revision"."""


@dataclass(frozen=True, slots=True)
class _Past:
    """One write in the history. `before` is the entry it replaced, which a snapshot at an older revision puts back."""

    change: Change
    before: Entry | None


class _Watcher:
    """What one watch has not read yet. It is fed synchronously by the writer, so no write can be missed."""

    def __init__(self, after: int, backlog: deque[Change], limit: int) -> None:
        self._after = after
        self._backlog = backlog
        self._limit = max(limit, len(backlog) + 1)
        self._wake = asyncio.Event()
        self._lost: Compacted | None = None
        self._closed = False

    def feed(self, change: Change) -> None:
        if change.revision <= self._after:
            return
        if len(self._backlog) >= self._limit:
            # Too slow: it must list again, like a watcher whose revision was compacted.
            self._lost = Compacted(self._backlog[0].revision, change.revision)
            self._backlog.clear()
        if self._lost is None:
            self._backlog.append(change)
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    # An iterator and not a generator: cancelling one `__anext__` must not end the watch.
    def __aiter__(self) -> "_Watcher":
        return self

    async def __anext__(self) -> Change:
        while not self._backlog:
            if self._lost is not None:
                raise self._lost
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._backlog.popleft()


class MemoryStore:
    """`lastcall.store.api.Store` in memory.

    The history keeps the last `history` writes, fewer when their values exceed `history_bytes` (but never fewer than
    a tenth of `history`). A watcher that falls `history` changes behind gets `Compacted`.
    """

    def __init__(self, *, history: int = 10_000, history_bytes: int = 16 << 20) -> None:
        self._entries: dict[str, Entry] = {}
        self._keys: Keys = []
        self._revision = FIRST_REVISION
        self._oldest = FIRST_REVISION
        self._history: deque[_Past] = deque()
        self._history_size = 0
        self._history_limit = history
        self._history_bytes = history_bytes
        self._watchers: dict[str, dict[_Watcher, None]] = {}
        self._closed = False

    async def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    async def list(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> tuple[Entries, int, int]:
        if revision and revision < self._oldest:
            raise Compacted(revision, self._oldest)
        if revision and revision < self._revision:
            entries = self._snapshot(prefix, revision)
        else:
            revision = self._revision
            entries = [self._entries[key] for key in self._range(prefix)]
        if start:
            entries = entries[bisect.bisect_right(entries, start, key=lambda entry: entry.key) :]
        if limit and len(entries) > limit:
            return entries[:limit], revision, len(entries) - limit
        return entries, revision, 0

    def _range(self, prefix: str) -> Keys:
        first = bisect.bisect_left(self._keys, prefix)
        # No key character is above U+10FFFF, so this is the first key past the prefix.
        last = bisect.bisect_left(self._keys, prefix + "\U0010ffff", first)
        return self._keys[first:last]

    def _snapshot(self, prefix: str, revision: int) -> Entries:
        """The entries as they were at `revision`: today's, with every later write undone, newest first."""
        then = {key: self._entries[key] for key in self._range(prefix)}
        for past in reversed(self._history):
            if past.change.revision <= revision:
                break
            if not past.change.key.startswith(prefix):
                continue
            if past.before is None:
                then.pop(past.change.key, None)
            else:
                then[past.change.key] = past.before
        return [then[key] for key in sorted(then)]

    async def create(self, key: str, encode: Encode) -> Entry:
        current = self._entries.get(key)
        if current is not None:
            raise StoreConflict(key, current)
        entry = Entry(key, encode(self._revision + 1), self._revision + 1)
        bisect.insort(self._keys, key)
        self._entries[key] = entry
        self._wrote(Change("ADDED", key, entry.value, entry.revision, None), None)
        return entry

    async def update(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        current = self._expect(key, expected_revision)
        entry = Entry(key, encode(self._revision + 1), self._revision + 1)
        self._entries[key] = entry
        self._wrote(Change("MODIFIED", key, entry.value, entry.revision, current.value), current)
        return entry

    async def delete(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        current = self._expect(key, expected_revision)
        entry = Entry(key, encode(self._revision + 1), self._revision + 1)
        del self._entries[key]
        del self._keys[bisect.bisect_left(self._keys, key)]
        self._wrote(Change("DELETED", key, entry.value, entry.revision, current.value), current)
        return entry

    def _expect(self, key: str, revision: int) -> Entry:
        current = self._entries.get(key)
        if current is None or current.revision != revision:
            raise StoreConflict(key, current)
        return current

    def _wrote(self, change: Change, before: Entry | None) -> None:
        self._revision = change.revision
        self._history.append(_Past(change, before))
        self._history_size += len(change.value)
        while len(self._history) > self._history_limit or (
            self._history_size > self._history_bytes and len(self._history) > self._history_limit // 10
        ):
            self._forget()
        for prefix, watchers in self._watchers.items():
            if change.key.startswith(prefix):
                for watcher in watchers:
                    watcher.feed(change)

    def _forget(self) -> None:
        past = self._history.popleft()
        self._history_size -= len(past.change.value)
        self._oldest = past.change.revision

    @asynccontextmanager
    async def watch(self, prefix: str, after: int) -> AsyncIterator[AsyncIterator[Change]]:
        if after < self._oldest:
            raise Compacted(after, self._oldest)
        backlog: deque[Change] = deque()
        for past in reversed(self._history):
            if past.change.revision <= after:
                break
            if past.change.key.startswith(prefix):
                backlog.appendleft(past.change)
        watcher = _Watcher(after, backlog, self._history_limit)
        self._watchers.setdefault(prefix, {})[watcher] = None
        if self._closed:
            watcher.close()
        try:
            yield watcher
        finally:
            siblings = self._watchers[prefix]
            del siblings[watcher]
            if not siblings:
                del self._watchers[prefix]

    async def revision(self) -> int:
        return self._revision

    async def compact(self, revision: int) -> None:
        while self._history and self._history[0].change.revision <= revision:
            self._forget()
        self._oldest = max(self._oldest, min(revision, self._revision))

    async def close(self) -> None:
        """End every watch after what it still has to read."""
        self._closed = True
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.close()
