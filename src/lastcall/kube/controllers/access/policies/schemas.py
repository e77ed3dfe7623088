"""The schema of a kind out of an OpenAPI v3 document, with what it refers to in place.

Source: apiserver pkg/cel/openapi/resolver/{refs.go, discovery.go}, pkg/cel/openapi/extensions.go.
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]
"""A schema of OpenAPI; a document is one of them too."""
GVK = "x-kubernetes-group-version-kind"
INT_OR_STRING = "int-or-string"
_PREFIX = "#/components/schemas/"


def schema_of_kind(document: Schema, group: str, version: str, kind: str) -> Schema | None:
    """Find the schema of a kind. None when the document has no such kind, or refers to what it does not have."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    wanted = {"group": group, "version": version, "kind": kind}
    for name, schema in schemas.items():
        if wanted in (schema.get(GVK) or ()):
            try:
                return _in_place(schemas, {"$ref": _PREFIX + name}, ())
            except KeyError:
                return None
    return None


def _in_place(schemas: Mapping[str, Schema], schema: Schema, inside: tuple[str, ...]) -> Schema:
    """`schema` without references. One to what it is in itself becomes an object without fields. Raises KeyError."""
    name = _reference(schema)
    if name is not None:
        if name in inside:
            return {"type": "object"}
        schema, inside = schemas[name], (*inside, name)
    made = dict(schema)
    if schema.get("properties"):
        made["properties"] = {key: _in_place(schemas, each, inside) for key, each in schema["properties"].items()}
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            made[key] = _in_place(schemas, schema[key], inside)
    if schema.get("format") == INT_OR_STRING:
        made["x-kubernetes-int-or-string"] = True
    return made


def _reference(schema: Schema) -> str | None:
    """The name that a schema refers to, perhaps within `allOf`, which keeps its description."""
    found: Any = schema.get("$ref")
    if found is None:
        found = next((each["$ref"] for each in schema.get("allOf") or () if "$ref" in each), None)
    return None if found is None else str(found).removeprefix(_PREFIX)
