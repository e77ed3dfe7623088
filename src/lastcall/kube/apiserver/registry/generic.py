"""The generic store of one kind: create, get, list, update, delete — with the kind's strategy, over the Store.

Stored bytes are answered unchanged; objects are decoded only where something has to be decided. Every write is a
compare-and-swap that is tried again when somebody else was faster, so nothing is lost and nothing is locked.

Source: apiserver pkg/registry/generic/registry/store.go.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import (
    OPTIMISTIC_LOCK,
    StatusError,
    already_exists,
    conflict,
    generate_name_conflict,
    insufficient_storage,
    internal,
    not_found,
    plain_failure,
)
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.features.disabled_fields import disabled_values, drop_disabled_fields, drop_disabled_status
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.field import FieldError, invalid
from lastcall.kube.api.meta import Object, with_own_metadata
from lastcall.kube.api.names import generate_name
from lastcall.kube.api.pods.warnings import warnings_on_create, warnings_on_update
from lastcall.kube.api.resources import NAMESPACES, Resource
from lastcall.kube.api.text.numbers import NumberError, parse_uint
from lastcall.kube.api.validation import validate_create, validate_update
from lastcall.kube.api.validators.cluster.admin_access import ADMIN_ACCESS, admin_access_errors
from lastcall.kube.api.validators.expressions import ANY_EXPRESSIONS, Expressions
from lastcall.kube.apiserver.admission.chain import Admission, Release
from lastcall.kube.apiserver.auth.authentication import node_of
from lastcall.kube.apiserver.deletion import Decision, DeleteOptions
from lastcall.kube.apiserver.fieldmanager.managers import same_but_times
from lastcall.kube.apiserver.records import WriteRecords
from lastcall.kube.apiserver.registry import objectmeta
from lastcall.kube.apiserver.registry.objects import Codec, ObjectCache, with_type
from lastcall.kube.apiserver.registry.selection import Selection
from lastcall.kube.apiserver.registry.sizes import check_size
from lastcall.kube.apiserver.registry.stored import (
    UnreadableError,
    how_to_delete,
    names_of_key,
    read_error,
    read_stored,
)
from lastcall.kube.apiserver.strategies.base import Strategy
from lastcall.kube.apiserver.wire.as_sent import (
    as_sent,
    as_written,
    empty_in_templates,
    told_as_sent,
    with_empty_in_templates,
)
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.store.api import Change, Encode, Entry, Store, StoreConflict, StoreError, StoreFull, Unreadable
from lastcall.kube.store.value import Value
from lastcall.world import walls
from lastcall.world.clock import now, rfc3339_now
from lastcall.world.world import World

LOOKED_OVER_AT_ONCE = 500
"""Objects that are read before others get their turn: some 20 ms."""
API_SERVER = "system:apiserver"
MAX_NAME_ATTEMPTS = 8
"""How many generated names are tried (maxNameGenerationCreateAttempts)."""

Track = Callable[[Object, Object | None], list[Object]]
"""managedFields of a new object that takes the place of an old one (None at its creation), both as stored."""

Transform = Callable[[Object], Object]
"""Given the stored object (shared: not to be changed), the object that the client wants."""


class Answer(NamedTuple):
    """`value` is what `object` is or would be stored as. `created` says whether a new object came to be, `removed`
    whether it is gone.
    """

    object: Object
    value: Value
    created: bool = False
    removed: bool = False


@dataclass(slots=True)
class Shared:
    """What the stores of all kinds have in common."""

    world: World
    store: Store
    cache: ObjectCache
    admission: Admission
    records: WriteRecords
    gates: FeatureGates = field(default_factory=FeatureGates)
    expressions: Expressions = ANY_EXPRESSIONS


_KEYS = {
    "nodes": "minions", "replicationcontrollers": "controllers", "services": "services/specs",
    "endpoints": "services/endpoints", "ingresses": "ingress",
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices": "apiregistration.k8s.io/apiservices",
}  # fmt: skip
"""Under which keys Kubernetes keeps kinds that are not kept under their names; messages show them."""


class GenericStore:
    """One kind. `namespace` is "" for cluster-scoped kinds; objects that are handed out are shared: do not change."""

    def __init__(self, shared: Shared, strategy: Strategy) -> None:
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
        """The key prefix of a collection; namespace "" is all."""
        return f"{self.prefix}{namespace}/" if self.resource.namespaced and namespace else self.prefix

    def scope(self, namespace: str, selection: Selection) -> str:
        """The key prefix under which everything is that is selected: the key itself where one name is asked for."""
        if selection.name and (namespace or not self.resource.namespaced):
            return self.key(namespace, selection.name)
        return self.collection(namespace)

    def trigger_value(self, selection: Selection) -> str | None:
        """The value that everything selected has in the kind's trigger field; None when nothing says so."""
        field = self.strategy.trigger_field
        return selection.fields.exact(field) if field and selection.fields is not None else None

    def _trigger(self, change: Change) -> tuple[str, ...]:
        get = self.strategy.trigger_of
        after = get(self.decode(change.value))
        # The object before has the same value most of the time, and is decoded anyhow for watchers.
        return (after,) if change.previous is None else (after, get(self.decode(change.previous)))

    def known_as(self, asked: Resource | None) -> Resource:
        """What rules and messages are about: a face of another group has its own."""
        other = asked is not None and asked.group != self.resource.group and asked.plural == self.resource.plural
        return asked if asked is not None and other else self.resource

    async def entry(self, namespace: str, name: str, asked: Resource | None = None) -> Entry:
        """Raises the 404 StatusError."""
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
        """Go on after the block where it fails. An error that shows that the object is odd sets the object aside."""
        try:
            yield
        except Exception as error:
            if self.shared.store.shared or not isinstance(error, walls.UNFORESEEN):
                walls.caught(f"API server {self.resource.plural}", entry.key, error)
            else:
                self.set_aside(entry, error)

    def set_aside(self, entry: Entry, error: Exception) -> None:
        """Hide a stored object that makes `error`, and report it."""
        namespace, name = names_of_key(self.resource, entry.key.removeprefix(self.prefix))
        why = str(error) if isinstance(error, UnreadableError) else walls.text_of(error)
        self.shared.store.set_aside(entry.key, why)
        text = f"the stored object is set aside: {why}. Delete it with: {how_to_delete(self.resource, namespace, name)}"
        walls.noticed(walls.STORED_OBJECTS, entry.key, UnreadableError(text))

    async def _delete_unreadable(
        self, context: RequestContext, namespace: str, name: str, found: Unreadable, options: DeleteOptions
    ) -> Answer:
        """Remove an object that cannot be read: nobody is asked, and no finalizer is waited for.

        (corruptObjectDeleter.Delete)
        """
        if node_of(context.user) is not None and not self._is_made_anew(context):
            raise read_error(self.resource, namespace, name, found.entry.key, found.why)
        meta: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
        left = with_type({"metadata": meta}, self.resource)
        if not (context.dry_run or options.dry_run):
            encode = self._encoder(context, left, None)
            await self._kept(self.shared.store.delete(found.entry.key, found.entry.revision, encode))
        return Answer(left, Value(None, left), removed=True)

    async def get(self, namespace: str, name: str, asked: Resource | None = None) -> Answer:
        """Raises the 404 StatusError."""
        entry = await self.entry(namespace, name, asked)
        return Answer(self.decode(entry.value), entry.value)

    def _encoder(self, context: RequestContext, obj: Object, like: Value | None) -> Encode:
        """Make `obj` a value; `like` is the one it takes the place of. Raises the 500 StatusError of one too large."""
        codec, known = self.codec, like if context.in_process else None

        def encode(revision: int) -> Value:
            value = codec.encode(obj, revision, known)
            if not self.shared.store.shared:  # an etcd says itself what is too large for it
                check_size(value, like)
            return value

        return encode

    @staticmethod
    async def _kept(write: Awaitable[Entry]) -> Entry:
        """A write to the store, whose own trouble is a StatusError: 507 for a full one, else 500."""
        try:
            return await write
        except StoreFull as error:
            raise insufficient_storage(str(error)) from error
        except StoreError as error:
            raise internal(str(error)) from error

    # -- create ------------------------------------------------------------------------------------------------------

    async def create(
        self, context: RequestContext, obj: Object, namespace: str, *, track: Track | None = None, named: str = ""
    ) -> Answer:
        """Create `obj`, which now belongs to the store; without `track` its managedFields stay. Raises StatusError.

        `named` is the name of the URL, "" where the URL has none.
        """
        if track is not None:
            obj["metadata"]["managedFields"] = track(as_written(obj, context.empties), None)
        unnamed = not obj["metadata"].get("name")
        generate = unnamed and obj["metadata"].get("generateName")
        if unnamed and not generate and (name := self.strategy.name_new(self.shared.world.new_uid)):
            obj["metadata"]["name"] = name
        attempts = MAX_NAME_ATTEMPTS if generate else 1
        original = orjson.dumps(obj) if generate else b""
        for attempt in range(attempts):
            if generate:
                obj = orjson.loads(original) if attempt else obj
                obj["metadata"]["name"] = generate_name(generate, self.shared.world.random)
            try:
                return await self._create(context, obj, namespace, named)
            except StatusError as error:
                if not generate or error.reason != "AlreadyExists":
                    raise
        raise generate_name_conflict(self.resource, obj["metadata"]["name"])

    async def _create(self, context: RequestContext, obj: Object, namespace: str, named: str) -> Answer:
        moment, version = rfc3339_now(self.shared.world.clock), obj["metadata"].get("resourceVersion")
        obj["metadata"] = objectmeta.for_create(
            obj["metadata"], uid=self.shared.world.new_uid(), namespace=namespace, now=moment
        )
        obj["metadata"] = objectmeta.with_owners_once(context, obj["metadata"])
        admission = self.shared.admission
        if context.looks is not None:
            admission = admission.noting(context.looks)
        await admission.create(context, self.resource, obj, namespace)
        filled = obj
        obj = await admission.hooks.mutate(
            admission.reader,
            context,
            self.resource,
            obj,
            None,
            again=lambda changed: admission.create(context, self.resource, changed, namespace),
        )
        if obj is not filled:
            version = "" if named else obj["metadata"].get("resourceVersion")
            obj["metadata"] = objectmeta.admitted(self.resource, obj["metadata"], filled["metadata"], namespace, named)
            if not obj["metadata"].get("name") and (prefix := obj["metadata"].get("generateName")):
                obj["metadata"]["name"] = generate_name(prefix, self.shared.world.random)
        self._prepare_for_create(obj)
        self._raise_invalid(obj, self.strategy.refused(obj, None, context.dry_run))
        errors = [
            *(await self._admin_access(obj, None) if self.strategy.guards_admin_access else ()),
            *validate_create(self.known_as(context.requested), obj, self.shared.expressions),
            *disabled_values(self.resource, obj, None, self.shared.gates),
            *self.strategy.validate(obj),
        ]
        if self.strategy.evaluates:
            errors += await self._evaluated(context, obj, None, errors)
        if context.empties and (errors or empty_in_templates(context.empties)):
            sent = as_sent(obj, context.empties)
            of_sent = validate_create(self.known_as(context.requested), sent, self.shared.expressions)
            errors = with_empty_in_templates(told_as_sent(errors, of_sent), of_sent)
        self._raise_invalid(obj, errors)
        if not context.in_process:
            context.warnings += warnings_on_create(self.resource, obj)
        await admission.validate(context, self.resource, obj, None)
        await admission.hooks.validate(admission.reader, context, self.resource, obj, None)
        if not context.dry_run:
            objectmeta.check_new_version(version)
        return await self.create_prepared(context, obj, namespace)

    async def create_prepared(
        self, context: RequestContext, obj: Object, namespace: str, like: Value | None = None
    ) -> Answer:
        """Store a new object that is known to be in order; `like` is a value of its size. Raises StatusError."""
        name = obj["metadata"]["name"]
        key = self.key(namespace, name)
        if self._is_made_anew(context) and (found := self.unreadable(namespace, name)) is not None:
            await self._delete_unreadable(context, namespace, name, found, DeleteOptions())
        undo = self.strategy.begin_create(obj, context)
        release: Release | None = None
        try:
            release = await self.shared.admission.charge(context, self.resource, obj, None)
            if context.dry_run:
                if (current := await self.shared.store.get(key)) is not None:
                    raise StoreConflict(key, current)
                undo()
                return self._dry(obj, created=True)
            entry = await self._kept(self.shared.store.create(key, self._encoder(context, obj, like)))
        except StoreConflict as conflicting:
            undo()
            if release is not None:
                await release()
            raise self._exists(context, obj["metadata"]["name"], conflicting.current) from None
        except BaseException:
            undo()
            if release is not None:
                await release()
            raise
        stored = self.decode(entry.value)
        self.shared.records.created(context, self.resource, stored)
        return Answer(stored, entry.value, created=True)

    def _is_made_anew(self, context: RequestContext) -> bool:
        """Return True for what the cluster itself creates at each start: there an unreadable object makes way."""
        return self.strategy.is_made_anew or context.user.name == API_SERVER

    def _prepare_for_create(self, obj: Object) -> None:
        if self.strategy.tracks_generation:
            obj["metadata"]["generation"] = 1
        self.strategy.prepare_for_create(obj)
        self.strategy.stamp(obj, None, obj["metadata"]["creationTimestamp"])
        drop_disabled_fields(self.resource, obj, None, self.shared.gates)

    def _exists(self, context: RequestContext, name: str, current: Entry | None) -> StatusError:
        meta = {} if current is None else self.decode(current.value)["metadata"]
        ends = meta.get("deletionTimestamp") is not None
        return already_exists(self.known_as(context.requested), name, being_deleted=ends)

    async def _admin_access(self, obj: Object, old: Object | None) -> list[FieldError]:
        errors = admin_access_errors(obj, old)
        if not errors:
            return []
        namespace = await self.shared.admission.reader.get(NAMESPACES, "", obj["metadata"].get("namespace", ""))
        labels = {} if namespace is None else namespace["metadata"].get("labels") or {}
        return [] if labels.get(ADMIN_ACCESS) == "true" else errors

    def _raise_invalid(self, obj: Object, errors: list[FieldError]) -> None:
        if errors:
            raise invalid_object(self.resource, obj["metadata"].get("name", ""), errors)

    def _dry(self, obj: Object, *, created: bool = False) -> Answer:
        obj = with_type(obj, self.resource)
        return Answer(obj, Value(None, obj), created=created)

    # -- update ------------------------------------------------------------------------------------------------------

    async def update(  # noqa: C901, PLR0915 - it waits for the admission chain
        self,
        context: RequestContext,
        namespace: str,
        name: str,
        transform: Transform,
        *,
        subresource: str = "",
        expected_uid: str = "",
        create: Object | None = None,
        track: Track | None = None,
    ) -> Answer:
        """Replace the object by what `transform` makes of it.

        `expected_uid` is the uid of a PUT's body. `create` is what a PUT to a missing object creates, for the kinds
        that allow it. A result without resourceVersion (or "0") overwrites whatever is there, where the kind allows.
        Without `track` the managedFields are those that `transform` gives. Raises StatusError.
        """
        key = self.key(namespace, name)
        entry = await self.shared.store.get(key)
        while True:
            if entry is None:
                if self.unreadable(namespace, name) or (
                    create is None or not self.strategy.allow_create_on_update or subresource
                ):
                    raise self.missing(context.requested, namespace, name)
                if expected_uid:
                    raise self._uid_conflict(context, key, expected_uid, {"metadata": {}}, dry_run=context.dry_run)
                objectmeta.check_version_of_missing(create["metadata"].pop("resourceVersion", None))
                return await self.create(context, create, namespace, track=track, named=name)
            old = self.decode(entry.value)
            if expected_uid and expected_uid != old["metadata"].get("uid"):
                raise self._uid_conflict(context, key, expected_uid, old, dry_run=context.dry_run)
            new = transform(old)
            if track is not None:
                entries = track(as_written(new, context.empties), old)
                new = {**new, "metadata": {**new["metadata"], "managedFields": entries}}
            if node_of(context.user) is not None:
                self.shared.admission.nodes.update(context.user, self.resource, new, old, subresource)
            new = self.strategy.fill_update(new, old, subresource)
            admission = self.shared.admission
            if subresource == "resize":
                new = await admission.fill(self.resource, new, old, subresource)
            new = await admission.hooks.mutate(admission.reader, context, self.resource, new, old, subresource)
            new = await self._updated(context, new, old, name, subresource)
            if not (context.in_process or subresource):
                context.warnings += warnings_on_update(self.resource, new, old)
            release = None
            lets_go = _only_lets_go(new, old)
            if not lets_go:
                await admission.update(context, self.resource, new, old, subresource)
            await admission.hooks.validate(admission.reader, context, self.resource, new, old, subresource)
            if not lets_go:
                release = await admission.charge(context, self.resource, new, old, subresource)
            try:
                return await self._store_update(context, entry, new, old, subresource)
            except StoreConflict as conflicting:
                entry = conflicting.current
                if release is not None:
                    await release()
            except BaseException:
                if release is not None:
                    await release()
                raise

    async def _evaluated(
        self, context: RequestContext, new: Object, old: Object | None, errors: list[FieldError]
    ) -> Sequence[FieldError]:
        found, warnings = await self.strategy.evaluate(new, old, errors, self.shared.world.clock)
        context.warnings += warnings
        return found

    async def _updated(self, context: RequestContext, new: Object, old: Object, name: str, subresource: str) -> Object:  # noqa: PLR0915 - it waits for the admission chain
        """`new` made ready to be stored in place of `old`, or a StatusError."""
        asked = new["metadata"].get("resourceVersion") or "0"
        try:
            unconditional = asked == "0" or parse_uint(asked) == 0
        except NumberError as error:
            raise plain_failure(str(error)) from None
        if unconditional:
            if not self.strategy.allow_unconditional_update:
                why = invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid_object(self.resource.plural, name, [why], group=self.resource.group)
        elif asked != old["metadata"]["resourceVersion"]:
            raise conflict(self.known_as(context.requested), name, OPTIMISTIC_LOCK)
        meta = objectmeta.for_update(new["metadata"], old["metadata"])
        new = {**new, "metadata": objectmeta.with_owners_once(context, meta)}
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if subresource == "binding":
            # The binding changes what no client may: it is not an update of the spec (storage.go:assignPod).
            return new
        self.strategy.prepare_for_update(new, old, subresource)
        self.strategy.stamp(new, old, rfc3339_now(self.shared.world.clock))
        disabled: list[FieldError] = []
        if subresource != "status":
            drop_disabled_fields(self.resource, new, old, self.shared.gates)
            disabled = disabled_values(self.resource, new, old, self.shared.gates)
        else:
            drop_disabled_status(self.resource, new, self.shared.gates)
        if not subresource:
            self._raise_invalid(new, self.strategy.refused(new, old, context.dry_run))
        if _only_lets_go(new, old):
            return new  # whatever else is wrong with it: nothing of that is written, and so it can go
        known_as = self.known_as(context.requested)
        errors = validate_update(known_as, new, old, subresource, expressions=self.shared.expressions)
        errors += disabled + self.strategy.validate(new, old, subresource)
        if self.strategy.guards_admin_access:
            errors = [*await self._admin_access(new, old), *errors]
        if self.strategy.evaluates:
            errors += await self._evaluated(context, new, old, errors)
        sent, empty_counts = new, empty_in_templates(context.empties)
        if context.empties and (errors or empty_counts or self.strategy.counts_empty):
            sent = as_sent(new, context.empties)
        if context.empties and (errors or empty_counts):
            of_sent = validate_update(known_as, sent, old, subresource, expressions=self.shared.expressions)
            errors = with_empty_in_templates(told_as_sent(errors, of_sent), of_sent)
        self._raise_invalid(new, errors)
        if self.strategy.tracks_generation and subresource != "status" and self.strategy.spec_changed(sent, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return new

    async def _store_update(
        self, context: RequestContext, entry: Entry, new: Object, old: Object, subresource: str
    ) -> Answer:
        if self.strategy.should_delete_during_update(new, old):
            # The last finalizer went: the object is removed instead of written, and watchers see only DELETED.
            if not context.dry_run:
                await self._remove(context, entry)
            answer = self._dry(new)
            return Answer(answer.object, answer.value, removed=True)
        if new == old or _only_times_differ(new, old):
            return Answer(old, entry.value)
        undo = self.strategy.begin_update(new, old, context)
        if context.dry_run:
            undo()
            return self._dry(new)
        try:
            written = await self._kept(
                self.shared.store.update(entry.key, entry.revision, self._encoder(context, new, entry.value))
            )
        except BaseException:
            undo()
            raise
        self.strategy.after_update(new, old)
        stored = self.decode(written.value)
        self.shared.records.updated(context, self.resource, stored, old, subresource)
        return Answer(stored, written.value)

    def _uid_conflict(
        self, context: RequestContext, key: str, asked: str, old: Object, *, dry_run: bool = False
    ) -> StatusError:
        """The text is the store's, which knows its keys without their prefix where nothing is to be written."""
        plural = self.resource.plural
        key = f"{'' if dry_run else '/registry'}/{_KEYS.get(plural, plural)}{key.removeprefix(plural)}"
        return conflict(
            self.known_as(context.requested),
            key.rpartition("/")[2],
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {asked}, UID in object meta: {old['metadata'].get('uid', '')}",
        )

    # -- delete ------------------------------------------------------------------------------------------------------

    async def delete(self, context: RequestContext, namespace: str, name: str, options: DeleteOptions) -> Answer:
        """DELETE one object; the answer is the object as it is now or was last. Raises StatusError.

        Source: store.go:Delete, updateForGracefulDeletionAndFinalizers.
        """
        if (unreadable := self.unreadable(namespace, name)) is not None:
            return await self._delete_unreadable(context, namespace, name, unreadable, options)
        if (refused := self.strategy.check_delete(name)) is not None:
            raise refused
        entry = await self.entry(namespace, name, context.requested)
        admission = self.shared.admission
        await admission.hooks.delete(admission.reader, context, self.resource, self.decode(entry.value), options)
        while True:
            old = self.decode(entry.value)
            if node_of(context.user) is not None:
                self.shared.admission.nodes.delete(context.user, self.resource, old)
            decision = self.strategy.decide_delete(old, options, now(self.shared.world.clock))
            try:
                return await self._delete(context, entry, old, decision, options)
            except StoreConflict as conflicting:
                if conflicting.current is None:
                    raise not_found(self.known_as(context.requested), name) from None
                entry = conflicting.current

    async def _delete(
        self, context: RequestContext, entry: Entry, old: Object, decision: Decision, options: DeleteOptions
    ) -> Answer:
        dry_run = context.dry_run or options.dry_run
        marked, value = old, entry.value
        if decision.object is not None:
            if dry_run:
                answer = self._dry(decision.object)
                return Answer(answer.object, answer.value, removed=decision.action == "mark and remove")
            new = decision.object
            entry = await self._kept(
                self.shared.store.update(entry.key, entry.revision, self._encoder(context, new, entry.value))
            )
            marked, value = self.decode(entry.value), entry.value
            self.shared.records.marked(context, self.resource, marked, old, decision.rule)
        if decision.action in ("pending", "mark"):
            return Answer(marked, value)
        if dry_run:
            return Answer(marked, value, removed=True)
        if seconds := self.strategy.seconds_before_removal(old):
            await self.shared.world.clock.sleep(seconds)
        try:
            return await self._remove(context, entry)
        except StoreConflict as conflicting:
            there = self.decode(conflicting.current.value)["metadata"].get("uid") if conflicting.current else None
            if decision.object is None or there == marked["metadata"].get("uid"):
                raise
            # Marked by us and removed by somebody faster (the kubelet's final DELETE): that is what was asked for, even
            # if another object has the name already (the kubelet's next mirror Pod).
            return Answer(marked, value, removed=True)

    async def _remove(self, context: RequestContext, entry: Entry) -> Answer:
        """The last write of an object: DELETED carries the stored state with the version of the deletion."""
        last = with_own_metadata(self.decode(entry.value))
        gone = await self._kept(
            self.shared.store.delete(entry.key, entry.revision, self._encoder(context, last, entry.value))
        )
        obj = self.decode(gone.value)
        if self.strategy.is_namespace:
            for kind in self.shared.admission.kinds.values():
                if kind.resource.namespaced:
                    await kind.empty_of_unreadable(context, obj["metadata"]["name"])
        self.strategy.after_delete(obj)
        self.shared.records.removed(context, self.resource, obj)
        return Answer(obj, gone.value, removed=True)

    async def empty_of_unreadable(self, context: RequestContext, namespace: str) -> None:
        """Remove what is set aside of this kind in a namespace ("": in all of them), which no list shows."""
        for found in self.shared.store.unreadable(self.collection(namespace)):
            own, name = names_of_key(self.resource, found.entry.key.removeprefix(self.prefix))
            await self._delete_unreadable(context, own, name, found, DeleteOptions())


def _only_lets_go(new: Object, old: Object) -> bool:
    """Whether all that a write does to an object that is being deleted is to take finalizers off."""
    meta, was = new["metadata"], old["metadata"]
    left, had = meta.get("finalizers") or [], was.get("finalizers") or []
    if not was.get("deletionTimestamp") or len(left) >= len(had) or not set(left) <= set(had):
        return False
    kept = {**meta, "finalizers": None, "managedFields": None} == {**was, "finalizers": None, "managedFields": None}
    return kept and {**new, "metadata": None} == {**old, "metadata": None}


def _only_times_differ(new: Object, old: Object) -> bool:
    """Whether a write would do nothing but give entries of managedFields a new time."""
    if any(value is not old.get(key) and value != old.get(key) for key, value in new.items() if key != "metadata"):
        return False
    entries, before = (obj["metadata"].get("managedFields") or [] for obj in (new, old))
    if entries == before or not same_but_times(entries, before):
        return False
    return {**new, "metadata": {**new["metadata"], "managedFields": before}} == old
