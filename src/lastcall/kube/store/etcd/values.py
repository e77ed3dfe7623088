"""Objects as kube-apiserver writes them into etcd: without resourceVersion, which a reader takes from the key's
mod_revision; built-in kinds in protobuf behind `k8s\\0`, custom resources and the kinds of the two aggregated servers
(CustomResourceDefinition, APIService) in JSON. Either form is read, no matter who wrote it.

A value is decoded on request: what only lies there costs its bytes.

Sources: apiserver pkg/storage/etcd3/store.go, pkg/storage/api_object_versioner.go:PrepareObjectForStorage,
apimachinery pkg/runtime/serializer/protobuf/protobuf.go.
"""

from functools import cache
from typing import Any

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.decoding import MAGIC, ProtobufError, decode_envelope, has_message, message_of
from lastcall.kube.api.protobuf.encoding import encode_envelope
from lastcall.kube.api.resources import SERVED, Resource
from lastcall.kube.api.schema.checks import DecodeError
from lastcall.kube.api.schema.decoding import decode_fields
from lastcall.kube.store.api import StoreError
from lastcall.kube.store.value import Decoded, Value

_IN_JSON = ("apiextensions.k8s.io/", "apiregistration.k8s.io/")
_NOT_SERVED = frozenset({("v1", "RangeAllocation")})
_ENCRYPTED = b"k8s:enc:"


class Unreadable(StoreError):
    """What is stored cannot be read. The text names the key."""


@cache
def _known() -> dict[tuple[str, str], Resource]:
    return {(each.api_version, each.kind): each for each in SERVED}


def encode(obj: Object) -> bytes:
    """Return the bytes stored for `obj`, which has its kind and apiVersion (an object of tests may not)."""
    meta = obj.get("metadata")
    if isinstance(meta, dict) and "resourceVersion" in meta:
        obj = {**obj, "metadata": {key: value for key, value in meta.items() if key != "resourceVersion"}}
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    built_in = ((api_version, kind) in _known() or (api_version, kind) in _NOT_SERVED) and not api_version.startswith(
        _IN_JSON
    )
    if built_in and has_message(message_of(api_version, kind)):
        return encode_envelope(obj)
    return orjson.dumps(obj)


def decode(raw: bytes, revision: int, key: str) -> Decoded:
    """Return the stored object with its resourceVersion. Raises Unreadable."""
    try:
        obj: Any = decode_envelope(raw) if raw.startswith(MAGIC) else orjson.loads(raw)
    except (ProtobufError, ValueError, RecursionError) as error:
        why = str(error)
        if raw.startswith(_ENCRYPTED):
            why = "it is encrypted (--encryption-provider-config of a kube-apiserver); fix: store it unencrypted"
        raise Unreadable(f"etcd: {key}: what is stored there cannot be read: {why}") from None
    if not isinstance(obj, dict):
        raise Unreadable(f"etcd: {key}: what is stored there is no object")
    resource = _known().get((obj.get("apiVersion", ""), obj.get("kind", "")))
    if resource is not None:
        try:
            decode_fields(resource, obj)
        except DecodeError as error:
            raise Unreadable(f"etcd: {key}: what is stored there is no {resource.kind}: {error}") from None
    meta = obj.get("metadata")
    meta = {**meta, "resourceVersion": str(revision)} if isinstance(meta, dict) else {"resourceVersion": str(revision)}
    head = {name: obj[name] for name in ("kind", "apiVersion") if name in obj}
    return Decoded({**head, **obj, "metadata": meta})


class StoredValue(Value):
    """A value of etcd, at one revision. Its JSON or object is made on request."""

    __slots__ = ("_key", "_raw", "revision")

    def __init__(self, raw: bytes, revision: int, key: str, decoded: Decoded | None = None) -> None:
        """`decoded` is what `raw` says, if it is known: it is kept as long as a caller has it."""
        super().__init__(None)
        self._raw: bytes | None = raw
        self._key = key
        self.revision = revision
        if decoded is not None:
            self.remember(decoded)

    @property
    def size(self) -> int:
        return len(self._raw) if self._raw is not None else super().size

    def parsed(self) -> Decoded:
        if self._raw is None:
            return super().parsed()
        return decode(self._raw, self.revision, self._key)

    def encoded(self) -> bytes:
        if self._raw is not None:
            self._encoded = bytes(memoryview(orjson.dumps(self.decoded() or self.parsed())))
            self._raw = None
        return super().encoded()

    def at(self, revision: int) -> "Value":
        """Return the same value at another revision: that of a deletion."""
        if self._raw is not None:
            return StoredValue(self._raw, revision, self._key)
        obj = super().parsed()
        return Value(None, Decoded({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}))
