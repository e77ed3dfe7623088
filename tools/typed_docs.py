"""Show TypedDicts and dataclasses as JSON Schema, and TypedDicts as Markdown.

Units and meanings are the texts in `Annotated`.
"""

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from lastcall.endings.render.json_v1 import LAYOUT
from lastcall.records.json_shape import Key

Schema = dict[str, Any]

_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True)
class Field:
    name: str
    type: Any
    """Without NotRequired and Annotated."""
    required: bool
    notes: tuple[Any, ...]
    """Return the metadata of Annotated, of the innermost first."""

    @property
    def texts(self) -> list[str]:
        return [note for note in self.notes if isinstance(note, str)]


def fields(shape: Any) -> Iterator[Field]:
    """Yield the fields of a TypedDict, those of its bases first."""
    for key in keys_of(shape):
        bare, notes = stripped(key.type)
        for each in get_args(bare) if get_origin(bare) in (Union, types.UnionType) else ():
            notes = (*stripped(each)[1], *notes)
        yield Field(key.name, bare, key.required, notes)


def keys_of(shape: Any) -> Iterator[Key]:
    """Yield the keys of an object, with types as `Annotated` notes them."""
    if is_dataclass(shape):
        assert isinstance(shape, type)
        yield from LAYOUT.keys_of(shape)
        return
    for name, hint in get_type_hints(shape, include_extras=True).items():
        if get_origin(hint) is NotRequired:
            (hint,) = get_args(hint)
        yield Key(name, hint, name in shape.__required_keys__)


def stripped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is Annotated:
        return hint.__origin__, hint.__metadata__
    return hint, ()


def is_shape(hint: Any) -> bool:
    return typing.is_typeddict(hint) or (isinstance(hint, type) and is_dataclass(hint))


def doc_of(shape: Any) -> str:
    return " ".join((shape.__doc__ or "").split())


# -- JSON Schema


def schema_of(hint: Any, name_of: dict[Any, str], *, closed: bool = True) -> Schema:
    """Return the schema of a type.

    An object with a name in `name_of` becomes a reference; others are written in place.
    """
    hint, notes = stripped(hint)
    extra: Schema = {}
    for note in notes:
        if isinstance(note, dict):
            extra |= note
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return extra
    if is_shape(hint):
        return {"$ref": f"#/$defs/{name_of[hint]}"} if hint in name_of else object_of(hint, name_of, closed=closed)
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return _any_of([schema_of(each, name_of, closed=closed) for each in arguments]) | extra
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(arguments[0], name_of, closed=closed)}
    if origin is dict:
        values = schema_of(arguments[1], name_of, closed=closed)
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    return {"type": _PLAIN[hint], **extra}


def object_of(shape: Any, name_of: dict[Any, str], *, closed: bool = True) -> Schema:
    """Return the schema of an object. `closed`: fields named as required must be there, and no others."""
    keys = list(keys_of(shape))
    properties = {key.name: schema_of(key.type, name_of, closed=closed) for key in keys}
    made: Schema = {"type": "object"}
    if closed:
        made["required"] = [key.name for key in keys if key.required]
        made["additionalProperties"] = False
    return made | {"properties": properties}


def _any_of(schemas: list[Schema]) -> Schema:
    """As short as it can be said."""
    if all(set(each) == {"type"} for each in schemas):
        return {"type": [each["type"] for each in schemas]}
    values = [each for each in schemas if set(each) <= {"enum", "const"}]
    if values and all(each in values or each == {"type": "null"} for each in schemas):
        named = [value for each in values for value in each.get("enum", [each.get("const")])]
        return {"enum": [*named, None]}
    return {"anyOf": sorted(schemas, key=lambda each: each != {"type": "null"})}


# -- Markdown


def words_for(hint: Any) -> str:
    """Return a type as people read it."""
    hint, _ = stripped(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return "JSON"
    if is_shape(hint):
        return f"{{{', '.join(f'`{each}`' for each in get_type_hints(hint))}}}"
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(words_for(each) for each in arguments)
    if origin is list:
        return f"list of {words_for(arguments[0])}"
    if origin is dict:
        return "object"
    return _PLAIN[hint]


def sentence_for(field: Field) -> str:
    """Return `name` (type, may be absent): unit; meaning."""
    kind = words_for(field.type) + ("" if field.required else "; may be absent")
    notes = "; ".join(field.texts)
    return f"`{field.name}` ({kind})" + (f": {notes}" if notes else "")
