"""The standard library: operators, conversions, sizes, strings, times (cel-go common/stdlib/standard.go)."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from lastcall.kube.api.custom.patterns import pattern
from lastcall.kube.cel.bounds import UNBOUNDED, Bounds, Operand
from lastcall.kube.cel.libraries import arithmetic, conversions, times
from lastcall.kube.cel.libraries.library import Estimate, Implementation, Library, RuntimeCost, declared
from lastcall.kube.cel.libraries.measures import (
    TRAVERSAL,
    find_cost,
    find_estimate,
    first_traversed,
    for_all,
    traversal,
)
from lastcall.kube.cel.operations import NAMES, contains, cost_size, equal, no_such_overload, size_of
from lastcall.kube.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    type_of,
)
from lastcall.kube.cel.values import EvaluationError

TEXTS = ("string", "bytes")

ROWS = """
_?_:_                conditional                                (bool, A, A) -> A
_&&_                 logical_and                                (bool, bool) -> bool
_||_                 logical_or                                 (bool, bool) -> bool
!_                   logical_not                                (bool) -> bool
@not_strictly_false  not_strictly_false                         (bool) -> bool
_==_                 equals                                     (A, A) -> bool
_!=_                 not_equals                                 (A, A) -> bool
_+_                  add_bytes                                  (bytes, bytes) -> bytes
_+_                  add_double                                 (double, double) -> double
_+_                  add_duration_duration                      (duration, duration) -> duration
_+_                  add_duration_timestamp                     (duration, timestamp) -> timestamp
_+_                  add_timestamp_duration                     (timestamp, duration) -> timestamp
_+_                  add_int64                                  (int, int) -> int
_+_                  add_list                                   (list(A), list(A)) -> list(A)
_+_                  add_string                                 (string, string) -> string
_+_                  add_uint64                                 (uint, uint) -> uint
_/_                  divide_double                              (double, double) -> double
_/_                  divide_int64                               (int, int) -> int
_/_                  divide_uint64                              (uint, uint) -> uint
_%_                  modulo_int64                               (int, int) -> int
_%_                  modulo_uint64                              (uint, uint) -> uint
_*_                  multiply_double                            (double, double) -> double
_*_                  multiply_int64                             (int, int) -> int
_*_                  multiply_uint64                            (uint, uint) -> uint
-_                   negate_double                              (double) -> double
-_                   negate_int64                               (int) -> int
_-_                  subtract_double                            (double, double) -> double
_-_                  subtract_duration_duration                 (duration, duration) -> duration
_-_                  subtract_int64                             (int, int) -> int
_-_                  subtract_timestamp_duration                (timestamp, duration) -> timestamp
_-_                  subtract_timestamp_timestamp               (timestamp, timestamp) -> duration
_-_                  subtract_uint64                            (uint, uint) -> uint
_<_                  less_bool                                  (bool, bool) -> bool
_<_                  less_int64                                 (int, int) -> bool
_<_                  less_int64_double                          (int, double) -> bool
_<_                  less_int64_uint64                          (int, uint) -> bool
_<_                  less_uint64                                (uint, uint) -> bool
_<_                  less_uint64_double                         (uint, double) -> bool
_<_                  less_uint64_int64                          (uint, int) -> bool
_<_                  less_double                                (double, double) -> bool
_<_                  less_double_int64                          (double, int) -> bool
_<_                  less_double_uint64                         (double, uint) -> bool
_<_                  less_string                                (string, string) -> bool
_<_                  less_bytes                                 (bytes, bytes) -> bool
_<_                  less_timestamp                             (timestamp, timestamp) -> bool
_<_                  less_duration                              (duration, duration) -> bool
_<=_                 less_equals_bool                           (bool, bool) -> bool
_<=_                 less_equals_int64                          (int, int) -> bool
_<=_                 less_equals_int64_double                   (int, double) -> bool
_<=_                 less_equals_int64_uint64                   (int, uint) -> bool
_<=_                 less_equals_uint64                         (uint, uint) -> bool
_<=_                 less_equals_uint64_double                  (uint, double) -> bool
_<=_                 less_equals_uint64_int64                   (uint, int) -> bool
_<=_                 less_equals_double                         (double, double) -> bool
_<=_                 less_equals_double_int64                   (double, int) -> bool
_<=_                 less_equals_double_uint64                  (double, uint) -> bool
_<=_                 less_equals_string                         (string, string) -> bool
_<=_                 less_equals_bytes                          (bytes, bytes) -> bool
_<=_                 less_equals_timestamp                      (timestamp, timestamp) -> bool
_<=_                 less_equals_duration                       (duration, duration) -> bool
_>_                  greater_bool                               (bool, bool) -> bool
_>_                  greater_int64                              (int, int) -> bool
_>_                  greater_int64_double                       (int, double) -> bool
_>_                  greater_int64_uint64                       (int, uint) -> bool
_>_                  greater_uint64                             (uint, uint) -> bool
_>_                  greater_uint64_double                      (uint, double) -> bool
_>_                  greater_uint64_int64                       (uint, int) -> bool
_>_                  greater_double                             (double, double) -> bool
_>_                  greater_double_int64                       (double, int) -> bool
_>_                  greater_double_uint64                      (double, uint) -> bool
_>_                  greater_string                             (string, string) -> bool
_>_                  greater_bytes                              (bytes, bytes) -> bool
_>_                  greater_timestamp                          (timestamp, timestamp) -> bool
_>_                  greater_duration                           (duration, duration) -> bool
_>=_                 greater_equals_bool                        (bool, bool) -> bool
_>=_                 greater_equals_int64                       (int, int) -> bool
_>=_                 greater_equals_int64_double                (int, double) -> bool
_>=_                 greater_equals_int64_uint64                (int, uint) -> bool
_>=_                 greater_equals_uint64                      (uint, uint) -> bool
_>=_                 greater_equals_uint64_double               (uint, double) -> bool
_>=_                 greater_equals_uint64_int64                (uint, int) -> bool
_>=_                 greater_equals_double                      (double, double) -> bool
_>=_                 greater_equals_double_int64                (double, int) -> bool
_>=_                 greater_equals_double_uint64               (double, uint) -> bool
_>=_                 greater_equals_string                      (string, string) -> bool
_>=_                 greater_equals_bytes                       (bytes, bytes) -> bool
_>=_                 greater_equals_timestamp                   (timestamp, timestamp) -> bool
_>=_                 greater_equals_duration                    (duration, duration) -> bool
_[_]                 index_list                                 (list(A), int) -> A
_[_]                 index_map                                  (map(A, B), A) -> B
@in                  in_list                                    (A, list(A)) -> bool
@in                  in_map                                     (A, map(A, B)) -> bool
size                 size_bytes                                 (bytes) -> int
size                 bytes_size                                 bytes.() -> int
size                 size_list                                  (list(A)) -> int
size                 list_size                                  list(A).() -> int
size                 size_map                                   (map(A, B)) -> int
size                 map_size                                   map(A, B).() -> int
size                 size_string                                (string) -> int
size                 string_size                                string.() -> int
type                 type                                       (A) -> type(A)
bool                 bool_to_bool                               (bool) -> bool
bool                 string_to_bool                             (string) -> bool
bytes                bytes_to_bytes                             (bytes) -> bytes
bytes                string_to_bytes                            (string) -> bytes
double               double_to_double                           (double) -> double
double               int64_to_double                            (int) -> double
double               string_to_double                           (string) -> double
double               uint64_to_double                           (uint) -> double
duration             duration_to_duration                       (duration) -> duration
duration             int64_to_duration                          (int) -> duration
duration             string_to_duration                         (string) -> duration
dyn                  to_dyn                                     (A) -> dyn
int                  int64_to_int64                             (int) -> int
int                  double_to_int64                            (double) -> int
int                  duration_to_int64                          (duration) -> int
int                  string_to_int64                            (string) -> int
int                  timestamp_to_int64                         (timestamp) -> int
int                  uint64_to_int64                            (uint) -> int
string               string_to_string                           (string) -> string
string               bool_to_string                             (bool) -> string
string               bytes_to_string                            (bytes) -> string
string               double_to_string                           (double) -> string
string               duration_to_string                         (duration) -> string
string               int64_to_string                            (int) -> string
string               timestamp_to_string                        (timestamp) -> string
string               uint64_to_string                           (uint) -> string
timestamp            timestamp_to_timestamp                     (timestamp) -> timestamp
timestamp            int64_to_timestamp                         (int) -> timestamp
timestamp            string_to_timestamp                        (string) -> timestamp
uint                 uint64_to_uint64                           (uint) -> uint
uint                 double_to_uint64                           (double) -> uint
uint                 int64_to_uint64                            (int) -> uint
uint                 string_to_uint64                           (string) -> uint
contains             contains_string                            string.(string) -> bool
endsWith             ends_with_string                           string.(string) -> bool
startsWith           starts_with_string                         string.(string) -> bool
matches              matches                                    (string, string) -> bool
matches              matches_string                             string.(string) -> bool
getFullYear          timestamp_to_year                          timestamp.() -> int
getFullYear          timestamp_to_year_with_tz                  timestamp.(string) -> int
getMonth             timestamp_to_month                         timestamp.() -> int
getMonth             timestamp_to_month_with_tz                 timestamp.(string) -> int
getDayOfYear         timestamp_to_day_of_year                   timestamp.() -> int
getDayOfYear         timestamp_to_day_of_year_with_tz           timestamp.(string) -> int
getDayOfMonth        timestamp_to_day_of_month                  timestamp.() -> int
getDayOfMonth        timestamp_to_day_of_month_with_tz          timestamp.(string) -> int
getDate              timestamp_to_day_of_month_1_based          timestamp.() -> int
getDate              timestamp_to_day_of_month_1_based_with_tz  timestamp.(string) -> int
getDayOfWeek         timestamp_to_day_of_week                   timestamp.() -> int
getDayOfWeek         timestamp_to_day_of_week_with_tz           timestamp.(string) -> int
getHours             timestamp_to_hours                         timestamp.() -> int
getHours             timestamp_to_hours_with_tz                 timestamp.(string) -> int
getHours             duration_to_hours                          duration.() -> int
getMinutes           timestamp_to_minutes                       timestamp.() -> int
getMinutes           timestamp_to_minutes_with_tz               timestamp.(string) -> int
getMinutes           duration_to_minutes                        duration.() -> int
getSeconds           timestamp_to_seconds                       timestamp.() -> int
getSeconds           timestamp_to_seconds_tz                    timestamp.(string) -> int
getSeconds           duration_to_seconds                        duration.() -> int
getMilliseconds      timestamp_to_milliseconds                  timestamp.() -> int
getMilliseconds      timestamp_to_milliseconds_with_tz          timestamp.(string) -> int
getMilliseconds      duration_to_milliseconds                   duration.() -> int
"""

TYPES: dict[str, Type] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "google.protobuf.Duration": DURATION,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "string": STRING,
    "google.protobuf.Timestamp": TIMESTAMP,
    "type": type_of(DYN),
    "uint": UINT,
}


def matches(text: Any, regex: Any) -> bool:
    if not isinstance(text, str) or not isinstance(regex, str):
        raise no_such_overload()
    found = pattern(regex)
    if found.error:
        raise EvaluationError(found.error)
    return found.matches(text)


def of_texts(test: Callable[[str, str], bool]) -> Implementation:
    def tested(text: object, part: object) -> bool:
        if isinstance(text, str) and isinstance(part, str):
            return test(text, part)
        raise no_such_overload()

    return tested


def contained(element: object, container: object) -> bool:
    return contains(container, element)


def size(value: object) -> int:
    found = size_of(value)
    if found is None:
        raise arithmetic.lacks("size", value)
    return found


def smaller(arguments: Sequence[object]) -> int:
    """Return the cost of reading both sides up to the end of the shorter one."""
    return math.ceil(min(cost_size(arguments[0]), cost_size(arguments[1])) * TRAVERSAL)


def both(arguments: Sequence[object]) -> int:
    return math.ceil((cost_size(arguments[0]) + cost_size(arguments[1])) * TRAVERSAL)


def search(arguments: Sequence[object]) -> int:
    return traversal(arguments[0]) * traversal(arguments[1])


def cost_of_equality(arguments: Sequence[object]) -> int:
    left = arguments[0]
    return 1 if left.__class__ not in NAMES and getattr(left, "cel_unit", False) else smaller(arguments)


COSTS: dict[str, RuntimeCost] = {
    **for_all(("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"), first_traversed()),
    **for_all(
        (f"{order}_{kind}" for order in ("less", "less_equals", "greater", "greater_equals") for kind in TEXTS),
        smaller,
    ),
    "in_list": lambda arguments: cost_size(arguments[1]),
    "equals": cost_of_equality,
    "not_equals": smaller,
    "add_string": both,
    "add_bytes": both,
    "matches_string": find_cost,
    "contains_string": search,
}


def read_estimate(at: int, sized: Callable[[Bounds], Bounds] | None = None) -> Estimate:
    def estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
        size = operands[at].size
        return size.times(TRAVERSAL), sized(size) if sized else None

    return estimate


def smaller_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    most = min(operands[0].size.max, operands[1].size.max)
    return Bounds(1 if most else 0, most).times(TRAVERSAL), None


def equality_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    left, right = operands[0].type, operands[1].type
    if left == right and left.name in UNITS:
        return Bounds(1, 1), None
    if left == right and left.name == "kubernetes.NamedFormat":
        return Bounds(1, MAX_FORMAT).times(TRAVERSAL), None
    if left == right and left.name == "kubernetes.URL":
        known = operands[1].known_size
        return Bounds(1, known.max if known else 1).times(TRAVERSAL), None
    return smaller_estimate(operands)


def text_sum_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    size = operands[0].size + operands[1].size
    return size.times(TRAVERSAL), size


def list_sum_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    return Bounds(1, 1), operands[0].size + operands[1].size


def matches_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    return find_estimate(operands)[0], None


def search_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    return operands[0].size.times(TRAVERSAL) * operands[1].size.times(TRAVERSAL), None


UNITS = frozenset(
    (
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        *(
            f"kubernetes.authorization.{name}"
            for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
        ),
    )
)
"""Types whose equality costs 1."""
MAX_FORMAT = 64
ESTIMATES: dict[str, Estimate] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), read_estimate(1)),
    "string_to_bytes": read_estimate(0, lambda size: Bounds(size.min, min(size.max * 4, UNBOUNDED))),
    "bytes_to_string": read_estimate(0, lambda size: Bounds(size.min // 4, size.max)),
    **{
        f"{order}_{kind}": smaller_estimate
        for order in ("less", "less_equals", "greater", "greater_equals")
        for kind in TEXTS
    },
    "in_list": lambda operands: (operands[1].size, None),
    "equals": equality_estimate,
    "not_equals": smaller_estimate,
    **dict.fromkeys(("add_string", "add_bytes"), text_sum_estimate),
    "add_list": list_sum_estimate,
    "matches_string": matches_estimate,
    "contains_string": search_estimate,
}
"""`&&`, `||` and `?:` are the estimator's own business: they charge for what they evaluate only."""

LIBRARY = Library(
    "standard",
    declared(ROWS),
    implementations={
        **arithmetic.IMPLEMENTATIONS,
        **conversions.IMPLEMENTATIONS,
        **times.IMPLEMENTATIONS,
        "_==_": equal,
        "_!=_": lambda left, right: not equal(left, right),
        "@in": contained,
        "size": size,
        "contains_string": of_texts(str.__contains__),
        "starts_with_string": of_texts(str.startswith),
        "ends_with_string": of_texts(str.endswith),
        "matches": matches,
    },
    dispatched=frozenset((*arithmetic.IMPLEMENTATIONS, "_==_", "_!=_", "@in", "size", "type", "dyn", "matches")),
    unguarded=frozenset(("contains", "startsWith", "endsWith")),
    costs=COSTS,
    estimates=ESTIMATES,
    types=TYPES,
)
