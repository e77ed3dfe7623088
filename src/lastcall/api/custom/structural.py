"""Objects of a structural schema: what is unknown, what defaults, what is wrong. Pure.

Rules in CEL (x-kubernetes-validations) are not evaluated.

Sources: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting,listtype}, pkg/apiserver/validation;
kube-openapi pkg/validation/validate (the texts).
"""

from collections.abc import Iterable
from typing import Any

import orjson

from lastcall.api.custom.patterns import pattern
from lastcall.api.custom.values import FORMATS, number_errors, type_of
from lastcall.api.field import FieldError, duplicate, go_json, invalid, not_supported, required, too_long, too_many
from lastcall.api.meta import Object

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
_OWN = ("apiVersion", "kind", "metadata")
"""What is not the schema's to say."""


# -- pruning -----------------------------------------------------------------------------------------------------------


def prune_unknown(schema: Object, obj: Object) -> list[str]:
    """Drop, in place, what the schema does not know; the paths of it, in document order."""
    unknown: list[str] = []
    _prune(schema, obj, "", unknown, embedded=True)
    return unknown


def _prune(schema: Object, value: Any, path: str, unknown: list[str], *, embedded: bool = False) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                _prune(items, item, f"{path}[{index}]", unknown)
    elif isinstance(value, dict):
        declared, more = schema.get("properties") or {}, schema.get("additionalProperties")
        embedded = embedded or bool(schema.get(EMBEDDED))
        for key in list(value):
            inner = f"{path}.{key}" if path else key
            if embedded and key in _OWN:
                continue
            if key in declared:
                _prune(declared[key], value[key], inner, unknown, embedded=bool(declared[key].get(EMBEDDED)))
            elif isinstance(more, dict):
                _prune(more, value[key], inner, unknown)
            elif more is not True and not schema.get(PRESERVE):
                unknown.append(inner)
                del value[key]


# -- defaulting --------------------------------------------------------------------------------------------------------


def set_schema_defaults(schema: Object, value: Any) -> None:
    """Fill in, in place. A null where none may be is the same as nothing, if there is a default."""
    if isinstance(value, dict):
        declared = schema.get("properties") or {}
        for name, inner in declared.items():
            absent = name not in value or (value[name] is None and not inner.get("nullable"))
            if "default" in inner and absent:
                value[name] = orjson.loads(orjson.dumps(inner["default"]))
            if name in value:
                set_schema_defaults(inner, value[name])
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            for name, item in value.items():
                if name not in declared:
                    set_schema_defaults(more, item)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            set_schema_defaults(schema["items"], item)


# -- validation --------------------------------------------------------------------------------------------------------


def schema_errors(schema: Object, obj: Object) -> list[FieldError]:
    """What is wrong with an object. Its kind, version and metadata are checked elsewhere."""
    return list(_errors(schema, {key: value for key, value in obj.items() if key not in _OWN}, ""))


def _errors(schema: Object, value: Any, path: str) -> Iterable[FieldError]:
    if value is None:
        if not schema.get("nullable") and (schema.get("type") or schema.get(INT_OR_STRING)):
            yield _wrong_type(path, schema.get("type") or "integer,string", "null")
        return
    wanted: list[str] = ["integer", "string"] if schema.get(INT_OR_STRING) else [schema.get("type") or ""]
    found = type_of(value)
    if wanted[0] and found not in wanted and not (found == "integer" and "number" in wanted):
        yield _wrong_type(path, ",".join(wanted), found)
        if {found, wanted[0]} == {"integer", "number"}:
            yield from number_errors(schema, value, path)
        return
    yield from _enum(schema, value, path)
    if isinstance(value, str):
        yield from _string(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from number_errors(schema, value, path)
    elif isinstance(value, list):
        yield from _list(schema, value, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, path)
    yield from _combined(schema, value, path)


def _wrong_type(path: str, wanted: str, found: str) -> FieldError:
    return invalid(path, found, f'{path} in body must be of type {wanted}: "{found}"')


def _enum(schema: Object, value: Any, path: str) -> Iterable[FieldError]:
    allowed = schema.get("enum")
    if allowed is not None and not any(each == value and type(each) is type(value) for each in allowed):
        yield not_supported(path, value, [each if isinstance(each, str) else go_json(each) for each in allowed])


def _string(schema: Object, value: str, path: str) -> Iterable[FieldError]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        yield too_long(path, longest)
    if shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"{path} in body should be at least {shortest} chars long")
    text = schema.get("pattern")
    if text and not (read := pattern(text)).matches(value):
        wrong = f"{text}, but pattern is invalid: {read.error}" if read.error else text
        yield invalid(path, value, f"{path} in body should match '{wrong}'")
    if (form := schema.get("format")) in FORMATS and not FORMATS[form](value):
        yield invalid(path, value, f"{path} in body must be of type {form}: {go_json(value)}")


def _list(schema: Object, value: list[Any], path: str) -> Iterable[FieldError]:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        if isinstance(items, dict):
            yield from _errors(items, item, f"{path}[{index}]")
        if kind in ("set", "map"):
            named = item if kind == "set" else {key: item.get(key) for key in keys} if isinstance(item, dict) else item
            text = orjson.dumps(named, option=orjson.OPT_SORT_KEYS)
            if text in seen:
                yield duplicate(f"{path}[{index}]", named)
            seen.add(text)


def _object(schema: Object, value: Object, path: str) -> Iterable[FieldError]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} properties")
    for name in schema.get("required") or ():
        if name not in value and name not in (_OWN if not path else ()):
            yield required(_join(path, name))
    declared, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        if name in declared:
            yield from _errors(declared[name], item, _join(path, name))
        elif isinstance(more, dict):
            yield from _errors(more, item, _join(path, name))


def _combined(schema: Object, value: Any, path: str) -> Iterable[FieldError]:
    for each in schema.get("allOf") or ():
        yield from _errors(each, value, path)
    shown = value if not isinstance(value, dict | list) else type_of(value)
    alternatives = schema.get("anyOf")
    if alternatives and all(any(True for _ in _errors(each, value, path)) for each in alternatives):
        yield invalid(path, shown, f"{_quoted(path)} must validate at least one schema (anyOf)")
    alternatives = schema.get("oneOf")
    if alternatives:
        fits = sum(not any(True for _ in _errors(each, value, path)) for each in alternatives)
        if fits != 1:
            words = "must validate one and only one schema (oneOf)"
            yield invalid(path, shown, f"{_quoted(path)} {words}. Found {fits or 'none'} valid")
    if schema.get("not") and not any(True for _ in _errors(schema["not"], value, path)):
        yield invalid(path, shown, f"{_quoted(path)} must not validate the schema (not)")


def _quoted(path: str) -> str:
    return f'"{path}"'


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
