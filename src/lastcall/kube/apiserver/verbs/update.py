"""update: PUT.

Source: apiserver pkg/endpoints/handlers/update.go.
"""

from lastcall.kube.api.meta import Object, uid_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.conversions.scale import SCALES
from lastcall.kube.apiserver.registry.objectmeta import with_owners_once
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.updated_object import UpdatedObject
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.verbs.scales import Scales
from lastcall.kube.apiserver.verbs.writing import Writing
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.preparing import prepare, prepare_copy


class Update:
    """Raises StatusError."""

    def __init__(self, kinds: ServedKinds, writing: Writing, scales: Scales) -> None:
        self._kinds, self._writing, self._scales = kinds, writing, scales

    async def update(
        self,
        context: RequestContext,
        resource: Resource,
        obj: Object,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        known: Object | None = None,
        shared: bool = False,
    ) -> Answer:
        """Answer a PUT. `obj` belongs to the server afterwards, but with `shared` it stays as it is.

        What is the same in `known` is not checked.
        """
        self._writing.check_update(resource, subresource)
        context.requested = resource
        if subresource == "scale":
            scale = (prepare_copy if shared else prepare)(context, SCALES, obj)
            return await self._scales.update(context, resource, namespace, name, lambda old: scale)
        obj = await self._writing.prepared(context, resource, obj, namespace, name, known, shared=shared)
        if obj["metadata"].get("ownerReferences"):
            obj = {**obj, "metadata": with_owners_once(context, obj["metadata"])}
        create, track = None, self._writing.track(self._writing.tracking(context, resource, subresource))
        if not subresource and self._kinds.kind(resource).strategy.allow_create_on_update:
            create = obj if await self._writing.may_create(context, resource, namespace, name) else None
        answer = await self._kinds.kind(resource).update(
            context,
            namespace,
            name,
            UpdatedObject(lambda old: obj, track, uid_of(obj), create),
            subresource,
        )
        return await self._kinds.answer(resource, answer)
