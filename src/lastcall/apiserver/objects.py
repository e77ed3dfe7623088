"""Objects are bytes once: how they are encoded, and the cache of what was decoded to decide something.

Stored bytes begin with kind and apiVersion, so that a list, whose items carry neither, is made by cutting them off.
"""

from collections import deque
from weakref import WeakValueDictionary

import orjson

from lastcall.api.meta import Object
from lastcall.api.resources import Resource


class Decoded(Object):
    """A decoded object that can be referred to weakly."""

    __slots__ = ("__weakref__",)


class ObjectCache:
    """Decoded objects by their stored bytes. What it hands out is shared: never change it.

    An object that somebody of this process still has (a cache of an informer) is never decoded a second time, so there
    is one of it however many read it; of the others the last `size` are kept.
    """

    def __init__(self, size: int = 1024) -> None:
        self._objects: WeakValueDictionary[bytes, Decoded] = WeakValueDictionary()
        self._recent: deque[Decoded] = deque(maxlen=size)

    def decode(self, value: bytes) -> Object:
        obj = self._objects.get(value)
        return obj if obj is not None else self.remember(value, orjson.loads(value))

    def remember(self, value: bytes, obj: Object) -> Object:
        """`obj` is what `value` decodes to; answers the one to hand out."""
        self._objects[value] = decoded = Decoded(obj)
        self._recent.append(decoded)
        return decoded


class Codec:
    """Encodes the objects of one resource in its stored form."""

    def __init__(self, resource: Resource, cache: ObjectCache) -> None:
        self.resource = resource
        self._cache = cache
        self._kind, self._api_version = resource.kind, resource.api_version
        head = orjson.dumps({"kind": self._kind, "apiVersion": self._api_version})
        self._head = head[:-1] + b","

    def encode(self, obj: Object, revision: int) -> bytes:
        """The bytes of `obj` at `revision`; `obj` gets that resourceVersion and belongs to the cache afterwards."""
        obj["metadata"]["resourceVersion"] = str(revision)
        obj = _with_type(obj, self._kind, self._api_version)
        # A copy, for what orjson gives keeps the buffer it was written in: 8 KiB for 3 KiB of a Pod.
        value = bytes(memoryview(orjson.dumps(obj)))
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
    return _with_type(obj, resource.kind, resource.api_version)


def _with_type(obj: Object, kind: str, api_version: str) -> Object:
    keys = iter(obj)
    if (
        next(keys, "") == "kind"
        and next(keys, "") == "apiVersion"
        and obj["kind"] == kind
        and obj["apiVersion"] == api_version
    ):
        return obj
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return {"kind": kind, "apiVersion": api_version, **rest}


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
