"""The bounded history of writes.

What it has forgotten cannot be listed any more. A watch can still begin at the last writes of its kind, however old
they are and whatever else was written since (apiserver pkg/storage/cacher/watch_cache.go:getAllEventsSinceLocked).
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from lastcall.kube.store.api import Change, Compacted, Entry
from lastcall.kube.store.watchers import LEAST_WRITES, Watcher, Watchers, kind_of, size_of

FIRST_REVISION = 1
"""The revision of an empty store, as in etcd; 0 always means "no revision"."""

LEAST_OF_A_KIND = 100
"""Forgotten writes of one kind that a watch can begin at (watch_cache.go:defaultLowerBoundCapacity)."""
SHARE_OF_A_KIND = 64
"""They are fewer when their values exceed this part of the bytes of the history."""


class Past(NamedTuple):
    """One write in the history. `before` is the entry it replaced, which a snapshot at an older revision puts back.

    `size` is what both values count for, in bytes.
    """

    change: Change
    before: Entry | None
    size: int


class _OfAKind:
    """The newest forgotten writes of one kind; `oldest` is the least revision after which none is missing."""

    def __init__(self, oldest: int) -> None:
        self.oldest = oldest
        self.writes: deque[Past] = deque()
        self._size = 0

    def add(self, past: Past, limit_bytes: int) -> None:
        """Keep a write; a version that no object has any more is kept as JSON."""
        if past.change.previous is not None:
            past.change.previous.encoded()
        past = past._replace(before=None, size=size_of(past.change))
        self.writes.append(past)
        self._size += past.size
        while len(self.writes) > LEAST_OF_A_KIND or self._size > limit_bytes:
            gone = self.writes.popleft()
            self._size -= gone.size
            self.oldest = gone.change.revision


class History:
    """The last `limit` writes, fewer when their values exceed `limit_bytes` (but never fewer than `LEAST_WRITES`).

    A watcher that falls `limit` changes behind gets `TooSlow`. `on_forget` hears of each write that is forgotten.
    """

    def __init__(self, limit: int, limit_bytes: int, on_forget: Callable[[Past], None] | None = None) -> None:
        self.oldest = FIRST_REVISION
        """The least revision that a list can ask for, and a watch of several kinds."""
        self._begun = FIRST_REVISION
        self._forgotten: dict[str, _OfAKind] = {}
        self._past: deque[Past] = deque()
        self._size = 0
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._on_forget = on_forget
        self.watchers = Watchers(limit_bytes)

    def add(self, change: Change, before: Entry | None) -> None:
        """Keep a write, at a revision above all before, and give it to the watchers."""
        size = size_of(change)
        self._past.append(Past(change, before, size))
        self._size += size
        while len(self._past) > self._limit or (self._size > self._limit_bytes and len(self._past) > LEAST_WRITES):
            self._forget()
        self.watchers.feed(change)

    def _forget(self) -> None:
        past = self._past.popleft()
        self._size -= past.size
        self.oldest = past.change.revision
        kind = kind_of(past.change.key)
        if kind not in self._forgotten:
            self._forgotten[kind] = _OfAKind(self._begun)
        self._forgotten[kind].add(past, self._limit_bytes // SHARE_OF_A_KIND)
        if self._on_forget is not None:
            self._on_forget(past)

    def compact(self, revision: int, *, watches: bool = False) -> None:
        """Forget the writes up to `revision`, which is not in the future; with `watches` for watches, too."""
        while self._past and self._past[0].change.revision <= revision:
            self._forget()
        self.oldest = max(self.oldest, revision)
        if watches:
            self._forgotten.clear()
            self._begun = self.oldest

    def begin_anew(self, revision: int) -> None:
        """Forget everything, also who has read what: nobody knows who has heard of the write at `revision`."""
        while self._past:
            self._forget()
        self._forgotten.clear()
        self.oldest = self._begun = revision
        self.watchers.lose(revision)

    def check(self, revision: int) -> None:
        """Raise `Compacted` for a revision that is no longer in the history."""
        if revision < self.oldest:
            raise Compacted(revision, self.oldest)

    def since(self, revision: int, prefix: str) -> Iterator[Past]:
        """Yield the writes under `prefix` after `revision`, newest first."""
        for past in reversed(self._past):
            if past.change.revision <= revision:
                return
            if past.change.key.startswith(prefix):
                yield past

    def _watched(self, after: int, prefix: str) -> Iterator[Past]:
        """The writes that a watch begins with, newest first. Raises `Compacted`."""
        kind = kind_of(prefix)
        forgotten = self._forgotten.get(kind)
        oldest = self.oldest if not kind else self._begun if forgotten is None else forgotten.oldest
        if after < oldest:
            raise Compacted(after, oldest)
        yield from self.since(after, prefix)
        for past in reversed(forgotten.writes if forgotten is not None else ()):
            if past.change.revision <= after:
                return
            if past.change.key.startswith(prefix):
                yield past

    @asynccontextmanager
    async def watch(
        self, prefix: str, after: int, trigger: str | None = None, *, remote: bool = False
    ) -> AsyncIterator[Watcher]:
        """Watch `prefix` as `Store.watch` does."""
        backlog: deque[Change] = deque()
        for past in self._watched(after, prefix):
            backlog.appendleft(past.change)
        watcher = Watcher(after, backlog, self._limit, remote=remote)
        self.watchers.add(watcher, prefix, trigger)
        try:
            yield watcher
        finally:
            self.watchers.remove(watcher, prefix, trigger)

    def close(self) -> None:
        """End every watch after what it still has to read."""
        self.watchers.close()
