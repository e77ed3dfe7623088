"""The schemas of declared kinds as the OpenAPI documents show them.

v3 says what the definition says, with the metadata that every object has. v2 has no words for alternatives, for null
and for unknown fields: what has them says no type, or clients would refuse what the server takes.

Source: apiextensions-apiserver pkg/controller/openapi/builder/builder.go, pkg/controller/openapi/v2/conversion.go,
pkg/apiserver/schema/unfold.go.
"""

from typing import Any

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.apiserver.openapi.schemas import GVK_EXTENSION, Dialect, Schema, reference

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
SELECTABLE = "x-kubernetes-selectable-fields"
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values. More info: "
    f"{_CONVENTIONS}#resources"
)
_KIND = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
    f"{_CONVENTIONS}#types-kinds"
)
_INNER_API_VERSION = (
    f"apiVersion defines the versioned schema of this representation of an object. More info: {_CONVENTIONS}#resources"
)
_INNER_KIND = (
    f"kind is a string value representing the type of this object. In CamelCase. More info: {_CONVENTIONS}#types-kinds"
)
_METADATA = f"Standard object's metadata. More info: {_CONVENTIONS}#metadata"
_LIST_METADATA = f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds"
_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "not")
_EITHER: list[Schema] = [{"type": "integer"}, {"type": "string"}]


def kind_schema(resource: CustomResource, dialect: Dialect) -> Schema:
    """Return the schema of the objects. In v2 a kind that keeps unknown fields says nothing but that it is one."""
    own: Schema = {"type": "object"}
    if dialect == 3 or not resource.schema.get(PRESERVE):
        own = _unfolded(resource.schema)
        if dialect == 2:
            own = _as_v2(own)
        own = _with_inner_metadata(own, dialect)
        own["properties"] = {
            **(own.get("properties") or {}),
            "apiVersion": {"description": _API_VERSION, "type": "string"},
            "kind": {"description": _KIND, "type": "string"},
            "metadata": _described(_METADATA, "meta.v1.ObjectMeta", dialect),
        }
    return {**own, **_said_of(resource, resource.kind)}


def list_schema(resource: CustomResource, dialect: Dialect, one: Schema) -> Schema:
    """Return the schema of lists; `one` is a reference to the objects' schema."""
    items = f"List of {resource.plural}. More info: {_CONVENTIONS}"
    return {
        "description": f"{resource.kind}List is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": _API_VERSION, "type": "string"},
            "items": {"description": items, "type": "array", "items": one},
            "kind": {"description": _KIND, "type": "string"},
            "metadata": _described(_LIST_METADATA, "meta.v1.ListMeta", dialect),
        },
        **_said_of(resource, f"{resource.kind}List"),
    }


def _said_of(resource: CustomResource, kind: str) -> Schema:
    said: Schema = {GVK_EXTENSION: [{"group": resource.group, "kind": kind, "version": resource.version}]}
    if resource.selectable:
        said[SELECTABLE] = [{"fieldPath": each.removeprefix(".")} for each in resource.selectable]
    return said


def _described(text: str, name: str, dialect: Dialect) -> Schema:
    target = reference(name, dialect)
    return {"description": text, **(target if dialect == 2 else {"allOf": [target]})}


def _inside(schema: Schema, change: Any) -> Schema:
    """With the schemas inside of it changed."""
    out = dict(schema)
    if isinstance(out.get("items"), dict):
        out["items"] = change(out["items"])
    if isinstance(out.get("additionalProperties"), dict):
        out["additionalProperties"] = change(out["additionalProperties"])
    if out.get("properties"):
        out["properties"] = {name: change(inner) for name, inner in out["properties"].items()}
    return out


def _unfolded(schema: Schema) -> Schema:
    """x-kubernetes-int-or-string in words of OpenAPI. (`Unfold`)"""
    out = _inside(schema, _unfolded)
    if out.get(INT_OR_STRING):
        first = (out.get("allOf") or [{}])[0]
        if out.get("anyOf") != _EITHER and first.get("anyOf") != _EITHER:
            if out.get("anyOf"):
                out["allOf"] = [{"anyOf": _EITHER}, *(out.get("allOf") or ())]
            else:
                out["anyOf"] = _EITHER
    return out


def _as_v2(schema: Schema) -> Schema:
    """(`ToStructuralOpenAPIV2`)"""
    out = {key: value for key, value in schema.items() if key not in (*_ALTERNATIVES, "default")}
    if out.pop("nullable", False):
        for key in ("type", "items", "properties"):
            out.pop(key, None)
    if out.get(PRESERVE):
        out.pop("items", None)
        out.pop("properties", None)
    if out.get("type") == "array" and "items" not in out:
        del out["type"]
    if out.get(PRESERVE) and out.get("type") == "object":
        del out["type"]
    may_be_null = {name for name, inner in (out.get("properties") or {}).items() if inner.get("nullable")}
    more = out.get("additionalProperties")
    needed = [each for each in out.pop("required", None) or () if each not in may_be_null]
    if needed and not (isinstance(more, dict) and more.get("nullable")):
        out["required"] = needed
    return _inside(out, _as_v2)


def _with_inner_metadata(schema: Schema, dialect: Dialect) -> Schema:
    """(`addEmbeddedProperties`)"""
    out = _inside(schema, lambda inner: _with_inner_metadata(inner, dialect))
    if out.get(EMBEDDED) and not (dialect == 2 and out.get(PRESERVE)):
        out["properties"] = {
            **(out.get("properties") or {}),
            "apiVersion": {"description": _INNER_API_VERSION, "type": "string"},
            "kind": {"description": _INNER_KIND, "type": "string"},
            "metadata": _described(_METADATA, "meta.v1.ObjectMeta", dialect),
        }
        needed = out.get("required") or []
        out["required"] = [*needed, *(each for each in ("kind", "apiVersion") if each not in needed)]
    return out
