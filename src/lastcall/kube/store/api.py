"""The Store protocol: an ordered key space with revisions and a watch, in the manner of etcd.

Keys look like `pods/default/web` (`<registry prefix>/<namespace>/<name>`, or `<prefix>/<name>`). Values are objects
**with** their resourceVersion inside: the writer passes a function that makes one for the revision the store is about
to use, so that get, list and watch hand out what is stored unchanged.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple, Protocol

from lastcall.kube.store.value import Value

Encode = Callable[[int], Value]
"""Given the revision of the write, what to store."""

Trigger = Callable[["Change"], Iterable[str]]
"""The values that a change concerns, before and after it: for a Pod the node it is on."""


# One of each for every write and every reader: tuples, which are made three times as fast as frozen dataclasses.


class Entry(NamedTuple):
    """One stored value. `revision` is that of its last write."""

    key: str
    value: Value
    revision: int


class Change(NamedTuple):
    """One write, as a watcher sees it. For `DELETED`, `value` is the last stored state encoded at `revision`."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    key: str
    value: Value
    revision: int
    previous: Value | None


class Unreadable(NamedTuple):
    """A stored value that is not an object of its kind, or not the one that its key names. `why` is one sentence."""

    entry: Entry
    why: str


class StoreConflict(Exception):
    """The compare of a compare-and-swap failed. `current` is what is stored now, None when there is nothing."""

    def __init__(self, key: str, current: Entry | None) -> None:
        super().__init__(f"{key} has changed")
        self.current = current


class Compacted(Exception):
    """The asked revision is older than the history kept. `oldest` is the least revision that can be asked for."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is compacted, the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class TooSlow(Compacted):
    """The reader of a watch left more unread than is kept for it. It may go on from the last change that it read."""


class StoreError(Exception):
    """The world's fault: the store cannot be opened, or could not keep a write. The text names the file and the fix.

    A write that raised it is not there and nobody has seen it; the store goes on. (Only where the disk fails while it
    makes a write durable, and the machine dies then, it may be there afterwards, as a write nobody was answered for.)
    """


class StoreFull(StoreError):
    """There is no room for a write of this kind. What makes objects smaller, and deletions, may go on to be kept."""


class StoreUnsure(StoreError):
    """No answer came: the write may have been made or not, now or a moment later. The caller has to look."""


class Changes(Protocol):
    """What a watch gives. `__anext__` may be cancelled and called again without loss.

    `__anext__` and `take` raise `Compacted` when the reader has fallen behind the history, `TooSlow` when it reads too
    slowly.
    """

    on_lost: Callable[[], None] | None
    """Called once when the watch is lost, also while nobody reads it."""

    snapshot: int
    """The revision of a list that the reader still has in hand: it counts as unread. 0: none."""

    def __aiter__(self) -> AsyncIterator[Change]: ...

    async def __anext__(self) -> Change: ...

    @property
    def ended(self) -> bool:
        """Return whether the store is closed and everything has been read."""
        ...

    def take(self) -> Change | None:
        """Return the next change if it has come already, else None."""
        ...

    async def wait(self) -> None:
        """Return when there is something to take, at the end, and after `wake`."""
        ...

    def wake(self) -> None:
        """Let `wait` return."""
        ...


class Reads(Protocol):
    """The reading half of a store."""

    def holds(self, *kinds: str) -> bool:
        """Return whether this process knows of a key that begins with one of `kinds` (with their slashes)."""
        ...

    async def get(self, key: str) -> Entry | None: ...

    async def list(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> tuple[list[Entry], int, int]: ...


class Store(Protocol):
    """An acknowledged write is there for every later reader, and every watcher sees every write in revision order.

    A durable store acknowledges a write, and shows it to readers and watchers, only when it would outlive the machine's
    power. There a write may raise `StoreError`, which is `StoreFull` where room is all it lacks. A write that has begun
    ends as a whole: a caller that is cancelled meanwhile gets its answer, and the cancellation at its next `await`.
    """

    @property
    def shared(self) -> bool:
        """Return whether other processes may write to the store, too. Only then may reads raise `StoreError`."""
        ...

    @property
    def cached(self) -> Reads:
        """Return what this process knows, without asking others. In a shared store it may lack their last writes."""
        ...

    async def get(self, key: str) -> Entry | None: ...

    async def list(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> tuple[list[Entry], int, int]:
        """Return the entries under `prefix` with key > `start`, in key order.

        The result is (entries, revision of the snapshot, how many more). `limit` 0 means no limit; `revision` 0 is now.
        Raises `Compacted`.
        """
        ...

    async def create(self, key: str, encode: Encode) -> Entry:
        """Store a new value. Raises `StoreConflict` when the key exists."""
        ...

    async def update(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        """Replace the value that has `expected_revision` (compare-and-swap). Raises `StoreConflict`."""
        ...

    async def delete(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        """Delete the value that has `expected_revision`. Raises `StoreConflict`.

        `encode` gives the last state at the revision of the deletion.
        """
        ...

    def watch(
        self, prefix: str, after: int, *, trigger: str | None = None, remote: bool = False
    ) -> AbstractAsyncContextManager[Changes]:
        """Watch all changes under `prefix` with revision > `after`, history first. Raises `Compacted` on entering.

        `after` may lie in the future. With `trigger` only those that concern this value by the trigger of the prefix
        need to be woken: a watcher of one value of thousands is not woken for the others (cacher.go:triggerValues).
        `remote` watchers, read for another process, are woken before those of this one.
        """
        ...

    def set_trigger(self, prefix: str, trigger: Trigger) -> None:
        """Set what watches of exactly `prefix` may be narrowed by. Call it once, before the first of them."""
        ...

    def set_ttl(self, prefix: str, seconds: int) -> bool:
        """Let what is written under `prefix`, a whole kind, expire. Return False if this store cannot do it."""
        ...

    def set_aside(self, key: str, why: str) -> None:
        """Hide an entry from all readers. It stays in the store, its key stays taken, and it can be deleted."""
        ...

    def restate(self, key: str, value: Value) -> None:
        """Show an entry as `value`, which says the same in other words."""
        ...

    def unreadable(self, prefix: str) -> Sequence[Unreadable]:
        """Return what is set aside of the keys that begin with `prefix`."""
        ...

    async def revision(self) -> int:
        """Return the revision of the latest write that readers of this process see."""
        ...

    async def check(self) -> None:
        """Raise StoreError if the store is not reachable now."""
        ...

    async def compact(self, revision: int, *, watches: bool = False) -> None:
        """Forget history before `revision`; with `watches` also what watches could still begin at."""
        ...

    async def close(self) -> None: ...
