"""A cache of one resource that follows the API server: list, then watch, then again when the watch is lost.

Source: client-go tools/cache (reflector.go, shared_informer.go). Handlers are plain functions called in order inside
the informer's task; they should only note what changed (mostly: add a key to a work queue). Late and duplicate events
are normal: an event that is not newer than the cache is dropped, and after a relist only differences are reported.

Each event is a guarded turn (`lastcall.world.crash_guard`): a handler that fails on one object keeps neither the
other handlers nor other objects from their turn, and an index function that fails answers no value.
"""

# check: many attributes Informer because list, watch and indexes share one cache, and no request may come between

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import AnyObject, Object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.client.api import Client, ConnectionLost, WatchEvent
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.world import World

Key = tuple[str, str]
"""(namespace, name); namespace "" for a cluster-scoped object."""

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", bound=AnyObject, default=Object)
else:
    from typing import TypeVar

    T = TypeVar("T")  # which has defaults since Python 3.13

IndexFunction = Callable[[T], Sequence[str]]
"""The values under which an object is found; answers that compare equal are the same values."""
OnAdd = Callable[[T], None]
OnUpdate = Callable[[T, T], None]
OnDelete = Callable[[T], None]

FIRST_BACKOFF = 0.05
MAX_BACKOFF = 2.5
SHORT_WATCH = 1.0


class Informer(Generic[T]):
    """`world` gives the clock and the jitter of the back-off (0.05 s doubling to 2.5 s, plus up to as much again).

    `indexes` maps a name to a function that answers the values under which an object is found by `by_index`; they are
    not asked again about a new version of which `indexes_stay(old, new)` says that they would answer the same.
    `keep` makes of an object what the cache keeps of it (client-go: SetTransform).
    The objects handed out are shared: do not change them. Their type is what the declaration says
    (`pods: Informer[Pod] = Informer(client, PODS)`), and nobody checks that it fits the resource.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        *,
        indexes_stay: Callable[[T, T], bool] = lambda old, new: False,
        keep: Callable[[T], T] | None = None,
        world: World | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._world = world or World()
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in indexes or ()}
        self._indexers = [(function, self._indexes[name]) for name, function in (indexes or {}).items()]
        self._indexes_stay = indexes_stay
        self._keep = keep
        self._indexed: dict[Key, list[Sequence[str]]] = {}
        self._on_add: list[OnAdd[T]] = []
        self._on_update: list[OnUpdate[T]] = []
        self._on_delete: list[OnDelete[T]] = []
        self._synced = asyncio.Event()
        self._backoff = FIRST_BACKOFF
        self._component = f"informer {resource.plural}"

    def add_handler(
        self,
        on_add: OnAdd[T] | None = None,
        on_update: OnUpdate[T] | None = None,
        on_delete: OnDelete[T] | None = None,
    ) -> None:
        """Register handlers. What the cache holds already is reported through `on_add` at once.

        `on_update(old, new)`; `on_delete` gets the last state known, which may be older than the real last one when
        the deletion happened while no watch was open.
        """
        if on_update is not None:
            self._on_update.append(on_update)
        if on_delete is not None:
            self._on_delete.append(on_delete)
        if on_add is not None:
            self._on_add.append(on_add)
            for key, obj in list(self._objects.items()):
                try:
                    on_add(obj)
                except Exception as error:
                    self._caught(key, error)

    async def synced(self) -> None:
        """Return once the first list is in the cache and was reported to the handlers."""
        await self._synced.wait()

    def get(self, namespace: str, name: str) -> T | None:
        return self._objects.get((namespace, name))

    def items(self) -> list[T]:
        """Return all objects, in the order in which they came."""
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[T]:
        """Return the objects for which index function `name` answered `value`, in the order in which they came."""
        return [self._objects[key] for key in self._indexes[name].get(value, ())]

    def has_any(self, name: str, value: str) -> bool:
        """Return whether `by_index` would answer an object."""
        return bool(self._indexes[name].get(value))

    def index_values(self, name: str) -> list[str]:
        """Return the values for which `by_index` has an answer."""
        return list(self._indexes[name])

    async def run(self) -> None:
        """Follow the server until cancelled. Refusals other than 410 are retried too: they may pass."""
        while True:
            try:
                version = await self._list()
                while True:
                    version = await self._watch(version)
            except ConnectionLost:
                await self._sleep_backoff()
            except StatusError as error:
                # 410 Gone: the history we want is compacted. Only the list can help, and it can help at once.
                if error.code != 410 or self._backoff > FIRST_BACKOFF:
                    await self._sleep_backoff()
                else:
                    self._backoff *= 2
            except Exception as error:
                crash_guard.caught(self._component, "", error)
                await self._sleep_backoff()

    async def _sleep_backoff(self) -> None:
        delay = self._backoff * (1.0 + self._world.random.random())
        self._backoff = min(self._backoff * 2, MAX_BACKOFF)
        await self._world.clock.sleep(delay)

    async def _list(self) -> str:
        result = await self._client.list(
            self._resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        found = {_key(obj): obj for obj in result.items}
        for key in [key for key in self._objects if key not in found]:
            self._remove(key, self._objects[key])
        for obj in result.items:
            self._put(obj, listed=True)
        self._synced.set()
        return result.resource_version

    async def _watch(self, version: str) -> str:
        """Watch once; answer the resourceVersion to go on from when the server closed the watch in good order."""
        started = monotonic(self._world.clock)
        events_seen = 0
        async with self._client.watch(
            self._resource,
            self._namespace,
            resource_version=version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            bookmarks=True,
        ) as events:
            # In process, events that have come already are taken without a coroutine for each.
            take = getattr(events, "take", None)
            async for first in events:
                events_seen += 1
                self._backoff = FIRST_BACKOFF
                event: WatchEvent | None = first
                while event is not None:
                    type_, obj = event
                    if type_ == "ERROR":
                        raise StatusError(obj)
                    version = obj["metadata"].get("resourceVersion") or version
                    if type_ == "DELETED":
                        self._deleted(obj)
                    elif type_ != "BOOKMARK":
                        self._put(obj)
                    event = take() if take is not None else None
        if not events_seen and monotonic(self._world.clock) - started < SHORT_WATCH:
            await self._sleep_backoff()  # a server that closes at once must not be asked without end
        return version

    def _put(self, obj: Any, *, listed: bool = False) -> None:
        """`listed`: a list is the truth even when its numbers are lower (a server that lost its store starts anew)."""
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if crash_guard.on_turn is not None:
            crash_guard.on_turn(self._component, _text(key))
        old = self._objects.get(key)
        if old is not None:
            was = old["metadata"]
            if was.get("uid") != meta.get("uid"):
                # Deleted and created again under one name while nobody watched: two lives, reported as two.
                self._remove(key, old)
                old = None
            else:
                version, before = meta.get("resourceVersion", ""), was.get("resourceVersion", "")
                if version == before or (not listed and _is_older(version, before)):
                    return
        if self._keep is not None:
            obj = self._keep(obj)
        self._objects[key] = obj
        if self._indexers and (old is None or not self._indexes_stay(old, obj)):
            self._index(key, obj)
        if old is None:
            for on_add in self._on_add:
                try:
                    on_add(obj)
                except Exception as error:
                    self._caught(key, error)
        else:
            for on_update in self._on_update:
                try:
                    on_update(old, obj)
                except Exception as error:
                    self._caught(key, error)

    def _deleted(self, obj: Any) -> None:
        key = _key(obj)
        old = self._objects.get(key)
        if old is None or (
            uid_of(old) != uid_of(obj) and _is_older(resource_version_of(obj), resource_version_of(old))
        ):
            return
        self._remove(key, obj)

    def _remove(self, key: Key, last: T) -> None:
        if crash_guard.on_turn is not None:
            crash_guard.on_turn(self._component, _text(key))
        del self._objects[key]
        for values, (_, index) in zip(self._indexed.pop(key, ()), self._indexers, strict=False):
            _unindex(index, key, values)
        for on_delete in self._on_delete:
            try:
                on_delete(last)
            except Exception as error:
                self._caught(key, error)

    def _index(self, key: Key, obj: T) -> None:
        known = self._indexed.get(key)
        if known is None:
            known = self._indexed[key] = [()] * len(self._indexers)
        for number, (function, index) in enumerate(self._indexers):
            try:
                values = function(obj)
            except Exception as error:
                self._caught(key, error)
                values = ()
            if values != (had := known[number]):
                known[number] = values
                _unindex(index, key, had)
                for value in values:
                    index.setdefault(value, {})[key] = None

    def _caught(self, key: Key, error: Exception) -> None:
        crash_guard.caught(self._component, _text(key), error)


def _text(key: Key) -> str:
    return f"{key[0]}/{key[1]}" if key[0] else key[1]


def _unindex(index: dict[str, dict[Key, None]], key: Key, values: Sequence[str]) -> None:
    for value in values:
        keys = index.get(value)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del index[value]


def _key(obj: T) -> Key:
    return namespace_of(obj), name_of(obj)


def _is_older(version: str, than: str) -> bool:
    """resourceVersions are comparable decimals since Kubernetes 1.35; what is not a number counts as newer."""
    if len(version) == len(than) and version > than:
        return False  # nearly always, and without two numbers made
    try:
        return int(version) < int(than)
    except ValueError:
        return False
