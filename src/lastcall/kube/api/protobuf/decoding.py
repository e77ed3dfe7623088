"""Request bodies in Kubernetes's protobuf: from bytes to the object that the same body in JSON would be.

kubectl's `create` subcommands and `auth` send it. Field numbers are facts in `protobuf.json` (made by
tools/make_protobuf.py): message → [number, JSON name, type or [key, value] of a map, flags (1 repeated, 2 inline)].

Sources: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, the generated.proto files of k8s.io/api.
"""

import base64
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.schema.types import known_types
from lastcall.kube.api.text.times import time_text

MAGIC = b"k8s\x00"
MAX_DEPTH = 64
"""How deep messages may hold messages; the deepest real one (a Pod's) is 12."""

_FIRST_PRINTED, _AFTER_LAST_PRINTED = -62167392000, 253402473600
"""Two days before the year 0 and after 9999: what lies between can be written as JSON, and be read again."""

_REPEATED, _INLINE = 1, 2


class ProtobufError(ValueError):
    """The bytes are no such message. The message says what is wrong, for the client."""


class ProtobufField(NamedTuple):
    """One field of a message; `name` is its name in JSON, `key` the type of a map's keys or ""."""

    name: str
    type: str
    key: str
    repeated: bool
    inline: bool


@cache
def _data() -> dict[str, Any]:
    messages: dict[str, Any] = orjson.loads(Path(__file__).with_name("protobuf.json").read_bytes())
    return messages


@cache
def fields_of(message: str) -> dict[int, ProtobufField]:
    """Return the fields of a message by number."""
    fields = {}
    for number, name, type_, *flags in _data()[message]:
        key, type_ = type_ if isinstance(type_, list) else ("", type_)
        bits = flags[0] if flags else 0
        fields[number] = ProtobufField(name, type_, key, bool(bits & _REPEATED), bool(bits & _INLINE))
    return fields


def decode_envelope(body: bytes) -> Object:
    """Decode the object in a `k8s\\0` envelope, with its kind and apiVersion. Raises ProtobufError.

    Zero numbers and booleans stay, empty strings go: which of them Go leaves out is a matter of `schema.prune`.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _message("runtime.Unknown", body[len(MAGIC) :], 0)
    type_meta = envelope.get("typeMeta") or {}
    api_version, kind = type_meta.get("apiVersion", ""), type_meta.get("kind", "")
    head: Object = {"kind": kind, "apiVersion": api_version}
    message = message_of(api_version, kind)
    if message not in _data():
        # The caller reports what is wrong with kind and version.
        return head
    return {**head, **_message(message, base64.b64decode(envelope.get("raw", "")), 0)}


def message_of(api_version: str, kind: str) -> str:
    """Return the name of a kind's message, also of a kind's list. The message may not exist."""
    types = known_types()
    if (name := types.get(f"{api_version}/{kind}")) is None and kind.endswith("List"):
        item = types.get(f"{api_version}/{kind.removesuffix('List')}")
        name = f"{item}List" if item else None
    if name is None and api_version == "v1" and f"core.v1.{kind}" in _data():
        name = f"core.v1.{kind}"  # one that is stored and not served, such as RangeAllocation
    return name or f"meta.v1.{kind}"


def has_message(name: str) -> bool:
    return name in _data()


def _pairs(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(field number, wire type, value): an integer for varints, bytes for all else."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value: Any
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if number == 0:
            raise ProtobufError(f"proto: illegal tag {number} (wire type {wire})")
        if at + size > end:
            raise ProtobufError("unexpected EOF")
        yield number, wire, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise ProtobufError("proto: integer overflow")


def _message(message: str, data: bytes, depth: int) -> Object:
    if depth > MAX_DEPTH:
        raise ProtobufError("proto: nested too deeply")
    fields = fields_of(message)
    out: Object = {}
    for number, wire, raw in _pairs(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.key:
            key, value = _entry(field, _length(raw, wire, field.name), depth)
            out.setdefault(field.name, {})[key] = value
            continue
        value = _value(field.type, wire, raw, field.name, depth)
        if field.repeated:
            out.setdefault(field.name, []).append(value)
        elif field.inline and isinstance(value, dict):
            out.update(value)
        elif value is not None and value != "":
            out[field.name] = value
    return out


def _entry(field: ProtobufField, data: bytes, depth: int) -> tuple[str, Any]:
    key: Any = ""
    value: Any = {} if field.type in _data() else _ZEROS.get(field.type, "")
    for number, wire, raw in _pairs(data):
        if number == 1:
            key = _value(field.key, wire, raw, field.name, depth)
        elif number == 2:
            value = _value(field.type, wire, raw, field.name, depth)
    return str(key), value


def _length(raw: Any, wire: int, name: str) -> bytes:
    if wire != 2:
        raise ProtobufError(f"proto: wrong wireType = {wire} for field {name}")
    assert isinstance(raw, bytes)
    return raw


def _value(type_: str, wire: int, raw: Any, name: str, depth: int) -> Any:
    if (scalar := _SCALARS.get(type_)) is not None:
        expected, convert = scalar
        if wire != expected:
            raise ProtobufError(f"proto: wrong wireType = {wire} for field {name}")
        return convert(raw)
    data = _length(raw, wire, name)
    if (special := _SPECIAL.get(type_)) is not None:
        return special(data)
    if type_ in _SCHEMA_OR:
        return _schema_or(type_, data, depth)
    value = _message(type_, data, depth + 1)
    # A slice that is a type of its own is a message with one field.
    return value.get("items", []) if type_.endswith((".ExtraValue", ".Verbs")) else value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtobufError("proto: string field contains invalid UTF-8") from None


_SCALARS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "string": (2, _text),
    "bytes": (2, lambda data: base64.b64encode(data).decode()),
    "bool": (0, bool),
    "int32": (0, _signed),
    "int64": (0, _signed),
    "uint32": (0, int),
    "uint64": (0, int),
    "double": (1, lambda data: struct.unpack("<d", data)[0]),
    "float": (5, lambda data: struct.unpack("<f", data)[0]),
}
_ZEROS: dict[str, Any] = {"Quantity": "0", "bool": False, "int32": 0, "int64": 0}


def _time(data: bytes, *, micro: bool = False) -> str | None:
    numbers = {number: _signed(value) for number, wire, value in _pairs(data) if wire == 0}
    seconds, nanos = numbers.get(1, 0), numbers.get(2, 0)
    if not data:
        return None
    if not _FIRST_PRINTED <= seconds < _AFTER_LAST_PRINTED:
        raise ProtobufError(f"time of {seconds} seconds: not in the years 0 to 9999")
    more, nanos = divmod(nanos, 1_000_000_000)
    return time_text(seconds + (more if micro else 0), nanos, micro=micro) or None


def _int_or_string(data: bytes) -> int | str:
    values = {(number, wire): value for number, wire, value in _pairs(data)}
    return _text(values.get((3, 2), b"")) if values.get((1, 0)) else _signed(values.get((2, 0), 0))


def _first(data: bytes) -> bytes:
    return next((value for number, wire, value in _pairs(data) if number == 1 and wire == 2), b"")


_SCHEMA = "apiextensions.v1.JSONSchemaProps"
_SCHEMA_OR = frozenset(f"{_SCHEMA}Or{other}" for other in ("Array", "Bool", "StringArray"))


def _schema_or(type_: str, data: bytes, depth: int) -> Any:
    """A schema, or what may stand in its place: several, whether anything is allowed, names."""
    value = _message(type_, data, depth + 1)
    if (schema := value.get("schema")) is not None:
        return schema
    if type_.endswith("Bool"):
        return value.get("allows", False)
    return value.get("jSONSchemas") or value.get("property") or []


def _json(data: bytes) -> Any:
    raw = _first(data)
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise ProtobufError("a field that holds JSON holds something else") from None


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": lambda data: _time(data, micro=True),
    "Quantity": lambda data: _text(_first(data)) or "0",
    "IntOrString": _int_or_string,
    "apiextensions.v1.JSON": _json,
    "meta.v1.FieldsV1": _json,
    "runtime.RawExtension": _json,
}
