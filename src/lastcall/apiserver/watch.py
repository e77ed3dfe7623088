"""watch: where it starts, what each change means for its selector, bookmarks, and how it ends.

Sources: apiserver pkg/storage/cacher/{cacher,cache_watcher}.go, pkg/endpoints/handlers/watch.go.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import orjson

from lastcall.api.errors import StatusError, too_old_resource_version
from lastcall.api.meta import Object, copy_object
from lastcall.apiserver.listing import selects, wait_for_revision
from lastcall.apiserver.options import ListOptions, parse_resource_version
from lastcall.apiserver.registry import GenericStore
from lastcall.apiserver.selection import Selection
from lastcall.store.api import Change, Compacted, Entry
from lastcall.world.clock import monotonic

BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE_END = 2.0
MIN_TIMEOUT = 1800.0
"""A watch without timeoutSeconds ends after this to twice this many seconds (MinRequestTimeout)."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


@dataclass(frozen=True, slots=True)
class Event:
    """`value` is the JSON of the object. ERROR carries a Status, and the watch ends after it."""

    type: EventType
    value: bytes


@asynccontextmanager
async def open_watch(
    kind: GenericStore, namespace: str, options: ListOptions, selection: Selection, *, endless: bool = False
) -> AsyncIterator[AsyncIterator[Event]]:
    """Start a watch. Raises the 500 StatusError of a resourceVersion that is none; all later trouble is an ERROR event.

    A version that has not come yet is not an error: the watch is silent until it has. `endless` leaves out the time
    limit; such a watch sets no timer unless it sends bookmarks.
    """
    asked = parse_resource_version(options.resource_version, for_list=False)
    stream = _Stream(kind, namespace, options, selection, asked, endless)
    events = stream.events()
    try:
        yield events
    finally:
        await events.aclose()  # type: ignore[attr-defined]


class _Stream:
    def __init__(
        self,
        kind: GenericStore,
        namespace: str,
        options: ListOptions,
        selection: Selection,
        asked: int,
        endless: bool,
    ) -> None:
        self._kind = kind
        self._clock = kind.shared.world.clock
        self._prefix = kind.collection(namespace)
        self._options = options
        self._selection = selection
        self._asked = asked
        self._revision = asked
        self._deadline = math.inf
        if not endless:
            seconds = float(options.timeout_seconds) or MIN_TIMEOUT * (1 + kind.shared.world.random.random())
            self._deadline = monotonic(self._clock) + seconds
        self._next_bookmark = self._bookmark_due()

    def _bookmark_due(self) -> float:
        """When the next bookmark is sent: each minute, and shortly before the end."""
        moment = monotonic(self._clock)
        before_end = self._deadline - BOOKMARK_BEFORE_END
        return min(moment + BOOKMARK_SECONDS, before_end) if before_end > moment else moment + BOOKMARK_SECONDS

    async def events(self) -> AsyncIterator[Event]:
        store = self._kind.shared.store
        initial: list[Entry] = []
        if self._wants_initial_events():
            if self._asked:
                await wait_for_revision(store, self._clock, self._asked)
            initial, self._revision, _ = await store.list(self._prefix)
        elif not self._asked:
            self._revision = await store.revision()
        try:
            async with store.watch(self._prefix, self._revision) as changes:
                for entry in initial:
                    if self._selection.everything or selects(self._kind, self._selection, entry):
                        yield Event("ADDED", entry.value)
                if self._options.send_initial_events and self._options.allow_watch_bookmarks:
                    yield self._bookmark(initial_events_end=True)
                async for event in self._live(aiter(changes)):
                    yield event
        except Compacted as error:
            yield _error(too_old_resource_version(error.revision, error.oldest))
        except StatusError as error:
            yield _error(error)

    def _wants_initial_events(self) -> bool:
        wanted = self._options.send_initial_events
        return self._asked == 0 if wanted is None else wanted

    async def _live(self, changes: AsyncIterator[Change]) -> AsyncIterator[Event]:
        while True:
            bookmarks = self._options.allow_watch_bookmarks
            until = min(self._deadline, self._next_bookmark) if bookmarks else self._deadline
            try:
                async with asyncio.timeout(None if until == math.inf else max(0.0, until - monotonic(self._clock))):
                    change = await anext(changes)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if monotonic(self._clock) >= self._deadline:
                    return
                if bookmarks and monotonic(self._clock) >= self._next_bookmark:
                    self._next_bookmark = self._bookmark_due()
                    self._revision = max(self._revision, await self._kind.shared.store.revision())
                    yield self._bookmark()
                continue
            self._revision = change.revision
            event = self._transition(change)
            if event is not None:
                yield event

    def _transition(self, change: Change) -> Event | None:
        """What a change means to this watch: an object that comes to match is ADDED, one that ceases to is DELETED."""
        selection = self._selection
        if selection.everything:
            return Event(change.type, change.value)
        if selection.name and change.key.rpartition("/")[2] != selection.name:
            return None
        if selection.only_name:
            return Event(change.type, change.value)
        decode = self._kind.decode
        matched = change.previous is not None and selection.matches(decode(change.previous))
        matches = change.type != "DELETED" and selection.matches(decode(change.value))
        if matches:
            return Event("MODIFIED" if matched else "ADDED", change.value)
        if not matched:
            return None
        if change.type == "DELETED":
            return Event("DELETED", change.value)
        assert change.previous is not None
        last: Object = copy_object(decode(change.previous))
        last["metadata"]["resourceVersion"] = str(change.revision)
        return Event("DELETED", orjson.dumps(last))

    def _bookmark(self, *, initial_events_end: bool = False) -> Event:
        resource = self._kind.resource
        meta: Object = {"resourceVersion": str(self._revision)}
        if initial_events_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        bookmark = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        return Event("BOOKMARK", orjson.dumps(bookmark))


def _error(error: StatusError) -> Event:
    return Event("ERROR", orjson.dumps(error.status))
