"""The form in which values come back from a decode and an encode in Go: what is left out, and what is canonical."""

import base64
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.api.quantity import canonical, canonical_in_list
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.checks import SCHEMA_OR, TIMES, schema_field, schemas_in
from lastcall.kube.api.schema.types import Field, Struct, empty, struct_for, struct_of
from lastcall.kube.api.text.times import canonical_time

Empties = list[tuple[Object, str, Any]]
"""What was dropped because it was empty: the struct that had it, the field, the list or map."""


def prune(resource: Resource, obj: Object, empties: Empties | None = None) -> None:
    """Bring `obj`, in place, to what comes back from a decode and encode in Go.

    Unknown fields, nulls, empty optional lists and maps go, but for what Go encodes as null; quantities take their
    canonical form (`0.5` is `500m`), times too (UTC, the zero time is left out). Call it after `check_fields`. Empty
    lists and maps that go are added to `empties`.
    """
    _prune_struct(struct_for(resource), obj, [] if empties is None else empties)


def note_empty(empties: Empties, struct: Object, key: str) -> None:
    """Add the field to `empties` if it is a list or a map, and empty."""
    if isinstance(value := struct.get(key), list | dict) and not value:
        empties.append((struct, key, value))


def _prune_struct(struct: Struct, value: Object, empties: Empties) -> None:
    gone: list[str] = []
    for key, item in value.items():
        field = struct.fields.get(key)
        if field is None or item is None or (not item and omits_empty(field)):
            gone.append(key)
            if field is not None:
                note_empty(empties, value, key)
        elif field.format == "quantity":
            value[key] = canonical(item) if item != "" else "0"
        elif field.format in TIMES:
            if text := canonical_time(item, micro=field.format == "microtime"):
                value[key] = text
            else:
                gone.append(key)
        elif field.format == "byte":
            value[key] = _as_base64(item)
        elif item or field.shape == "struct":
            prune_value(field, item, empties)
    for key in gone:
        del value[key]
    for key in struct.nulls:
        if value.get(key) is None or not (value[key] or keeps_empty(struct.name)):
            note_empty(empties, value, key)
            value[key] = None
    if any(key not in value for key in struct.always):
        for key, zero in empty(struct).items():
            value.setdefault(key, zero)


def _as_base64(value: str | list[int | None] | None) -> str:
    """Bytes may come as a list of numbers, too."""
    if isinstance(value, list):
        return base64.b64encode(bytes(each or 0 for each in value)).decode()
    return value or ""


def keeps_empty(name: str) -> bool:
    """Return True for a type whose kinds are stored as JSON, which keeps the empty lists that are always written.

    Others are stored in protobuf, which has no empty lists. (apiextensions-apiserver and kube-aggregator: LegacyCodec)
    """
    return name.startswith(("apiextensions.", "apiregistration."))


def omits_empty(field: Field) -> bool:
    """Return whether an empty value of this field is not encoded."""
    if field.item is not None and field.item.ref in _EVEN_EMPTY:
        return False
    return field.omitted or field.format in TIMES


_EVEN_EMPTY = frozenset({"autoscaling.v2.HPAScalingPolicy", "apiextensions.v1.JSONSchemaPropsOrStringArray"})
"""An empty list of policies asks for no defaults, and is then refused (autoscaling/v2/defaults.go:copyHPAScalingRules).
Empty `dependencies` of a schema are refused, too."""


# What a null in a list or map becomes.
_ZEROS: dict[str, Any] = {"integer": 0, "number": 0, "boolean": False}


def prune_value(field: Field, value: Any, empties: Empties | None = None) -> None:
    """Prune the value of one field that is not empty. See `prune`."""
    empties = [] if empties is None else empties
    if field.ref in SCHEMA_OR:
        for each in schemas_in(value):
            if isinstance(each, dict):
                prune_value(schema_field(), each, empties)
    elif field.shape == "struct":
        _prune_struct(struct_of(field), value, empties)
    elif field.item is not None:
        (_prune_list if field.shape == "list" else _prune_map)(field.item, value, empties)


def _prune_list(of: Field, value: list[Any], empties: Empties) -> None:
    if of.shape in ("struct", "list", "map"):
        for index, item in enumerate(value):
            if item is None:
                value[index] = [] if of.shape == "list" else {}
            if of.shape != "list" or item:
                prune_value(of, value[index], empties)
    elif of.shape != "any":
        zero = _ZEROS.get(of.shape, "")
        value[:] = [zero if item is None else item for item in value]


def _prune_map(of: Field, value: Object, empties: Empties) -> None:
    if of.format == "quantity":
        for key, item in value.items():
            value[key] = canonical_in_list(item) if item not in (None, "") else "0"
    elif of.format in TIMES:
        for key, item in value.items():
            value[key] = (canonical_time(item, micro=of.format == "microtime") or None) if item else None
    elif of.shape == "string" or of.format == "byte":
        for key, item in value.items():
            if item is None or isinstance(item, list):
                value[key] = _as_base64(item)
    elif of.shape == "struct":
        for item in value.values():
            if item is not None:
                prune_value(of, item, empties)
