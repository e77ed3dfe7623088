"""Where a write meets admission webhooks. While there is no configuration that is all there is of them.

A write is shown to webhooks as the client named its kind, a Scale as a Scale.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lastcall.api.meta import Object
from lastcall.api.resources import (
    MUTATINGWEBHOOKCONFIGURATIONS,
    NAMESPACES,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    Resource,
)
from lastcall.apiserver.admission.reader import Reader
from lastcall.apiserver.deletion import DeleteOptions
from lastcall.apiserver.faces.scale import SCALES, scale_of, with_replicas
from lastcall.apiserver.faces.table import face_of, stored_resource
from lastcall.apiserver.wire.context import RequestContext

if TYPE_CHECKING:
    from lastcall.apiserver.proxying.webhooks.dispatch import Webhooks
    from lastcall.apiserver.proxying.webhooks.matching import Write

ADMISSION_GROUP = "admissionregistration.k8s.io"
"""Nobody is asked about these kinds: nobody can lock everybody out of them."""
Kind = tuple[str, str, str]
"""(group, version, kind)."""
Again = Callable[[Object], Awaitable[None]]


class Hooks:
    """`make` gives the machinery, `equivalents` other kinds by which the same objects may be named; the server sets
    both."""

    def __init__(self) -> None:
        self.make: Callable[[], Webhooks] | None = None
        self.equivalents: Callable[[Resource], Sequence[Resource]] = lambda resource: ()
        self._made: Webhooks | None = None

    async def _any(self, reader: Reader, context: RequestContext, resource: Resource, configurations: Resource) -> bool:
        if resource.group == ADMISSION_GROUP or self.make is None or context.asked:
            return False
        if not await reader.list(configurations):
            return False
        if context.looks is not None:
            context.looks.settled = False  # each of them is asked about
        return True

    def _webhooks(self) -> "Webhooks":
        if self._made is None:
            assert self.make is not None
            self._made = self.make()
        return self._made

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
        """`new` as webhooks make it, both as they are stored; `again` sees an object that was changed. Raises
        StatusError."""
        if not await self._any(reader, context, resource, MUTATINGWEBHOOKCONFIGURATIONS):
            return new
        write = self._write(context, resource, new, old, subresource)
        before = write.new
        face = face_of(write.resource)

        async def look_again(shown: Object) -> None:
            if again is not None and face is None:
                await again(shown)

        after = await self._webhooks().mutate(reader, context, write, look_again)
        if after is None or after is before:
            return new
        if subresource == "scale":
            return with_replicas(resource, new, after)
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
        if await self._any(reader, context, resource, VALIDATINGWEBHOOKCONFIGURATIONS):
            write = self._write(context, resource, new, old, subresource)
            await self._webhooks().validate(reader, context, write)

    async def delete(
        self, reader: Reader, context: RequestContext, resource: Resource, old: Object, options: DeleteOptions
    ) -> None:
        """Raises StatusError."""
        for configurations in (MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS):
            if await self._any(reader, context, resource, configurations):
                write = self._write(context, resource, None, old, "")
                write.options, write.dry_run = delete_options(options), options.dry_run or context.dry_run
                write.name = "" if context.collection else write.name
                if configurations == MUTATINGWEBHOOKCONFIGURATIONS:
                    await self._webhooks().mutate(reader, context, write)
                else:
                    await self._webhooks().validate(reader, context, write)

    def _write(
        self, context: RequestContext, resource: Resource, new: Object | None, old: Object | None, subresource: str
    ) -> "Write":
        # late: with the first configuration
        from lastcall.apiserver.proxying.webhooks.matching import Write

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
            self.equivalents(named) if kind is None else (),
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
        """`obj`, which is of `kind`, as webhooks make it. Raises StatusError."""
        for configurations in (MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS):
            if await self._any(reader, context, resource, configurations):
                # late: with the first configuration
                from lastcall.apiserver.proxying.webhooks.matching import Write

                group, version, kind_name = kind
                api_version = f"{group}/{version}" if group else version
                options = write_options(context, operation) if operation == "CREATE" else None
                shown = {**obj, "kind": kind_name, "apiVersion": api_version}
                if operation == "CREATE" and namespace:
                    shown["metadata"] = {**(obj.get("metadata") or {}), "namespace": namespace}
                write = Write(
                    operation, resource, subresource, namespace, name, shown, None, options, kind, context.dry_run
                )
                if configurations == MUTATINGWEBHOOKCONFIGURATIONS:
                    obj = await self._webhooks().mutate(reader, context, write) or obj
                else:
                    await self._webhooks().validate(reader, context, write)
        context.asked = True
        return obj


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
