"""What is wrong with a definition's schema by OpenAPI v3 and Kubernetes's extensions of it.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go:
ValidateCustomResourceDefinitionOpenAPISchema, specStandardValidatorV3.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from lastcall.kube.api.field import FieldError, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.validators.definitions.paths import field_path
from lastcall.kube.api.validators.definitions.structure import EMBEDDED, PRESERVE, RULES, cannot_be_structural

LIST_TYPE, MAP_TYPE, MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_IN_KEYS = "this property is in x-kubernetes-list-map-keys, so it"


class _Place(NamedTuple):
    """The place of a schema. `no_defaults` says why it may have none; `in_meta` whether it is that of a metadata."""

    root: bool = False
    in_meta: bool = False
    no_defaults: str = ""


def openapi_errors(schema: Object, path: str) -> list[FieldError]:
    return list(_schema(schema, path, _Place(root=True)))


def _schema(schema: Any, path: str, place: _Place) -> Iterable[FieldError]:
    if not isinstance(schema, dict):
        return
    yield from _standard(schema, path, place)
    yield from _inner(schema, path, place._replace(root=False), place.root)
    if schema.get(PRESERVE) is False:
        yield invalid(f"{path}.{PRESERVE}", False, "must be true or undefined")
    yield from _map_type(schema, path)
    yield from _list_type(schema, path)
    for index, rule in enumerate(schema.get(RULES) or ()):
        yield from _rule(rule, schema, f"{path}.{RULES}[{index}]")


def _standard(schema: Object, path: str, place: _Place) -> Iterable[FieldError]:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    for key in _UNSUPPORTED:
        if schema.get(key) or (schema.get(key) is not None and key not in ("id", "patternProperties", "definitions")):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.in_meta and schema.get(EMBEDDED):
        yield forbidden(f"{path}.{EMBEDDED}", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", words)


def _inner(schema: Object, path: str, place: _Place, root: bool) -> Iterable[FieldError]:
    more, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if more is not None:
        if properties and more is not True:
            yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
        words = "inside additionalProperties applying to object metadata"
        below = place._replace(no_defaults=words) if place.in_meta else place
        yield from _schema(more, f"{path}.additionalProperties", below)
    for name, inner in properties.items():
        below = place
        if (root or schema.get(EMBEDDED)) and name in _META:
            below = place._replace(in_meta=True, no_defaults=f"in top-level {name}" if root else place.no_defaults)
        yield from _schema(inner, f"{path}.properties[{name}]", below)
    yield from _schema(schema.get("not"), f"{path}.not", place)
    for key in ("allOf", "oneOf", "anyOf"):
        for index, inner in enumerate(schema.get(key) or ()):
            yield from _schema(inner, f"{path}.{key}[{index}]", place)
    for key in ("definitions", "dependencies"):
        for name, inner in (schema.get(key) or {}).items():
            yield from _schema(inner, f"{path}.{key}[{name}]", place)
    items = schema.get("items")
    yield from _schema(items, f"{path}.items", place)
    for index, inner in enumerate(items if isinstance(items, list) else ()):
        yield from _schema(inner, f"{path}.items[{index}]", place)


def _of_type(schema: Object, path: str, kind: str, because: str) -> Iterable[FieldError]:
    if schema.get(because) is not None and schema.get("type") != kind:
        words, given = f"must be {kind} if {because} is specified", schema.get("type") or ""
        yield invalid(f"{path}.type", given, words) if given else required(f"{path}.type", words)


def _map_type(schema: Object, path: str) -> Iterable[FieldError]:
    yield from _of_type(schema, path, "object", MAP_TYPE)
    if schema.get(MAP_TYPE) not in (None, "atomic", "granular"):
        yield not_supported(f"{path}.{MAP_TYPE}", schema[MAP_TYPE], ("atomic", "granular"))


def _list_type(schema: Object, path: str) -> Iterable[FieldError]:
    kind, keys = schema.get(LIST_TYPE), schema.get(MAP_KEYS) or []
    items = schema.get("items")
    yield from _of_type(schema, path, "array", LIST_TYPE)
    if kind == "set" and schema.get("type") == "array" and isinstance(items, dict):
        yield from _of_set(items, f"{path}.items")
    if kind not in (None, "atomic", "set", "map"):
        yield not_supported(f"{path}.{LIST_TYPE}", kind, ("atomic", "set", "map"))
    if keys and kind != "map":
        words, at = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.{LIST_TYPE}"
        yield required(at, words) if kind is None else invalid(at, kind, words)
    if kind == "map":
        yield from _of_map(items, keys, path)
    if kind in ("set", "map") and isinstance(items, dict):
        yield from _not_null(items, keys if kind == "map" else [], kind, f"{path}.items")


def _of_set(items: Object, path: str) -> Iterable[FieldError]:
    words = "must be atomic as item of a list with x-kubernetes-list-type=set"
    shown = items.get(LIST_TYPE)  # also where the map's type is wrong
    if items.get("type") == "array" and shown not in (None, "atomic"):
        yield invalid(f"{path}.{LIST_TYPE}", shown, words)
    elif items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield invalid(f"{path}.{MAP_TYPE}", shown, words)


def _of_map(items: Any, keys: list[str], path: str) -> Iterable[FieldError]:
    if not keys:
        yield required(f"{path}.{MAP_KEYS}", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if not isinstance(items, dict):
        words = "must only have a single schema if x-kubernetes-list-type is map"
        yield invalid(f"{path}.items", items, words)
        return
    kind = items.get("type") or ""
    if kind != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", kind, words)
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            yield invalid(f"{path}.{MAP_KEYS}", keys, "entries must all be names of item properties")
        elif (properties[key] or {}).get("type") in ("array", "object"):
            words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", kind, words)
        if key in keys[:index]:
            yield invalid(f"{path}.{MAP_KEYS}", keys, "must not contain duplicate entries")


def _not_null(items: Object, keys: list[str], kind: str, path: str) -> Iterable[FieldError]:
    if items.get("nullable"):
        yield forbidden(f"{path}.nullable", f"cannot be nullable when x-kubernetes-list-type is {kind}")
    for key in keys:
        inner = (items.get("properties") or {}).get(key)
        if inner is None:
            continue
        at = f"{path}.properties[{key}]"
        if key not in (items.get("required") or ()) and inner.get("default") is None:
            yield required(f"{at}.default", f"{_IN_KEYS} must have a default or be a required property")
        if inner.get("nullable"):
            yield forbidden(f"{at}.nullable", f"{_IN_KEYS} cannot be nullable")


def _rule(rule: Object, schema: Object, path: str) -> Iterable[FieldError]:
    """The form of a rule, not what it says."""
    text, message, expression = rule.get("rule") or "", rule.get("message") or "", rule.get("messageExpression") or ""
    trimmed = message.strip()
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not trimmed:
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _has_lines(trimmed):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif _has_lines(text.strip()) and not trimmed:
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)
    where = rule.get("fieldPath") or ""
    if where and not where.strip():
        yield invalid(f"{path}.fieldPath", where, "must be non-empty if specified")
    if _has_lines(where):
        yield invalid(f"{path}.fieldPath", where, "must not contain line breaks")
    if where and not cannot_be_structural(schema):
        try:
            field_path(where, schema)
        except ValueError:
            yield invalid(f"{path}.fieldPath", where, "must be a valid path")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text
