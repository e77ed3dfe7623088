"""What an expression computes with. CEL's values are Python's where Python's are exact enough:

    null None · bool bool · int int (checked to 64 bits by what computes) · uint Uint · double float · string str ·
    bytes bytes · list Sequence · map Mapping (a bool key is kept as a `BoolKey`, so that true and 1 stay apart) ·
    timestamp Timestamp · duration Duration · type TypeValue · optional Optional · struct Record ·
    opaque types: classes of the libraries, with a `cel_type`.

Objects of the API come as the dicts and lists that JSON made of them, never copied. What a schema says about them
(a date-time is a timestamp, a list is a set) is the business of a `View`, which reads a dict or a list lazily.
"""

# check: allow dataclasses.dataclass because timestamps and durations have an order

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, runtime_checkable


class Uint(int):
    """An unsigned integer of 64 bits: a type of its own, equal to the int and the double of the same value."""

    __slots__ = ()


Scalar: TypeAlias = bool | int | Uint | float | str | bytes | None


class EvaluationError(Exception):
    """An expression has no value; the message is cel-go's. `&&`, `||` and macros may absorb it.

    `cost` is what the whole evaluation cost until it failed.
    """

    cost = 0


class CostExceeded(Exception):
    """An expression would cost more than its limit, or would build a value bigger than any limit allows."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment: nanoseconds since 1970 in UTC. `offset` (seconds east of UTC) only shows when it is printed."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds (64 bits)."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value (`type(1)`, `int`): its name, without parameters."""

    name: str


class _Nothing:
    __slots__ = ()


NOTHING: Final = _Nothing()
"""What an optional without a value holds, and what a search that finds nothing returns."""


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    value: object = NOTHING


NONE: Final = Optional()
"""`optional.none()`."""


@dataclass(frozen=True, slots=True)
class BoolKey:
    """A bool as the key of a map: Python takes true and 1 for the same key."""

    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What a struct literal makes: `JSONPatch{op: "add", ...}`."""

    type_name: str
    fields: Mapping[str, object]


@runtime_checkable
class MapView(Protocol):
    """An object of the API that is read through its schema. Keys are names as expressions write them."""

    cel_type: str
    """Its type's name; "map" for what has no object type."""

    def find(self, key: object) -> object:
        """Return the value of a field, NOTHING without one. Raises EvaluationError if the schema forbids it."""

    def __iter__(self) -> Iterator[object]: ...

    def __len__(self) -> int: ...


@runtime_checkable
class ListView(Protocol):
    """A list of the API that is read through its schema; a list of type set or map has equality and sums of its own."""

    def at(self, index: int) -> object:
        """Return an element; the index is within the list."""

    def __iter__(self) -> Iterator[object]: ...

    def __len__(self) -> int: ...

    def equals(self, other: object) -> bool: ...

    def plus(self, other: object) -> object: ...
