"""Where a write meets admission policies and webhooks. Without any, they cost it no more than a look.

A write is shown to both as the client named its kind, a Scale as a Scale. Policies come first.

Source: apiserver pkg/admission/plugin/webhook/mutating/plugin.go, pkg/admission/{chain.go, reinvocation.go}.
"""

# check: asks for kinds because webhooks see a Namespace's name as the namespace of the request

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    MUTATINGADMISSIONPOLICYBINDINGS,
    MUTATINGWEBHOOKCONFIGURATIONS,
    NAMESPACES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    Resource,
)
from lastcall.kube.apiserver.admission.reader import Kinds, Reader
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.faces.scale import SCALES, scale_of, with_admitted_replicas
from lastcall.kube.apiserver.faces.table import face_of, stored_resource
from lastcall.kube.apiserver.wire.context import RequestContext

if TYPE_CHECKING:
    from lastcall.kube.apiserver.admission.machinery import Machinery
    from lastcall.kube.apiserver.proxying.webhooks.matching import Write

ADMISSION_GROUP = "admissionregistration.k8s.io"
"""Nobody is asked about these kinds: nobody can lock everybody out of them."""
_MUTATING = Kinds(MUTATINGADMISSIONPOLICYBINDINGS, MUTATINGWEBHOOKCONFIGURATIONS)
_VALIDATING = Kinds(VALIDATINGADMISSIONPOLICYBINDINGS, VALIDATINGWEBHOOKCONFIGURATIONS)
_NOBODY = (False, False)
Kind = tuple[str, str, str]
"""(group, version, kind)."""
Again = Callable[[Object], Awaitable[None]]
MakeWrite = Callable[[], "Write"]


class Round(Protocol):
    """Those of one sort that may change a write."""

    async def go(self, *, again: bool) -> bool:
        """Whether they changed it. Raises StatusError."""


class Hooks:
    """`machinery` is set by the server; without it nobody is asked."""

    def __init__(self) -> None:
        self.machinery: Machinery | None = None

    def _has(self, reader: Reader, context: RequestContext, resource: Resource, configurations: Kinds) -> bool:
        """Whether there are configurations of these kinds that may be about a write."""
        if resource.group == ADMISSION_GROUP or self.machinery is None or context.asked:
            return False
        return reader.holds(configurations)

    @property
    def _made(self) -> "Machinery":
        assert self.machinery is not None, "asked only where there is something"
        return self.machinery

    async def _changes(self, reader: Reader, context: RequestContext, resource: Resource) -> tuple[bool, bool]:
        """Whether there are (policies, webhooks) that change objects."""
        if not self._has(reader, context, resource, _MUTATING):
            return _NOBODY
        policies, webhooks = _MUTATING.resources
        return bool(await reader.list(policies)), bool(await reader.list(webhooks))

    async def _mutate(
        self,
        reader: Reader,
        context: RequestContext,
        write: "Write",
        there: tuple[bool, bool],
        again: Again | None = None,
    ) -> None:
        """Changes `write.new`. When one changed it, `again` (the rest of admission) sees it anew, and so do, once,
        those before it that asked for that. Raises StatusError."""
        policies, webhooks = there
        rounds: list[Round] = []
        if policies:
            rounds.append(self._made.policies().mutation(reader, context, write))
        if webhooks:
            rounds.append(self._made.webhooks().mutation(reader, context, write))
        changed = False
        for each in rounds:
            changed |= await each.go(again=False)
        if not changed:
            return
        if again is not None and write.new is not None:
            await again(write.new)
        for each in rounds:
            await each.go(again=True)

    async def _validate(self, reader: Reader, context: RequestContext, resource: Resource, make: MakeWrite) -> None:
        """Raises StatusError."""
        if not self._has(reader, context, resource, _VALIDATING):
            return
        write: Write | None = None
        policies, webhooks = _VALIDATING.resources
        if bindings := await reader.list(policies):
            write = make()
            await self._made.policies().validate(reader, context, write, bindings)
        if configurations := await reader.list(webhooks):
            await self._made.webhooks().validate(reader, context, write or make(), configurations)

    # -- objects that are stored ---------------------------------------------------------------------------------------

    async def mutate(
        self,
        reader: Reader,
        context: RequestContext,
        resource: Resource,
        new: Object,
        old: Object | None,
        subresource: str = "",
        again: Again | None = None,
    ) -> Object:
        """`new` as policies and webhooks make it, both as they are stored; `again` sees an object that was changed.
        Raises StatusError."""
        if not self._has(reader, context, resource, _MUTATING):
            return new
        there = await self._changes(reader, context, resource)
        if not any(there):
            return new
        write = self._write(context, resource, new, old, subresource)
        before = write.new
        face = face_of(write.resource)

        async def look_again(shown: Object) -> None:
            if again is not None and face is None:
                await again(shown)

        await self._mutate(reader, context, write, there, look_again)
        after = write.new
        if after is None or after is before:
            return new
        if subresource == "scale":
            return with_admitted_replicas(resource, new, _prepared(SCALES, after))
        return after if face is None else face.store(after)

    async def validate(
        self,
        reader: Reader,
        context: RequestContext,
        resource: Resource,
        new: Object,
        old: Object | None,
        subresource: str = "",
    ) -> None:
        """Raises StatusError."""
        if self._has(reader, context, resource, _VALIDATING):
            make = partial(self._write, context, resource, new, old, subresource)
            await self._validate(reader, context, resource, make)

    async def delete(
        self, reader: Reader, context: RequestContext, resource: Resource, old: Object, options: DeleteOptions
    ) -> None:
        """Raises StatusError."""

        def make() -> "Write":
            write = self._write(context, resource, None, old, "")
            write.options, write.dry_run = delete_options(options), options.dry_run or context.dry_run
            write.name = "" if context.collection else write.name
            return write

        there = await self._changes(reader, context, resource)
        if any(there):
            await self._mutate(reader, context, make(), there)
        await self._validate(reader, context, resource, make)

    def _write(
        self, context: RequestContext, resource: Resource, new: Object | None, old: Object | None, subresource: str
    ) -> "Write":
        # late: with the first configuration
        from lastcall.kube.apiserver.proxying.webhooks.matching import Write

        named = resource
        if context.requested is not None and stored_resource(context.requested) == resource:
            named = context.requested
        meta = (new or old or {})["metadata"]
        name = meta.get("name") or ""
        namespace = name if resource == NAMESPACES else meta.get("namespace") or ""
        kind: Kind | None = None
        if subresource == "scale":
            kind = (SCALES.group, SCALES.version, SCALES.kind)
            new, old = (None if obj is None else scale_of(resource, obj) for obj in (new, old))
        else:
            new, old = (None if obj is None else _shown(named, obj) for obj in (new, old))
        operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
        return Write(
            operation,
            named,
            subresource,
            namespace,
            name,
            new,
            old,
            write_options(context, operation),
            kind,
            context.dry_run,
            self._made.equivalents(named) if kind is None else (),
        )

    # -- what is posted and not stored, and connections ----------------------------------------------------------------

    async def ask(
        self,
        reader: Reader,
        context: RequestContext,
        resource: Resource,
        obj: Object,
        kind: Kind,
        namespace: str,
        name: str,
        subresource: str,
        operation: str = "CREATE",
    ) -> Object:
        """`obj`, which is of `kind`, as policies and webhooks make it. Raises StatusError."""

        def make() -> "Write":
            # late: with the first configuration
            from lastcall.kube.apiserver.proxying.webhooks.matching import Write

            group, version, kind_name = kind
            api_version = f"{group}/{version}" if group else version
            options = write_options(context, operation) if operation == "CREATE" else None
            shown = {**obj, "kind": kind_name, "apiVersion": api_version}
            if operation == "CREATE" and namespace:
                shown["metadata"] = {**(obj.get("metadata") or {}), "namespace": namespace}
            return Write(operation, resource, subresource, namespace, name, shown, None, options, kind, context.dry_run)

        there = await self._changes(reader, context, resource)
        if any(there):
            write = make()
            before = write.new
            await self._mutate(reader, context, write, there)
            if write.new is not None and write.new is not before and operation == "CREATE":
                group, version, kind_name = kind
                obj = _prepared(Resource(group, version, "", kind_name, bool(namespace)), write.new)
        await self._validate(reader, context, resource, make)
        context.asked = True
        return obj


def _prepared(resource: Resource, changed: Object) -> Object:
    """Return what a webhook or policy has made of an object that is not stored, or raise the 500 StatusError."""
    # late: with the first configuration
    from lastcall.kube.apiserver.proxying.webhooks.objects import prepared

    return prepared(resource, changed)


def _shown(resource: Resource, obj: Object) -> Object:
    face = face_of(resource)
    shown = obj if face is None else face.show(obj)
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        **{key: value for key, value in shown.items() if key not in ("kind", "apiVersion")},
    }


def write_options(context: RequestContext, operation: str) -> Object:
    """The Create- or UpdateOptions of a request."""
    options: Object = {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if context.dry_run:
        options["dryRun"] = ["All"]
    if context.field_manager:
        options["fieldManager"] = context.field_manager
    if not context.in_process and context.field_validation != "Warn":
        options["fieldValidation"] = context.field_validation
    return options


def delete_options(options: DeleteOptions) -> Object:
    said: Mapping[str, object] = {
        "gracePeriodSeconds": options.grace_period_seconds,
        "preconditions": {
            key: value
            for key, value in (("uid", options.uid), ("resourceVersion", options.resource_version))
            if value is not None
        }
        or None,
        "orphanDependents": options.orphan_dependents,
        "propagationPolicy": options.propagation_policy,
        "dryRun": ["All"] if options.dry_run else None,
    }
    said_only = {key: value for key, value in said.items() if value is not None}
    return {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **said_only}
