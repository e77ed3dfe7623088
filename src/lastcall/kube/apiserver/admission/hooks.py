"""Where a write meets admission policies and webhooks. Without any, they cost it no more than a look.

A write is shown to both as the client named its kind, a Scale as a Scale. Policies come first.

Source: apiserver pkg/admission/plugin/webhook/mutating/plugin.go, pkg/admission/{chain.go, reinvocation.go}.
"""

# check: asks for kinds because webhooks see a Namespace's name as the namespace of the request

from collections.abc import Awaitable, Callable, Mapping
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
from lastcall.kube.apiserver.admission.attributes import Attributes, Kind
from lastcall.kube.apiserver.admission.reader import Kinds
from lastcall.kube.apiserver.conversions.scale import SCALES, scale_of, with_admitted_replicas
from lastcall.kube.apiserver.conversions.table import conversion_of, stored_resource
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.wire.context import RequestContext

if TYPE_CHECKING:
    from lastcall.kube.apiserver.admission.machinery import Machinery
    from lastcall.kube.apiserver.proxying.webhooks.matching import Write

ADMISSION_GROUP = "admissionregistration.k8s.io"
"""Nobody is asked about these kinds: nobody can lock everybody out of them."""
_MUTATING = Kinds(MUTATINGADMISSIONPOLICYBINDINGS, MUTATINGWEBHOOKCONFIGURATIONS)
_VALIDATING = Kinds(VALIDATINGADMISSIONPOLICYBINDINGS, VALIDATINGWEBHOOKCONFIGURATIONS)
Again = Callable[[Attributes], Awaitable[None]]
MakeWrite = Callable[[Attributes], "Write"]


class Round(Protocol):
    """Those of one sort that may change a write."""

    async def go(self, *, again: bool) -> bool:
        """Run the hooks and return whether they changed the object. Raises StatusError."""


class Hooks:
    """`machinery` asks policies and webhooks; it is made of what is imported with the first of them."""

    def __init__(self, machinery: "Machinery") -> None:
        self.machinery = machinery

    def mutates(self, a: Attributes) -> bool:
        """Return whether there are policies or webhooks that may change a write: without any it costs no more."""
        return self._has(a, _MUTATING)

    def validates(self, a: Attributes) -> bool:
        """Return whether there are policies or webhooks that may check a write."""
        return self._has(a, _VALIDATING)

    def _has(self, a: Attributes, configurations: Kinds) -> bool:
        if a.resource.group == ADMISSION_GROUP or a.context.asked:
            return False
        return a.reader.holds(configurations)

    async def _changes(self, a: Attributes) -> tuple[bool, bool]:
        """Return whether there are (policies, webhooks) that change objects."""
        policies, webhooks = _MUTATING.resources
        return bool(await a.reader.list(policies)), bool(await a.reader.list(webhooks))

    async def _mutate(
        self, a: Attributes, write: "Write", there: tuple[bool, bool], again: Again | None = None
    ) -> None:
        """Change `write.new`. When one changed it, `again` (the rest of admission) sees it anew, and so do, once,
        those before it that asked for that. Raises StatusError."""
        policies, webhooks = there
        rounds: list[Round] = []
        if policies:
            rounds.append(self.machinery.policies().mutation(a.reader, a.context, write))
        if webhooks:
            rounds.append(self.machinery.webhooks().mutation(a.reader, a.context, write))
        changed = False
        for each in rounds:
            changed |= await each.go(again=False)
        if not changed:
            return
        if again is not None and write.new is not None:
            a.new = write.new
            await again(a)
        for each in rounds:
            await each.go(again=True)

    async def _validate(self, a: Attributes, make: MakeWrite) -> None:
        """Raises StatusError."""
        write: Write | None = None
        policies, webhooks = _VALIDATING.resources
        if bindings := await a.reader.list(policies):
            write = make(a)
            await self.machinery.policies().validate(a.reader, a.context, write, bindings)
        if configurations := await a.reader.list(webhooks):
            await self.machinery.webhooks().validate(a.reader, a.context, write or make(a), configurations)

    # -- objects that are stored ---------------------------------------------------------------------------------------

    async def mutate(self, a: Attributes, again: Again | None = None) -> None:
        """Replace `a.new` by what policies and webhooks make of it, both as they are stored; `again` sees an object
        that was changed. Raises StatusError."""
        there = await self._changes(a)
        if not any(there):
            return
        given, write = a.new, self._write(a)
        before, conversion = write.new, conversion_of(write.resource)
        await self._mutate(a, write, there, again if conversion is None else None)
        after = write.new
        if after is None or after is before:
            a.new = given
        elif a.subresource == "scale":
            a.new = with_admitted_replicas(a.resource, given, _prepared(SCALES, after))
        else:
            a.new = after if conversion is None else conversion.store(after)

    async def validate(self, a: Attributes) -> None:
        """Validate the write. Raises StatusError."""
        await self._validate(a, self._write)

    async def delete(self, a: Attributes) -> None:
        """Ask about a DELETE: policies and webhooks that change objects, then those that check. Raises StatusError."""
        if self.mutates(a) and any(there := await self._changes(a)):
            await self._mutate(a, self._deletion(a), there)
        if self.validates(a):
            await self._validate(a, self._deletion)

    def _deletion(self, a: Attributes) -> "Write":
        write = self._write(a)
        assert a.options is not None, "a DELETE has options"
        write.options = delete_options(a.options)
        write.name = "" if a.context.collection else write.name
        return write

    def _write(self, a: Attributes) -> "Write":
        # late: with the first configuration
        from lastcall.kube.apiserver.proxying.webhooks.matching import Write

        resource, context = a.resource, a.context
        named = resource
        if context.requested is not None and stored_resource(context.requested) == resource:
            named = context.requested
        meta = (a.new or a.old or {})["metadata"]
        name = meta.get("name") or ""
        namespace = name if resource == NAMESPACES else meta.get("namespace") or ""
        kind: Kind | None = None
        new, old = None if a.operation == "DELETE" else a.new, a.old
        if a.subresource == "scale":
            kind = (SCALES.group, SCALES.version, SCALES.kind)
            new, old = (None if obj is None else scale_of(resource, obj) for obj in (new, old))
        else:
            new, old = (None if obj is None else _shown(named, obj) for obj in (new, old))
        return Write(
            a.operation,
            named,
            a.subresource,
            namespace,
            name,
            new,
            old,
            write_options(context, a.operation),
            kind,
            context.dry_run,
            self.machinery.equivalents(named) if kind is None else (),
        )

    # -- what is posted and not stored, and connections ----------------------------------------------------------------

    async def ask(self, a: Attributes) -> Object:
        """Return what policies and webhooks make of `a.new`, which is of `a.kind`. Raises StatusError."""
        obj = a.new
        if self.mutates(a) and any(there := await self._changes(a)):
            write = _posted(a)
            before = write.new
            await self._mutate(a, write, there)
            if write.new is not None and write.new is not before and a.operation == "CREATE":
                group, version, kind_name = _kind(a)
                obj = a.new = _prepared(Resource(group, version, "", kind_name, bool(a.namespace)), write.new)
        if self.validates(a):
            await self._validate(a, _posted)
        a.context.asked = True
        return obj


def _kind(a: Attributes) -> Kind:
    assert a.kind is not None, "what is not stored has a kind of its own"
    return a.kind


def _posted(a: Attributes) -> "Write":
    """Return the write of what is posted and not stored, or of a connection."""
    # late: with the first configuration
    from lastcall.kube.apiserver.proxying.webhooks.matching import Write

    group, version, kind_name = _kind(a)
    creates = a.operation == "CREATE"
    options = write_options(a.context, a.operation) if creates else None
    shown = {**a.new, "kind": kind_name, "apiVersion": f"{group}/{version}" if group else version}
    if creates and a.namespace:
        shown["metadata"] = {**(a.new.get("metadata") or {}), "namespace": a.namespace}
    return Write(
        a.operation, a.resource, a.subresource, a.namespace, a.name, shown, None, options, a.kind, a.context.dry_run
    )


def _prepared(resource: Resource, changed: Object) -> Object:
    """Return what a webhook or policy has made of an object that is not stored, or raise the 500 StatusError."""
    # late: with the first configuration
    from lastcall.kube.apiserver.proxying.webhooks.objects import prepared

    return prepared(resource, changed)


def _shown(resource: Resource, obj: Object) -> Object:
    conversion = conversion_of(resource)
    shown = obj if conversion is None else conversion.show(obj)
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        **{key: value for key, value in shown.items() if key not in ("kind", "apiVersion")},
    }


def write_options(context: RequestContext, operation: str) -> Object:
    """Return the Create- or UpdateOptions of a request."""
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
