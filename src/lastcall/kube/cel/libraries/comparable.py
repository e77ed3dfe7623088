"""Lists whose elements compare: sums, extremes, order, places (apiserver pkg/cel/library/lists.go)."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from lastcall.kube.cel.bounds import Bounds, Operand
from lastcall.kube.cel.libraries.arithmetic import total
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import TRAVERSAL, deep_traversal, for_all
from lastcall.kube.cel.operations import compare, elements, equal
from lastcall.kube.cel.values import Duration, EvaluationError, Uint

ROWS = """
isSorted     list_int_is_sorted_bool        list(int).() -> bool
isSorted     list_uint_is_sorted_bool       list(uint).() -> bool
isSorted     list_double_is_sorted_bool     list(double).() -> bool
isSorted     list_bool_is_sorted_bool       list(bool).() -> bool
isSorted     list_duration_is_sorted_bool   list(duration).() -> bool
isSorted     list_timestamp_is_sorted_bool  list(timestamp).() -> bool
isSorted     list_string_is_sorted_bool     list(string).() -> bool
isSorted     list_bytes_is_sorted_bool      list(bytes).() -> bool
sum          list_int_sum_int               list(int).() -> int
sum          list_uint_sum_uint             list(uint).() -> uint
sum          list_double_sum_double         list(double).() -> double
sum          list_duration_sum_duration     list(duration).() -> duration
max          list_int_max_int               list(int).() -> int
max          list_uint_max_uint             list(uint).() -> uint
max          list_double_max_double         list(double).() -> double
max          list_bool_max_bool             list(bool).() -> bool
max          list_duration_max_duration     list(duration).() -> duration
max          list_timestamp_max_timestamp   list(timestamp).() -> timestamp
max          list_string_max_string         list(string).() -> string
max          list_bytes_max_bytes           list(bytes).() -> bytes
min          list_int_min_int               list(int).() -> int
min          list_uint_min_uint             list(uint).() -> uint
min          list_double_min_double         list(double).() -> double
min          list_bool_min_bool             list(bool).() -> bool
min          list_duration_min_duration     list(duration).() -> duration
min          list_timestamp_min_timestamp   list(timestamp).() -> timestamp
min          list_string_min_string         list(string).() -> string
min          list_bytes_min_bytes           list(bytes).() -> bytes
indexOf      list_a_index_of_int            list(A).(A) -> int
lastIndexOf  list_a_last_index_of_int       list(A).(A) -> int
"""

ZEROES = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
TYPES = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def is_sorted(items: Any) -> bool:
    values = list(elements(items))
    return all(compare(before, after) <= 0 for before, after in pairwise(values))


def sum_from(zero: object) -> Callable[[Any], object]:
    return lambda items: total(zero, list(elements(items)))


def extreme(name: str, replaces: int) -> Callable[[Any], object]:
    """Make the search for the first element that no other is beyond; `replaces`: how a worse compares with a better."""

    def found(items: Any) -> object:
        values = elements(items)
        if not len(items):
            raise EvaluationError(f"{name} called on empty list")
        best = next(values)
        for value in values:
            if compare(best, value) == replaces:
                best = value
        return best

    return found


def index_of(items: Any, wanted: object) -> int:
    return next((at for at, item in enumerate(elements(items)) if equal(item, wanted)), -1)


def last_index_of(items: Any, wanted: object) -> int:
    values = list(elements(items))
    return next((at for at in range(len(values) - 1, -1, -1) if equal(values[at], wanted)), -1)


def each_compared(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    element, cost = operands[0].element(), Bounds(1, 1)
    if element and element.type.kind in ("string", "bytes"):
        cost += element.size.times(TRAVERSAL)
    return operands[0].size * cost, None


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    **{f"list_{kind}_is_sorted_bool": is_sorted for kind in TYPES},
    **{f"list_{kind}_sum_{kind}": sum_from(zero) for kind, zero in ZEROES.items()},
    **{f"list_{kind}_max_{kind}": extreme("max", -1) for kind in TYPES},
    **{f"list_{kind}_min_{kind}": extreme("min", 1) for kind in TYPES},
    "list_a_index_of_int": index_of,
    "list_a_last_index_of_int": last_index_of,
}
LIBRARY = Library(
    "comparable",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs=for_all(IMPLEMENTATIONS, lambda arguments: deep_traversal(arguments[0])),
    estimates=dict.fromkeys(IMPLEMENTATIONS, each_compared),
)
