"""Kubernetes objects inside of declared ones (`x-kubernetes-embedded-resource`): their kind, version and metadata.

Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lastcall.kube.api.field import FieldError, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1035_label, is_path_segment_name
from lastcall.kube.api.resources import CONFIGMAPS
from lastcall.kube.api.schema.checks import DecodeError
from lastcall.kube.api.schema.decoding import decode_fields
from lastcall.kube.api.validators.definitions.structure import EMBEDDED
from lastcall.kube.api.validators.metadata import validate_object_meta

Visit = Callable[[Object, str], Iterator[FieldError]]


def has_embedded(schema: object) -> bool:
    """Return whether a schema has objects inside somewhere."""
    if isinstance(schema, dict):
        return schema.get(EMBEDDED) is True or any(map(has_embedded, schema.values()))
    return isinstance(schema, list) and any(map(has_embedded, schema))


def coerce_embedded(schema: Any, value: Any, path: str = "", *, root: bool = False) -> list[FieldError]:
    """Coerce, in place, the metadata of inner objects to Kubernetes's own form; return what cannot be. (`Coerce`)"""
    return list(_each(schema, value, path, root, _coerce))[:1]


def embedded_errors(schema: Any, value: Any, path: str = "", *, root: bool = False) -> list[FieldError]:
    """Check inner objects. With `root` the outermost is one as well. (`Validate`)"""
    return list(_each(schema, value, path, root, _validate))


def _each(schema: Any, value: Any, path: str, embedded: bool, visit: Visit) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _each(schema.get("items"), item, f"{path}[{index}]", False, visit)
    elif isinstance(value, dict):
        if embedded or schema.get(EMBEDDED):
            yield from visit(value, path)
        declared, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            if key in declared:
                yield from _each(declared[key], item, _join(path, key), False, visit)
            elif isinstance(more, dict):
                yield from _each(more, item, f"{path}[{key}]", False, visit)


def _coerce(value: Object, path: str) -> Iterator[FieldError]:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            yield invalid(_join(path, key), value[key], "must be a string")
    if "metadata" not in value:
        return
    given = {"metadata": value["metadata"]}
    try:
        decode_fields(CONFIGMAPS, given)
    except DecodeError as error:
        words = str(error).replace("ConfigMap.metadata.", "ObjectMeta.").replace("ObjectMeta.metadata.", "ObjectMeta.")
        yield invalid(_join(path, "metadata"), value["metadata"], words)
        return
    value["metadata"] = given.get("metadata") or {}


def _validate(value: Object, path: str) -> Iterator[FieldError]:
    for key in ("apiVersion", "kind"):
        at, given = _join(path, key), value.get(key)
        if key not in value:
            yield required(at)
        elif not isinstance(given, str):
            yield invalid(at, given, "must be a string")
        elif not given:
            yield invalid(at, given, "must not be empty")
        elif key == "apiVersion":
            if given.count("/") > 1:
                yield invalid(at, given, f"unexpected GroupVersion string: {given}")
        elif problems := is_dns1035_label(given.lower()):
            words = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid(at, given, words)
    meta = value.get("metadata")
    if isinstance(meta, dict):
        named = {**meta, "name": meta.get("name") or "fakename"}
        found = validate_object_meta(named, namespaced=bool(meta.get("namespace")), name_check=is_path_segment_name)
        for error in found:
            yield replace(error, field=_join(path, error.field))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
