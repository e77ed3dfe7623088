"""The bounded history of writes, and the watchers that are fed from it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lastcall.store.api import Change, Compacted, Entry

FIRST_REVISION = 1
"""The revision of an empty store, as in etcd; 0 always means "no revision"."""

WAKE_AT_ONCE = 50
"""Watchers that are woken in one turn of the event loop: what they do takes a millisecond or two."""


@dataclass(frozen=True, slots=True)
class Past:
    """One write in the history. `before` is the entry it replaced, which a snapshot at an older revision puts back."""

    change: Change
    before: Entry | None


class Watcher:
    """What one watch has not read yet (`lastcall.store.api.Changes`).

    It is fed synchronously by the writer, so no write can be missed.
    """

    def __init__(self, after: int, backlog: deque[Change], limit: int) -> None:
        self._after = after
        self._backlog = backlog
        self._limit = max(limit, len(backlog) + 1)
        self._wake = asyncio.Event()
        self._asleep = False
        self._lost: Compacted | None = None
        self._closed = False

    def feed(self, change: Change) -> bool:
        """Whether it has to be woken for this change."""
        if change.revision <= self._after:
            return False
        if len(self._backlog) >= self._limit:
            # Too slow: it must list again, like a watcher whose revision was compacted.
            self._lost = Compacted(self._backlog[0].revision, change.revision)
            self._backlog.clear()
        if self._lost is None:
            self._backlog.append(change)
        asleep, self._asleep = self._asleep, False
        return asleep

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    @property
    def ended(self) -> bool:
        return self._closed and not self._backlog and self._lost is None

    def take(self) -> Change | None:
        if self._backlog:
            return self._backlog.popleft()
        if self._lost is not None:
            raise self._lost
        return None

    async def wait(self) -> None:
        if not (self._backlog or self._closed or self._lost is not None):
            self._asleep = True
            await self._wake.wait()
        self._wake.clear()

    # An iterator and not a generator: cancelling one `__anext__` must not end the watch.
    def __aiter__(self) -> "Watcher":
        return self

    async def __anext__(self) -> Change:
        while (change := self.take()) is None:
            if self._closed:
                raise StopAsyncIteration
            await self.wait()
        return change


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
        self._to_wake: deque[Watcher] = deque()
        self._waking = False
        self._closed = False

    def add(self, change: Change, before: Entry | None) -> None:
        """Keep a write, at a revision above all before, and give it to the watchers."""
        self._past.append(Past(change, before))
        self._size += len(change.value)
        while len(self._past) > self._limit or (self._size > self._limit_bytes and len(self._past) > self._limit // 10):
            self._forget()
        for prefix, watchers in self._watchers.items():
            if change.key.startswith(prefix):
                self._to_wake.extend([watcher for watcher in watchers if watcher.feed(change)])
        if self._to_wake and not self._waking:
            self._wake_some()

    def _wake_some(self) -> None:
        """Wake the next watchers. With very many the event loop gets its turn in between."""
        for _ in range(min(WAKE_AT_ONCE, len(self._to_wake))):
            self._to_wake.popleft().wake()
        self._waking = bool(self._to_wake)
        if self._waking:
            asyncio.get_running_loop().call_soon(self._wake_some)

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
