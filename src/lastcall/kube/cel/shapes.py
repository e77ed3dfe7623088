"""What expressions know of a structural schema: types, fields by the names that expressions write, and sizes.

Source: apiserver pkg/cel/common/schemas.go, pkg/cel/types.go, pkg/cel/escaping.go.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_type,
)
from lastcall.world.dataclass import dataclass

MAX_REQUEST = 3 << 20
"""Bytes of the biggest request."""
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
_RESERVED = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_WORDS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ALLOWED = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_TEXT: Object = {"type": "string"}
_META: Object = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_FORMATS = {"duration": (DURATION, 3, 32), "date": (TIMESTAMP, 12, 12), "date-time": (TIMESTAMP, 21, 32)}
"""Format of a string → its type, the least and the most bytes of it."""


@lru_cache(4096)
def escaped(name: str) -> str:
    """Return the name that expressions write for a field; "" for one that they cannot name."""
    if _ALLOWED.fullmatch(name) is None:
        return ""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda found: _WORDS[found[0]], name)


@dataclass(slots=True)
class Shape:
    """`element` is that of lists and maps, `fields` are those of objects; `most` bounds elements or characters, `least`
    is the size of the smallest JSON of it in bytes."""

    type: Type
    schema: Object
    least: int
    most: int = 0
    element: "Shape | None" = None
    fields: dict[str, "Shape"] = field(default_factory=dict)


class Shapes:
    """Knows the fields of the object types below one schema (a `TypeProvider`)."""

    def __init__(self) -> None:
        self._objects: dict[str, Shape] = {}

    def has(self, name: str) -> bool:
        return name in self._objects

    def field(self, name: str, field: str) -> Type | None:
        found = self._objects[name].fields.get(field)
        return None if found is None else found.type

    def fields(self, name: str) -> Mapping[str, Type]:
        return {key: shape.type for key, shape in self._objects[name].fields.items()}

    def add(self, shape: Shape) -> Shape:
        self._objects[shape.type.name] = shape
        return shape


def with_metadata(schema: Object) -> Object:
    """Add what the root of every object has."""
    own = {"kind": _TEXT, "apiVersion": _TEXT, "metadata": _META}
    return {**schema, "properties": {**(schema.get("properties") or {}), **own}}


def shape_of(schema: Any, shapes: Shapes, name: str, *, root: bool = False) -> Shape | None:
    """Return the shape of a schema, None for what expressions do not see. (`SchemaDeclType`)

    `name` is that of the type, if it is an object; those inside go on from it.
    """
    if not isinstance(schema, dict):
        return None
    longest = schema.get("maxLength")
    if schema.get(INT_OR_STRING):
        return Shape(DYN, schema, 1, MAX_REQUEST - 2 if longest is None else max(0, longest) * 4)
    root = root or bool(schema.get(EMBEDDED))
    if root:
        schema = with_metadata(schema)
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, shapes, name)
    if kind == "array":
        return _list(schema, shapes, name)
    if kind == "string":
        return _string(schema, longest)
    simple = {"boolean": (BOOL, 4), "number": (DOUBLE, 1), "integer": (INT, 1)}
    return Shape(simple[kind][0], schema, simple[kind][1]) if kind in simple else None


def _list(schema: Object, shapes: Shapes, name: str) -> Shape | None:
    element = shape_of(schema.get("items"), shapes, f"{name}.@idx")
    if element is None:
        return None
    most = schema.get("maxItems")
    most = (MAX_REQUEST - 2) // (element.least + 1) if most is None else max(0, most)
    return Shape(list_of(element.type), schema, 2, most, element)


def _object(schema: Object, shapes: Shapes, name: str) -> Shape | None:
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        element = shape_of(more, shapes, f"{name}.@elem")
        if element is None:
            return None
        most = schema.get("maxProperties")
        most = (MAX_REQUEST - 2) // (element.least + 6) if most is None else max(0, most)
        return Shape(map_of(STRING, element.type), schema, 2, most, element)
    made, needed = Shape(object_type(name), schema, 2), schema.get("required") or ()
    for key, inner in (schema.get("properties") or {}).items():
        written = escaped(key)
        shape = shape_of(inner, shapes, f"{name}.{written or key}")
        if shape is None:
            continue
        if written:
            made.fields[written] = shape
        if key in needed and inner.get("default") is None:
            made.least += len(key.encode()) + shape.least + 4
    return shapes.add(made)


def _string(schema: Object, longest: int | None) -> Shape:
    form = schema.get("format")
    if form == "byte":
        return Shape(BYTES, schema, 2, MAX_REQUEST - 2 if longest is None else max(0, longest))
    if form in _FORMATS:
        type_, least, most = _FORMATS[form]
        return Shape(type_, schema, least, most)
    if longest is not None:
        return Shape(STRING, schema, 2, max(0, longest) * 4)
    words = [len(each.encode()) for each in schema.get("enum") or () if isinstance(each, str)]
    return Shape(STRING, schema, 2, max(words, default=0) if schema.get("enum") else MAX_REQUEST - 2)
