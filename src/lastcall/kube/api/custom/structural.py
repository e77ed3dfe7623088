"""Objects of a structural schema: what is unknown, what defaults, what is wrong. Pure.

Sources: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting,listtype}, pkg/apiserver/validation;
kube-openapi pkg/validation/validate (the texts).
"""

# check: pure

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from lastcall.kube.api.custom.correlation import Correlated
from lastcall.kube.api.custom.patterns import pattern
from lastcall.kube.api.custom.values import FORMATS, number_errors, type_of
from lastcall.kube.api.field import (
    TYPE_INVALID,
    FieldError,
    duplicate,
    go_json,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from lastcall.kube.api.meta import Object

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
_OWN = ("apiVersion", "kind", "metadata")
"""What is not the schema's to say."""


# -- pruning -----------------------------------------------------------------------------------------------------------


def prune_unknown(schema: Object, obj: Any, *, root: bool = True) -> list[str]:
    """Drop, in place, what the schema does not know; return its paths, sorted. With `root` it is that of an object."""
    unknown: list[str] = []
    _prune(schema, obj, "", unknown, embedded=root or bool(schema.get(EMBEDDED)))
    return sorted(unknown)


def _prune(schema: Any, value: Any, path: str, unknown: list[str], *, embedded: bool) -> None:
    """Where there is no schema, nothing is known."""
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        for index, item in enumerate(value):
            if isinstance(items, dict):
                _prune(items, item, f"{path}[{index}]", unknown, embedded=bool(items.get(EMBEDDED)))
            elif not (isinstance(schema, dict) and schema.get(PRESERVE)):
                _prune(None, item, f"{path}[{index}]", unknown, embedded=False)
    elif isinstance(value, dict):
        given = schema if isinstance(schema, dict) else {}
        declared, more = given.get("properties") or {}, given.get("additionalProperties")
        for key in list(value):
            inner = f"{path}.{key}" if path else key
            if embedded and key in _OWN:
                continue
            if key in declared:
                below = declared[key] or {}
                _prune(below, value[key], inner, unknown, embedded=bool(below.get(EMBEDDED)))
            elif more is not None:
                _prune(more, value[key], inner, unknown, embedded=isinstance(more, dict) and bool(more.get(EMBEDDED)))
            elif not given.get(PRESERVE):
                unknown.append(inner)
                del value[key]


# -- defaulting --------------------------------------------------------------------------------------------------------


def drop_nulls(schema: Any, value: Any) -> None:
    """Drop, in place, the nulls of fields that may be none and have no default.

    (`PruneNonNullableNullsWithoutDefaults`)
    """
    if not isinstance(schema, dict):
        return
    if isinstance(value, list):
        for item in value:
            drop_nulls(schema.get("items"), item)
    elif isinstance(value, dict):
        declared, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name in list(value):
            inner = declared.get(name, more)
            if value[name] is None:
                if isinstance(inner, dict) and not inner.get("nullable") and inner.get("default") is None:
                    del value[name]
            else:
                drop_nulls(inner, value[name])


def set_schema_defaults(schema: Any, value: Any) -> None:
    """Fill in, in place. A null where none may be is the same as nothing. (`Default`)"""
    if not isinstance(schema, dict):
        return
    if isinstance(value, dict):
        declared, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in declared.items():
            absent = name not in value or (value[name] is None and not inner.get("nullable"))
            if inner.get("default") is not None and absent:
                value[name] = _copy(inner["default"])
        for name in value:
            inner = declared.get(name, more)
            if name not in declared and value[name] is None and isinstance(more, dict) and not more.get("nullable"):
                value[name] = _copy(more.get("default"))
            set_schema_defaults(inner, value[name])
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for index, item in enumerate(value):
            if item is None and not items.get("nullable"):
                value[index] = _copy(items.get("default"))
            set_schema_defaults(items, value[index])


def _copy(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


# -- validation --------------------------------------------------------------------------------------------------------


def schema_errors(schema: Object, obj: Object, old: Object | None = None, *, only: str = "") -> list[FieldError]:
    """Return what is wrong with an object, and was not so in the `old` one; with `only` in that field.

    Its kind, version and metadata are checked elsewhere. (`ratchetingValueValidator`)
    """
    new, was = (each and {key: value for key, value in each.items() if key not in _OWN} for each in (obj, old))
    mode = _Mode(before=None if was is None else Correlated(new, was, schema))
    if only:
        inner = (schema.get("properties") or {}).get(only)
        if not isinstance(inner, dict) or only not in obj:
            return []
        found = list(_errors(inner, obj[only], only, mode.key(only)))
    else:
        found = list(_errors(schema, new, "", mode))
    return [each if each.field else replace(each, field="<nil>") for each in found]


def value_errors(schema: Object, value: Any, path: str) -> list[FieldError]:
    """Return what is wrong with a default, whose schema does not use x-kubernetes-int-or-string."""
    found = list(_errors(schema, value, "", _DEFAULT))
    return [replace(each, field=f"{path}.{each.field}" if each.field not in ("", "<nil>") else path) for each in found]


def list_errors(schema: Any, value: Any, path: str = "") -> list[FieldError]:
    """Return duplicates in lists that are sets or maps. (`ValidateListSetsAndMaps`)"""
    return list(_lists(schema, value, path))


def _lists(schema: Any, value: Any, path: str) -> Iterable[FieldError]:
    if not isinstance(schema, dict):
        return
    if isinstance(value, dict):
        declared, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            if isinstance(more, dict):
                yield from _lists(more, item, f"{path}[{name}]")
            if name in declared:
                yield from _lists(declared[name], item, _join(path, name))
    elif isinstance(value, list):
        if schema.get("x-kubernetes-list-type") == "set":
            yield from (duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value))
        elif schema.get("x-kubernetes-list-type") == "map":
            yield from _list_map(value, schema.get("x-kubernetes-list-map-keys") or (), path)
        for index, item in enumerate(value):
            yield from _lists(schema.get("items"), item, f"{path}[{index}]")


def _list_map(value: list[Any], keys: Iterable[str], path: str) -> Iterable[FieldError]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    named = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
    yield from (duplicate(f"{path}[{index}]", named[index]) for index in _repeated(named))


def _repeated(items: list[Any]) -> Iterable[int]:
    """Where something is for the second time."""
    seen: dict[bytes, int] = {}
    for index, item in enumerate(items):
        text = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            yield index


class _Mode(NamedTuple):
    either: bool = True
    """Whether x-kubernetes-int-or-string is heeded."""
    before: Correlated | None = None
    """The value beside the one that it takes the place of."""

    def key(self, name: str) -> "_Mode":
        return self if self.before is None else _Mode(self.either, self.before.key(name))

    def item(self, at: int) -> "_Mode":
        return self if self.before is None else _Mode(self.either, self.before.index(at))


_DEFAULT = _Mode(either=False)


def _errors(schema: Object, value: Any, path: str, mode: _Mode) -> Iterable[FieldError]:
    if mode.before is not None and mode.before.unchanged():
        return
    either = mode.either and schema.get(INT_OR_STRING)
    if value is None:
        if not schema.get("nullable") and (schema.get("type") or either):
            yield _wrong_type(path, "integer,string" if either else schema["type"], "null")
        return
    wanted: list[str] = ["integer", "string"] if either else [schema.get("type") or ""]
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
        yield from _list(schema, value, path, mode)
    elif isinstance(value, dict):
        yield from _object(schema, value, path, mode)
    yield from _combined(schema, value, path, mode)


def _wrong_type(path: str, wanted: str, found: str) -> FieldError:
    return FieldError(TYPE_INVALID, path, found, f'{path} in body must be of type {wanted}: "{found}"')


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


def _list(schema: Object, value: list[Any], path: str, mode: _Mode) -> Iterable[FieldError]:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _errors(items, item, f"{path}[{index}]", mode.item(index))


def _object(schema: Object, value: Object, path: str, mode: _Mode) -> Iterable[FieldError]:
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
            yield from _errors(declared[name], item, _join(path, name), mode.key(name))
        elif isinstance(more, dict):
            yield from _errors(more, item, _join(path, name), mode.key(name))


def _combined(schema: Object, value: Any, path: str, mode: _Mode) -> Iterable[FieldError]:
    mode = mode._replace(before=None)
    for each in schema.get("allOf") or ():
        yield from _errors(each, value, path, mode)
    shown = value if not isinstance(value, dict | list) else type_of(value)
    alternatives = schema.get("anyOf")
    if alternatives and all(any(True for _ in _errors(each, value, path, mode)) for each in alternatives):
        yield invalid(path, shown, f"{_quoted(path)} must validate at least one schema (anyOf)")
    alternatives = schema.get("oneOf")
    if alternatives:
        fits = sum(not any(True for _ in _errors(each, value, path, mode)) for each in alternatives)
        if fits != 1:
            words = "must validate one and only one schema (oneOf)"
            yield invalid(path, shown, f"{_quoted(path)} {words}. Found {fits or 'none'} valid")
    if schema.get("not") and not any(True for _ in _errors(schema["not"], value, path, mode)):
        yield invalid(path, shown, f"{_quoted(path)} must not validate the schema (not)")


def _quoted(path: str) -> str:
    return f'"{path}"'


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
