"""Whether the defaults of a schema are values of it.

Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/{validation,surroundingobject}.go.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from lastcall.kube.api.custom.structural import prune_unknown, value_errors
from lastcall.kube.api.field import FieldError, invalid, message_of
from lastcall.kube.api.meta import Object
from lastcall.kube.api.validators.definitions.embedded import coerce_embedded, embedded_errors
from lastcall.kube.api.validators.definitions.structure import EMBEDDED

Around = Callable[[Any], Any]
"""The object around a value."""


def default_errors(schema: Object, path: str) -> list[FieldError]:
    root = {**schema, EMBEDDED: True}
    return list(_errors(root, path, root, lambda value: value, in_meta=False))


def _errors(schema: Any, path: str, root: Object, around: Around, *, in_meta: bool) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        return
    if schema.get(EMBEDDED):
        in_meta, root, around = False, schema, _typed
    if schema.get("default") is not None:
        default = orjson.loads(orjson.dumps(schema["default"]))
        check = _of_meta if in_meta else _of_value
        yield from check(schema, default, f"{path}.default", root, around)
    items = schema.get("items")
    inner = around
    yield from _errors(items, f"{path}.items", root, lambda value: inner([value]), in_meta=in_meta)
    for name, each in (schema.get("properties") or {}).items():
        meta = in_meta or (bool(schema.get(EMBEDDED)) and name in ("metadata", "apiVersion", "kind"))
        at = f"{path}.properties[{name}]"
        yield from _errors(each, at, root, _child(inner, name), in_meta=meta)


def _child(around: Around, name: str) -> Around:
    return lambda value: around({name: value})


def _typed(value: Any) -> Any:
    return {"kind": "Validation", "apiVersion": "validation/v1", **value} if isinstance(value, dict) else value


def _of_meta(schema: Object, default: Any, path: str, root: Object, around: Around) -> Iterator[FieldError]:
    obj = around(default)
    wrong = coerce_embedded(root, obj, root=True) or embedded_errors(root, obj, root=True)
    if wrong:
        yield invalid(path, default, f"must result in valid metadata: {message_of(wrong)}")
    else:
        yield from value_errors(schema, default, path)


def _of_value(schema: Object, default: Any, path: str, root: Object, around: Around) -> Iterator[FieldError]:
    pruned = orjson.loads(orjson.dumps(default))
    if prune_unknown(schema, pruned, root=False):
        yield invalid(path, default, "must not have unknown fields")
    wrong = coerce_embedded(schema, default, path) or embedded_errors(schema, default, path)
    yield from wrong or [replace(error) for error in value_errors(schema, default, path)]
