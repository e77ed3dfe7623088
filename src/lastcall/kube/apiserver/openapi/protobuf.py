"""An OpenAPI v2 document as the protobuf message `openapi.v2.Document`, the only form that older kubectl asks for.

Only the fields that our documents have are known here; a field of another name raises KeyError.

Source: gnostic openapiv2/OpenAPIv2.proto (message and field numbers).
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from lastcall.kube.api.protobuf.wire import delimited, varint

Encode = Callable[[Any], bytes]


def _string(value: str) -> bytes:
    return value.encode()


def _any(value: Any) -> bytes:
    """openapi.v2.Any with its `yaml` text; JSON is YAML."""
    return delimited(2, orjson.dumps(value) + b"\n")


def _named(name: str, value: bytes) -> bytes:
    """NamedSchema, NamedPathItem, …: name and value."""
    return delimited(1, name.encode()) + delimited(2, value)


def _message(value: dict[str, Any], fields: dict[str, tuple[int, Encode | None]], extensions: int = 0) -> bytes:
    """`fields`: name → (number, encoder of one value; None for bool). Lists are repeated, `x-…` go to `extensions`."""
    out = []
    for key, item in value.items():
        if key.startswith("x-"):
            out.append(delimited(extensions, _named(key, _any(item))))
            continue
        number, encode = fields[key]
        if encode is None:
            if item:
                out.append(varint(number << 3) + b"\x01")
        elif isinstance(item, list):
            out += [delimited(number, encode(each)) for each in item]
        else:
            out.append(delimited(number, encode(item)))
    return b"".join(out)


def _map(value: dict[str, Any], encode: Encode, number: int = 1) -> bytes:
    return b"".join([delimited(number, _named(key, encode(item))) for key, item in value.items()])


def schema(value: dict[str, Any]) -> bytes:
    """Encode an openapi.v2.Schema. A limit of 0 counts as none, and is not written."""
    numbers = []
    for key, item in value.items():
        if key in _DOUBLES and item:
            numbers.append(varint(_DOUBLES[key] << 3 | 1) + struct.pack("<d", item))
        elif key in _INTEGERS and item:
            numbers.append(varint(_INTEGERS[key] << 3) + varint(item % 2**64))
        elif key in _VALUES:
            numbers.append(delimited(_VALUES[key], _any(item)))
    rest = {key: item for key, item in value.items() if key not in {*_DOUBLES, *_INTEGERS, *_VALUES}}
    return b"".join(numbers) + _message(rest, _SCHEMA, 31)


def _properties(value: dict[str, Any]) -> bytes:
    return _map(value, schema)


def _wrapped(value: Any) -> bytes:
    """A message whose only field, number 1, is the schema: items, additionalProperties, the schema of an answer."""
    return delimited(1, schema(value))


def _type(value: str) -> bytes:
    return delimited(1, value.encode())


def _more(value: Any) -> bytes:
    """additionalProperties: a schema (1) or a boolean (2)."""
    return _wrapped(value) if isinstance(value, dict) else varint(2 << 3) + bytes([value])


def _docs(value: dict[str, Any]) -> bytes:
    return _message(value, {"description": (1, _string), "url": (2, _string)})


_SCHEMA: dict[str, tuple[int, Encode | None]] = {
    "$ref": (1, _string),
    "format": (2, _string),
    "title": (3, _string),
    "description": (4, _string),
    "exclusiveMaximum": (8, None),
    "exclusiveMinimum": (10, None),
    "pattern": (13, _string),
    "uniqueItems": (16, None),
    "required": (19, _string),
    "enum": (20, _any),
    "additionalProperties": (21, _more),
    "type": (22, _type),
    "items": (23, _wrapped),
    "properties": (25, _properties),
    "externalDocs": (29, _docs),
}
_VALUES = {"default": 5, "example": 30}
_DOUBLES = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_INTEGERS = {"maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15, "maxProperties": 17, "minProperties": 18}

_BODY_PARAMETER: dict[str, tuple[int, Encode | None]] = {
    "name": (2, _string),
    "in": (3, _string),
    "required": (4, None),
    "schema": (5, schema),
}
_QUERY_PARAMETER: dict[str, tuple[int, Encode | None]] = {
    "required": (1, None),
    "in": (2, _string),
    "name": (4, _string),
    "type": (6, _string),
    "uniqueItems": (20, None),
}
_PATH_PARAMETER: dict[str, tuple[int, Encode | None]] = {
    "required": (1, None),
    "in": (2, _string),
    "name": (4, _string),
    "type": (5, _string),
    "uniqueItems": (19, None),
}


def _parameter(value: dict[str, Any]) -> bytes:
    """openapi.v2.ParametersItem: parameter (1) → body (1), or non-body (2) → query (3), path (4)."""
    if value["in"] == "body":
        return delimited(1, delimited(1, _message(value, _BODY_PARAMETER)))
    if value["in"] == "query":
        return delimited(1, delimited(2, delimited(3, _message(value, _QUERY_PARAMETER))))
    return delimited(1, delimited(2, delimited(4, _message(value, _PATH_PARAMETER))))


def _responses(value: dict[str, Any]) -> bytes:
    return _map(
        value, lambda item: delimited(1, _message(item, {"description": (1, _string), "schema": (2, _wrapped)}))
    )


def _operation(value: dict[str, Any]) -> bytes:
    return _message(value, _OPERATION, 13)


_OPERATION: dict[str, tuple[int, Encode | None]] = {
    "tags": (1, _string),
    "description": (3, _string),
    "operationId": (5, _string),
    "produces": (6, _string),
    "consumes": (7, _string),
    "parameters": (8, _parameter),
    "responses": (9, _responses),
    "schemes": (10, _string),
}
_PATH_ITEM: dict[str, tuple[int, Encode | None]] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "options": (6, _operation),
    "head": (7, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameter),
}


def document(value: dict[str, Any]) -> Iterator[bytes]:
    """Yield the message in pieces, each the work of about a millisecond; joined they are the document."""
    yield delimited(1, value["swagger"].encode())
    yield delimited(2, _message(value["info"], {"title": (1, _string), "version": (2, _string)}))
    paths = []
    for path, item in value["paths"].items():
        paths.append(delimited(2, _named(path, _message(item, _PATH_ITEM, 10))))
        yield b""
    yield delimited(8, b"".join(paths))
    definitions = []
    for name, item in value["definitions"].items():
        definitions.append(delimited(1, _named(name, schema(item))))
        yield b""
    yield delimited(9, b"".join(definitions))
