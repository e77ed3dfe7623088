"""get, list and watch.

Sources: apiserver pkg/endpoints/handlers/{get,watch}.go.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.resources import EVENTS, Resource
from lastcall.kube.apiserver.conversions.conversion import conversions_of
from lastcall.kube.apiserver.conversions.table import stored_resource
from lastcall.kube.apiserver.registry.converted import ConvertedStream, by_name, converted_page
from lastcall.kube.apiserver.registry.listing import Page, list_page, wait_for_revision
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.registry.watch import EventStream, open_watch
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.wire.options import ListOptions, parse_resource_version


class Reading:
    """All methods raise StatusError."""

    def __init__(self, kinds: ServedKinds) -> None:
        self._kinds = kinds
        self._store, self._clock = kinds.shared.store, kinds.shared.world.clock

    async def get(self, resource: Resource, namespace: str, name: str) -> Answer:
        return await self._kinds.answer(resource, await self._kinds.kind(resource).get(namespace, name, resource))

    async def get_scale(self, resource: Resource, namespace: str, name: str) -> Answer:
        """Return the subresource `scale` of an object that has replicas."""
        return self._kinds.as_scale(resource, await self.get(resource, namespace, name))

    async def get_bytes(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Return the JSON of one object, as stored: nothing is decoded."""
        if isinstance(resource, CustomResource) and conversions_of(resource) is not None:
            return (await self.get(resource, namespace, name)).value.encoded()
        kind = self._kinds.kind(resource)
        if (entry := await self._store.get(kind.key(namespace, name))) is None:
            raise kind.missing(resource, namespace, name)
        return self._kinds.present(resource, entry.value)

    async def check_get_version(self, resource: Resource, resource_version: str) -> None:
        """Wait for `?resourceVersion=` of a GET: "not older than".

        Raises 504 for a version that has not come, 500 for an invalid one. One of Events is a 400: they are in no watch
        cache (apiserver pkg/storage/etcd3/store.go:Get).
        """
        asked = parse_resource_version(resource_version, for_list=stored_resource(resource) == EVENTS)
        if asked:
            await wait_for_revision(self._store, self._clock, asked)

    async def list(self, resource: Resource, namespace: str, options: ListOptions) -> Page:
        kind, selection = self._kinds.kind(resource), self._kinds.selection(resource, options)
        if (conversions := conversions_of(resource)) is not None:
            return await converted_page(conversions, kind, resource, namespace, options, selection)
        return await list_page(kind, namespace, options, selection)

    def unreadable(self, resource: Resource, namespace: str) -> Sequence[str]:
        """Return the keys of a collection's objects that are stored and cannot be read: no list has them."""
        return [each.entry.key for each in self._store.unreadable(self._kinds.kind(resource).collection(namespace))]

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str, options: ListOptions, *, endless: bool = False
    ) -> AsyncIterator[EventStream]:
        selection, conversions = self._kinds.selection(resource, options), conversions_of(resource)
        looked_at = selection if conversions is None else by_name(selection)
        kind = self._kinds.kind(resource)
        async with open_watch(kind, namespace, options, looked_at, shown=resource, endless=endless) as events:
            yield events if conversions is None else ConvertedStream(events, conversions, resource, selection)
