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
