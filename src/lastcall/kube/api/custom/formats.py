"""The formats that schemas of declared kinds may name.

Source: apiextensions-apiserver pkg/apiserver/validation/formats.go.
"""

from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.meta import Object

_OF_STRINGS = frozenset(
    (
        "bsonobjectid", "byte", "cidr", "creditcard", "date", "datetime", "duration", "email", "hexcolor", "hostname",
        "ipv4", "ipv6", "isbn", "isbn10", "isbn13", "k8slongname", "k8sshortname", "mac", "password", "rgbcolor", "ssn",
        "uri", "uuid", "uuid3", "uuid4", "uuid5",
    )
)  # fmt: skip
_OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def is_known_format(type_: str, format_: str) -> bool:
    """Return whether values of the type are checked for the format; dashes do not matter."""
    if type_ in ("", "string"):
        return format_.replace("-", "") in _OF_STRINGS
    return format_ in _OF_NUMBERS.get(type_, ())


def unknown_formats(spec: Object) -> list[str]:
    """Return the unknown formats of a definition's schemas. What all versions have in common counts once."""
    schemas = [(each.get("schema") or {}).get("openAPIV3Schema") for each in spec.get("versions") or ()]
    if schemas and all(each == schemas[0] for each in schemas):
        schemas = schemas[:1]
    return [format_ for schema in schemas for format_ in _unknown(schema)]


def _unknown(schema: Any) -> Iterable[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _unknown(each)
    if not isinstance(schema, dict):
        return
    format_ = schema.get("format")
    if format_ and not is_known_format(schema.get("type") or "", format_):
        yield format_
    for key in ("items", "allOf", "anyOf", "oneOf", "not", "additionalProperties"):
        yield from _unknown(schema.get(key))
    for inner in (schema.get("properties") or {}).values():
        yield from _unknown(inner)
