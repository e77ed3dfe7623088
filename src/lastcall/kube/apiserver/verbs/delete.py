"""delete: DELETE of an object or of a collection.

Source: apiserver pkg/endpoints/handlers/delete.go.
"""

from lastcall.kube.api.errors import StatusError, method_not_allowed, status_success
from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.registry.listing import SLICE, Page
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.verbs.reading import Reading
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.options import ListOptions
from lastcall.kube.store.value import Value


class Delete:
    """All methods raise StatusError. From here on the context says whether it is a dry run, not the options."""

    def __init__(self, kinds: ServedKinds, reading: Reading) -> None:
        self._kinds, self._reading = kinds, reading

    async def delete(
        self, context: RequestContext, resource: Resource, namespace: str, name: str, options: DeleteOptions
    ) -> Answer:
        """Answer a DELETE with the object or, for most kinds, a Status once it is removed."""
        kind = self._kinds.kind(resource)
        context.requested, context.dry_run = resource, context.dry_run or options.dry_run
        if warning := kind.strategy.delete_warning(options):
            context.warnings.append(warning)
        answer = await kind.delete(context, namespace, name, options)
        if not answer.removed or kind.strategy.returns_deleted_object:
            return await self._kinds.answer(resource, answer)
        details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": uid_of(answer.object)}
        status = status_success({key: value for key, value in details.items() if value})
        return Answer(status, Value(None, status), removed=True)

    async def delete_collection(
        self,
        context: RequestContext,
        resource: Resource,
        namespace: str,
        list_options: ListOptions,
        options: DeleteOptions,
    ) -> Page:
        """Delete a collection and return the page as it was listed; each item is deleted as by a single DELETE."""
        kind = self._kinds.kind(resource)
        if not kind.strategy.allow_delete_collection:
            raise method_not_allowed()
        page = await self._reading.list(resource, namespace, list_options)
        if warning := kind.strategy.delete_warning(options):
            context.warnings.append(warning)
        context.requested, context.collection = resource, True
        context.dry_run = context.dry_run or options.dry_run
        for number, entry in enumerate(page.entries, 1):
            if number % SLICE == 0:
                await self._kinds.shared.world.clock.sleep(0)
            meta = self._kinds.shared.cache.decode(entry.value)["metadata"]
            try:
                await kind.delete(context, meta.get("namespace", ""), meta["name"], options)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise
        return page
