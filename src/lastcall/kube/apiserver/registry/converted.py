"""Lists and watches of kinds that a webhook converts: selectors look at objects in the version that is asked for.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go: each version has a storage of its own there.
"""

from dataclasses import replace

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.conversions.conversion import Conversions
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.registry.listing import Page, list_page
from lastcall.kube.apiserver.registry.selection import ALL, Selection
from lastcall.kube.apiserver.registry.watch import Event, EventStream, WatchItem
from lastcall.kube.apiserver.wire.options import ListOptions
from lastcall.kube.store.value import Value


def by_name(selection: Selection) -> Selection:
    """Return the part of a selection that needs no object."""
    return Selection(None, selection.fields, selection.name, only_name=True) if selection.name else ALL


async def converted_page(
    conversions: Conversions,
    kind: GenericStore,
    resource: Resource,
    namespace: str,
    options: ListOptions,
    selection: Selection,
) -> Page:
    """List as `list_page` does, with the objects as `resource` shows them. With selectors all is in one page."""
    chosen = not (selection.everything or selection.only_name)
    if chosen:
        options = replace(options, limit=0)
    page = await list_page(kind, namespace, options, by_name(selection))
    decode = kind.shared.cache.decode
    objects = await conversions.ensure([decode(entry.value) for entry in page.entries], resource.api_version)
    entries = [
        entry._replace(value=Value(None, obj))
        for entry, obj in zip(page.entries, objects, strict=True)
        if not chosen or selection.matches(obj)
    ]
    return replace(page, entries=entries)


class ConvertedStream(EventStream):
    """The events of one watch, with the objects as `resource` shows them. `inner` chooses by name at most."""

    def __init__(self, inner: EventStream, conversions: Conversions, resource: Resource, selection: Selection) -> None:
        self._inner, self._conversions, self._resource = inner, conversions, resource
        self._chosen = selection
        self._decode = inner.kind.shared.cache.decode
        self._pending: WatchItem | None = None
        self._over = False

    async def __anext__(self) -> WatchItem:
        """May be cancelled and called again without loss."""
        while not self._over:
            if self._pending is None:
                self._pending = await anext(self._inner)
            try:
                converted = await self._converted(self._pending)
            except StatusError as error:
                self._over = True
                return Event("ERROR", Value(None, error.status))
            self._pending = None
            if converted is not None:
                return converted
        raise StopAsyncIteration

    def take(self) -> WatchItem | None:
        """Return None: each event may have to wait for the webhook."""
        return None

    def close(self) -> None:
        self._inner.close()

    async def _converted(self, event: WatchItem) -> WatchItem | None:
        if event.type in ("ERROR", "BOOKMARK"):
            return event
        found = [self._decode(event.value)]
        before = getattr(event, "previous", None)
        if before is not None:
            found.append(self._decode(before))
        shown = await self._conversions.ensure(found, self._resource.api_version)
        if self._chosen.everything or self._chosen.only_name:
            return Event(event.type, Value(None, shown[0]))
        return self._transition_of(event, shown[0], shown[1] if before is not None else None)

    def _transition_of(self, event: WatchItem, after: Object, before: Object | None) -> WatchItem | None:
        matched = before is not None and self._chosen.matches(before)
        if event.type != "DELETED" and self._chosen.matches(after):
            return Event(event.type if matched or before is None else "ADDED", Value(None, after))
        if not matched or before is None:
            return None
        if event.type == "DELETED":
            return Event("DELETED", Value(None, after))
        version = after["metadata"]["resourceVersion"]
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": version}}
        return Event("DELETED", Value(None, last))
