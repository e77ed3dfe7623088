"""Serve the kinds of CustomResourceDefinitions: the writer of one gets its answer when the kind is served, or gone.

Nothing runs beside the requests: establishing follows a write, cleaning up follows a DELETE and each object that goes,
and a server that starts continues with both.

Sources: apiextensions-apiserver pkg/controller/{status/naming_controller,establish,finalizer}.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from lastcall.kube.api.custom.kinds import (
    CLEANUP,
    CustomResource,
    custom_resources,
    has_conversion_webhook,
    is_established,
)
from lastcall.kube.api.errors import StatusError, forbidden
from lastcall.kube.api.meta import Object, copy_object, name_of, namespace_of
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, SERVED, Resource
from lastcall.kube.apiserver.conversions.conversion import Conversions, with_conversion
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.fieldmanager.requests import Tracking, scope_of
from lastcall.kube.apiserver.postponed import Postponed
from lastcall.kube.apiserver.registry.declared import DeclaredKinds
from lastcall.kube.apiserver.registry.generic import GenericStore, Shared
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.strategies.custom import (
    CustomResourceDefinitionStrategy,
    CustomResourceStrategy,
    set_condition,
)
from lastcall.kube.apiserver.updated_object import Track, UpdatedObject
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.store.api import Entry, StoreConflict
from lastcall.kube.store.value import Value
from lastcall.world.clock import now, rfc3339

SERVER = "kube-apiserver"


class Definitions:
    """Follows the definitions of one server: puts the stores of what they declare into the kinds of `shared`, calls
    `changed` after each change and `register` after one of the group versions."""

    def __init__(
        self,
        shared: Shared,
        served: DeclaredKinds,
        context: RequestContext,
        changed: Callable[[], None],
        register: Callable[[], Awaitable[None]],
        postponed: Postponed,
    ) -> None:
        self._shared, self._kinds, self.context, self._changed = shared, shared.kinds, context, changed
        self._register, self._postponed = register, postponed
        self._registered: set[tuple[str, str]] = set()
        self._declared: dict[str, list[CustomResource]] = {}
        self._specs: dict[str, Object] = {}
        self.served = served
        self.terminating: set[str] = set()
        """Names of definitions that are being deleted: nothing may be created any more."""

    def check_create(self, resource: Resource, name: str) -> None:
        """Raise the 403 of a kind whose definition is being deleted."""
        if resource.group_resource in self.terminating:
            raise forbidden(resource, name, "create not allowed while custom resource definition is terminating")

    async def load(self) -> None:
        """Serve what is in the store, and continue what was not finished."""
        kind = self._kinds[CUSTOMRESOURCEDEFINITIONS]
        entries, _, _ = await self._shared.store.list(kind.prefix)
        for entry in entries:
            with kind.guard(entry):
                definition = kind.decode(entry.value)
                name = name_of(definition)
                if not self._shared.store.shared:
                    self._serve(name, definition)
                    for made in self._declared.get(name, ())[:1]:
                        await self._kinds[made].look_over()
                await self._postponed.attempt(f"the state of {kind.resource.kind} {name}", partial(self.follow, name))

    async def follow(self, name: str) -> None:
        """Update the status of a definition that was written, and what is served."""
        await self._follow(name)
        await self._tell_register()

    async def _tell_register(self) -> None:
        if self._registered != (registered := self.served.group_versions()):
            self._registered = registered
            await self._register()

    async def _follow(self, name: str) -> None:
        kind = self._kinds[CUSTOMRESOURCEDEFINITIONS]
        try:
            definition = (await kind.get("", name)).object
        except StatusError:
            self._withdraw(name)
            return
        if definition["metadata"].get("deletionTimestamp"):
            self.terminating.add(name)
            self._serve(name, definition)
            await self._clean_up(name)
            return
        definition = (await self._write(name, lambda new: self._establish(new), "status")) or definition
        self._serve(name, definition)

    async def object_removed(self, resource: Resource) -> None:
        """Check a terminating definition, because one of its objects, perhaps the last, is gone."""
        if resource.group_resource in self.terminating:
            await self._let_go_when_empty(resource.group_resource)
            await self._tell_register()

    # -- names and conditions ----------------------------------------------------------------------------------------

    def _establish(self, definition: Object) -> None:
        """Decide about the names; those that were accepted stay, also if a client removes the
        conditions. (status/naming_controller.go:sync, calculateNamesAndConditions)"""
        moment, names = rfc3339(now(self._shared.world.clock)), definition["spec"]["names"]
        status = definition["status"]
        accepted = {key: value for key, value in names.items() if value}
        if status.get("acceptedNames") == accepted:
            return
        taken = self._taken(definition)
        if taken is None:
            status["acceptedNames"] = accepted
            text = "no conflicts found"
            set_condition(definition, "NamesAccepted", "True", "NoConflicts", text, moment)
            if not is_established(definition):
                text = "the initial names have been accepted"
                set_condition(definition, "Established", "True", "InitialNamesAccepted", text, moment)
            return
        reason, text = taken
        set_condition(definition, "NamesAccepted", "False", reason, text, moment)
        if not is_established(definition):
            set_condition(definition, "Established", "False", "NotAccepted", "not all names are accepted", moment)

    def _taken(self, definition: Object) -> tuple[str, str] | None:
        """(reason, message) of the last name that another kind of the group has."""
        group, names, own = definition["spec"]["group"], definition["spec"]["names"], name_of(definition)
        others: list[Resource] = [each for each in SERVED if each.group == group]
        others += [
            each for name, made in self._declared.items() if name != own for each in made[:1] if each.group == group
        ]
        used = {text for each in others for text in (each.plural, each.singular, *each.short_names)}
        kinds = {text for each in others for text in (each.kind, f"{each.kind}List")}
        wanted = [
            (names.get("plural"), used, "PluralConflict"),
            (names.get("singular"), used, "SingularConflict"),
            *((short, used, "ShortNamesConflict") for short in names.get("shortNames") or ()),
            (names.get("kind"), kinds, "KindConflict"),
            (names.get("listKind"), kinds, "ListKindConflict"),
        ]
        found = [(reason, f'"{text}" is already in use') for text, known, reason in wanted if text in known]
        return found[-1] if found else None

    # -- what is served ----------------------------------------------------------------------------------------------

    def _serve(self, name: str, definition: Object) -> None:
        if not is_established(definition):
            self._withdraw(name)
            return
        if name in self._declared and self._specs[name] == definition["spec"]:
            return
        self._withdraw(name, tell=False)
        made = custom_resources(definition, self._converter(definition))
        versions = {each["name"]: each for each in definition["spec"]["versions"]}
        self._declared[name], self._specs[name] = made, copy_object(definition["spec"])
        self._kinds[made[0]] = _CustomStore(self._shared, made[0], self)
        for each in made:
            if versions[each.version].get("served"):
                self.served.add(each)
        self._changed()

    def _converter(self, definition: Object) -> Conversions | None:
        if not has_conversion_webhook(definition):
            return None
        conversion = copy_object(definition["spec"]["conversion"])

        async def ask(objects: Sequence[Object], api_version: str) -> list[Object]:
            machinery = self._shared.admission.hooks.machinery
            return await machinery.conversion(conversion).convert(objects, api_version)

        return Conversions(ask)

    def _withdraw(self, name: str, *, tell: bool = True) -> None:
        made = self._declared.pop(name, [])
        for each in made:
            self.served.remove(each)
            self._kinds.pop(each, None)
        self.terminating.discard(name) if tell else None
        if made and tell:
            self._changed()

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _clean_up(self, name: str) -> None:
        """Delete every object, then let the definition go. (finalizer/crd_finalizer.go)"""
        made = self._declared.get(name)
        if made:
            await self._write(name, self._begin_deletion, "status")
            kind = self._kinds[made[0]]
            await kind.empty_of_unreadable(self.context, "")
            entries, _, _ = await self._shared.store.list(kind.prefix)
            for entry in entries:
                obj = self._shared.cache.decode(entry.value)
                if not obj["metadata"].get("deletionTimestamp"):
                    try:
                        await kind.delete(self.context, namespace_of(obj), name_of(obj), DeleteOptions())
                    except StatusError as error:
                        if error.reason != "NotFound":
                            raise
        await self._let_go_when_empty(name)

    def _begin_deletion(self, definition: Object) -> None:
        moment, text = rfc3339(now(self._shared.world.clock)), "CustomResource deletion is in progress"
        set_condition(definition, "Terminating", "True", "InstanceDeletionInProgress", text, moment)

    async def _let_go_when_empty(self, name: str) -> None:
        made = self._declared.get(name)
        if made and (await self._shared.store.list(self._kinds[made[0]].prefix))[0]:
            return
        moment = rfc3339(now(self._shared.world.clock))

        def done(definition: Object) -> None:
            meta = definition["metadata"]
            meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != CLEANUP]
            reason, text = "InstanceDeletionCompleted", "removed all instances"
            if not is_established(definition):
                reason, text = "NeverEstablished", "resource was never established"
            set_condition(definition, "Terminating", "False", reason, text, moment)

        left = await self._write(name, done, "status")
        if left is None or not left["metadata"].get("finalizers"):
            self._withdraw(name)

    async def _write(self, name: str, change: Callable[[Object], None], subresource: str) -> Object | None:
        """Change a definition as the server; None when there is none any more."""
        kind = self._kinds[CUSTOMRESOURCEDEFINITIONS]
        tracking = Tracking(
            scope_of(CUSTOMRESOURCEDEFINITIONS, subresource), SERVER, lambda: rfc3339(now(self._shared.world.clock))
        )

        def transform(old: Object) -> Object:
            new = copy_object(old)
            change(new)
            return new

        try:
            answer = await kind.update(self.context, "", name, UpdatedObject(transform, tracking.track), subresource)
        except (StatusError, StoreConflict):
            return None
        return answer.object


class DefinitionStore(GenericStore):
    """CustomResourceDefinitions themselves: an answer goes out when what it says is served."""

    def __init__(self, shared: Shared, definitions: Definitions) -> None:
        super().__init__(shared, CustomResourceDefinitionStrategy(CUSTOMRESOURCEDEFINITIONS))
        self._definitions = definitions

    async def create(
        self, context: RequestContext, obj: Object, namespace: str, *, track: Track | None = None, named: str = ""
    ) -> Answer:
        answer = await super().create(context, obj, namespace, track=track, named=named)
        await self._follow(context, answer)
        return answer

    async def update(
        self, context: RequestContext, namespace: str, name: str, change: UpdatedObject, subresource: str = ""
    ) -> Answer:
        answer = await super().update(context, namespace, name, change, subresource)
        await self._follow(context, answer)
        return answer

    async def delete(self, context: RequestContext, namespace: str, name: str, options: DeleteOptions) -> Answer:
        answer = await super().delete(context, namespace, name, options)
        await self._follow(context, answer)
        return answer

    async def _follow(self, context: RequestContext, answer: Answer) -> None:
        if not context.dry_run and context is not self._definitions.context:
            await self._definitions.follow(name_of(answer.object))


class _CustomStore(GenericStore):
    """The store of a declared kind. Objects that were stored in another version are read in this one."""

    def __init__(self, shared: Shared, resource: CustomResource, definitions: Definitions) -> None:
        super().__init__(shared, CustomResourceStrategy(resource))
        self._definitions = definitions
        self._converter = resource.converter
        if self._converter is not None:
            self.decode = self._decode

    def _decode(self, value: Value) -> Object:
        obj = self.shared.cache.decode(value)
        assert self._converter is not None
        return self._converter.converted(obj, self.resource.api_version)

    async def get(self, namespace: str, name: str, asked: Resource | None = None) -> Answer:
        return await with_conversion(lambda: super(_CustomStore, self).get(namespace, name))

    async def create(
        self, context: RequestContext, obj: Object, namespace: str, *, track: Track | None = None, named: str = ""
    ) -> Answer:
        if self._converter is None:
            return await super().create(context, obj, namespace, track=track, named=named)
        return await with_conversion(
            lambda: super(_CustomStore, self).create(context, copy_object(obj), namespace, track=track, named=named)
        )

    async def update(
        self, context: RequestContext, namespace: str, name: str, change: UpdatedObject, subresource: str = ""
    ) -> Answer:
        if self._converter is None:
            return await super().update(context, namespace, name, change, subresource)
        return await with_conversion(
            lambda: super(_CustomStore, self).update(context, namespace, name, change, subresource)
        )

    async def delete(self, context: RequestContext, namespace: str, name: str, options: DeleteOptions) -> Answer:
        return await with_conversion(lambda: super(_CustomStore, self).delete(context, namespace, name, options))

    async def _create(self, context: RequestContext, obj: Object, namespace: str, named: str) -> Answer:
        self._definitions.check_create(self.resource, obj["metadata"].get("name", ""))
        return await super()._create(context, obj, namespace, named)

    async def _remove(self, context: RequestContext, entry: Entry) -> Answer:
        answer = await super()._remove(context, entry)
        await self._definitions.object_removed(self.resource)
        return answer
