"""What a PUT, a PATCH or a component wants an object to become (rest.UpdatedObjectInfo)."""

from collections.abc import Callable
from typing import NamedTuple

from lastcall.kube.api.meta import Object

Track = Callable[[Object, Object | None], list[Object]]
"""managedFields of a new object that takes the place of an old one (None at its creation), both as stored."""

Transform = Callable[[Object], Object]
"""Given the stored object (shared: not to be changed), the object that the client wants."""


class UpdatedObject(NamedTuple):
    """`transform` is called again when the stored object has changed meanwhile.

    `uid` is that of a PUT's body, "" for none. `create` is what a PUT to a missing object creates, for the kinds that
    allow it. Without `track` the managedFields are those that `transform` gives.
    """

    transform: Transform
    track: Track | None = None
    uid: str = ""
    create: Object | None = None
