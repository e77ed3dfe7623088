"""What claims and slices of devices have in common: names, lists, drivers and pools.

Source: pkg/apis/resource/validation/validation.go.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, invalid, required, too_long, too_many
from lastcall.kube.api.names import is_dns1123_label, is_dns1123_subdomain
from lastcall.kube.api.validators.common import driver_name

MOST = 32
"""Entries of a list, where nothing else is said."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_AN_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)

Check = Callable[[Any, str], list[FieldError]]


def list_of(values: Sequence[Any] | None, path: str, check: Check, most: int = MOST) -> list[FieldError]:
    values = values or []
    if len(values) > most:
        return [too_many(path, len(values), most)]
    return [error for index, value in enumerate(values) for error in check(value, f"{path}[{index}]")]


def repeated(keys: Iterable[Any], path: str) -> Iterator[FieldError]:
    seen = set()
    for index, key in enumerate(keys):
        if key in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.add(key)


def label(value: str, path: str) -> list[FieldError]:
    return each(path, value, is_dns1123_label(value))


def pool_name(name: str, path: str) -> list[FieldError]:
    """Check the name of a pool. (`validatePoolName`)"""
    if not name:
        return [required(path)]
    errors = [too_long(path, 253)] if len(name) > 253 else []
    return errors + [error for part in name.split("/") for error in each(path, part, is_dns1123_subdomain(part))]


def qualified_name(name: str, path: str) -> list[FieldError]:
    parts = name.split("/")
    if len(parts) == 1:
        return _identifier(name, path)
    if len(parts) > 2:
        return []
    domain, rest = parts
    errors = driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    return errors + (_identifier(rest, path) if rest else [invalid(path, "", "the name must not be empty")])


def _identifier(name: str, path: str) -> list[FieldError]:
    errors = [too_long(path, 32)] if len(name) > 32 else []
    return errors if _IDENTIFIER.fullmatch(name) else [*errors, invalid(path, name, _NOT_AN_IDENTIFIER)]
