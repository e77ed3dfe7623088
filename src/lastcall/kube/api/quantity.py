"""Quantities of resources: `100m`, `1.5Gi`, `2e3`.

Values are exact (`fractions.Fraction`); amounts finer than one billionth are rounded up to it, as Kubernetes does.
Source: apimachinery pkg/api/resource/quantity.go, suffix.go.
"""

# check: pure

import re
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from lastcall.world.dataclass import dataclass

Format = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
MAX_CHARACTERS, MAX_EXPONENT = 1000, 1000
"""Kubernetes has no such limits, and its API server hangs for minutes at `1e-2147483648`."""
TOO_LONG = f"quantities must have at most {MAX_CHARACTERS} characters and exponents at most {MAX_EXPONENT}"
FORMAT_ERROR = f"quantities must match the regular expression '{PATTERN}'"
SUFFIX_ERROR = "unable to parse quantity's suffix"

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_NAMES = {exponent: suffix for suffix, exponent in _BINARY.items()} | {0: ""}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)")
_INT64 = 2**63 - 1
_SPACES = " \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go trims and JSON need not escape."""


class QuantityError(ValueError):
    """The text is not a quantity; the message is Kubernetes's."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount and the notation it was written in. Two quantities are equal when their amounts are."""

    value: Fraction
    format: Format = "DecimalSI"

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: "Quantity") -> bool:
        return self.value < other.value

    def __le__(self, other: "Quantity") -> bool:
        return self.value <= other.value

    def __add__(self, other: "Quantity") -> "Quantity":
        """The sum; the notation of the left side, unless that is zero."""
        return Quantity(self.value + other.value, self.format if self.value else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.value - other.value, self.format if self.value else other.format)

    @property
    def milli(self) -> int:
        """Return the amount in thousandths, rounded up (cpu: `100m` is 100), within 64 bits."""
        return max(-_INT64, min(_ceil(self.value * 1000), _INT64))

    @property
    def whole(self) -> int:
        """Return the amount in units, rounded up (memory: bytes), within 64 bits."""
        return max(-_INT64, min(_ceil(self.value), _INT64))

    def __str__(self) -> str:
        """The canonical form: no fraction, the largest fitting suffix."""
        return _canonical(self.value, self.format)


def _ceil(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)


def _away_from_zero(value: Fraction) -> int:
    return _ceil(value) if value > 0 else -_ceil(-value)


def _canonical(value: Fraction, notation: Format) -> str:
    if value == 0:
        return "0"
    if notation == "BinarySI" and (-1024 < value < 1024 or value.denominator != 1):
        notation = "DecimalSI"  # small amounts and fractions (quantity.go:CanonicalizeBytes)
    if notation == "BinarySI":
        number, exponent = value.numerator, 0
        while number % 1024 == 0 and exponent < 60:
            number, exponent = number // 1024, exponent + 10
        return f"{number}{_BINARY_NAMES[exponent]}"
    number, exponent = _away_from_zero(value * 10**9), -9
    while number % 1000 == 0 and (exponent < 18 or notation == "DecimalExponent"):
        number, exponent = number // 1000, exponent + 3
    if notation == "DecimalExponent":
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_NAMES[exponent]}"


@lru_cache(maxsize=1024)
def _parse(text: str) -> Quantity:
    if len(text) > MAX_CHARACTERS:
        raise QuantityError(TOO_LONG)
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise QuantityError(FORMAT_ERROR)
    sign, whole, fraction, suffix = match.group(1), match.group(2), match.group(3) or "", match.group(4)
    if not whole and not fraction:
        raise QuantityError(FORMAT_ERROR)
    number = Fraction(int(whole + fraction), 10 ** len(fraction))
    notation: Format
    if suffix in _BINARY:
        value, notation = number * 2 ** _BINARY[suffix], "BinarySI"
    elif suffix in _DECIMAL:
        value, notation = number * Fraction(10) ** _DECIMAL[suffix], "DecimalSI"
    elif (exponent := _EXPONENT.fullmatch(suffix)) is not None:
        power = int(exponent.group(1)) if len(suffix) <= 12 else 2**31
        if not -(2**31) <= power < 2**31:
            raise QuantityError(SUFFIX_ERROR)
        if power > MAX_EXPONENT:
            raise QuantityError(TOO_LONG)
        # What is left of more than a thousand digits is rounded up to a billionth.
        value, notation = number * Fraction(10) ** max(-2 * MAX_CHARACTERS, power), "DecimalExponent"
    else:
        raise QuantityError(SUFFIX_ERROR)
    if notation == "BinarySI":
        value = min(value, Fraction(_INT64))
    value = Fraction(_away_from_zero(value * 10**9), 10**9)
    if notation == "BinarySI" and value.denominator != 1 and value < 1024:
        notation = "DecimalSI"
    return Quantity(-value if sign == "-" else value, notation)


def parse_quantity(value: str | int | float) -> Quantity:
    """Return the quantity written as a string or a JSON number. Raises `QuantityError`."""
    if isinstance(value, str):
        return _parse(value.strip(_SPACES))
    if isinstance(value, bool):
        raise QuantityError(FORMAT_ERROR)
    if isinstance(value, int) and value.bit_length() > 3 * MAX_CHARACTERS:
        raise QuantityError(TOO_LONG)
    return _parse(repr(value))


def canonical(value: str | int | float) -> str:
    """Return the form in which Kubernetes hands the quantity back: `0.5` is `500m`, `1024Mi` is `1Gi`."""
    return str(parse_quantity(value))


def canonical_in_list(value: str | int | float) -> str:
    """Return `canonical` of an amount in a list of resources, which is rounded up to a thousandth.

    (`SetDefaults_ResourceList`)
    """
    quantity = parse_quantity(value)
    if (quantity.value * 1000).denominator == 1:
        return str(quantity)
    return str(Quantity(Fraction(_away_from_zero(quantity.value * 1000), 1000), quantity.format))


def six_decimals(ratio: Fraction) -> str:
    """Format as `%f` does, also what no float can hold."""
    millionths = round(abs(ratio) * 10**6)
    return f"{'-' if ratio < 0 else ''}{millionths // 10**6}.{millionths % 10**6:06d}"


def is_positive(value: str | int | float) -> bool:
    """Return True for an amount above zero; False for zero, negative and unreadable ones."""
    try:
        return parse_quantity(value).value > 0
    except QuantityError:
        return False
