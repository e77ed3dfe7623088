"""Answers in Kubernetes's protobuf: from an object to the bytes that a client gets which reads nothing else.

The other way round is `lastcall.api.protobuf`, whose field numbers are used here.

Sources: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, the generated.proto files of k8s.io/api.
"""

import base64
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson

from lastcall.api.meta import Object
from lastcall.api.protobuf import MAGIC, ProtobufField, fields_of, message_of
from lastcall.api.types import known_types

_ALWAYS: dict[str, tuple[str, ...]] = {
    "meta.v1.ObjectMeta": ("generation", "creationTimestamp"),
    "core.v1.PodSpec": ("hostNetwork", "hostPID", "hostIPC"),
    "core.v1.Container": ("stdin", "stdinOnce", "tty"),
    "core.v1.ContainerPort": ("hostPort",),
    "core.v1.VolumeMount": ("readOnly",),
    "core.v1.ContainerStatus": ("ready", "restartCount"),
    "core.v1.ServicePort": ("nodePort",),
    "core.v1.ServiceSpec": ("publishNotReadyAddresses", "healthCheckNodePort"),
    "core.v1.Probe": ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
    "authorization.v1.SubjectAccessReviewStatus": ("allowed", "denied"),
}
"""Fields that Go writes although they are zero, because they are no pointers (those that are met often)."""

_SECONDS = re.compile(r"(.*?)(\.\d+)?(Z|[+-]\d\d:\d\d)")


def is_encodable(api_version: str, kind: str) -> bool:
    """Whether a kind has a message; declared kinds have none."""
    return f"{api_version}/{kind}" in known_types()


def encode_envelope(obj: Object) -> bytes:
    """`obj`, which says its kind and apiVersion, in a `k8s\\0` envelope."""
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    type_meta = _delimited(1, api_version.encode()) + _delimited(2, kind.encode())
    raw = _message(message_of(api_version, kind), obj)
    return MAGIC + _delimited(1, type_meta) + _delimited(2, raw) + _delimited(3, b"") + _delimited(4, b"")


def watch_frame(type_: str, obj: Object) -> bytes:
    """An event of a watch: its length in four bytes, and a WatchEvent that holds an envelope."""
    event = _delimited(1, type_.encode()) + _delimited(2, _delimited(1, encode_envelope(obj)))
    return struct.pack(">I", len(event)) + event


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _delimited(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _message(message: str, obj: Object) -> bytes:
    out: list[bytes] = []
    always = _ALWAYS.get(message, ())
    for number, field in sorted(fields_of(message).items()):
        if field.inline:
            out.append(_delimited(number, _message(field.type, obj)))
            continue
        value: Any = obj.get(field.name)
        if value is None:
            if field.name not in always:
                continue
            value = "" if field.type in _SPECIAL else 0
        if field.key:
            entry = ProtobufField("", field.type, "", repeated=False, inline=False)
            for key in sorted(value):
                pair = _field(1, ProtobufField("", field.key, "", repeated=False, inline=False), key)
                out.append(_delimited(number, pair + _field(2, entry, value[key])))
        elif field.repeated:
            out += [_field(number, field, item) for item in value]
        else:
            out.append(_field(number, field, value))
    return b"".join(out)


def _field(number: int, field: ProtobufField, value: Any) -> bytes:
    type_ = field.type
    if type_ == "string":
        return _delimited(number, str(value).encode())
    if type_ == "bytes":
        return _delimited(number, base64.b64decode(value))
    if type_ in ("bool", "int32", "int64", "uint32", "uint64"):
        return _varint(number << 3) + _varint(int(value))
    if type_ in ("double", "float"):
        wire, form = (1, "<d") if type_ == "double" else (5, "<f")
        return _varint(number << 3 | wire) + struct.pack(form, value)
    if (special := _SPECIAL.get(type_)) is not None:
        return _delimited(number, special(value))
    if isinstance(value, list):  # a slice that is a type of its own
        value = {"items": value}
    return _delimited(number, _message(type_, value))


def _time(value: str) -> bytes:
    """Seconds and nanoseconds; nothing for no time."""
    found = _SECONDS.fullmatch(value)
    if found is None:
        return b""
    moment = datetime.fromisoformat(found.group(1) + found.group(3).replace("Z", "+00:00")).astimezone(UTC)
    nanos = int((found.group(2) or ".0")[1:].ljust(9, "0")[:9])
    return _varint(1 << 3) + _varint(int(moment.timestamp())) + _varint(2 << 3) + _varint(nanos)


def _int_or_string(value: int | str) -> bytes:
    text, number = (value, 0) if isinstance(value, str) else ("", value)
    kind = 1 if isinstance(value, str) else 0
    return _varint(1 << 3) + _varint(kind) + _varint(2 << 3) + _varint(number) + _delimited(3, text.encode())


_SPECIAL: dict[str, Callable[[Any], bytes]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _time,
    "Quantity": lambda value: _delimited(1, str(value).encode()),
    "IntOrString": _int_or_string,
    "meta.v1.FieldsV1": lambda value: _delimited(1, orjson.dumps(value)),
    "runtime.RawExtension": lambda value: _delimited(1, orjson.dumps(value)),
}
