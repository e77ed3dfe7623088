"""Decode an object as Go does, in one pass over one that is in order, as nearly all are.

`lastcall.kube.api.schema.checks` has the rules: what is wrong, in which words, and what an encoder leaves out. Here
they are applied together, without the paths that only a message needs; at the first oddity the two of them are asked
instead.
"""

from functools import cache, lru_cache
from typing import Any

import orjson

from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.quantity import canonical, canonical_in_list
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.checks import (
    SCHEMA_OR,
    TIMES,
    DecodeError,
    Empties,
    check_fields,
    check_scalar,
    check_value,
    is_int_or_string,
    note_empty,
    omits_empty,
    prune,
    prune_value,
)
from lastcall.kube.api.schema.types import Field, Struct, empty, struct, struct_for
from lastcall.kube.api.text.times import TimeError, canonical_time

_INT32, _INT64 = 2**31, 2**63
_ONLY_STRINGS = {str}
_EMPTY = {"string": str, "list": list, "map": dict, "struct": dict, "boolean": bool, "integer": int}
"""By the shape of a field."""
_LONGEST_KNOWN = 64
"""Characters of a time or quantity that is remembered."""


def decode_fields(resource: Resource, obj: Object, empties: Empties | None = None) -> list[str]:
    """`check_fields`, then `prune`: the problems strict decoding finds; `obj` gets, in place, its encoded form.

    Empty lists and maps that go are added to `empties`. Raises DecodeError for a value of the wrong type.
    """
    empties = [] if empties is None else empties
    if _decode(_plan(struct_for(resource).name), obj, empties):
        return []
    problems = check_fields(resource, obj)
    prune(resource, obj, empties)
    return problems


def decoded_copy(resource: Resource, obj: Object, empties: Empties | None = None) -> Object | None:
    """What `decode_fields` makes of `obj`, which stays as it is: the answer shares nothing with it that can change.

    None for one that is not in order, or of which it takes a closer look to know that it can be written as JSON.
    """
    return _copied(_plan(struct_for(resource).name), obj, [] if empties is None else empties)


class _Member:
    """A field of a struct. `how` is what is done with a value that is there."""

    __slots__ = ("empty", "field", "how", "limit", "omits", "ref")

    def __init__(self, field: Field) -> None:
        self.field = field
        self.empty = None if field.ref in SCHEMA_OR else _EMPTY.get(field.shape)
        """The type whose empty value is in order; None where it takes a closer look."""
        self.omits = omits_empty(field)
        self.ref = field.ref
        self.limit = _INT32 if field.format == "int32" else _INT64
        self.how: str = field.shape
        item = field.item
        if field.shape == "scalar":
            self.how = field.format if field.format in ("quantity", "intstr", *TIMES) else "other"
        elif field.shape in ("list", "map"):
            assert item is not None
            inner = "quantity" if item.format == "quantity" else item.shape
            self.how = f"{field.shape} of {inner}"
            self.ref = item.ref
            if self.how not in ("list of struct", "list of string", "map of string", "map of quantity"):
                self.how = "other"
        elif field.shape == "number" or field.ref in SCHEMA_OR:
            self.how = "other"


class _Plan:
    """A struct: its members, what its encoder writes as null, and what it always writes, with the zero value."""

    __slots__ = ("always", "members", "nulls")

    def __init__(self, of: Struct) -> None:
        self.members = {name: _Member(field) for name, field in of.fields.items()}
        self.nulls = of.nulls
        zeros = empty(of)
        self.always = tuple((name, zeros[name]) for name in of.always)


@cache
def _plan(name: str) -> _Plan:
    return _Plan(struct(name))


def _decode(plan: _Plan, value: Object, empties: Empties) -> bool:
    """Whether everything was in order; else `value` may be half done, which does not change what is wrong with it."""
    members = plan.members
    gone: list[str] | None = None
    for key, item in value.items():
        member = members.get(key)
        if member is None:
            return False
        if item is None or (not item and member.omits):
            if item is not None:
                if type(item) is not member.empty and not _fits(member, item):
                    return False
                note_empty(empties, value, key)
            gone = [key] if gone is None else [*gone, key]
            continue
        how = member.how
        if how == "string":
            if type(item) is not str:
                return False
        elif how == "struct":
            if type(item) is not dict or not _decode(_plan(member.ref), item, empties):
                return False
        elif how == "boolean":
            if item is not True and item is not False:
                return False
        elif how == "integer":
            if type(item) is not int or not -member.limit <= item < member.limit:
                return False
        elif how == "list of struct":
            if type(item) is not list:
                return False
            inner = _plan(member.ref)
            for each in item:
                if type(each) is not dict or not _decode(inner, each, empties):
                    return False
        elif how == "time" or how == "microtime":
            if type(item) is not str or len(item) > _LONGEST_KNOWN or (text := _CANONICAL_TIME[how](item)) is None:
                return False
            if text:
                value[key] = text
            else:
                gone = [key] if gone is None else [*gone, key]
        elif how == "map of string":
            if type(item) is not dict or set(map(type, item.values())) - _ONLY_STRINGS:
                return False
        elif how == "list of string":
            if type(item) is not list or set(map(type, item)) - _ONLY_STRINGS:
                return False
        elif how == "map of quantity":
            if type(item) is not dict or not all(map(_is_quantity, item.values())):
                return False
            for each in item:
                item[each] = _canonical_in_list(item[each])
        elif how == "quantity":
            if not _is_quantity(item):
                return False
            value[key] = _canonical(item)
        elif how == "intstr":
            if not is_int_or_string(item):
                return False
        elif how != "any":
            if (how == "byte" and type(item) is not str) or not _fits(member, item):
                return False
            if item:
                prune_value(member.field, item, empties)
    if gone:
        for key in gone:
            del value[key]
    for key in plan.nulls:
        if not value.get(key):
            if key in value:
                note_empty(empties, value, key)
            value[key] = None
    for key, zero in plan.always:
        if key not in value:
            value[key] = copy_object(zero) if type(zero) is dict else zero
    return True


def _copied(plan: _Plan, value: Object, empties: Empties) -> Object | None:
    """As `_decode`, into a new dict."""
    members = plan.members
    new: Object = {}
    for key, item in value.items():
        member = members.get(key)
        if member is None:
            return None
        if item is None or (not item and member.omits):
            if item is not None:
                if type(item) is not member.empty and not _fits(member, item):
                    return None
                if type(item) is list or type(item) is dict:
                    empties.append((new, key, item))
            continue
        how = member.how
        if how == "string":
            if type(item) is not str or not item.isascii():
                return None
            new[key] = item
        elif how == "struct":
            if type(item) is not dict:
                return None
            if (inner := _copied(_plan(member.ref), item, empties)) is None:
                return None
            new[key] = inner
        elif how == "boolean":
            if item is not True and item is not False:
                return None
            new[key] = item
        elif how == "integer":
            if type(item) is not int or not -member.limit <= item < member.limit:
                return None
            new[key] = item
        elif how == "list of struct":
            if type(item) is not list:
                return None
            of, items = _plan(member.ref), []
            for each in item:
                if type(each) is not dict or (inner := _copied(of, each, empties)) is None:
                    return None
                items.append(inner)
            new[key] = items
        elif how == "time" or how == "microtime":
            if type(item) is not str or len(item) > _LONGEST_KNOWN or (text := _CANONICAL_TIME[how](item)) is None:
                return None
            if text:
                new[key] = text
        else:
            part = {key: orjson.loads(orjson.dumps(item))}
            if not _decode(plan, part, empties):
                return None
            if key in part:  # and not the nulls of what is not
                new[key] = part[key]
    for key in plan.nulls:
        if not new.get(key):
            if key in new:
                note_empty(empties, new, key)
            new[key] = None
    for key, zero in plan.always:
        if key not in new:
            new[key] = copy_object(zero) if type(zero) is dict else zero
    return new


def _fits(member: _Member, value: Any) -> bool:
    try:
        return not check_value(member.field, value)
    except DecodeError:
        return False


@lru_cache(4096)
def _time(value: str) -> str | None:
    """Its canonical form, "" for the zero time, None for no time."""
    try:
        return canonical_time(value)
    except TimeError:
        return None


@lru_cache(4096)
def _microtime(value: str) -> str | None:
    try:
        return canonical_time(value, micro=True)
    except TimeError:
        return None


_CANONICAL_TIME = {"time": _time, "microtime": _microtime}


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
