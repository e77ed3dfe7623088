"""patch: PATCH of every type; an apply goes to `apply.py`.

Source: apiserver pkg/endpoints/handlers/patch.go.
"""

from functools import partial
from typing import Any

from lastcall.kube.api.errors import method_not_allowed
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.conversions.scale import SCALES
from lastcall.kube.apiserver.conversions.table import conversion_of
from lastcall.kube.apiserver.registry.patching import check_patched, patched, patcher
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.updated_object import UpdatedObject
from lastcall.kube.apiserver.verbs.apply import Apply
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.verbs.scales import Scales
from lastcall.kube.apiserver.verbs.writing import Writing
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.preparing import prepare_patched
from lastcall.kube.client.api import APPLY_PATCH


class Patch:
    """Raises StatusError."""

    def __init__(self, kinds: ServedKinds, writing: Writing, scales: Scales, apply: Apply) -> None:
        self._kinds, self._writing, self._scales, self._apply = kinds, writing, scales, apply

    async def patch(
        self,
        context: RequestContext,
        resource: Resource,
        patch: Any,
        namespace: str,
        name: str,
        *,
        content_type: str,
        subresource: str = "",
        force: bool = False,
    ) -> Answer:
        """Answer a PATCH with a decoded patch of `content_type`."""
        self._writing.check_update(resource, subresource)
        context.requested, context.patching = resource, True
        if subresource == "finalize":
            raise method_not_allowed()
        if content_type == APPLY_PATCH:
            return await self._apply.apply(context, resource, patch, namespace, name, subresource, force=force)
        checked = context.field_validation != "Ignore"
        if subresource == "scale":
            change = patcher(SCALES, name, content_type, patch, checked=checked)

            def scaled(old: Object) -> Object:
                text = partial(patched, SCALES, name, content_type, patch, old)
                return prepare_patched(context, SCALES, change(old), text)

            return await self._scales.update(context, resource, namespace, name, scaled, managers=True)
        apply = patcher(resource, name, content_type, patch, checked=checked)
        kind, conversion = self._kinds.kind(resource), conversion_of(resource)

        def transform(old: Object) -> Object:
            shown = old if conversion is None else conversion.show(old)
            new = apply(shown)
            meta = new.get("metadata")
            if not isinstance(meta, dict):
                pass  # decoding says what is wrong with it
            elif meta is not shown["metadata"] and meta.get("managedFields") is old["metadata"].get("managedFields"):
                meta.pop("managedFields", None)  # untouched: they need no checking
            text = partial(patched, resource, name, content_type, patch, shown)
            new = prepare_patched(context, resource, new, text, shown)
            check_patched(resource, name, new, old)
            if kind.strategy.defaults_in_spec and "status" in new and new.get("spec") is shown["spec"]:
                return new
            return self._writing.stored(resource, new)

        track = self._writing.track(self._writing.tracking(context, resource, subresource))
        answer = await kind.update(context, namespace, name, UpdatedObject(transform, track), subresource)
        return await self._kinds.answer(resource, answer)
