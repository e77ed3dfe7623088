"""Who watches, and who of them a change concerns.

A change costs what those cost whom it concerns: watchers are found by the prefixes of its key, and those that watch one
value of a trigger (the Pods of one node) by that value, however many others there are.

Source: apiserver pkg/storage/cacher/cacher.go (indexedWatchers, triggerValuesThreadUnsafe).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable

from lastcall.kube.store.api import Change, Compacted, TooSlow, Trigger
from lastcall.world import crash_guard

WAKE_AT_ONCE = 50
"""Watchers that are woken in one turn of the event loop: what they do takes a millisecond or two."""

MOST_UNREAD = 1000
"""Changes that a watcher of another process may leave unread, beside those that it began with
(cacher.go:watchersBuffer, cache_watcher.go: 10 to 1000 by kind)."""

LEAST_WRITES = 10
"""Writes that the history keeps, and a watcher may leave unread, however large they are."""

_log = logging.getLogger("lastcall.kube.store")


def size_of(change: Change) -> int:
    """Return the bytes of JSON that a change keeps in memory, the value that it replaced included."""
    return change.value.size + (change.previous.size if change.previous is not None else 0)


class Watcher:
    """What one watch has not read yet (`lastcall.kube.store.api.Changes`).

    It is fed synchronously by the writer, so no write can be missed.
    """

    on_lost: Callable[[], None] | None = None
    snapshot = 0

    def __init__(self, after: int, backlog: deque[Change], limit: int, *, remote: bool = False) -> None:
        self.remote = remote
        self._after = after
        self._backlog = backlog
        self._limit = len(backlog) + MOST_UNREAD if remote else max(limit, len(backlog) + 1)
        self._waiter: asyncio.Future[None] | None = None
        self._woken = False
        self._asleep = False
        self._lost: Compacted | None = None
        self._closed = False

    def feed(self, change: Change) -> bool:
        """Add the change, and return whether the reader has to be woken for it."""
        if change.revision <= self._after:
            return False
        if len(self._backlog) >= self._limit:
            self._lose(TooSlow(self._backlog[0].revision, change.revision))
        if self._lost is None:
            self._backlog.append(change)
        asleep, self._asleep = self._asleep, False
        return asleep

    def wake(self) -> None:
        # A future and not an Event, which costs more than all else that a change costs its watcher.
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def oldest_unread(self) -> int:
        """Return the revision of the oldest value that it keeps in memory, 0 if it has read everything."""
        return self.snapshot or (self._backlog[0].revision if self._backlog else 0)

    def lose(self, revision: int) -> None:
        """Make the reader list again: it may have missed the change of `revision`."""
        self._lose(Compacted(self._after, revision))
        self.wake()

    def end_as_too_slow(self, revision: int) -> None:
        """Let go of what it has not read up to `revision`, the newest."""
        self._lose(TooSlow(self.oldest_unread, revision))
        self.wake()

    def _lose(self, why: Compacted) -> None:
        self._lost = why
        self._backlog.clear()
        self.snapshot = 0
        if self.on_lost is not None:
            self.on_lost()

    def close(self) -> None:
        self._closed = True
        self.wake()

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
            if not self._woken:
                self._waiter = waiter = asyncio.get_running_loop().create_future()
                try:
                    await waiter
                finally:
                    if self._waiter is waiter:  # the reader after a cancelled one may wait already
                        self._waiter = None
        self._woken = False

    # An iterator and not a generator: cancelling one `__anext__` must not end the watch.
    def __aiter__(self) -> "Watcher":
        return self

    async def __anext__(self) -> Change:
        while (change := self.take()) is None:
            if self._closed:
                raise StopAsyncIteration
            await self.wait()
        return change


_Siblings = dict[Watcher, None]
"""In the order in which they came: it is the order in which they are woken."""


class Watchers:
    """All watchers of a store.

    What they have not read is bounded in bytes, however many they are: they share the values, so the bound is on the
    writes since the oldest unread one. A watcher that has not read an older one is too slow.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._fed: deque[tuple[int, int]] = deque()
        """(revision, size) of the changes that a watcher may not have read."""
        self._fed_bytes = 0
        self._by_prefix: dict[str, _Siblings] = {}
        self._by_trigger: dict[str, dict[str, _Siblings]] = {}
        self._triggers: dict[str, Trigger] = {}
        self._lengths: dict[str, dict[int, int]] = {}
        """First part of a prefix (its kind) → length → how many watchers have such a prefix of this length."""
        self._remote: deque[Watcher] = deque()
        self._local: deque[Watcher] = deque()
        self._waking = False
        self._closed = False

    def set_trigger(self, prefix: str, trigger: Trigger) -> None:
        """Set the trigger of `prefix`. See `Store.set_trigger`."""
        self._triggers[prefix] = trigger

    def add(self, watcher: Watcher, prefix: str, trigger: str | None) -> None:
        """Add `watcher` for all changes under `prefix`. With `trigger` it gets only those that concern this value."""
        lengths = self._lengths.setdefault(kind_of(prefix), {})
        lengths[len(prefix)] = lengths.get(len(prefix), 0) + 1
        if trigger is None or prefix not in self._triggers:
            self._by_prefix.setdefault(prefix, {})[watcher] = None
        else:
            self._by_trigger.setdefault(prefix, {}).setdefault(trigger, {})[watcher] = None
        if self._closed:
            watcher.close()

    def remove(self, watcher: Watcher, prefix: str, trigger: str | None) -> None:
        """Remove `watcher`. The arguments are those that it was added with."""
        lengths = self._lengths[kind_of(prefix)]
        lengths[len(prefix)] -= 1
        if not lengths[len(prefix)]:
            del lengths[len(prefix)]
        if trigger is None or prefix not in self._triggers:
            _discard(self._by_prefix, prefix, watcher)
        else:
            _discard(self._by_trigger[prefix], trigger, watcher)

    def are_followed(self, key: str) -> bool:
        """Return whether this process watches all objects of the kind of `key`."""
        return any(not watcher.remote for watcher in self._by_prefix.get(kind_of(key), ()))

    def feed(self, change: Change) -> None:
        """Give a change to those it concerns."""
        key = change.key
        kind = kind_of(key)
        if self._fed_bytes > self._limit_bytes:
            self._end_slow_ones(change.revision)
        self._fed.append((change.revision, size := size_of(change)))
        self._fed_bytes += size
        # Prefixes without a whole first part stand under "".
        for lengths in (self._lengths.get(kind), self._lengths.get("") if kind else None):
            for length in lengths or ():
                if length > len(key):
                    continue  # the slice would be the whole key once more
                prefix = key[:length]
                for watcher in self._by_prefix.get(prefix, ()):
                    if watcher.feed(change):
                        self._will_wake(watcher)
                indexed = self._by_trigger.get(prefix)
                if indexed:
                    for value in dict.fromkeys(self._concerned(prefix, change, indexed)):
                        for watcher in indexed.get(value, ()):
                            if watcher.feed(change):
                                self._will_wake(watcher)
        if not self._waking and (self._remote or self._local):
            self._wake_some()

    def _end_slow_ones(self, revision: int) -> None:
        """Keep the newer half of what may be unread, and end each watcher that has not read the older one."""
        cut = 0
        while self._fed_bytes > self._limit_bytes // 2 and len(self._fed) > LEAST_WRITES:
            cut, size = self._fed.popleft()
            self._fed_bytes -= size
        for watcher in self._everybody():
            if 0 < watcher.oldest_unread <= cut:
                watcher.end_as_too_slow(revision)

    def _concerned(self, prefix: str, change: Change, indexed: dict[str, _Siblings]) -> Iterable[str]:
        """The values that a change concerns: all of them, where the object is too odd for its trigger."""
        try:
            return self._triggers[prefix](change)
        except Exception as error:
            crash_guard.noticed("store watchers", change.key, error)
            _log.exception("%s: cannot decide which watchers this change concerns: all get it", change.key)
            return indexed

    def _will_wake(self, watcher: Watcher) -> None:
        # Another process can begin while this one is still busy with its own watchers, but not the other way round.
        (self._remote if watcher.remote else self._local).append(watcher)

    def _wake_some(self) -> None:
        """Wake the next watchers. With very many the event loop gets its turn in between, and before those of this
        process: what goes to others, the answer to the writer too, is on its way then."""
        for _ in range(min(WAKE_AT_ONCE, len(self._remote) + len(self._local))):
            (self._remote or self._local).popleft().wake()
        self._waking = bool(self._remote or self._local)
        if self._waking:
            asyncio.get_running_loop().call_soon(self._wake_some)

    def close(self) -> None:
        """End every watch after what it still has to read; later ones too."""
        self._closed = True
        for watcher in self._everybody():
            watcher.close()

    def lose(self, revision: int) -> None:
        """Make every watcher list again: each may have missed the change of `revision`."""
        for watcher in self._everybody():
            watcher.lose(revision)

    def _everybody(self) -> list[Watcher]:
        every = [*self._by_prefix.values(), *(each for by in self._by_trigger.values() for each in by.values())]
        return [watcher for siblings in every for watcher in siblings]


def kind_of(key: str) -> str:
    """Return the first part of a key or prefix with its slash, "" where it has none."""
    return key[: key.find("/") + 1]


def _discard(index: dict[str, _Siblings], key: str, watcher: Watcher) -> None:
    siblings = index[key]
    del siblings[watcher]
    if not siblings:
        del index[key]
