"""What values have in common: types, equality, order, size, search, by cel-go's common/types."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lastcall.kube.cel.values import (
    NOTHING,
    BoolKey,
    Duration,
    EvaluationError,
    ListView,
    MapView,
    Optional,
    Record,
    Timestamp,
    TypeValue,
    Uint,
)

NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
}
"""The type's name of each class; other classes say it themselves."""

GO_NAMES: dict[type, str] = {
    type(None): "types.Null",
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    TypeValue: "*types.Type",
    Optional: "*types.Optional",
}
"""What Go calls the classes of values that are not lists or maps: some messages show it."""

NUMBERS = frozenset((int, Uint, float))
PLAIN = frozenset((type(None), bool, int, Uint, str, bytes, float, Timestamp, Duration, TypeValue))
"""Classes whose values compare as Python compares them, within one class."""
LISTS = frozenset((list, tuple))
SIZED = frozenset((str, bytes, list, tuple, dict))
SIZELESS = frozenset((type(None), bool, int, Uint, float))
"""Of the classes that most values have: those with a length, and those without any."""
MAX_ITEMS = 1_000_000
"""Elements of a list that an expression may build: it costs at least as much to look at them."""
MAX_CHARACTERS = 10_000_000
"""Characters of a string that an expression may build: it costs a tenth of it to look at them."""


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")


def type_name(value: object) -> str:
    name = NAMES.get(value.__class__)
    if name is None:
        if isinstance(value, Record):
            return value.type_name
        name = getattr(value, "cel_type", None)
        if name is None:
            name = "map" if isinstance(value, Mapping) else "list"
    return name


def go_name(value: object) -> str:
    return GO_NAMES.get(value.__class__) or type_name(value)


def is_list(value: object) -> bool:
    return value.__class__ in LISTS or (
        value.__class__ not in NAMES and isinstance(value, Sequence | ListView) and not hasattr(value, "find")
    )


def is_map(value: object) -> bool:
    return value.__class__ is dict or (value.__class__ not in NAMES and isinstance(value, Mapping | MapView))


def equal(left: Any, right: Any) -> bool:
    """Compare as `==` does: numbers across their types, lists and maps by their elements.

    Values of other types are never equal.
    """
    kind, other = left.__class__, right.__class__
    if kind is other and kind in PLAIN:
        return bool(left == right)
    if kind in NUMBERS:
        return other in NUMBERS and compare_numbers(left, right) == 0
    if kind in PLAIN or other in PLAIN:
        return False
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or (left.value is NOTHING) != (right.value is NOTHING):
            return False
        return left.value is NOTHING or equal(left.value, right.value)
    if is_map(left):
        return is_map(right) and len(left) == len(right) and all(same_entry(left, right, key) for key in keys_of(left))
    if is_list(left):
        if kind not in LISTS:
            return bool(left.equals(right))
        return is_list(right) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Record):
        return (
            isinstance(right, Record)
            and left.type_name == right.type_name
            and left.fields.keys() == right.fields.keys()
            and all(equal(value, right.fields[name]) for name, value in left.fields.items())
        )
    return bool(left == right)


def same_entry(left: object, right: object, key: object) -> bool:
    value = find(right, key)
    return value is not NOTHING and equal(find(left, key), value)


def compare_numbers(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1; None with a NaN. An int beside a double becomes a double first, as in cel-go."""
    if left.__class__ is float or right.__class__ is float:
        left, right = float(left), float(right)
    if left < right:
        return -1
    return 1 if left > right else 0 if left == right else None


def compare(left: Any, right: Any) -> int:
    """Return the order of two values: -1, 0 or 1. Raises EvaluationError for values without an order."""
    kind, other = left.__class__, right.__class__
    if kind in NUMBERS and other in NUMBERS:
        found = compare_numbers(left, right)
        if found is None:
            raise EvaluationError("NaN values cannot be ordered")
        return found
    if kind is not other or kind not in PLAIN or kind is type(None) or kind is TypeValue:
        raise no_such_overload()
    return -1 if left < right else 1 if left > right else 0


def size_of(value: object) -> int | None:
    """Count the elements of a list or a map, the code points of a string, or bytes; None for what has no size."""
    if value.__class__ in SIZED or is_list(value) or is_map(value):
        return len(value)  # type: ignore[arg-type]
    return getattr(value, "cel_size", None)


def cost_size(value: object) -> int:
    """Return the size that costs count: 1 for what has none (cel-go interpreter/runtimecost.go:actualSize)."""
    kind = value.__class__
    if kind in SIZED:
        return len(value)  # type: ignore[arg-type]
    if kind in SIZELESS:
        return 1
    if isinstance(value, Optional) and value.value is not NOTHING:
        return cost_size(value.value)
    size = size_of(value)
    return 1 if size is None else size


def find(container: Any, key: object) -> object:
    """Return the value at a key of a map, NOTHING without one. 1, 1u and 1.0 are the same key, true is another."""
    if container.__class__ is dict:
        if key.__class__ is bool:
            key = BoolKey(key)
        elif key.__class__ is float and key != key:
            return NOTHING
        try:
            return container.get(key, NOTHING)
        except TypeError:
            return NOTHING
    if isinstance(container, Mapping):
        return container.get(key, NOTHING)
    return container.find(key)


def keys_of(container: Any) -> Iterator[object]:
    for key in container:
        yield key.value if key.__class__ is BoolKey else key


def elements(value: Any) -> Iterator[object]:
    """Return the elements of a list, the keys of a map."""
    return keys_of(value) if is_map(value) else iter(value)


def contains(container: Any, element: object) -> bool:
    """Return whether `element` is in a list, or a key of a map (`in`)."""
    if is_map(container):
        return find(container, element) is not NOTHING
    if is_list(container):
        if element.__class__ is str and container.__class__ in LISTS:
            return element in container
        return any(equal(element, other) for other in container)
    raise no_such_overload()
