"""The kinds of one server: where each is stored, and as what its objects are shown."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import method_not_allowed, resource_not_found
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.conversions.conversion import conversions_of
from lastcall.kube.apiserver.conversions.scale import scale_of
from lastcall.kube.apiserver.conversions.table import conversion_of, stored_resource
from lastcall.kube.apiserver.registry.generic import GenericStore, Shared
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.registry.selection import Selection, parse_selection
from lastcall.kube.apiserver.wire.options import ListOptions
from lastcall.kube.store.value import Value

if TYPE_CHECKING:
    from lastcall.kube.apiserver.catalog import Catalog


class ServedKinds:
    """`catalog` is what is served; None: nothing but Kubernetes's own kinds. Methods raise StatusError."""

    def __init__(self, shared: Shared, catalog: "Catalog | None" = None) -> None:
        self.shared, self.stores = shared, shared.kinds
        self.catalog = catalog

    def served(self, resource: Resource) -> Resource:
        """Return a kind as it is served: readers need not know what a definition says. Raises the 404 StatusError."""
        if self.catalog is None or resource in self.stores or isinstance(resource, CustomResource):
            return resource
        found = self.catalog.resource(resource.group, resource.version, resource.plural)
        if found is None:
            raise resource_not_found()
        return found

    def kind(self, resource: Resource) -> GenericStore:
        """Return the store behind a resource. Raises the 405 StatusError of a kind that is not stored (Binding)."""
        store = self.stores.get(resource) or self.stores.get(stored_resource(resource))
        if store is None and isinstance(resource, CustomResource) and self.catalog is not None:
            # Its definition has changed since the request came.
            now = self.catalog.resource(resource.group, resource.version, resource.plural)
            store = None if now is None else self.stores.get(stored_resource(now))
        if store is None:
            raise method_not_allowed()
        return store

    def has_objects(self, resource: Resource) -> bool:
        """Return False for what can only be created, as reviews are: a path with a name leads nowhere."""
        return (
            resource in self.stores or isinstance(resource, CustomResource) or stored_resource(resource) in self.stores
        )

    def decode(self, resource: Resource, value: Value) -> Object:
        """Return the object of a stored (or watched) value as `resource` shows it. Shared: do not change."""
        if isinstance(resource, CustomResource):
            obj = self.shared.cache.decode(value)  # a watch outlives its definition by the last events
        else:
            obj = self.kind(resource).decode(value)
        conversion = conversion_of(resource)
        return obj if conversion is None else conversion.show(obj)

    def decoder(self, resource: Resource) -> Callable[[Value], Object]:
        """Return `decode` of one kind."""
        if isinstance(resource, CustomResource) or conversion_of(resource) is not None:
            return lambda value: self.decode(resource, value)
        return self.kind(resource).decode

    def present(self, resource: Resource, value: Value) -> bytes:
        """Return the JSON of a stored value as `resource` shows it: unchanged, but for a kind's other versions."""
        if conversion_of(resource) is None:
            return value.encoded()
        obj = self.decode(resource, value)
        return value.encoded() if obj is self.shared.cache.decode(value) else orjson.dumps(obj)

    async def answer(self, resource: Resource, answer: Answer) -> Answer:
        conversion = conversion_of(resource)
        if conversion is None:
            return answer
        if (conversions := conversions_of(resource)) is not None:
            await conversions.ensure([answer.object], resource.api_version)
            answer = answer._replace(value=Value(None, answer.object))  # what is stored may be of another version
        obj = conversion.show(answer.object)
        if obj is answer.object:
            return answer
        return Answer(obj, Value(None, obj), answer.created, answer.removed)

    def selection(self, resource: Resource, options: ListOptions) -> Selection:
        return parse_selection(resource, options.label_selector, options.field_selector)

    @staticmethod
    def in_version(resource: Resource, obj: Object) -> Object:
        """Return an object of a kind that a webhook converts in a version; any other as it is."""
        conversions = conversions_of(resource)
        return obj if conversions is None else conversions.converted(obj, resource.api_version)

    async def stored(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object as it is stored; None when there is none, and for a kind that is stored as another."""
        kind = self.stores.get(resource)
        entry = None if kind is None else await self.shared.store.get(kind.key(namespace, name))
        return None if entry is None else self.shared.cache.decode(entry.value)

    @staticmethod
    def as_scale(resource: Resource, answer: Answer) -> Answer:
        scale = scale_of(resource, answer.object)
        return Answer(scale, Value(None, scale))
