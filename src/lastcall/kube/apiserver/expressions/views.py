"""Objects as expressions see them: read through their schema, never copied.

Source: apiserver pkg/cel/common/valuesunstructured.go.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.text.numbers import NumberError, parse_duration
from lastcall.kube.cel.operations import elements, equal
from lastcall.kube.cel.shapes import EMBEDDED, INT_OR_STRING, escaped, with_metadata
from lastcall.kube.cel.text import read_timestamp
from lastcall.kube.cel.values import NOTHING, Duration, EvaluationError, Timestamp


def view(value: Any, schema: Any) -> object:
    """Return a value as expressions see it. Raises EvaluationError for what the schema does not allow."""
    if not isinstance(schema, dict):
        raise EvaluationError("invalid data, there is no schema")
    if value is None:
        if schema.get("nullable"):
            return None
        raise EvaluationError("invalid data, got null for schema with nullable=false")
    if schema.get(INT_OR_STRING):
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise EvaluationError("invalid data, expected XIntOrString value to be either a string or integer")
    kind = schema.get("type")
    if kind == "object" and isinstance(value, dict):
        return ObjectView(value, with_metadata(schema) if schema.get(EMBEDDED) else schema)
    if kind == "array" and isinstance(value, list):
        return _LISTS.get(schema.get("x-kubernetes-list-type") or "atomic", PlainList)(value, schema)
    if kind == "string" and isinstance(value, str):
        return _string(value, schema.get("format"))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "number" and number:
        return float(value)
    if kind == "integer" and number and value == int(value):
        return int(value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    raise EvaluationError(f"invalid data, expected {kind}")


def _string(value: str, form: str | None) -> object:
    if form == "byte":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise EvaluationError(f"Invalid byte formatted string {value}: {error}") from None
    if form == "duration":
        return Duration(_duration(value))
    if form in ("date", "date-time"):
        moment = read_timestamp(f"{value}T00:00:00Z" if form == "date" else value)
        if moment is None:
            raise EvaluationError(f"Invalid {form} formatted string {value}")
        return Timestamp(moment.nanoseconds, moment.offset)
    return value


_PART = re.compile(r"((?:-\s?)?\d+)\s*([A-Za-zµ]+)")
_SECOND = 10**9
_UNITS = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1000),
    (("ms", "milli"), 10**6),
    (("s", "sec"), _SECOND),
    (("m", "min"), 60 * _SECOND),
    (("h", "hr", "hour"), 3600 * _SECOND),
    (("d", "day"), 86400 * _SECOND),
    (("w", "week"), 7 * 86400 * _SECOND),
)


def _duration(value: str) -> int:
    """Nanoseconds of `1h30m`, and of `2 days`. (`strfmt.ParseDuration`)"""
    try:
        return parse_duration(value)
    except NumberError as error:
        wrong = EvaluationError(f"Invalid duration {value}: {error}")
    total, known = 0, False
    for number, unit in _PART.findall(value):
        for words, size in _UNITS:
            if unit.lower() in words or unit.lower().startswith(words[-1]):
                total, known = total + int(number.replace(" ", "")) * size, True
                break
    if not known or abs(total) >= 2**63:
        raise wrong
    return total


class ObjectView:
    """An object of a schema with fields, or a map."""

    __slots__ = ("_names", "_of_fields", "raw", "schema")
    cel_type: ClassVar[str] = "map"

    def __init__(self, raw: Object, schema: Object) -> None:
        self.raw, self.schema = raw, schema
        self._of_fields = bool(schema.get("properties"))
        self._names: dict[str, str] | None = None

    def _name(self, written: str) -> str | None:
        if not self._of_fields or written in self.raw:
            return written if not self._of_fields or escaped(written) == written else None
        if self._names is None:
            self._names = {escaped(name): name for name in self.raw}
        return self._names.get(written)

    def _inner(self, name: str) -> Any:
        if self._of_fields:
            return self.schema["properties"].get(name)
        more = self.schema.get("additionalProperties")
        return more if isinstance(more, dict) else None

    def find(self, key: object) -> object:
        if not isinstance(key, str) or (name := self._name(key)) is None or name not in self.raw:
            return NOTHING
        inner, value = self._inner(name), self.raw[name]
        if inner is None or (self._of_fields and value is None):
            return NOTHING
        return view(value, inner)

    def __iter__(self) -> Iterator[object]:
        for name in self.raw:
            if self._inner(name) is not None and (written := escaped(name) if self._of_fields else name):
                yield written

    def __len__(self) -> int:
        return len(self.raw)


class PlainList:
    """A list whose order counts."""

    __slots__ = ("raw", "schema")

    def __init__(self, raw: list[Any], schema: Object) -> None:
        self.raw, self.schema = raw, schema

    def at(self, index: int) -> object:
        return view(self.raw[index], self.schema.get("items"))

    def __iter__(self) -> Iterator[object]:
        items = self.schema.get("items")
        return (view(each, items) for each in self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def equals(self, other: object) -> bool:
        return len(self) == len(other) and all(map(equal, self, other))  # type: ignore[arg-type, call-overload]

    def plus(self, other: object) -> object:
        if isinstance(other, PlainList):
            return type(self)(self._joined(other.raw), self.schema)
        if isinstance(other, list) and all(isinstance(each, str | int | float) for each in other):
            return type(self)(self._joined(other), self.schema)
        return [*self, *other]  # type: ignore[misc]

    def _joined(self, more: list[Any]) -> list[Any]:
        return [*self.raw, *more]


class SetList(PlainList):
    """A list of type set: order does not count, what is there twice is there once."""

    __slots__ = ()

    def _keys(self) -> dict[bytes, Any]:
        return {orjson.dumps(self._key(each), option=orjson.OPT_SORT_KEYS): each for each in self.raw}

    def _key(self, item: Any) -> Any:
        return item

    def equals(self, other: object) -> bool:
        if not isinstance(other, PlainList):
            there, given = list(self), list(elements(other))
            return len(there) == len(given) and all(any(equal(each, mine) for mine in there) for each in given)
        if len(self) != len(other):
            return False
        own, items = self._keys(), self.schema.get("items")
        for each in other.raw:
            key = orjson.dumps(self._key(each), option=orjson.OPT_SORT_KEYS)
            if key not in own or not equal(view(own[key], items), view(each, items)):
                return False
        return True

    def _joined(self, more: list[Any]) -> list[Any]:
        found = self._keys()
        for each in more:
            key = orjson.dumps(self._key(each), option=orjson.OPT_SORT_KEYS)
            if key not in found or self._replaces():
                found[key] = each
        return list(found.values())

    def _replaces(self) -> bool:
        return False


class MapList(SetList):
    """A list of type map: items of the same keys are the same item, the later one."""

    __slots__ = ()

    def _key(self, item: Any) -> Any:
        names = self.schema.get("x-kubernetes-list-map-keys") or ()
        return [item.get(name) for name in names] if isinstance(item, dict) else item

    def _replaces(self) -> bool:
        return True


_LISTS: dict[str, type[PlainList]] = {"atomic": PlainList, "set": SetList, "map": MapList}
