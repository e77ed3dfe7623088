"""Quantities of resources (apiserver pkg/cel/library/quantity.go)."""

import math
import re
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from typing import ClassVar

from lastcall.kube.api.quantity import Quantity, QuantityError, parse_quantity
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import always, first_traversed, for_all, one, read_once
from lastcall.kube.cel.values import EvaluationError
from lastcall.world.dataclass import dataclass

ROWS = """
quantity            string_to_quantity        (string) -> Quantity
isQuantity          is_quantity_string        (string) -> bool
sign                quantity_sign             (Quantity) -> int
isGreaterThan       quantity_is_greater_than  Quantity.(Quantity) -> bool
isLessThan          quantity_is_less_than     Quantity.(Quantity) -> bool
compareTo           quantity_compare_to       Quantity.(Quantity) -> int
asApproximateFloat  quantity_get_float        Quantity.() -> double
asInteger           quantity_get_int          Quantity.() -> int
isInteger           quantity_is_integer       Quantity.() -> bool
add                 quantity_add              Quantity.(Quantity) -> Quantity
add                 quantity_add_int          Quantity.(int) -> Quantity
sub                 quantity_sub              Quantity.(Quantity) -> Quantity
sub                 quantity_sub_int          Quantity.(int) -> Quantity
"""

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
NOTATION = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?(?:([eE])([+-]?[0-9]+)|([a-zA-Z]*))\Z", re.ASCII)
INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity; `scale` is the power of ten that it counts in, None when Kubernetes keeps it as a big decimal.

    Only an amount with a scale of 0 or more is an integer: `1000m` is not. (apimachinery quantity.go, amount.go)
    """

    value: Quantity
    scale: int | None = field(compare=False)
    cel_type: ClassVar[str] = "kubernetes.Quantity"
    cel_unit: ClassVar[bool] = True


def scale_of(text: str) -> int | None:
    found = NOTATION.match(text)
    if found is None:
        return None
    whole, fraction = found[1].lstrip("0") or "0", found[2] or ""
    factor = 1
    if found[5] in BINARY:
        power = BINARY[found[5]]
        if fraction or 15 - len(whole) - int(power * 3 / 10) - 1 < 0:
            return None
        factor, scale = 1 << power, 0
    else:
        scale = int(found[4]) if found[3] else DECIMAL.get(found[5], 0)
        if 18 - len(whole) - len(fraction) < 0:
            return None
    scale -= len(fraction)
    return scale if scale >= -9 and int(whole + fraction) * factor <= INT64 else None


def read(text: str) -> Amount:
    try:
        return Amount(parse_quantity(text), scale_of(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def sign(amount: Amount) -> int:
    value = amount.value.value
    return -1 if value < 0 else 1 if value > 0 else 0


def compare(left: Amount, right: Amount) -> int:
    return -1 if left.value < right.value else 0 if left.value == right.value else 1


def is_integer(amount: Amount) -> bool:
    return amount.scale is not None and amount.scale >= 0 and abs(amount.value.value) <= INT64


def as_integer(amount: Amount) -> int:
    if not is_integer(amount):
        raise EvaluationError("cannot convert value to integer")
    return int(amount.value.value)


def as_float(amount: Amount) -> float:
    try:
        return float(amount.value.value)
    except OverflowError:
        return math.copysign(math.inf, amount.value.value)


def combined(value: Quantity, left: Amount, right: Amount) -> Amount:
    if left.scale is None or right.scale is None:
        return Amount(value, None)
    scale = min(left.scale, right.scale) if left.value.value and right.value.value else right.scale
    if not right.value.value:
        scale = left.scale
    counted = value.value / Fraction(10) ** scale
    return Amount(value, scale if abs(counted) <= INT64 else None)


def whole(value: int) -> Amount:
    return Amount(Quantity(Fraction(value), "DecimalExponent"), 0)


def add(left: Amount, right: Amount) -> Amount:
    return combined(left.value + right.value, left, right)


def subtract(left: Amount, right: Amount) -> Amount:
    return combined(left.value - right.value, left, right)


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_to_quantity": read,
    "is_quantity_string": is_quantity,
    "quantity_sign": sign,
    "quantity_is_greater_than": lambda left, right: compare(left, right) > 0,
    "quantity_is_less_than": lambda left, right: compare(left, right) < 0,
    "quantity_compare_to": compare,
    "quantity_get_float": as_float,
    "quantity_get_int": as_integer,
    "quantity_is_integer": is_integer,
    "quantity_add": add,
    "quantity_add_int": lambda left, right: add(left, whole(right)),
    "quantity_sub": subtract,
    "quantity_sub_int": lambda left, right: subtract(left, whole(right)),
}
READS = ("string_to_quantity", "is_quantity_string")
LIBRARY = Library(
    "quantity",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={**for_all(IMPLEMENTATIONS, one), **for_all(READS, first_traversed())},
    estimates={**dict.fromkeys(IMPLEMENTATIONS, always(1)), **dict.fromkeys(READS, read_once())},
)
