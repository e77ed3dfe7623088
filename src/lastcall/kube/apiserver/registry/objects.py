"""How objects are kept: made to values of the store, and the cache of what was decoded to decide something.

Their JSON begins with kind and apiVersion, so that a list, whose items carry neither, is made by cutting them off.
"""

from collections import deque

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.store.value import Decoded, Value

MOST_GUESSES = 8
"""After so many versions whose size is taken to be that of the one before it is looked at again."""


class ObjectCache:
    """Decoded objects of stored values. What it hands out is shared: never change it.

    An object that this process still has (in the cache of an informer) is never decoded a second time, so there
    is one of it however many read it; of the others the last `size` are kept, fewer if their JSON exceeds `size_bytes`.
    """

    def __init__(self, size: int = 1024, size_bytes: int = 8 << 20) -> None:
        self._recent: deque[tuple[Decoded, int]] = deque()
        self._size, self._size_bytes = size, size_bytes
        self._bytes = 0

    def decode(self, value: Value) -> Object:
        obj = value.object
        if obj is not None or (obj := value.decoded()) is not None:
            return obj
        decoded = self.remember(value.parsed(), value.size)
        value.remember(decoded)
        return decoded

    def remember(self, decoded: Decoded, size: int) -> Decoded:
        """Remember `decoded`, whose JSON has `size` bytes, to hand it out from now on."""
        self._recent.append((decoded, size))
        self._bytes += size
        while len(self._recent) > self._size or self._bytes > self._size_bytes:
            self._bytes -= self._recent.popleft()[1]
        return decoded


class Codec:
    """Makes the objects of one resource to what is stored."""

    def __init__(self, resource: Resource, cache: ObjectCache) -> None:
        self.resource = resource
        self._cache = cache
        self._kind, self._api_version = resource.kind, resource.api_version
        head = orjson.dumps({"kind": self._kind, "apiVersion": self._api_version})
        self._head = head[:-1] + b","

    def encode(self, obj: Object, revision: int, like: Value | None = None) -> Value:
        """Encode `obj` at `revision`; it gets that resourceVersion and belongs to the cache afterwards.

        `like` is a value of about the same size: with it the JSON is made on request. `obj` must be
        known to be JSON then.
        """
        obj["metadata"]["resourceVersion"] = str(revision)
        decoded = Decoded(_with_type(obj, self._kind, self._api_version))
        if like is not None and like.guesses < MOST_GUESSES:
            value = Value(None, decoded, like)
        else:
            value = Value(None, decoded)
            value.encoded()
        self._cache.remember(decoded, value.size)
        return value

    @property
    def item_start(self) -> int:
        """Return where the object without kind and apiVersion begins in stored bytes.

        What follows is, after a `{`, an item of a list.
        """
        return len(self._head)

    def check(self, value: bytes) -> None:
        """Raise ValueError for stored bytes that do not begin with kind and apiVersion."""
        if not value.startswith(self._head):
            raise ValueError(f"stored {self.resource.kind} does not begin with its kind: {value[:60]!r}")


def with_type(obj: Object, resource: Resource) -> Object:
    """Return `obj` itself with kind and apiVersion in front (a new dict only where they are not)."""
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
    """Return the beginning of a list up to and including `"items":[`."""
    meta: Object = {"resourceVersion": str(revision)}
    if continue_:
        meta["continue"] = continue_
        if remaining is not None:
            meta["remainingItemCount"] = remaining
    head = orjson.dumps({"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta})
    return head[:-1] + b',"items":['


def watch_line(type_: str, value: bytes) -> bytes:
    """Return one watch event as a line of the stream."""
    return b'{"type":"' + type_.encode() + b'","object":' + value + b"}\n"
