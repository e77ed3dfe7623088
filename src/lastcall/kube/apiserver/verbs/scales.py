"""Writes to the subresource `scale`: the object changes, a Scale is answered."""

from typing import Any

from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.conversions.scale import SCALES, scale_of, with_replicas
from lastcall.kube.apiserver.conversions.table import stored_resource
from lastcall.kube.apiserver.fieldmanager.requests import apply_scale, managers_of_scale, update_scale
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.updated_object import Transform, UpdatedObject
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.verbs.writing import Writing
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.preparing import prepare_applied


class Scales:
    """All methods raise StatusError."""

    def __init__(self, kinds: ServedKinds, writing: Writing) -> None:
        self._kinds, self._writing = kinds, writing

    async def update(
        self,
        context: RequestContext,
        resource: Resource,
        namespace: str,
        name: str,
        change: Transform,
        *,
        managers: bool = False,
    ) -> Answer:
        """Write what `change` makes of the object's Scale, `managers`: of a Scale that has managers."""

        tracking = self._writing.tracking(context, resource, "scale")

        def transform(old: Object) -> Object:
            shown = self._kinds.in_version(resource, old)
            scale = scale_of(resource, shown)
            if managers and (entries := managers_of_scale(shown)):
                scale["metadata"]["managedFields"] = entries
            new = update_scale(tracking, with_replicas(resource, shown, change(scale)), shown)
            return self._kinds.in_version(stored_resource(resource), new)

        answer = await self._kinds.kind(resource).update(context, namespace, name, UpdatedObject(transform), "scale")
        return self._kinds.as_scale(resource, await self._kinds.answer(resource, answer))

    async def apply(
        self, context: RequestContext, resource: Resource, config: Any, namespace: str, name: str, *, force: bool
    ) -> Answer:
        """Apply a Scale on the server."""
        kind, tracking = self._kinds.kind(resource), self._writing.tracking(context, resource, "scale")

        def rescaled(old: Object) -> Object:
            shown = self._kinds.in_version(resource, old)
            scale, entries = apply_scale(tracking, config, shown, force=force)
            new = with_replicas(resource, shown, prepare_applied(context, SCALES, copy_object(scale), config))
            new["metadata"]["managedFields"] = entries
            return self._kinds.in_version(kind.resource, new)

        answer = await kind.update(context, namespace, name, UpdatedObject(rescaled), "scale")
        return self._kinds.as_scale(resource, await self._kinds.answer(resource, answer))
