"""Operators that compute: sums, products, order (cel-go common/types, common/types/overflow.go)."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from lastcall.kube.cel.operations import (
    LISTS,
    MAX_CHARACTERS,
    MAX_ITEMS,
    PLAIN,
    compare,
    is_list,
    no_such_overload,
)
from lastcall.kube.cel.text import EARLIEST, LATEST, SECOND
from lastcall.kube.cel.values import CostExceeded, Duration, EvaluationError, Timestamp, Uint

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


def in_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def in_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def moment(nanoseconds: int, offset: int) -> Timestamp:
    if EARLIEST <= nanoseconds // SECOND <= LATEST:
        return Timestamp(nanoseconds, offset)
    raise EvaluationError("timestamp overflow")


def lacks(operator: str, value: object) -> EvaluationError:
    """Return the error for a left side without such an operator. Strings and times have methods to try first."""
    if value.__class__ in (str, Duration, Timestamp):
        return no_such_overload()
    return EvaluationError(f"no such overload: {operator}")


def add(left: Any, right: Any) -> object:
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            total = left + right
            return total if INT_MIN <= total <= INT_MAX else in_int(total)
        if kind is float:
            return left + right
        if kind is str or kind is bytes:
            if len(left) + len(right) > MAX_CHARACTERS:
                raise CostExceeded
            return left + right
        if kind is Uint:
            return in_uint(int(left) + int(right))
        if kind is Duration:
            return Duration(in_int(left.nanoseconds + right.nanoseconds))
    if kind is Timestamp and other is Duration:
        return moment(left.nanoseconds + right.nanoseconds, left.offset)
    if kind is Duration and other is Timestamp:
        return moment(left.nanoseconds + right.nanoseconds, right.offset)
    if is_list(left):
        return concatenated(left, right)
    if kind in (int, Uint, float, str, bytes, Duration, Timestamp):
        raise no_such_overload()
    raise lacks("_+_", left)


def concatenated(left: Any, right: Any) -> object:
    if left.__class__ not in LISTS:
        return left.plus(right)
    if not is_list(right):
        raise no_such_overload()
    if not len(right):
        return left
    if not len(left):
        return right
    if len(left) + len(right) > MAX_ITEMS:
        raise CostExceeded
    return [*left, *right]


def subtract(left: Any, right: Any) -> object:
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            return in_int(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return in_uint(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return Duration(in_int(left.nanoseconds - right.nanoseconds))
    if kind is Timestamp and other is Duration:
        in_int(-right.nanoseconds)
        return moment(left.nanoseconds - right.nanoseconds, left.offset)
    if kind in (int, Uint, float, Duration, Timestamp):
        raise no_such_overload()
    raise lacks("_-_", left)


def multiply(left: Any, right: Any) -> object:
    kind = left.__class__
    if kind is not right.__class__ or kind not in (int, Uint, float):
        raise no_such_overload() if kind in (int, Uint, float) else lacks("_*_", left)
    if kind is int:
        return in_int(left * right)
    return left * right if kind is float else in_uint(int(left) * int(right))


def divide(left: Any, right: Any) -> object:
    kind = left.__class__
    if kind is not right.__class__ or kind not in (int, Uint, float):
        raise no_such_overload() if kind in (int, Uint, float) else lacks("_/_", left)
    if kind is float:
        if right:
            return left / right
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    if not right:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    if kind is Uint:
        return Uint(quotient)
    return in_int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> object:
    kind = left.__class__
    if kind is not right.__class__ or kind not in (int, Uint):
        raise no_such_overload() if kind in (int, Uint) else lacks("_%_", left)
    if not right:
        raise EvaluationError("modulus by zero")
    if kind is Uint:
        return Uint(left % right)
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    rest: int = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negate(value: Any) -> object:
    if value.__class__ is int:
        return in_int(-value)
    if value.__class__ is float:
        return -value
    if value.__class__ is Duration:
        return Duration(in_int(-value.nanoseconds))
    raise no_such_overload() if value.__class__ is bool else lacks("-_", value)


def logical_not(value: object) -> object:
    if value is True:
        return False
    if value is False:
        return True
    raise no_such_overload()


def order(operator: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    """Make a comparison from what of -1, 0 and 1 makes it true."""
    true_for = frozenset(result for result in (-1, 0, 1) if holds(result))

    def compared(left: Any, right: Any) -> bool:
        if left.__class__ is int and right.__class__ is int:
            return (-1 if left < right else 1 if left > right else 0) in true_for
        if left.__class__ not in PLAIN or left is None:
            raise lacks(operator, left)
        return compare(left, right) in true_for

    return compared


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": logical_not,
    "_<_": order("_<_", lambda result: result < 0),
    "_<=_": order("_<=_", lambda result: result <= 0),
    "_>_": order("_>_", lambda result: result > 0),
    "_>=_": order("_>=_", lambda result: result >= 0),
}


def total(start: object, values: Sequence[object]) -> object:
    for value in values:
        start = add(start, value)
    return start
