"""The reading half of one kind's store: keys, stored objects, and those that cannot be read.

Source: apiserver pkg/registry/generic/registry/store.go.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import NamedTuple

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import StatusError, not_found
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.validators.expressions import ANY_EXPRESSIONS, Expressions
from lastcall.kube.apiserver.admission.chain import Admission
from lastcall.kube.apiserver.records import WriteRecords
from lastcall.kube.apiserver.registry.objects import Codec, ObjectCache
from lastcall.kube.apiserver.registry.selection import Selection
from lastcall.kube.apiserver.registry.unreadable import (
    UnreadableError,
    how_to_delete,
    names_of_key,
    read_error,
    read_stored,
)
from lastcall.kube.apiserver.strategies.base import Strategy
from lastcall.kube.store.api import Change, Entry, Store, Unreadable
from lastcall.kube.store.value import Value
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

LOOKED_OVER_AT_ONCE = 500
"""Objects that are read before others get their turn: some 20 ms."""


class Answer(NamedTuple):
    """`value` is what `object` is or would be stored as. `created` says whether a new object came to be, `removed`
    whether it is gone.
    """

    object: Object
    value: Value
    created: bool = False
    removed: bool = False


@dataclass(slots=True)
class Stored:
    """What reading needs that the stores of all kinds have in common."""

    world: World
    store: Store
    cache: ObjectCache
    admission: Admission
    records: WriteRecords
    gates: FeatureGates = field(default_factory=FeatureGates)
    expressions: Expressions = ANY_EXPRESSIONS


class StoredKind:
    """One kind as it is stored. `namespace` is "" for cluster-scoped kinds; objects that are handed out are shared: do
    not change."""

    def __init__(self, shared: Stored, strategy: Strategy) -> None:
        self.shared = shared
        self.strategy = strategy
        self.resource: Resource = strategy.resource
        self.codec = Codec(strategy.resource, shared.cache)
        self.decode: Callable[[Value], Object] = shared.cache.decode
        self.prefix = f"{strategy.resource.plural}/"
        if isinstance(strategy.resource, CustomResource):  # whose name may be that of another kind
            self.prefix = f"{strategy.resource.group_resource}/"
        if strategy.trigger_field:
            shared.store.set_trigger(self.prefix, self._trigger)

    def key(self, namespace: str, name: str) -> str:
        return f"{self.prefix}{namespace}/{name}" if self.resource.namespaced else f"{self.prefix}{name}"

    def collection(self, namespace: str) -> str:
        """Return the key prefix of a collection; namespace "" is all."""
        return f"{self.prefix}{namespace}/" if self.resource.namespaced and namespace else self.prefix

    def scope(self, namespace: str, selection: Selection) -> str:
        """Return the key prefix of everything selected: the key itself where one name is asked for."""
        if selection.name and (namespace or not self.resource.namespaced):
            return self.key(namespace, selection.name)
        return self.collection(namespace)

    def trigger_value(self, selection: Selection) -> str | None:
        """Return the value that everything selected has in the kind's trigger field; None when nothing says so."""
        field = self.strategy.trigger_field
        return selection.fields.exact(field) if field and selection.fields is not None else None

    def _trigger(self, change: Change) -> tuple[str, ...]:
        get = self.strategy.trigger_of
        after = get(self.decode(change.value))
        # The object before has the same value most of the time, and is decoded anyhow for watchers.
        return (after,) if change.previous is None else (after, get(self.decode(change.previous)))

    def known_as(self, asked: Resource | None) -> Resource:
        """Return what rules and messages are about: a version in another group has its own."""
        other = asked is not None and asked.group != self.resource.group and asked.plural == self.resource.plural
        return asked if asked is not None and other else self.resource

    async def entry(self, namespace: str, name: str, asked: Resource | None = None) -> Entry:
        """Return the stored entry. Raises the 404 StatusError."""
        entry = await self.shared.store.get(self.key(namespace, name))
        if entry is None:
            raise self.missing(asked, namespace, name)
        return entry

    def missing(self, asked: Resource | None, namespace: str, name: str) -> StatusError:
        """Return the 404, or the 500 of an object that is there and cannot be read."""
        if (found := self.unreadable(namespace, name)) is not None:
            return read_error(self.resource, namespace, name, found.entry.key, found.why)
        return not_found(self.known_as(asked), name)

    def unreadable(self, namespace: str, name: str) -> Unreadable | None:
        """Return an object that was set aside when the server started."""
        key = self.key(namespace, name)
        return next((each for each in self.shared.store.unreadable(key) if each.entry.key == key), None)

    async def get(self, namespace: str, name: str, asked: Resource | None = None) -> Answer:
        """Return the object. Raises the 404 StatusError."""
        entry = await self.entry(namespace, name, asked)
        return Answer(self.decode(entry.value), entry.value)

    async def look_over(self) -> None:
        """Set aside what cannot be read, and show the rest in the form in which objects are stored. At the start."""
        store = self.shared.store
        for number, entry in enumerate((await store.list(self.prefix))[0], 1):
            namespace, name = names_of_key(self.resource, entry.key.removeprefix(self.prefix))
            stored = entry.value.encoded()
            try:
                shown = read_stored(self.resource, namespace, name, stored)
            except UnreadableError as error:
                self.set_aside(entry, error)
                continue
            if shown != stored:
                store.restate(entry.key, Value(shown))
            if number % LOOKED_OVER_AT_ONCE == 0:
                await self.shared.world.clock.sleep(0)

    @contextmanager
    def guard(self, entry: Entry) -> Iterator[None]:
        """Continue after the block where it fails. An error that shows that the object is odd sets the object aside."""
        try:
            yield
        except Exception as error:
            if self.shared.store.shared or not isinstance(error, crash_guard.UNFORESEEN):
                crash_guard.caught(f"API server {self.resource.plural}", entry.key, error)
            else:
                self.set_aside(entry, error)

    def set_aside(self, entry: Entry, error: Exception) -> None:
        """Hide a stored object that makes `error`, and report it."""
        namespace, name = names_of_key(self.resource, entry.key.removeprefix(self.prefix))
        why = str(error) if isinstance(error, UnreadableError) else crash_guard.text_of(error)
        self.shared.store.set_aside(entry.key, why)
        text = f"the stored object is set aside: {why}. Delete it with: {how_to_delete(self.resource, namespace, name)}"
        crash_guard.noticed(crash_guard.STORED_OBJECTS, entry.key, UnreadableError(text))
