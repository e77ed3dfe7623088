"""The generic store of one kind: create, get, list, update, delete — with the kind's strategy, over the Store.

Stored bytes are answered unchanged; objects are decoded only where something has to be decided. Every write is a
compare-and-swap that is tried again when another writer was faster, so nothing is lost and nothing is locked.

Source: apiserver pkg/registry/generic/registry/store.go.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import field

import orjson

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
from lastcall.kube.api.features.allowed_values import without_allowed
from lastcall.kube.api.features.disabled_fields import disabled_values, drop_disabled_fields, drop_disabled_status
from lastcall.kube.api.field import FieldError, invalid
from lastcall.kube.api.meta import Object, with_own_metadata
from lastcall.kube.api.names import generate_name
from lastcall.kube.api.pods.warnings import warnings_on_create, warnings_on_update
from lastcall.kube.api.resources import NAMESPACES, Resource
from lastcall.kube.api.text.numbers import NumberError, parse_uint
from lastcall.kube.api.validation import validate_create, validate_update
from lastcall.kube.api.validators.cluster.admin_access import ADMIN_ACCESS, admin_access_errors
from lastcall.kube.apiserver.admission.attributes import Attributes
from lastcall.kube.apiserver.admission.chain import Release
from lastcall.kube.apiserver.auth.authentication import node_of
from lastcall.kube.apiserver.deletion import Decision, DeleteOptions
from lastcall.kube.apiserver.registry import objectmeta
from lastcall.kube.apiserver.registry.differences import only_removes_finalizers, only_times_differ
from lastcall.kube.apiserver.registry.objects import with_type
from lastcall.kube.apiserver.registry.reading import Answer, Stored, StoredKind
from lastcall.kube.apiserver.registry.sizes import check_size
from lastcall.kube.apiserver.registry.unreadable import names_of_key, read_error
from lastcall.kube.apiserver.updated_object import Track, UpdatedObject
from lastcall.kube.apiserver.wire.as_sent import (
    as_sent,
    as_written,
    empty_in_templates,
    with_empty_in_templates,
    with_sent_values,
)
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.store.api import Encode, Entry, StoreConflict, StoreError, StoreFull, Unreadable
from lastcall.kube.store.value import Value
from lastcall.world.clock import now, rfc3339_now
from lastcall.world.dataclass import dataclass

API_SERVER = "system:apiserver"
MAX_NAME_ATTEMPTS = 8
"""How many generated names are tried (maxNameGenerationCreateAttempts)."""

_KEYS = {
    "nodes": "minions", "replicationcontrollers": "controllers", "services": "services/specs",
    "endpoints": "services/endpoints", "ingresses": "ingress",
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices": "apiregistration.k8s.io/apiservices",
}  # fmt: skip
"""Under which keys Kubernetes keeps kinds that are not kept under their names; messages show them."""


@dataclass(slots=True)
class Shared(Stored):
    """What the stores of all kinds have in common. `kinds` says where each kind is stored."""

    kinds: "dict[Resource, GenericStore]" = field(default_factory=dict)


class GenericStore(StoredKind):
    """One kind, and what is done to its objects. Answers share them: do not change."""

    shared: Shared

    async def _delete_unreadable(self, context: RequestContext, namespace: str, name: str, found: Unreadable) -> Answer:
        """Remove an object that cannot be read: nobody is asked, and no finalizer is waited for.

        (corruptObjectDeleter.Delete)
        """
        if node_of(context.user) is not None and not self._is_made_anew(context):
            raise read_error(self.resource, namespace, name, found.entry.key, found.why)
        meta: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
        left = with_type({"metadata": meta}, self.resource)
        if not context.dry_run:
            encode = self._encoder(context, left, None)
            await self._kept(self.shared.store.delete(found.entry.key, found.entry.revision, encode))
        return Answer(left, Value(None, left), removed=True)

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
        attributes = admission.attributes("CREATE", context, self.resource, namespace, obj)
        await admission.admit(attributes)
        if attributes.new is not obj:
            filled, obj = obj, attributes.new
            version = "" if named else obj["metadata"].get("resourceVersion")
            obj["metadata"] = objectmeta.admitted(self.resource, obj["metadata"], filled["metadata"], namespace, named)
            if not obj["metadata"].get("name") and (prefix := obj["metadata"].get("generateName")):
                obj["metadata"]["name"] = generate_name(prefix, self.shared.world.random)
        self._prepare_for_create(obj)
        await self._validate_new(context, obj)
        if not context.in_process:
            context.warnings += warnings_on_create(self.resource, obj)
        await admission.validate(attributes)
        if not context.dry_run:
            objectmeta.check_new_version(version)
        return await self.create_prepared(attributes)

    async def _validate_new(self, context: RequestContext, obj: Object) -> None:
        self._raise_invalid(obj, self.strategy.refused(obj, None, context.dry_run))
        known_as, expressions = self.known_as(context.requested), self.shared.expressions
        errors = [
            *(await self._admin_access(obj, None) if self.strategy.guards_admin_access else ()),
            *validate_create(known_as, obj, expressions),
            *disabled_values(self.resource, obj, None, self.shared.gates),
            *self.strategy.validate(obj),
        ]
        if self.strategy.evaluates:
            errors += await self._evaluated(context, obj, None, errors)
        if context.empties and (errors or empty_in_templates(context.empties)):
            of_sent = validate_create(known_as, as_sent(obj, context.empties), expressions)
            errors = with_empty_in_templates(with_sent_values(errors, of_sent), of_sent)
        self._raise_invalid(obj, without_allowed(errors, self.resource, obj, None, self.shared.gates))

    def attributes_of_new(self, context: RequestContext, obj: Object, namespace: str) -> Attributes:
        """Return what `create_prepared` takes of an object that was admitted before."""
        return self.shared.admission.attributes("CREATE", context, self.resource, namespace, obj)

    async def create_prepared(self, attributes: Attributes, like: Value | None = None) -> Answer:
        """Store a new object that is known to be in order; `like` is a value of its size. Raises StatusError."""
        context, obj = attributes.context, attributes.new
        name = obj["metadata"]["name"]
        key = self.key(attributes.namespace, name)
        if self._is_made_anew(context) and (found := self.unreadable(attributes.namespace, name)) is not None:
            await self._delete_unreadable(context, attributes.namespace, name, found)
        undo = self.strategy.begin_create(obj, context)
        release: Release | None = None
        try:
            release = await self.shared.admission.charge(attributes)
            if context.dry_run:
                if (current := await self.shared.store.get(key)) is not None:
                    raise StoreConflict(key, current)
                undo()
                return self._dry(obj, created=True)
            entry = await self._kept(self.shared.store.create(key, self._encoder(context, obj, like)))
        except BaseException as error:
            undo()
            if release is not None:
                await release()
            if isinstance(error, StoreConflict):
                raise self._exists(context, name, error.current) from None
            raise
        stored = self.decode(entry.value)
        self.shared.records.created(context, self.resource, stored)
        return Answer(stored, entry.value, created=True)

    def _is_made_anew(self, context: RequestContext) -> bool:
        """Return True for what the cluster itself creates at each start: there an unreadable object makes way."""
        return self.strategy.is_made_anew or context.user.name == API_SERVER

    def _prepare_for_create(self, obj: Object) -> None:
        if self.strategy.counts_generations(self.shared.gates.minor):
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

    async def update(
        self, context: RequestContext, namespace: str, name: str, change: UpdatedObject, subresource: str = ""
    ) -> Answer:
        """Replace the object by what `change` makes of it. Raises StatusError.

        A result without resourceVersion (or "0") overwrites whatever is there, where the kind allows.
        Source: store.go:Update.
        """
        key = self.key(namespace, name)
        entry = await self.shared.store.get(key)
        while entry is not None:
            old = self.decode(entry.value)
            new = self._wanted(context, key, change, old)
            attributes = self.shared.admission.attributes(
                "UPDATE", context, self.resource, namespace, new, old, subresource
            )
            release = await self._admit_update(attributes, name)
            try:
                return await self._store_update(context, entry, attributes.new, old, subresource)
            except BaseException as error:
                if release is not None:
                    await release()
                if not isinstance(error, StoreConflict):
                    raise
                entry = error.current
        by_status = bool(subresource) and self.strategy.status_may_create and bool(change.uid)
        allowed = self.strategy.allow_create_on_update and not self.unreadable(namespace, name)
        if not allowed or ((change.create is None or subresource) and not by_status):
            raise self.missing(context.requested, namespace, name)
        if change.uid:
            raise self._uid_conflict(context, key, change.uid, {"metadata": {}})
        assert change.create is not None
        objectmeta.check_version_of_missing(change.create["metadata"].pop("resourceVersion", None))
        return await self.create(
            context,
            objectmeta.as_new(change.create, self.shared.gates.minor),
            namespace,
            track=change.track,
            named=name,
        )

    def _wanted(self, context: RequestContext, key: str, change: UpdatedObject, old: Object) -> Object:
        """Return what the client wants of the stored object, with its managedFields."""
        if change.uid and change.uid != old["metadata"].get("uid"):
            raise self._uid_conflict(context, key, change.uid, old)
        new = change.transform(old)
        if change.track is None:
            return new
        entries = change.track(as_written(new, context.empties), old)
        return {**new, "metadata": {**new["metadata"], "managedFields": entries}}

    async def _admit_update(self, a: Attributes, name: str) -> Release | None:
        """Make `a.new` ready to be stored: admission that changes, the kind's own rules, admission that checks."""
        admission = self.shared.admission
        await admission.admit(a)
        await self._prepare_update(a, name)
        if not (a.context.in_process or a.subresource):
            a.context.warnings += warnings_on_update(self.resource, a.new, a.stored)
        await admission.validate(a)
        return None if a.lets_go else await admission.charge(a)

    async def _evaluated(
        self, context: RequestContext, new: Object, old: Object | None, errors: list[FieldError]
    ) -> Sequence[FieldError]:
        found, warnings = await self.strategy.evaluate(new, old, errors, self.shared.world.clock)
        context.warnings += warnings
        return found

    async def _prepare_update(self, a: Attributes, name: str) -> None:
        """Replace `a.new` by what is stored in place of `a.old`, and find out whether it only lets go of the object.

        Source: rest/update.go:BeforeUpdate. Raises StatusError.
        """
        context, old, subresource = a.context, a.stored, a.subresource
        self._check_version(context, a.new, old, name)
        meta = objectmeta.for_update(a.new["metadata"], old["metadata"])
        new = a.new = {**a.new, "metadata": objectmeta.with_owners_once(context, meta)}
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if subresource == "binding":
            # The binding changes what no client may: it is not an update of the spec (storage.go:assignPod).
            return
        disabled: list[FieldError] = []
        if subresource != "status":  # first: what is dropped is no change that a kind counts
            drop_disabled_fields(self.resource, new, old, self.shared.gates)
        self.strategy.prepare_for_update(new, old, subresource)
        self.strategy.stamp(new, old, rfc3339_now(self.shared.world.clock))
        if subresource != "status":
            disabled = disabled_values(self.resource, new, old, self.shared.gates)
        else:
            drop_disabled_status(self.resource, new, self.shared.gates)
        if not subresource:
            self._raise_invalid(new, self.strategy.refused(new, old, context.dry_run))
        a.lets_go = only_removes_finalizers(new, old)
        if a.lets_go:
            return  # whatever else is wrong with it: nothing of that is written, and so it can go
        sent = await self._validate_changed(a, disabled)
        counts = subresource != "status" and self.strategy.counts_generations(self.shared.gates.minor)
        if counts and self.strategy.spec_changed(sent, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    async def _validate_changed(self, a: Attributes, disabled: list[FieldError]) -> Object:
        """Check an update; the answer is `a.new` as its kind compares it with `a.old`. Raises StatusError."""
        context, new, old = a.context, a.new, a.stored
        known_as, expressions = self.known_as(context.requested), self.shared.expressions
        errors = validate_update(known_as, new, old, a.subresource, expressions=expressions)
        errors += disabled + self.strategy.validate(new, old, a.subresource)
        if self.strategy.guards_admin_access:
            errors = [*await self._admin_access(new, old), *errors]
        if self.strategy.evaluates:
            errors += await self._evaluated(context, new, old, errors)
        sent, empty_counts = new, empty_in_templates(context.empties)
        if context.empties and (errors or empty_counts or self.strategy.counts_empty):
            sent = as_sent(new, context.empties)
        if context.empties and (errors or empty_counts):
            of_sent = validate_update(known_as, sent, old, a.subresource, expressions=expressions)
            errors = with_empty_in_templates(with_sent_values(errors, of_sent), of_sent)
        self._raise_invalid(new, without_allowed(errors, self.resource, new, old, self.shared.gates))
        return sent if self.strategy.counts_empty else new

    def _check_version(self, context: RequestContext, new: Object, old: Object, name: str) -> None:
        """Raise the StatusError of an update that is of another version than what is stored."""
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

    async def _store_update(
        self, context: RequestContext, entry: Entry, new: Object, old: Object, subresource: str
    ) -> Answer:
        if self.strategy.should_delete_during_update(new, old):
            # The last finalizer went: the object is removed instead of written, and watchers see only DELETED.
            if not context.dry_run:
                await self._remove(context, entry)
            answer = self._dry(new)
            return Answer(answer.object, answer.value, removed=True)
        if new == old or only_times_differ(new, old):
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

    def _uid_conflict(self, context: RequestContext, key: str, asked: str, old: Object) -> StatusError:
        """The text is the store's, which knows its keys without their prefix where nothing is to be written."""
        plural = self.resource.plural
        key = f"{'' if context.dry_run else '/registry'}/{_KEYS.get(plural, plural)}{key.removeprefix(plural)}"
        return conflict(
            self.known_as(context.requested),
            key.rpartition("/")[2],
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {asked}, UID in object meta: {old['metadata'].get('uid', '')}",
        )

    # -- delete ------------------------------------------------------------------------------------------------------

    async def delete(self, context: RequestContext, namespace: str, name: str, options: DeleteOptions) -> Answer:
        """Delete one object and return it as it is now or was last (store.go:Delete). Raises StatusError."""
        if (unreadable := self.unreadable(namespace, name)) is not None:
            return await self._delete_unreadable(context, namespace, name, unreadable)
        if (refused := self.strategy.check_delete(name)) is not None:
            raise refused
        entry = await self.entry(namespace, name, context.requested)
        admission, old = self.shared.admission, self.decode(entry.value)
        attributes = admission.attributes("DELETE", context, self.resource, namespace, {}, old)
        attributes.options = options
        with self.shared.records.refusals(context, self.resource, old):
            await admission.admit(attributes)
        while True:
            old = attributes.old = self.decode(entry.value)
            admission.check_delete(attributes)
            decision = self.strategy.decide_delete(old, options, now(self.shared.world.clock))
            try:
                return await self._delete(context, entry, old, decision)
            except StoreConflict as conflicting:
                if conflicting.current is None:
                    raise not_found(self.known_as(context.requested), name) from None
                entry = conflicting.current

    async def _delete(self, context: RequestContext, entry: Entry, old: Object, decision: Decision) -> Answer:
        marked, value = old, entry.value
        if decision.object is not None:
            if context.dry_run:
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
        if context.dry_run:
            return Answer(marked, value, removed=True)
        if self.strategy.acts_on_mark(old):
            # A write in memory ends no turn, as one that has to become durable does: informers take the event now.
            await self.shared.world.clock.sleep(0)
        try:
            return await self._remove(context, entry)
        except StoreConflict as conflicting:
            there = self.decode(conflicting.current.value)["metadata"].get("uid") if conflicting.current else None
            if decision.object is None or there == marked["metadata"].get("uid"):
                raise
            # Marked by us and removed by a faster client (the kubelet's final DELETE): that is what was asked for, even
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
            for kind in self.shared.kinds.values():
                if kind.resource.namespaced:
                    await kind.empty_of_unreadable(context, obj["metadata"]["name"])
        self.strategy.after_delete(obj)
        self.shared.records.removed(context, self.resource, obj)
        return Answer(obj, gone.value, removed=True)

    async def empty_of_unreadable(self, context: RequestContext, namespace: str) -> None:
        """Remove what is set aside of this kind in a namespace ("": in all of them), which no list shows."""
        for found in self.shared.store.unreadable(self.collection(namespace)):
            own, name = names_of_key(self.resource, found.entry.key.removeprefix(self.prefix))
            await self._delete_unreadable(context, own, name, found)
