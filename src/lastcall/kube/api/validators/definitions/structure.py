"""Check that a schema is structural: every value has a type, and what is known of it is outside of allOf, anyOf,
oneOf and not.

Source: apiextensions-apiserver pkg/apiserver/schema/{validation,complete,convert}.go.
"""

from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.custom.patterns import pattern
from lastcall.kube.api.field import FieldError, forbidden, invalid, required
from lastcall.kube.api.meta import Object

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
RULES = "x-kubernetes-validations"
_EITHER = [{"type": "integer"}, {"type": "string"}]
_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_UNSUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
_NOT_IN_VALUES = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)


def cannot_be_structural(schema: Any) -> str:
    """Return why a schema cannot be read as a structural one at all, "" if it can. (`NewStructural`)"""
    if not isinstance(schema, dict):
        return ""
    for key in _UNSUPPORTED:
        given = schema.get(key)
        if given or (key == "additionalItems" and given is not None):
            return f"OpenAPIV3Schema '{key.removeprefix('$') if key == '$schema' else key}' is not supported"
    for each in inner_values(schema):
        if why := cannot_be_structural(each):
            return why
    if schema.get(PRESERVE) is False:
        return f"internal error: '{PRESERVE}' must be true or undefined"
    if isinstance(schema.get("items"), list) and schema["items"]:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for name in ("items", "additionalProperties"):
        if why := cannot_be_structural(schema.get(name)):
            return why
    for inner in (schema.get("properties") or {}).values():
        if why := cannot_be_structural(inner):
            return why
    return ""


def inner_values(schema: Object) -> Iterable[Any]:
    """Yield what is below not, allOf, anyOf and oneOf."""
    yield schema.get("not")
    for name in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(name) or ()


def structure_errors(schema: Object, path: str) -> list[FieldError]:
    """Return errors in the order of their texts."""
    errors = [*_invariants(schema, _ROOT, path), *_values_complete(schema, schema, path, path)]
    return sorted(errors, key=str)


def _invariants(schema: Object, level: str, path: str) -> Iterable[FieldError]:
    kind, embedded = schema.get("type") or "", bool(schema.get(EMBEDDED))
    items, more = schema.get("items"), schema.get("additionalProperties")
    properties: Object = schema.get("properties") or {}
    if kind == "array" and not isinstance(items, dict):
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, _ITEM, f"{path}.items")
    for name, inner in properties.items():
        yield from _invariants(inner or {}, _FIELD, f"{path}.properties[{name}]")
    if more is not None:
        if level is _ROOT:
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(more, dict):
            yield from _invariants(more, _FIELD, f"{path}.additionalProperties")
    if schema.get(INT_OR_STRING):
        for key in (PRESERVE, EMBEDDED):
            if schema.get(key):
                yield invalid(f"{path}.{key}", True, f"must be false if {INT_OR_STRING} is true")
    yield from _values(schema, path, _is_either(schema), _first_is_either(schema))
    if embedded and kind != "object":
        words = f"must be object if {EMBEDDED} is true"
        yield invalid(f"{path}.type", kind, words) if kind else required(f"{path}.type", words)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(f"{path}.type", f"must not be empty {level}")
    if embedded and more is not None:
        yield forbidden(f"{path}.additionalProperties", f"must not be used if {EMBEDDED} is set")
    if level is _ROOT and kind not in ("", "object"):
        yield invalid(f"{path}.type", kind, "must be object at the root")
    yield from _type_and_metadata(properties, level, embedded or level is _ROOT, path)
    if embedded and not schema.get(PRESERVE) and not properties:
        words = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield required(f"{path}.properties", words)


def _type_and_metadata(properties: Object, level: str, of_object: bool, path: str) -> Iterable[FieldError]:
    for name in ("kind", "apiVersion"):
        if of_object and name in properties:
            kind = (properties[name] or {}).get("type") or ""
            if kind != "string":
                yield invalid(f"{path}.properties[{name}].type", kind, "must be string")
    if "metadata" not in properties:
        return
    meta, here = properties["metadata"] or {}, f"{path}.properties[metadata]"
    if of_object and meta.get("type") != "object":
        yield invalid(f"{here}.type", meta.get("type") or "", "must be object")
    if level is _ROOT:
        inner = set(meta.get("properties") or {})
        said = {key for key, value in meta.items() if value or (value is not None and value is not False)} - {
            "type",
            "default",
        }
        if inner <= {"name", "generateName"}:
            said -= {"properties"}
        if {key for key in said if meta[key] != "" and meta[key] is not False}:
            words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(here, words)


def _is_either(schema: Object) -> bool:
    return [_said(each) for each in schema.get("anyOf") or ()] == _EITHER


def _first_is_either(schema: Object) -> bool:
    first = (schema.get("allOf") or [None])[0]
    return isinstance(first, dict) and _is_either(first)


def _said(schema: Any) -> Any:
    return {key: value for key, value in schema.items() if value not in (None, False, "")} if schema else schema


def _values(schema: Object, path: str, skip_any: bool = False, skip_first: bool = False) -> Iterable[FieldError]:
    """(`validateValueValidation`)"""
    for name in ("anyOf", "allOf", "oneOf"):
        for index, inner in enumerate(schema.get(name) or ()):
            if name == "anyOf" and skip_any:
                continue
            yield from _nested(inner or {}, f"{path}.{name}[{index}]", skip_first and name == "allOf" and not index)
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], f"{path}.not")
    text = schema.get("pattern")
    if text and (error := pattern(text).error):
        yield invalid(f"{path}.pattern", text, f"must be a valid regular expression, but isn't: {error}")


def _nested(schema: Object, path: str, skip_any: bool = False) -> Iterable[FieldError]:
    """(`validateNestedValueValidation`)"""
    yield from _values(schema, path, skip_any)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        yield from _nested(inner or {}, f"{path}.properties[{name}]")
    more = schema.get("additionalProperties")
    if more is True or isinstance(more, dict):
        yield forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    for key, words in _NOT_IN_VALUES:
        value = schema.get(key)
        if value or (value is not None and key == "default"):
            yield forbidden(f"{path}.{key}", words)
    if "metadata" in properties:
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _values_complete(values: Object, spine: Object, at: str, path: str) -> Iterable[FieldError]:
    """(`validateValueValidationCompleteness`)"""
    if isinstance(values.get("not"), dict):
        yield from _complete(values["not"], spine, at, f"{path}.not")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(values.get(name) or ()):
            yield from _complete(inner or {}, spine, at, f"{path}.{name}[{index}]")


def _complete(values: Object, spine: Any, at: str, path: str) -> Iterable[FieldError]:
    """What `values` say something of has a place in `spine`, the schema outside of them."""
    if not isinstance(spine, dict):
        yield required(at, f"because it is defined in {path}")
        return
    yield from _values_complete(values, spine, at, path)
    if isinstance(values.get("items"), dict):
        yield from _complete(values["items"], spine.get("items"), f"{at}.items", f"{path}.items")
    known = spine.get("properties") or {}
    for name, inner in (values.get("properties") or {}).items():
        where = f"properties[{name}]"
        yield from _complete(
            inner or {}, (known[name] or {}) if name in known else None, f"{at}.{where}", f"{path}.{where}"
        )
