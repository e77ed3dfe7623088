"""Decode an object as Go does, in one pass over one that is in order, as nearly all are.

`schema.checks` and `schema.pruning` have the rules: what is wrong, in which words, and what an encoder leaves out. Here
the type of each field is compiled once to a function that applies them together, without the paths that only a message
needs. At the first oddity the rules decide instead.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import orjson

from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.quantity import canonical, canonical_in_list
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.checks import (
    SCHEMA_OR,
    DecodeError,
    check_fields,
    check_scalar,
    check_value,
    is_int_or_string,
)
from lastcall.kube.api.schema.pruning import Empties, keeps_empty, note_empty, omits_empty, prune, prune_value
from lastcall.kube.api.schema.types import Field, empty, struct, struct_for
from lastcall.kube.api.text.times import TimeError, canonical_time

_ODD: Any = object()
"""The answer about a value that is not in order, or that needs a closer look."""

_Decode = Callable[[Any, Empties], Any]
"""Returns the decoded value, None if its field is left out, or `_ODD`."""

_Member = tuple[type | None, bool, _Decode | None]
"""A field of a struct: the type of its values (None: `decode` checks it), whether an empty value is left out, and the
function that decodes a value (None: it stays as it is)."""

_LONGEST_KNOWN = 64
"""Characters of a time or quantity that is remembered."""


def decode_fields(resource: Resource, obj: Object, empties: Empties | None = None) -> list[str]:
    """Decode `obj` in place as `check_fields` and `prune` do, and return the problems that strict decoding finds.

    Empty lists and maps that are left out are added to `empties`. Raises DecodeError for a value of the wrong type.
    """
    empties = [] if empties is None else empties
    if _struct_decoder(struct_for(resource).name, copies=False)(obj, empties) is not _ODD:
        return []
    problems = check_fields(resource, obj)
    prune(resource, obj, empties)
    return problems


def decoded_copy(resource: Resource, obj: Object, empties: Empties | None = None) -> Object | None:
    """Return what `decode_fields` makes of `obj`, as a copy that shares nothing with it that can change.

    Returns None if `obj` is not in order, or if only a closer look shows that it can be written as JSON.
    """
    decode = _struct_decoder(struct_for(resource).name, copies=True)
    copy: Object = decode(obj, [] if empties is None else empties)
    return None if copy is _ODD else copy


@cache
def _struct_decoder(name: str, *, copies: bool) -> _Decode:
    """Return the function that decodes a struct, in place or into a new dict. The first object compiles its fields.

    A struct that is not in order may be decoded in part, which does not change what is wrong with it.
    """
    members: dict[str, _Member] = {}
    nulls: tuple[str, ...] = ()
    always: tuple[tuple[str, Any], ...] = ()
    keeps = keeps_empty(name)

    def decode(value: Object, empties: Empties) -> Any:
        nonlocal nulls, always
        if not members:
            nulls, always = _compile(name, members, copies=copies)
        new: Object = {} if copies else value
        gone: tuple[str, ...] = ()
        for key, item in value.items():
            try:
                kind, omits, decode_item = members[key]
            except KeyError:
                return _ODD
            if not item and (item is None or omits):
                if item is not None and not _is_left_out(new, key, item, kind, name, empties):
                    return _ODD
                gone += (key,)
                continue
            if type(item) is not kind and kind is not None:
                return _ODD
            decoded = item if decode_item is None else decode_item(item, empties)
            if decoded is item and not copies:
                continue
            if decoded is _ODD:
                return _ODD
            if decoded is None:
                gone += (key,)
            else:
                new[key] = decoded
        if gone and not copies:
            for key in gone:
                del new[key]
        if nulls or always:
            _complete(new, nulls, always, empties, keeps)
        return new

    return decode


def _is_left_out(new: Object, key: str, value: Any, kind: type | None, name: str, empties: Empties) -> bool:
    """Return True if a value without content is one of the field, which is then left out; note lists and maps."""
    if type(value) is not kind and (kind is not None or not _fits(struct(name).fields[key], value)):
        return False
    if type(value) is list or type(value) is dict:
        empties.append((new, key, value))
    return True


def _complete(
    new: Object, nulls: tuple[str, ...], always: tuple[tuple[str, Any], ...], empties: Empties, keeps: bool
) -> None:
    """Add what the encoder of a struct writes although nobody set it. `keeps`: see `keeps_empty`."""
    for key in nulls:
        if new.get(key) is None or not (new[key] or keeps):
            if key in new:
                note_empty(empties, new, key)
            new[key] = None
    for key, zero in always:
        if key not in new:
            new[key] = copy_object(zero) if type(zero) is dict else zero


def _compile(
    name: str, members: dict[str, _Member], *, copies: bool
) -> tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]:
    """Fill `members`; return what the encoder writes as null, and what it always writes, with the zero value."""
    of = struct(name)
    for key, field in of.fields.items():
        kind, decode = _field_decoder(field, copies=copies)
        members[key] = kind, omits_empty(field), decode
    zeros = empty(of)
    return of.nulls, tuple((key, zeros[key]) for key in of.always)


def _field_decoder(field: Field, *, copies: bool) -> tuple[type | None, _Decode | None]:
    """Return the type of a field's values and the function that decodes one. See `_Member`."""
    if field.shape == "struct":
        return dict, _struct_decoder(field.ref, copies=copies)
    if field.item is not None and field.item.shape == "struct":
        of_list = field.shape == "list"
        decode = _struct_decoder(field.item.ref, copies=copies)
        return (list, _structs(decode, copies=copies)) if of_list else (dict, _struct_map(decode, copies=copies))
    if field.shape == "string":
        return str, _ascii if copies else None
    if field.shape == "boolean":
        return bool, None
    if field.shape == "integer":
        return int, _integer(2**31 if field.format == "int32" else 2**63)
    if field.format in _SCALARS:
        return None, _SCALARS[field.format]
    kind, in_place = _plain_decoder(field)
    return kind, _of_copy(in_place) if copies else in_place


def _plain_decoder(field: Field) -> tuple[type | None, _Decode | None]:
    """Return the same for values without structs, which are copied as JSON."""
    item = field.item
    if item is not None and item.format == "quantity" and field.shape == "map":
        return dict, _quantities
    if item is not None and item.shape == "string":
        return (list, _strings) if field.shape == "list" else (dict, _string_map)
    if field.shape == "any" and field.ref not in SCHEMA_OR:
        return None, None
    return None, _int_or_string if field.format == "intstr" else _by_the_rules(field)


def _of_copy(decode: _Decode | None) -> _Decode:
    def copied(value: Any, empties: Empties) -> Any:
        try:
            copy = orjson.loads(orjson.dumps(value))
        except TypeError:
            return _ODD  # an integer of more than 64 bits, a surrogate
        return copy if decode is None else decode(copy, empties)

    return copied


def _structs(decode: _Decode, *, copies: bool) -> _Decode:
    """Return the function that decodes a list of structs."""

    def copied(value: list[Any], empties: Empties) -> Any:
        new: list[Any] = []
        for item in value:
            if type(item) is not dict or (copy := decode(item, empties)) is _ODD:
                return _ODD
            new.append(copy)
        return new

    def in_place(value: list[Any], empties: Empties) -> Any:
        for item in value:
            if type(item) is not dict or decode(item, empties) is _ODD:
                return _ODD
        return value

    return copied if copies else in_place


def _struct_map(decode: _Decode, *, copies: bool) -> _Decode:
    """Return the function that decodes a map of structs."""

    def decode_map(value: Object, empties: Empties) -> Any:
        new: Object = {}
        for key, item in value.items():
            if type(item) is not dict or (copies and not key.isascii()):
                return _ODD
            if (decoded := decode(item, empties)) is _ODD:
                return _ODD
            new[key] = decoded
        return new if copies else value

    return decode_map


def _by_the_rules(field: Field) -> _Decode:
    """Return the function that decodes values of a type that has no function of its own."""

    def decode(value: Any, empties: Empties) -> Any:
        if (field.format == "byte" and type(value) is list) or not _fits(field, value):
            return _ODD  # bytes that are a list of numbers become text
        if value:
            prune_value(field, value, empties)
        return value

    return decode


def _fits(field: Field, value: Any) -> bool:
    try:
        return not check_value(field, value)
    except DecodeError:
        return False


def _ascii(value: str, _: Empties) -> Any:
    """Return a string that JSON can have, as is. Others may have surrogates, which take a closer look."""
    return value if value.isascii() else _ODD


def _integer(limit: int) -> _Decode:
    return lambda value, _: value if -limit <= value < limit else _ODD


def _int_or_string(value: Any, _: Empties) -> Any:
    return value if is_int_or_string(value) else _ODD


_ONLY_STRINGS = {str}


def _strings(value: list[Any], _: Empties) -> Any:
    return _ODD if set(map(type, value)) - _ONLY_STRINGS else value


def _string_map(value: Object, _: Empties) -> Any:
    return _ODD if set(map(type, value.values())) - _ONLY_STRINGS else value


def _quantities(value: Object, _: Empties) -> Any:
    if not all(map(_is_quantity, value.values())):
        return _ODD
    for key, item in value.items():
        value[key] = _canonical_in_list(item)
    return value


def _quantity(value: Any, _: Empties) -> Any:
    return _canonical(value) if _is_quantity(value) else _ODD


def _time(value: Any, _: Empties) -> Any:
    return _known_time(value) if type(value) is str and len(value) <= _LONGEST_KNOWN else _ODD


def _microtime(value: Any, _: Empties) -> Any:
    return _known_microtime(value) if type(value) is str and len(value) <= _LONGEST_KNOWN else _ODD


_SCALARS: dict[str, _Decode] = {"quantity": _quantity, "time": _time, "microtime": _microtime}
"""By format. What they return is a new string."""


@lru_cache(4096)
def _known_time(value: str) -> Any:
    """Return the canonical form, None for the zero time, `_ODD` for no time."""
    try:
        return canonical_time(value) or None
    except TimeError:
        return _ODD


@lru_cache(4096)
def _known_microtime(value: str) -> Any:
    try:
        return canonical_time(value, micro=True) or None
    except TimeError:
        return _ODD


def _is_quantity(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= _LONGEST_KNOWN and _known_quantity(value)


@lru_cache(4096)
def _known_quantity(value: str) -> bool:
    try:
        check_scalar("quantity", value)
    except DecodeError:
        return False
    return True


@lru_cache(4096)
def _canonical(value: str) -> str:
    return canonical(value)


@lru_cache(4096)
def _canonical_in_list(value: str) -> str:
    return canonical_in_list(value)
