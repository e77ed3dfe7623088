"""Kinds that are served in two group-versions and stored in one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lastcall.api.meta import Object
from lastcall.api.resources import (
    EVENTS,
    EVENTS_V1,
    HORIZONTALPODAUTOSCALERS,
    HORIZONTALPODAUTOSCALERS_V1,
    Resource,
)
from lastcall.apiserver.autoscaling_faces import to_v1, to_v2
from lastcall.apiserver.event_faces import to_core, to_events_v1


@dataclass(frozen=True, slots=True)
class Face:
    """`show` makes the face of a stored object, `store` the stored object of a face; neither changes what it gets."""

    stored: Resource
    show: Callable[[Object], Object]
    store: Callable[[Object], Object]


FACES: Mapping[Resource, Face] = {
    EVENTS_V1: Face(EVENTS, to_events_v1, to_core),
    HORIZONTALPODAUTOSCALERS_V1: Face(HORIZONTALPODAUTOSCALERS, to_v1, to_v2),
}


def stored_resource(resource: Resource) -> Resource:
    """As what objects of `resource` are stored."""
    face = FACES.get(resource)
    return resource if face is None else face.stored


def in_version(resource: Resource, obj: Object, api_version: str) -> tuple[Resource, Object] | None:
    """An object of `resource` in another version: (the kind there, the object). None for one that is not served."""
    if api_version == resource.api_version:
        return resource, obj
    face = FACES.get(resource)
    stored, obj = (resource, obj) if face is None else (face.stored, face.store(obj))
    if api_version == stored.api_version:
        return stored, obj
    for other, face in FACES.items():
        if face.stored is stored and other.api_version == api_version:
            return other, face.show(obj)
    return None
