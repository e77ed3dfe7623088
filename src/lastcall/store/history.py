"""The bounded history of writes, and the watchers that are fed from it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lastcall.store.api import Change, Compacted, Entry

FIRST_REVISION = 1
"""The revision of an empty store, as in etcd; 0 always means "no revision"."""


@dataclass(frozen=True, slots=True)
class Past:
    """One write in the history. `before` is the entry it replaced, which a snapshot at an older revision puts back."""

    change: Change
    before: Entry | None


class Watcher:
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
    def __aiter__(self) -> "Watcher":
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


class History:
    """The last `limit` writes, fewer when their values exceed `limit_bytes` (but never fewer than a tenth of `limit`).

    A watcher that falls `limit` changes behind gets `Compacted`. `on_forget` hears of each write that is forgotten.
    """

    def __init__(self, limit: int, limit_bytes: int, on_forget: Callable[[Past], None] | None = None) -> None:
        self.oldest = FIRST_REVISION
        """The least revision that a watch or a list can ask for."""
        self._past: deque[Past] = deque()
        self._size = 0
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._on_forget = on_forget
        self._watchers: dict[str, dict[Watcher, None]] = {}
        self._closed = False

    def add(self, change: Change, before: Entry | None) -> None:
        """Keep a write, at a revision above all before, and give it to the watchers."""
        self._past.append(Past(change, before))
        self._size += len(change.value)
        while len(self._past) > self._limit or (self._size > self._limit_bytes and len(self._past) > self._limit // 10):
            self._forget()
        for prefix, watchers in self._watchers.items():
            if change.key.startswith(prefix):
                for watcher in watchers:
                    watcher.feed(change)

    def _forget(self) -> None:
        past = self._past.popleft()
        self._size -= len(past.change.value)
        self.oldest = past.change.revision
        if self._on_forget is not None:
            self._on_forget(past)

    def compact(self, revision: int) -> None:
        """Forget the writes up to `revision`, which is not in the future."""
        while self._past and self._past[0].change.revision <= revision:
            self._forget()
        self.oldest = max(self.oldest, revision)

    def check(self, revision: int) -> None:
        """Raises `Compacted` for a revision that cannot be asked for any more."""
        if revision < self.oldest:
            raise Compacted(revision, self.oldest)

    def since(self, revision: int, prefix: str) -> Iterator[Past]:
        """The writes under `prefix` after `revision`, newest first."""
        for past in reversed(self._past):
            if past.change.revision <= revision:
                return
            if past.change.key.startswith(prefix):
                yield past

    @asynccontextmanager
    async def watch(self, prefix: str, after: int) -> AsyncIterator[Watcher]:
        """`Store.watch`."""
        self.check(after)
        backlog: deque[Change] = deque()
        for past in self.since(after, prefix):
            backlog.appendleft(past.change)
        watcher = Watcher(after, backlog, self._limit)
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

    def close(self) -> None:
        """End every watch after what it still has to read."""
        self._closed = True
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.close()
