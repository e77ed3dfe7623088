"""Numbers as Go converts them where no JSON is in between: what is applied, and what a strategic merge makes.

Source: apimachinery pkg/runtime/converter.go (fromUnstructured). An integer that is too large loses its high bits; a
whole number with a fraction's form is an integer, too. Decoded JSON refuses both.
"""

from decimal import Decimal
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.types import Field, Struct, struct_for, struct_of

_LEAST_INT64 = -(2**63)


def convert_numbers(resource: Resource, obj: Object) -> bool:
    """Convert the integers in `obj`, in place; whether any is another one now."""
    return _of_struct(struct_for(resource), obj)


def _of_struct(struct: Struct, value: Object) -> bool:
    changed = False
    for key, item in value.items():
        if (field := struct.fields.get(key)) is not None and item is not None:
            changed |= _of_member(field, value, key)
    return changed


def _of_member(field: Field, holder: Any, key: Any) -> bool:
    value = holder[key]
    if isinstance(value, float) and field.format == "intstr" and value.is_integer():
        holder[key] = int(Decimal(repr(value)))  # it is written as JSON in between
        return True
    if field.shape == "integer":
        holder[key] = integer(value, 32 if field.format == "int32" else 64)
        return holder[key] is not value
    if field.shape == "struct" and isinstance(value, dict):
        return _of_struct(struct_of(field), value)
    if field.item is None or not isinstance(value, dict | list):
        return False
    keys = list(value) if isinstance(value, dict) else range(len(value))
    changed = [_of_member(field.item, value, each) for each in keys]
    return any(changed)


def large_as_floats(value: Any) -> Any:
    """Return decoded JSON with numbers beyond int64 as floats (util/json/json.go:Unmarshal into interface{})."""
    if isinstance(value, dict):
        return {key: large_as_floats(each) for key, each in value.items()}
    if isinstance(value, list):
        return [large_as_floats(each) for each in value]
    whole = type(value) is int and not _LEAST_INT64 <= value < 2**63
    return float(value) if whole else value


def integer(value: Any, bits: int) -> Any:
    """Return `value` as an integer of so many bits; itself when it is one, or no whole number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float) and not value.is_integer():
        return value
    whole = int(value)
    if not _LEAST_INT64 <= whole < 2**63:
        whole = _LEAST_INT64  # what no int64 has becomes the least one
    half = 2 ** (bits - 1)
    found = (whole + half) % (2 * half) - half
    return value if type(value) is int and found == value else found
