"""Optional values, version 2 (cel-go cel/library.go)."""

from collections.abc import Callable
from typing import Any

from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.operations import elements, is_list, is_map
from lastcall.kube.cel.text import shown
from lastcall.kube.cel.types import DYN, optional_of
from lastcall.kube.cel.values import NONE, NOTHING, Duration, EvaluationError, Optional, Timestamp, Uint

ROWS = """
optional.of              optional_of                           (V) -> optional_type(V)
optional.ofNonZeroValue  optional_ofNonZeroValue               (V) -> optional_type(V)
optional.none            optional_none                         () -> optional_type(V)
value                    optional_value                        optional_type(V).() -> V
hasValue                 optional_hasValue                     optional_type(V).() -> bool
or                       optional_or_optional                  optional_type(V).(optional_type(V)) -> optional_type(V)
orValue                  optional_orValue_value                optional_type(V).(V) -> V
_?._                     select_optional_field                 (dyn, string) -> optional_type(V)
_[?_]                    list_optindex_optional_int            (list(V), int) -> optional_type(V)
_[?_]                    optional_list_optindex_optional_int   (optional_type(list(V)), int) -> optional_type(V)
_[?_]                    map_optindex_optional_value           (map(K, V), K) -> optional_type(V)
_[?_]                    optional_map_optindex_optional_value  (optional_type(map(K, V)), K) -> optional_type(V)
_[_]                     optional_list_index_int               (optional_type(list(V)), int) -> optional_type(V)
_[_]                     optional_map_index_value              (optional_type(map(K, V)), K) -> optional_type(V)
last                     list_last                             list(V).() -> optional_type(V)
first                    list_first                            list(V).() -> optional_type(V)
optional.unwrap          optional_unwrap                       (list(optional_type(V))) -> list(V)
unwrapOpt                optional_unwrapOpt                    list(optional_type(V)).() -> list(V)
"""

ZEROES = {bool: False, int: 0, Uint: 0, float: 0.0, str: "", bytes: b"", Duration: Duration(0)}
ZERO_TIME = -62135596800 * 10**9
"""Go's zero time, the first moment of the year 1."""


def is_zero(value: Any) -> bool:
    if value is None:
        return True
    if value.__class__ in ZEROES:
        return bool(value == ZEROES[value.__class__])
    if isinstance(value, Timestamp):
        return value.nanoseconds == ZERO_TIME
    return (is_list(value) or is_map(value)) and not len(value)


def of_non_zero(value: object) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def value_of(optional: Optional) -> object:
    if optional.value is NOTHING:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def unwrap(optionals: Any) -> list[object]:
    values = []
    for optional in elements(optionals):
        if not isinstance(optional, Optional):
            raise EvaluationError(f"value {shown(optional)} is not optional")
        if optional.value is not NOTHING:
            values.append(optional.value)
    return values


def first(items: Any) -> Optional:
    return Optional(next(elements(items))) if len(items) else NONE


def last(items: Any) -> Optional:
    return Optional(list(elements(items))[-1]) if len(items) else NONE


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "optional_of": Optional,
    "optional_ofNonZeroValue": of_non_zero,
    "optional_none": lambda: NONE,
    "optional_value": value_of,
    "optional_hasValue": lambda optional: optional.value is not NOTHING,
    "list_last": last,
    "list_first": first,
    "optional_unwrap": unwrap,
    "optional_unwrapOpt": unwrap,
}
LIBRARY = Library(
    "optionals",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    types={"optional_type": optional_of(DYN)},
)
