"""The types of declared kinds: a structural schema as the management of fields sees it.

Source: apimachinery pkg/util/managedfields/gvkparser.go, structured-merge-diff schema (x-kubernetes-list-type,
x-kubernetes-map-type).
"""

from typing import Any

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CONFIGMAPS
from lastcall.kube.api.schema.types import Field, struct_for
from lastcall.kube.apiserver.fieldmanager.types import UNKNOWN, Type

_SCALARS = ("boolean", "integer", "number", "string")


def custom_type(resource: CustomResource) -> Type:
    root = _type(resource.schema)
    own = Type(None, struct_for(CONFIGMAPS)).fields
    root.kind, root.leaf = "struct", False
    root.open = bool(resource.schema.get("x-kubernetes-preserve-unknown-fields"))
    root.declare({**root.fields, **{name: own[name] for name in ("apiVersion", "kind", "metadata")}})
    return root


def _type(schema: Any) -> Type:
    made = Type(None)
    if not isinstance(schema, dict):
        return made
    kind = schema.get("type")
    if kind in _SCALARS and not schema.get("x-kubernetes-int-or-string"):
        made.kind, made.field = "scalar", Field({"t": kind}, {})
    elif kind == "object":
        _object(made, schema)
    elif kind == "array":
        _list(made, schema)
    return made


def _object(made: Type, schema: Object) -> None:
    more = schema.get("additionalProperties")
    made.leaf = schema.get("x-kubernetes-map-type") == "atomic"
    if isinstance(more, dict):
        made.kind, made.item = "map", _type(more)
    elif more is True or (schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties")):
        made.kind, made.item = "map", UNKNOWN
    else:
        made.kind = "struct"
        made.declare({name: (f"f:{name}", _type(inner)) for name, inner in (schema.get("properties") or {}).items()})
        made.open = bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def _list(made: Type, schema: Object) -> None:
    made.kind, made.item = "list", _type(schema.get("items"))
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        made.kind, made.leaf = "set", False
    elif kind == "map":
        items = (schema.get("items") or {}).get("properties") or {}
        names = sorted(schema.get("x-kubernetes-list-map-keys") or ())
        made.with_keys(tuple((name, items.get(name, {}).get("default")) for name in names))
