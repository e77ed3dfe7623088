"""What every store of ours reads from: the entries in key order in memory, and the history of their changes.

A store adds to it how a write is kept. Reading never suspends, so what a reader sees is one moment.
"""

import bisect
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from lastcall.kube.store.api import Change, Changes, Entry, Reads, StoreConflict, Trigger, Unreadable
from lastcall.kube.store.history import FIRST_REVISION, History, Past
from lastcall.kube.store.keys import Keys
from lastcall.kube.store.value import Value
from lastcall.kube.store.watchers import kind_of

Entries = list[Entry]
_NONE = Keys()
HISTORY = 10_000
HISTORY_BYTES = 32 << 20
"""JSON of the history: the value of each write, and the one that it replaced."""


class Index:
    """The reading half of `lastcall.kube.store.api.Store`; `apply` is how a write comes to be seen.

    The history keeps the last `history` writes, fewer when their values exceed `history_bytes` (but never fewer than
    `LEAST_WRITES`). What all watchers together leave unread is bounded by `history_bytes`, too.
    """

    def __init__(self, history: int, history_bytes: int, on_forget: Callable[[Past], None] | None = None) -> None:
        self._entries: dict[str, Entry] = {}
        self._keys: dict[str, Keys] = {}
        """By kind, the first part of a key with its slash."""
        self._revision = FIRST_REVISION
        self._aside: dict[str, Unreadable] = {}
        self._on_forget = on_forget
        self._history = History(history, history_bytes, on_forget)

    shared = False

    @property
    def cached(self) -> Reads:
        return self

    def set_ttl(self, prefix: str, seconds: int) -> bool:
        return False

    async def check(self) -> None:
        """Return at once: what is in this process is always reachable."""

    def holds(self, *kinds: str) -> bool:
        return any(map(self._keys.get, kinds))

    async def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    async def list(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> tuple[Entries, int, int]:
        if revision:
            self._history.check(revision)
        if revision and revision < self._revision:
            entries = self._snapshot(prefix, revision)
            if start:
                entries = entries[bisect.bisect_right(entries, start, key=lambda entry: entry.key) :]
            return entries[: limit or None], revision, max(0, len(entries) - limit) if limit else 0
        keys, first, last = self._range(prefix)
        if start:
            first = min(max(first, keys.place(start, after=True)), last)
        end = min(first + limit, last) if limit else last
        stored = self._entries
        return [stored[key] for key in keys.between(first, end)], self._revision, last - end

    def _range(self, prefix: str) -> tuple[Keys, int, int]:
        """(keys, where among them those under `prefix` begin and end)."""
        kind = kind_of(prefix)
        keys = self._keys.get(kind, _NONE) if kind else Keys(self._entries)
        if prefix == kind:
            return keys, 0, len(keys)
        # No key character is above U+10FFFF, so this is the first key past the prefix.
        return keys, keys.place(prefix), keys.place(prefix + "\U0010ffff")

    def _snapshot(self, prefix: str, revision: int) -> Entries:
        """The entries as they were at `revision`: today's, with every later write undone, newest first."""
        keys, first, last = self._range(prefix)
        then = {key: self._entries[key] for key in keys.between(first, last)}
        for past in self._history.since(revision, prefix):
            if past.before is None:
                then.pop(past.change.key, None)
            else:
                then[past.change.key] = past.before
        return [then[key] for key in sorted(then)]

    def watch(
        self, prefix: str, after: int, *, trigger: str | None = None, remote: bool = False
    ) -> AbstractAsyncContextManager[Changes]:
        return self._history.watch(prefix, after, trigger, remote=remote)

    def set_trigger(self, prefix: str, trigger: Trigger) -> None:
        self._history.watchers.set_trigger(prefix, trigger)

    async def revision(self) -> int:
        return self._revision

    def set_aside(self, key: str, why: str) -> None:
        """Set the entry of `key` aside as the Store protocol says. Clients that watch have to list again."""
        self._aside[key] = Unreadable(self._entries.pop(key), why)
        self._keys[kind_of(key)].remove(key)
        self._history.begin_anew(self._revision)

    def restate(self, key: str, value: Value) -> None:
        """Replace the value of `key` as the Store protocol says. Clients that watch have to list again."""
        self._entries[key] = self._entries[key]._replace(value=value)
        self._history.begin_anew(self._revision)

    def unreadable(self, prefix: str) -> Sequence[Unreadable]:
        """Return the entries set aside under `prefix`, as the Store protocol says."""
        return [each for key, each in self._aside.items() if key.startswith(prefix)]

    def expect(self, key: str, revision: int) -> Entry:
        """Return the entry if it is at `revision`. Raises `StoreConflict`."""
        current = self._entries.get(key)
        if current is None and key in self._aside:
            current = self._aside[key].entry
        if current is None or current.revision != revision:
            raise StoreConflict(key, current)
        return current

    def expect_none(self, key: str) -> None:
        """Raise `StoreConflict` if the key exists."""
        current = self._entries.get(key)
        if current is not None or key in self._aside:
            raise StoreConflict(key, current)

    def apply(self, key: str, value: Value, revision: int, *, deleted: bool) -> Entry:
        """Apply a write at a revision above all before: to entries, history and watchers."""
        entry = Entry(key, value, revision)
        self._revision = revision
        if deleted and key in self._aside:
            hidden = self._aside.pop(key).entry
            if self._on_forget is not None:  # nobody has seen it, so nobody asks for it any more
                self._on_forget(Past(Change("DELETED", key, value, revision, hidden.value), hidden, 0))
            return entry
        before = self._entries.get(key)
        if deleted:
            del self._entries[key]
            self._keys[kind_of(key)].remove(key)
            self._history.add(Change("DELETED", key, value, revision, before.value if before else None), before)
            return entry
        self._entries[key] = entry
        if before is None:
            kind = kind_of(key)
            if kind not in self._keys:
                self._keys[kind] = Keys()
            self._keys[kind].add(key)
            self._history.add(Change("ADDED", key, value, revision, None), None)
        else:
            self._history.add(Change("MODIFIED", key, value, revision, before.value), before)
        return entry

    def mend(self, key: str, value: Value, revision: int, *, deleted: bool) -> Entry:
        """Apply by the shortest way a write that `apply` failed in the middle of.

        The write holds; its history is gone, so clients that watch or page have to list again.
        """
        entry = Entry(key, value, revision)
        if deleted:
            self._entries.pop(key, None)
        else:
            self._entries[key] = entry
        kind = kind_of(key)
        self._keys[kind] = Keys(each for each in self._entries if kind_of(each) == kind)
        self._revision = revision
        self._history.begin_anew(revision)
        return entry

    def restore(self, entries: Iterable[Entry], revision: int) -> None:
        """Begin, empty or anew, with `entries`, of which no history is known, at `revision`."""
        self._entries = {entry.key: entry for entry in entries}
        kinds: dict[str, list[str]] = {}
        for key in self._entries:
            kinds.setdefault(kind_of(key), []).append(key)
        self._keys = {kind: Keys(keys) for kind, keys in kinds.items()}
        self._revision = revision
        self._history.begin_anew(revision)
