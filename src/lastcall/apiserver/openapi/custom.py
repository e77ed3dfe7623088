"""Declared kinds in the OpenAPI documents: their schemas, and the operations of `paths.py` with these.

Source: apiextensions-apiserver pkg/controller/openapi/builder/builder.go, openapiv2/conversion.go.
"""

from collections.abc import Iterator
from typing import Any

from lastcall.api.custom.kinds import CustomResource
from lastcall.apiserver.openapi.paths import PATCHES, PRODUCES, path_items
from lastcall.apiserver.openapi.schemas import GVK_EXTENSION, Dialect, Schema, reference

_OF_V2 = ("type", "format", "required")
"""What OpenAPI v2 says of a value; all else is v3's."""


def custom_name(resource: CustomResource) -> str:
    """`com.example.v1.Widget`."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def custom_parts(resource: CustomResource, dialect: Dialect) -> Iterator[tuple[str, str, Schema]]:
    """("paths" or "definitions", name, value), each."""
    name = custom_name(resource)
    one, several = _reference(name, dialect), _reference(f"{name}List", dialect)
    for path, item in path_items(resource, dialect):
        for method in ("get", "post", "put", "patch", "delete"):
            if method in item and not path.endswith("/scale"):
                _fill(item[method], method, one, several, dialect)
            if method in item and method == "patch":
                _say_patches(item[method], dialect)
        yield "paths", path, item
    own = dict(resource.schema if dialect == 3 else _as_v2(resource.schema))
    given = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    meta = reference("meta.v1.ObjectMeta", dialect)
    own["properties"] = {
        **given,
        "metadata": meta if dialect == 2 else {"allOf": [meta]},
        **{key: value for key, value in (own.get("properties") or {}).items() if key not in (*given, "metadata")},
    }
    yield "definitions", name, {**own, GVK_EXTENSION: [_kind(resource, resource.kind)]}
    meta = reference("meta.v1.ListMeta", dialect)
    properties = {
        **given,
        "items": {"type": "array", "items": one},
        "metadata": meta if dialect == 2 else {"allOf": [meta]},
    }
    yield (
        "definitions",
        f"{name}List",
        {
            "type": "object",
            "required": ["items"],
            "properties": properties,
            GVK_EXTENSION: [_kind(resource, f"{resource.kind}List")],
        },
    )


def _fill(operation: Schema, method: str, one: Schema, several: Schema, dialect: Dialect) -> None:
    action = operation["x-kubernetes-action"]
    answer = several if action == "list" else one if method != "delete" else reference("meta.v1.Status", dialect)
    for code, response in operation["responses"].items():
        if code != "401":
            content: Schema = {"content": {each: {"schema": answer} for each in PRODUCES}}
            operation["responses"][code] = {
                "description": response["description"],
                **(content if dialect == 3 else {"schema": answer}),
            }
    if dialect == 2:
        operation["produces"] = list(PRODUCES)
    if method in ("post", "put"):
        if dialect == 3:
            operation["requestBody"] = {"required": True, "content": {each: {"schema": one} for each in PRODUCES}}
        else:
            operation["parameters"].insert(0, {"name": "body", "in": "body", "schema": one, "required": True})


def _say_patches(operation: Schema, dialect: Dialect) -> None:
    """A declared kind has no strategic merge patch; kubectl looks here for which patch it may send."""
    patches = [*(each for each in PATCHES if "strategic" not in each), "application/apply-patch+yaml"]
    patch = reference("meta.v1.Patch", dialect)
    if dialect == 3:
        operation["requestBody"] = {"required": True, "content": {each: {"schema": patch} for each in patches}}
    else:
        operation["consumes"] = patches


def _kind(resource: CustomResource, kind: str) -> Schema:
    return {"group": resource.group, "kind": kind, "version": resource.version}


def _reference(name: str, dialect: Dialect) -> Schema:
    return {"$ref": ("#/definitions/" if dialect == 2 else "#/components/schemas/") + name}


def _as_v2(schema: Any) -> Schema:
    """A value that may be more than v2 can say has no type."""
    if not isinstance(schema, dict) or schema.get("x-kubernetes-int-or-string") or schema.get("nullable"):
        return {}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {"type": "object"} if schema.get("type") == "object" else {}
    out: Schema = {key: schema[key] for key in _OF_V2 if key in schema}
    if schema.get("properties"):
        out["properties"] = {key: _as_v2(value) for key, value in schema["properties"].items()}
    if schema.get("type") == "array":
        out["items"] = _as_v2(schema.get("items"))
    if isinstance(schema.get("additionalProperties"), dict):
        out["additionalProperties"] = _as_v2(schema["additionalProperties"])
    return out
