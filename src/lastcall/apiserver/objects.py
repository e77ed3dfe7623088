"""Objects are bytes once: how they are encoded, and the cache of what was decoded to decide something.

Stored bytes begin with kind and apiVersion, so that a list, whose items carry neither, is made by cutting them off.
"""

from typing import cast

import orjson

from lastcall.api.meta import Object
from lastcall.api.resources import Resource


class ObjectCache:
    """Decoded objects by their stored bytes. What it hands out is shared: never change it.

    Holds the last `size` objects; looking up a value that was just written costs no decoding.
    """

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._objects: dict[bytes, Object] = {}

    def decode(self, value: bytes) -> Object:
        obj = self._objects.get(value)
        if obj is None:
            obj = cast(Object, orjson.loads(value))
            self.remember(value, obj)
        return obj

    def remember(self, value: bytes, obj: Object) -> None:
        """`obj` is what `value` decodes to."""
        if len(self._objects) >= self._size:
            # The oldest go first: an object that is still wanted comes back with one decoding.
            for key in list(self._objects)[: self._size // 8]:
                del self._objects[key]
        self._objects[value] = obj


class Codec:
    """Encodes the objects of one resource in its stored form."""

    def __init__(self, resource: Resource, cache: ObjectCache) -> None:
        self.resource = resource
        self._cache = cache
        head = orjson.dumps({"kind": resource.kind, "apiVersion": resource.api_version})
        self._head = head[:-1] + b","

    def encode(self, obj: Object, revision: int) -> bytes:
        """The bytes of `obj` at `revision`; `obj` gets that resourceVersion and belongs to the cache afterwards."""
        obj["metadata"]["resourceVersion"] = str(revision)
        obj = with_type(obj, self.resource)
        value = orjson.dumps(obj)
        self._cache.remember(value, obj)
        return value

    @property
    def item_start(self) -> int:
        """Stored bytes from here on, after a `{`, are the object without kind and apiVersion: an item of a list."""
        return len(self._head)

    def check(self, value: bytes) -> None:
        """Raises ValueError for stored bytes that do not begin with kind and apiVersion."""
        if not value.startswith(self._head):
            raise ValueError(f"stored {self.resource.kind} does not begin with its kind: {value[:60]!r}")


def with_type(obj: Object, resource: Resource) -> Object:
    """`obj` itself with kind and apiVersion in front (a new dict only where they are not)."""
    keys = iter(obj)
    if (
        next(keys, "") == "kind"
        and next(keys, "") == "apiVersion"
        and obj["kind"] == resource.kind
        and obj["apiVersion"] == resource.api_version
    ):
        return obj
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return {"kind": resource.kind, "apiVersion": resource.api_version, **rest}


def list_head(resource: Resource, revision: int, continue_: str = "", remaining: int | None = None) -> bytes:
    """The beginning of a list up to and including `"items":[`."""
    meta: Object = {"resourceVersion": str(revision)}
    if continue_:
        meta["continue"] = continue_
        if remaining is not None:
            meta["remainingItemCount"] = remaining
    head = orjson.dumps({"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta})
    return head[:-1] + b',"items":['


def watch_line(type_: str, value: bytes) -> bytes:
    """One watch event as a line of the stream."""
    return b'{"type":"' + type_.encode() + b'","object":' + value + b"}\n"
