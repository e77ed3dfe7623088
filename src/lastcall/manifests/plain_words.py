"""What is wrong with a field, in a person's words: types without Go's names, and the field that was meant. Pure."""

import json
import re
from typing import Any

from lastcall.kube.api import Object, Resource, Struct, struct_for, struct_of
from lastcall.manifests.names import closest_field
from lastcall.manifests.paths import Path, value_at

_GO = re.compile(r"cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field \S+|value) of type (\S+)")
_IS = {"string": "a text", "bool": "true or false", "object": "an object", "array": "a list", "number": "a number"}
_KEPT = 60
"""Letters of a value that are shown."""


def wrong_type(text: str, value: Any) -> str:
    """Return `expected a whole number, found the text "two"`, of the decoder's own words; others are left as they
    are."""
    match = _GO.search(text)
    if match is None:
        return text
    is_, type_ = match[1], match[2]
    if type_.startswith("[]") and type_ != "[]uint8":
        wanted = "a list"
    elif type_ in ("int32", "int64"):
        wanted = "a whole number"
    elif type_ == "bool":
        wanted = "true or false"
    elif type_ == "float64":
        wanted = "a number"
    elif type_ in ("string", "[]uint8") or (type_.startswith("v1.") and is_ in ("number", "bool")):
        wanted = "a text (in quotes)"
    else:
        wanted = "an object"
    return f"expected {wanted}, found {_found(is_, value)}"


def _found(is_: str, value: Any) -> str:
    word = _IS.get(is_, is_)
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str | int | float):
        shown = json.dumps(value, ensure_ascii=False)
        kind = "text" if isinstance(value, str) else "number"
        return f"the {kind} {shown if len(shown) <= _KEPT else f'{shown[: _KEPT - 2]}…'}"
    return word


def meant_field(resource: Resource, obj: Object, path: Path) -> str | None:
    """Return the field that was probably meant with the unknown one at `path`: one that is not there yet."""
    struct = _struct_at(resource, path[:-1])
    known = list(struct.fields) if struct is not None else []
    parent = value_at(obj, path[:-1])
    there = parent if isinstance(parent, dict) else {}
    return closest_field(str(path[-1]) if path else "", [each for each in known if each not in there])


def _struct_at(resource: Resource, path: Path) -> Struct | None:
    """The type of the object at `path`."""
    struct: Struct = struct_for(resource)
    field = None
    for step in path:
        if isinstance(step, int):
            field = field.item if field is not None else None
        elif field is not None and field.shape == "map":
            field = field.item
        else:
            field = (struct_of(field) if field is not None else struct).fields.get(step)
        if field is None:
            return None
    if field is None:
        return struct
    return struct_of(field) if field.shape == "struct" else None
