"""Checks a document against a published schema, that of `lastcall/ending/v1` unless another one is given, and a record
against the catalogue that this is made of."""

import functools
import importlib
import json
import re
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

ROOT = Path(__file__).parents[2]
if str(ROOT / "tools") not in sys.path:
    sys.path.append(str(ROOT / "tools"))

import typed_docs  # noqa: E402

from lastcall.records.record import Record  # noqa: E402
from lastcall.records.words import KINDS  # noqa: E402

PUBLISHED = json.loads((ROOT / "docs" / "ending-v1.schema.json").read_text())

SCHEMAS = {each["$id"]: each for each in (json.loads(path.read_text()) for path in ROOT.glob("docs/*.schema.json"))}
"""Every published schema by the name that a document has in `schema`."""


def documented(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document, which is what the schema that it names says. Raises AssertionError."""
    schema = SCHEMAS[document["schema"]]
    found = list(problems(document, schema, root=schema))
    assert found == [], found
    return document


_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def problems(
    value: object, schema: Mapping[str, Any] = PUBLISHED, where: str = "$", root: Mapping[str, Any] = PUBLISHED
) -> Iterator[str]:
    """The part of JSON Schema that the published schema uses."""
    known = {
        "$schema", "$id", "$defs", "$ref", "title", "type", "required", "additionalProperties", "properties", "items",
        "enum", "const", "pattern", "anyOf", "allOf", "if", "then", "description",
    }  # fmt: skip
    assert set(schema) <= known, f"this check does not know {set(schema) - known}"
    if "$ref" in schema:
        yield from problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], where, root)
        return
    if "anyOf" in schema:
        if all(list(problems(value, each, where, root)) for each in schema["anyOf"]):
            yield f"{where}: fits none of anyOf"
        return
    for each in schema.get("allOf", []):
        yield from problems(value, each, where, root)
    if "if" in schema and not list(problems(value, schema["if"], where, root)):
        yield from problems(value, schema["then"], where, root)
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(
        isinstance(value, _TYPES[t]) and (t == "boolean" or not isinstance(value, bool)) for t in names
    ):
        yield f"{where}: {value!r} is not {names}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}.{name}: missing"
        for name, each in value.items():
            if name in schema.get("properties", {}):
                yield from problems(each, schema["properties"][name], f"{where}.{name}", root)
            elif schema.get("additionalProperties") is False:
                yield f"{where}.{name}: not in the schema"
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from problems(each, schema["additionalProperties"], f"{where}.{name}", root)
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from problems(each, schema.get("items", {}), f"{where}[{index}]", root)


# -- records


@functools.cache
def _kinds() -> dict[str, Any]:
    known: dict[str, Any] = importlib.import_module("make_catalogue").all_kinds()
    return known


@functools.cache
def _fields(shape: Any) -> dict[str, typed_docs.Field]:
    return {each.name: each for each in typed_docs.fields(shape)}


def misfits(record: Record) -> list[str]:
    """What of a record is not as the catalogue says."""
    shape = _kinds().get(record.kind)
    if shape is None:
        return [f"{record.kind} is not in the catalogue"]
    found = [f"{record.kind}: {each}" for each in _of_object(record.facts, shape)]
    if record.rule and record.rule not in KINDS[record.kind].rules:
        found.append(f"{record.kind}: {record.rule} is none of its rules")
    return found


def _of_object(value: dict[str, Any], shape: Any) -> list[str]:
    known, found = _fields(shape), []
    for name, each in known.items():
        if name in value:
            if text := _of_value(value[name], each.type):
                found.append(f"{name}: {text}")
        elif each.required:
            found.append(f"{name} is missing")
    return [*found, *(f"{name} is not in the catalogue" for name in value if name not in known)]


def _of_value(value: Any, hint: Any) -> str:
    """ "" where it fits."""
    hint, _ = typed_docs.stripped(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return ""
    if typed_docs.is_shape(hint):
        return "; ".join(_of_object(value, hint)) if isinstance(value, dict) else f"{value!r} is not an object"
    if origin is Literal:
        return "" if value in arguments else f"{value!r} is none of {', '.join(map(repr, arguments))}"
    if origin in (Union, types.UnionType):
        texts = [_of_value(value, each) for each in arguments]
        return "" if not all(texts) else texts[0]
    if origin is list:
        if not isinstance(value, list | tuple):
            return f"{value!r} is not a list"
        return "; ".join(filter(None, (_of_value(each, arguments[0]) for each in value)))
    kinds = (int, float) if hint is float else hint
    fits = isinstance(value, kinds) and (hint is bool or not isinstance(value, bool))
    return "" if fits else f"{value!r} is not {typed_docs.words_for(hint)}"
