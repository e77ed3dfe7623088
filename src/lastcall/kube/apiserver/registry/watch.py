"""watch: where it starts, what each change means for its selector, bookmarks, and how it ends.

Sources: apiserver pkg/storage/cacher/{cacher,cache_watcher}.go, pkg/endpoints/handlers/watch.go.
"""

# check: many attributes EventStream because it is the state of one watch, which every event changes in one place

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from typing import Literal, NamedTuple

from lastcall.kube.api.errors import StatusError, too_old_resource_version
from lastcall.kube.api.meta import with_own_metadata
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.registry.bookmarks import bookmark
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.registry.listing import SLICE, selects, wait_for_revision
from lastcall.kube.apiserver.registry.selection import Selection
from lastcall.kube.apiserver.wire.options import ListOptions, parse_resource_version
from lastcall.kube.store.api import Change, Changes, Compacted, Entry, TooSlow
from lastcall.kube.store.value import Value
from lastcall.world.clock import monotonic

BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE_END = 2.0
MIN_TIMEOUT = 1800.0
"""A watch without timeoutSeconds ends after this to twice this many seconds (MinRequestTimeout)."""

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


class Event(NamedTuple):
    """`value` is the object. ERROR carries a Status, and the watch ends after it."""

    type: EventType
    value: Value


WatchItem = Event | Change
"""What a watch yields: an event, or the change itself where all watchers get the same."""


@asynccontextmanager
async def open_watch(
    kind: GenericStore,
    namespace: str,
    options: ListOptions,
    selection: Selection,
    *,
    shown: Resource | None = None,
    endless: bool = False,
) -> AsyncIterator["EventStream"]:
    """Start a watch. Raises the 500 StatusError of an invalid resourceVersion; all later trouble is an ERROR event.

    A version that has not come yet is not an error: the watch is silent until it has. `shown` is what bookmarks are of,
    where it is not what is stored. `endless` leaves out the time
    limit; such a watch sets no timer unless it sends bookmarks.
    """
    asked = parse_resource_version(options.resource_version, for_list=False)
    async with AsyncExitStack() as stack:
        stream = EventStream(stack, kind, namespace, options, selection, asked, shown or kind.resource, endless)
        try:
            yield stream
        finally:
            stream.close()


class EventStream:
    """The events of one watch. It begins when it is first read, after the answer's head is on its way."""

    def __init__(
        self,
        stack: AsyncExitStack,
        kind: GenericStore,
        namespace: str,
        options: ListOptions,
        selection: Selection,
        asked: int,
        shown: Resource,
        endless: bool,
    ) -> None:
        self._stack = stack
        self._kind = self.kind = kind
        self._clock = kind.shared.world.clock
        self._scope = kind.scope(namespace, selection)
        self._options = options
        self._selection = selection
        self._asked = asked
        self._shown = shown
        self._revision = asked
        self._everything = selection.everything
        self._initial: Iterator[Entry] | None = None
        self._end_of_initial = False
        self._changes: Changes | None = None
        self._ended = False
        self._in_vain = False
        self._due = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = math.inf
        self._endless = endless
        if not endless:
            seconds = options.watch_seconds or MIN_TIMEOUT * (1 + kind.shared.world.random.random())
            self._deadline = monotonic(self._clock) + seconds
            self._ended = seconds < 0
        self._next_bookmark = self._bookmark_due() if options.allow_watch_bookmarks else math.inf

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> WatchItem:
        """May be cancelled and called again without loss."""
        if self._changes is None and not self._ended:
            try:
                self._changes = await self._begin()
            except (Compacted, StatusError) as error:
                return self._failed(error)
        while (event := self.take()) is None:
            if self._ended or self._changes is None or self._changes.ended:
                raise StopAsyncIteration
            if self._in_vain:
                await self._clock.sleep(0)
            elif self._due:
                if (due := await self._rung()) is not None:
                    return due
            else:
                await self._changes.wait()
        return event

    def take(self) -> WatchItem | None:
        """Return the next event if it has come already, else None. Decodes at most `SLICE` objects for it."""
        if self._ended or self._changes is None:
            return None
        self._in_vain = False
        if self._initial is not None:
            if (event := self._take_initial()) is not None or self._in_vain:
                return event
            self._initial = None
            self._changes.snapshot = 0
        if self._end_of_initial:
            self._end_of_initial = False
            return self._bookmark(initial_events_end=True)
        if self._due and monotonic(self._clock) >= self._deadline:
            self._ended = True
            return None
        try:
            for _ in range(SLICE):
                if (change := self._changes.take()) is None:
                    return None
                self._revision = change.revision
                if self._everything:
                    return change
                if (item := self._transition(change)) is not None:
                    return item
        except TooSlow:  # the answer ends without an ERROR, and a client opens the next watch (cacher.go:forgetWatcher)
            self._ended = True
            return None
        except Compacted as error:
            return self._failed(error)
        self._in_vain = True
        return None

    def _take_initial(self) -> Event | None:
        for entry in islice(self._initial or (), SLICE):
            if self._everything or selects(self._kind, self._selection, entry):
                return Event("ADDED", entry.value)
            self._in_vain = True
        return None

    async def _begin(self) -> Changes:
        store = self._kind.shared.store
        if self._wants_initial_events():
            if self._asked:
                await wait_for_revision(store, self._clock, self._asked)
            entries, self._revision, _ = await store.list(self._scope)
            self._initial = iter(entries)
        elif not self._asked:
            self._revision = await store.revision()
        self._end_of_initial = self._wants_initial_events() and self._options.allow_watch_bookmarks
        trigger = self._kind.trigger_value(self._selection)
        changes = await self._stack.enter_async_context(
            store.watch(self._scope, self._revision, trigger=trigger, remote=not self._endless)
        )
        if self._initial is not None:
            changes.snapshot, changes.on_lost = self._revision, self._let_go
        self._set_timer(changes)
        return changes

    def _let_go(self) -> None:
        self._initial, self._end_of_initial = None, False

    def _wants_initial_events(self) -> bool:
        """A watch that begins anywhere has always had them
        (apimachinery pkg/apis/meta/internalversion/defaults.go:SetListOptionsDefaults)."""
        wanted = self._options.send_initial_events
        return self._asked == 0 if wanted is None else wanted

    def _failed(self, error: Compacted | StatusError) -> Event:
        """The last event: what is wrong."""
        self._ended = True
        if isinstance(error, Compacted):
            error = too_old_resource_version(error.revision, error.oldest)
        return Event("ERROR", Value(None, error.status))

    def close(self) -> None:
        """Leave no timer behind."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    # -- time --------------------------------------------------------------------------------------------------------

    def _bookmark_due(self) -> float:
        """When the next bookmark is sent: each minute, and shortly before the end."""
        moment = monotonic(self._clock)
        before_end = self._deadline - BOOKMARK_BEFORE_END
        return min(moment + BOOKMARK_SECONDS, before_end) if before_end > moment else moment + BOOKMARK_SECONDS

    def _set_timer(self, changes: Changes) -> None:
        self._due = False
        until = min(self._deadline, self._next_bookmark)
        if until < math.inf:
            seconds = max(0.0, until - monotonic(self._clock))
            self._timer = asyncio.get_running_loop().call_later(seconds, self._ring, changes)

    def _ring(self, changes: Changes) -> None:
        self._due = True
        changes.wake()

    async def _rung(self) -> Event | None:
        """The timer rang and there was nothing else to say: a bookmark, or nothing when it was early."""
        assert self._changes is not None
        bookmark = None
        if monotonic(self._clock) >= self._next_bookmark:
            self._next_bookmark = self._bookmark_due()
            self._revision = max(self._revision, await self._kind.shared.store.revision())
            bookmark = self._bookmark()
        self._set_timer(self._changes)
        return bookmark

    # -- events ------------------------------------------------------------------------------------------------------

    def _transition(self, change: Change) -> WatchItem | None:
        """What a change means to this watch: an object that comes to match is ADDED, one that ceases to is DELETED."""
        selection = self._selection
        if selection.name and change.key.rpartition("/")[2] != selection.name:
            return None
        if selection.only_name:
            return change
        decode = self._kind.decode
        matched = change.previous is not None and selection.matches(decode(change.previous))
        matches = change.type != "DELETED" and selection.matches(decode(change.value))
        if matches:
            return change if matched or change.previous is None else Event("ADDED", change.value)
        if not matched:
            return None
        if change.type == "DELETED":
            return change
        assert change.previous is not None
        last = with_own_metadata(decode(change.previous))
        last["metadata"]["resourceVersion"] = str(change.revision)
        return Event("DELETED", Value(None, last))

    def _bookmark(self, *, initial_events_end: bool = False) -> Event:
        obj = bookmark(self._shown, self._revision, initial_events_end=initial_events_end)
        return Event("BOOKMARK", Value(None, obj))
