"""Checks a document against a published schema, that of `lastcall/ending/v1` unless another one is given."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PUBLISHED = json.loads((Path(__file__).parents[2] / "docs" / "ending-v1.schema.json").read_text())

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
        "enum", "const", "pattern", "anyOf",
    }  # fmt: skip
    assert set(schema) <= known, f"this check does not know {set(schema) - known}"
    if "$ref" in schema:
        yield from problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], where, root)
        return
    if "anyOf" in schema:
        if all(list(problems(value, each, where, root)) for each in schema["anyOf"]):
            yield f"{where}: fits none of anyOf"
        return
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(
        isinstance(value, _TYPES[t]) and (t == "boolean" or not isinstance(value, bool)) for t in types
    ):
        yield f"{where}: {value!r} is no {types}"
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
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from problems(each, schema.get("items", {}), f"{where}[{index}]", root)
