"""Lists, version 3 (cel-go ext/lists.go)."""

from collections.abc import Callable, Iterator, Sequence
from functools import cmp_to_key
from typing import Any

from lastcall.kube.cel.bounds import UNBOUNDED, Bounds, Operand
from lastcall.kube.cel.libraries.arithmetic import lacks
from lastcall.kube.cel.libraries.library import Estimate, Library, RuntimeCost, declared
from lastcall.kube.cel.libraries.measures import LIST, TRAVERSAL, for_all
from lastcall.kube.cel.operations import MAX_ITEMS, compare, cost_size, elements, equal, is_list, is_map, type_name
from lastcall.kube.cel.values import CostExceeded, EvaluationError

ROWS = """
slice                  list_slice                                           list(T).(int, int) -> list(T)
flatten                list_flatten                                         list(list(T)).() -> list(T)
flatten                list_flatten_int                                     list(dyn).(int) -> list(dyn)
sort                   list_int_sort                                        list(int).() -> list(int)
sort                   list_uint_sort                                       list(uint).() -> list(uint)
sort                   list_double_sort                                     list(double).() -> list(double)
sort                   list_bool_sort                                       list(bool).() -> list(bool)
sort                   list_google.protobuf.Duration_sort                   list(duration).() -> list(duration)
sort                   list_google.protobuf.Timestamp_sort                  list(timestamp).() -> list(timestamp)
sort                   list_string_sort                                     list(string).() -> list(string)
sort                   list_bytes_sort                                      list(bytes).() -> list(bytes)
@sortByAssociatedKeys  list_int_sortByAssociatedKeys                        list(T).(list(int)) -> list(T)
@sortByAssociatedKeys  list_uint_sortByAssociatedKeys                       list(T).(list(uint)) -> list(T)
@sortByAssociatedKeys  list_double_sortByAssociatedKeys                     list(T).(list(double)) -> list(T)
@sortByAssociatedKeys  list_bool_sortByAssociatedKeys                       list(T).(list(bool)) -> list(T)
@sortByAssociatedKeys  list_google.protobuf.Duration_sortByAssociatedKeys   list(T).(list(duration)) -> list(T)
@sortByAssociatedKeys  list_google.protobuf.Timestamp_sortByAssociatedKeys  list(T).(list(timestamp)) -> list(T)
@sortByAssociatedKeys  list_string_sortByAssociatedKeys                     list(T).(list(string)) -> list(T)
@sortByAssociatedKeys  list_bytes_sortByAssociatedKeys                      list(T).(list(bytes)) -> list(T)
lists.range            lists_range                                          (int) -> list(int)
reverse                list_reverse                                         list(T).() -> list(T)
distinct               list_distinct                                        list(T).() -> list(T)
"""

TYPES = ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes")


def cut(items: Sequence[object], start: int, end: int) -> list[object]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(elements(items))[start:end]


def flatten(items: Any, depth: Any = None) -> list[object]:
    if not is_list(items) or depth.__class__ not in (int, type(None)):
        given = "" if depth is None else type_name(depth)
        name = "map(dyn, dyn)" if is_map(items) else type_name(items)
        raise EvaluationError(f"no such overload: {name}.flatten({given})")
    depth = 1 if depth is None else depth
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[object] = []
    for item in flat_items(items, depth):
        flat.append(item)
        if len(flat) > MAX_ITEMS:
            raise CostExceeded
    return flat


def flat_items(items: Any, depth: int) -> Iterator[object]:
    for item in elements(items):
        if depth and is_list(item):
            yield from flat_items(item, depth - 1)
        else:
            yield item


def sort(items: Any) -> object:
    if not is_list(items):
        raise lacks("sort", items)
    return sort_by(items, items)


def sort_by(items: Any, keys: Any) -> object:
    if not is_list(items) or not is_list(keys):
        raise lacks("@sortByAssociatedKeys", items)
    if len(items) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not len(items):
        return items
    values, known = list(elements(items)), list(elements(keys))
    kind = type_name(known[0])
    if kind not in TYPES:
        raise EvaluationError("list elements must be comparable")
    if any(type_name(key) != kind for key in known):
        raise EvaluationError("list elements must have the same type")
    ranked = cmp_to_key(compare)
    return [values[at] for at in sorted(range(len(values)), key=lambda at: ranked(known[at]))]


def numbers(count: int) -> list[int]:
    if count > MAX_ITEMS:
        raise CostExceeded
    return list(range(count))


def distinct(items: Any) -> object:
    if not len(items):
        return items
    values = list(elements(items))
    if all(value.__class__ is str for value in values):
        return list(dict.fromkeys(values))
    kept: list[object] = []
    for value in values:
        if not any(equal(value, other) for other in kept):
            kept.append(value)
    return kept


def allocating(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST


def flatten_cost(arguments: Sequence[Any]) -> int:
    depth = max(arguments[1], 0) if len(arguments) == 2 and arguments[1].__class__ is int else 1
    return allocating(depth, cost_size(arguments[0]))


def slice_cost(arguments: Sequence[Any]) -> int:
    return allocating(1, max(arguments[2] - arguments[1], 0))


def self_compare(at: int) -> RuntimeCost:
    """Return the cost of comparing every element with every other one."""

    def cost(arguments: Sequence[Any]) -> int:
        size = cost_size(arguments[at])
        if not size:
            return allocating(2, 0)
        text = next(elements(arguments[at])).__class__ in (str, bytes)
        return allocating(2 + TRAVERSAL if text else 2, size * size)

    return cost


def allocating_estimate(factor: float, size: Bounds) -> tuple[Bounds, Bounds | None]:
    return size.times(factor) + Bounds(1 + LIST, 1 + LIST), size


def literal_number(operand: Operand, other: int) -> int:
    value = operand.literal
    return max(value, 0) if value.__class__ is int else other


def slice_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    start = literal_number(operands[1], 0)
    end = literal_number(operands[2], operands[0].size.max)
    size = (end - start) % (UNBOUNDED + 1)
    return allocating_estimate(1, Bounds(size, size))


def range_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    size = literal_number(operands[0], UNBOUNDED)
    return allocating_estimate(1, Bounds(size, size))


def flatten_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    depth = literal_number(operands[1], UNBOUNDED) if len(operands) == 2 else 1
    return allocating_estimate(float(depth), operands[0].size)


def reverse_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    return allocating_estimate(1, operands[0].size)


def squared(factor: float, at: int = 0) -> Estimate:
    def estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
        size = operands[at].size
        return allocating_estimate(factor, size * size)

    return estimate


def factor_of(kind: str) -> float:
    return 2 + TRAVERSAL if kind in ("string", "bytes") else 2.0


SORTS = tuple(f"list_{kind}_sort" for kind in TYPES)
SORTS_BY = tuple(f"list_{kind}_sortByAssociatedKeys" for kind in TYPES)
IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "list_slice": cut,
    "list_flatten": flatten,
    "list_flatten_int": flatten,
    "sort": sort,
    "@sortByAssociatedKeys": sort_by,
    "lists_range": numbers,
    "list_reverse": lambda items: list(elements(items))[::-1],
    "list_distinct": distinct,
}
LIBRARY = Library(
    "lists",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    dispatched=frozenset(("sort", "@sortByAssociatedKeys")),
    unguarded=frozenset(("flatten",)),
    costs={
        "list_slice": slice_cost,
        **for_all(("list_flatten", "list_flatten_int"), flatten_cost),
        "lists_range": lambda arguments: allocating(1, max(arguments[0], 0)),  # type: ignore[call-overload]
        "list_reverse": lambda arguments: allocating(1, cost_size(arguments[0])),
        **for_all((*SORTS, "list_distinct"), self_compare(0)),
        **for_all(SORTS_BY, self_compare(1)),
    },
    estimates={
        "list_slice": slice_estimate,
        **dict.fromkeys(("list_flatten", "list_flatten_int"), flatten_estimate),
        "lists_range": range_estimate,
        "list_reverse": reverse_estimate,
        "list_distinct": squared(2.0),
        **{f"list_{kind}_sort": squared(factor_of(kind)) for kind in TYPES},
        **{f"list_{kind}_sortByAssociatedKeys": squared(factor_of(kind), 1) for kind in TYPES},
    },
)
