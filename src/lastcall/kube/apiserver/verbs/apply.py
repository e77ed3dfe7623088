"""Server-side apply.

Source: apiserver pkg/endpoints/handlers/patch.go (applyPatcher).
"""

from typing import Any

from lastcall.kube.api.errors import StatusError, bad_request, conflict, is_not_found
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.conversions.conversion import with_conversion
from lastcall.kube.apiserver.conversions.table import conversion_of
from lastcall.kube.apiserver.registry.objectmeta import (
    OTHER_NAMESPACE,
    as_new,
    check_name,
    check_names,
    check_version_of_missing,
)
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.updated_object import UpdatedObject
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.verbs.scales import Scales
from lastcall.kube.apiserver.verbs.writing import Writing
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.preparing import prepare_applied


class Apply:
    """Raises StatusError."""

    def __init__(self, kinds: ServedKinds, writing: Writing, scales: Scales) -> None:
        self._kinds, self._writing, self._scales = kinds, writing, scales

    async def apply(
        self,
        context: RequestContext,
        resource: Resource,
        config: Any,
        namespace: str,
        name: str,
        subresource: str,
        *,
        force: bool,
    ) -> Answer:
        """Apply `config` on the server, and create the object when it is not there."""
        kind, tracking = self._kinds.kind(resource), self._writing.tracking(context, resource, subresource)
        if subresource == "scale":
            return await self._scales.apply(context, resource, config, namespace, name, force=force)
        conversion = conversion_of(resource)

        def applied(old: Object | None) -> Object:
            shown = old if conversion is None or old is None else conversion.show(old)
            new = tracking.apply(config, shown, force=force)
            if any((config.get("metadata") or {}).get("managedFields") or ()):
                # None that can be read as such: an entry that cannot be decoded fails as any other field does.
                given = {**new["metadata"], "managedFields": copy_object(config)["metadata"]["managedFields"]}
                prepare_applied(context, resource, {**copy_object(new), "metadata": given}, config)
            new = prepare_applied(context, resource, new, config)
            check_name(new["metadata"], name)
            if old is not None and not resource.namespaced:
                new["metadata"].pop("namespace", None)
            elif old is not None and new["metadata"].get("namespace") != old["metadata"].get("namespace"):
                raise bad_request(OTHER_NAMESPACE)
            return self._writing.stored(resource, new)

        async def fresh() -> Object:
            return applied(None)

        while True:
            try:
                answer = await kind.update(context, namespace, name, UpdatedObject(applied), subresource)
                return await self._kinds.answer(resource, answer)
            except StatusError as error:
                if subresource or not is_not_found(error) or error.status.get("details", {}).get("name") != name:
                    raise
            if not await self._writing.may_create(context, resource, namespace, name):
                continue  # it has come meanwhile
            obj = await with_conversion(fresh)
            meta = obj["metadata"]
            if meta.get("uid"):
                why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
                raise conflict(resource, name, why)
            version = meta.pop("resourceVersion", None)
            check_names(resource, obj, namespace, name)
            check_version_of_missing(version)
            try:
                obj = as_new(obj, kind.shared.gates.minor)
                return await self._kinds.answer(resource, await kind.create(context, obj, namespace, named=name))
            except StatusError as error:
                if error.reason != "AlreadyExists" or error.message.startswith("object is being deleted"):
                    raise
