"""Answers in Kubernetes's protobuf: from an object to the bytes that a client gets.

The other way round is `lastcall.kube.api.protobuf.decoding`, whose field numbers are used here.

Sources: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, the generated.proto files of k8s.io/api.
"""

import base64
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.decoding import MAGIC, ProtobufField, fields_of, message_of
from lastcall.kube.api.protobuf.wire import delimited, varint
from lastcall.kube.api.text.times import unix_time

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
"""Fields that Go writes although they are zero, because they are not pointers (those that are met often)."""


def encode_envelope(obj: Object) -> bytes:
    """Encode `obj`, which has its kind and apiVersion, in a `k8s\\0` envelope."""
    return _enveloped(obj, _message(_message_name(obj), obj))


def encode_items(head: Object, items: list[Object]) -> bytes:
    """Encode some items of the list `head`, as they are in its message."""
    number, field = next((number, each) for number, each in _fields(_message_name(head)) if each.name == "items")
    return b"".join([_field(number, field, item) for item in items])


def encode_list(head: Object, items: bytes) -> bytes:
    """Encode the list `head` with `items`, which are encoded, in an envelope."""
    return _enveloped(head, _message(_message_name(head), head) + items)


def _message_name(obj: Object) -> str:
    return message_of(obj.get("apiVersion", ""), obj.get("kind", ""))


def _enveloped(obj: Object, raw: bytes) -> bytes:
    type_meta = delimited(1, obj.get("apiVersion", "").encode()) + delimited(2, obj.get("kind", "").encode())
    return MAGIC + delimited(1, type_meta) + delimited(2, raw) + delimited(3, b"") + delimited(4, b"")


def watch_frame(type_: str, obj: Object) -> bytes:
    """Encode an event of a watch: its length in four bytes, and a WatchEvent that holds an envelope."""
    event = delimited(1, type_.encode()) + delimited(2, delimited(1, encode_envelope(obj)))
    return struct.pack(">I", len(event)) + event


@cache
def _fields(message: str) -> list[tuple[int, ProtobufField]]:
    """The fields of a message in the order of their numbers."""
    return sorted(fields_of(message).items())


def _message(message: str, obj: Object) -> bytes:
    out: list[bytes] = []
    always = _ALWAYS.get(message, ())
    for number, field in _fields(message):
        if field.inline:
            out.append(delimited(number, _message(field.type, obj)))
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
                out.append(delimited(number, pair + _field(2, entry, value[key])))
        elif field.repeated:
            out += [_field(number, field, item) for item in value]
        else:
            out.append(_field(number, field, value))
    return b"".join(out)


def _field(number: int, field: ProtobufField, value: Any) -> bytes:
    type_ = field.type
    if type_ == "string":
        return delimited(number, str(value).encode())
    if type_ == "bytes":
        return delimited(number, base64.b64decode(value))
    if type_ in ("bool", "int32", "int64", "uint32", "uint64"):
        return varint(number << 3) + varint(int(value))
    if type_ in ("double", "float"):
        wire, form = (1, "<d") if type_ == "double" else (5, "<f")
        return varint(number << 3 | wire) + struct.pack(form, value)
    if (special := _SPECIAL.get(type_)) is not None:
        return delimited(number, special(value))
    if isinstance(value, list):  # a slice that is a type of its own
        value = {"items": value}
    return delimited(number, _message(type_, value))


def _time(value: str) -> bytes:
    """Seconds and nanoseconds; nothing for no time."""
    try:
        seconds, nanos = unix_time(value)
    except ValueError:
        return b""
    return varint(1 << 3) + varint(seconds) + varint(2 << 3) + varint(nanos)


def _int_or_string(value: int | str) -> bytes:
    text, number = (value, 0) if isinstance(value, str) else ("", value)
    kind = 1 if isinstance(value, str) else 0
    return varint(1 << 3) + varint(kind) + varint(2 << 3) + varint(number) + delimited(3, text.encode())


def _schema_or_list(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(delimited(2, _message(_SCHEMA, each)) for each in value if isinstance(each, dict))
    return delimited(1, _message(_SCHEMA, value)) if isinstance(value, dict) else b""


def _schema_or_bool(value: Any) -> bytes:
    schema = delimited(2, _message(_SCHEMA, value)) if isinstance(value, dict) else b""
    return varint(1 << 3) + varint(value is not False) + schema


def _schema_or_names(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(delimited(2, str(each).encode()) for each in value)
    return _schema_or_list(value)


_SCHEMA = "apiextensions.v1.JSONSchemaProps"
_SPECIAL: dict[str, Callable[[Any], bytes]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _time,
    "Quantity": lambda value: delimited(1, str(value).encode()),
    "IntOrString": _int_or_string,
    "apiextensions.v1.JSON": lambda value: delimited(1, orjson.dumps(value)),
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or_list,
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or_names,
    "meta.v1.FieldsV1": lambda value: delimited(1, orjson.dumps(value)),
    "runtime.RawExtension": lambda value: delimited(1, orjson.dumps(value)),
}
