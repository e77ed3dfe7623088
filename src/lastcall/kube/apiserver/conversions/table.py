"""Kinds that are served in two group-versions and stored in one."""

from collections.abc import Callable, Mapping

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.custom.structural import set_schema_defaults
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import (
    EVENTS,
    EVENTS_V1,
    HORIZONTALPODAUTOSCALERS,
    HORIZONTALPODAUTOSCALERS_V1,
    Resource,
)
from lastcall.kube.apiserver.conversions.autoscaling import to_v1, to_v2
from lastcall.kube.apiserver.conversions.events import to_core, to_events_v1
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Conversion:
    """`show` makes the other version of a stored object, `store` the stored object. Neither changes what it gets."""

    stored: Resource
    show: Callable[[Object], Object]
    store: Callable[[Object], Object]


CONVERSIONS: Mapping[Resource, Conversion] = {
    EVENTS_V1: Conversion(EVENTS, to_events_v1, to_core),
    HORIZONTALPODAUTOSCALERS_V1: Conversion(HORIZONTALPODAUTOSCALERS, to_v1, to_v2),
}


def conversion_of(resource: Resource) -> Conversion | None:
    """Return the conversion of a kind, None for one that is shown as it is stored."""
    if isinstance(resource, CustomResource):
        stored = resource.stored or resource
        return Conversion(stored, lambda obj: _as_read(resource, obj), lambda obj: _at(stored, obj))
    return CONVERSIONS.get(resource)


def _as_read(resource: CustomResource, obj: Object) -> Object:
    """With the defaults that the version has now; the object itself where it lacks none."""
    obj = _at(resource, obj)
    if not resource.has_defaults:
        return obj
    filled = {**obj, **copy_object({key: value for key, value in obj.items() if key != "metadata"})}
    set_schema_defaults(resource.schema, filled)
    return obj if filled == obj else filled


def _at(resource: CustomResource, obj: Object) -> Object:
    """An object of a declared kind in a version. Raises ConversionNeeded where that has to be asked for first."""
    if obj.get("apiVersion") == resource.api_version:
        return obj
    if resource.converter is not None:
        return resource.converter.converted(obj, resource.api_version)
    return {**obj, "apiVersion": resource.api_version}


def stored_resource(resource: Resource) -> Resource:
    """Return as what objects of `resource` are stored."""
    conversion = conversion_of(resource)
    return resource if conversion is None else conversion.stored


def in_version(resource: Resource, obj: Object, api_version: str) -> tuple[Resource, Object] | None:
    """Return an object of `resource` in another version: (its kind, the object). None for one that is not served."""
    if api_version == resource.api_version:
        return resource, obj
    conversion = conversion_of(resource)
    stored, obj = (resource, obj) if conversion is None else (conversion.stored, conversion.store(obj))
    if api_version == stored.api_version:
        return stored, obj
    if isinstance(resource, CustomResource):
        if not api_version.startswith(f"{resource.group}/"):
            return None
        if resource.converter is not None:
            obj = resource.converter.converted(obj, api_version)
        return resource, obj
    for other, conversion in CONVERSIONS.items():
        if conversion.stored is stored and other.api_version == api_version:
            return other, conversion.show(obj)
    return None
