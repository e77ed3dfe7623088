"""Numbers in text as Go reads them: plain ASCII digits, bounded, None for invalid text.

What components read from annotations, labels, status and queries goes through here: Python's own `int` takes `1_000`,
` 1 `, `٣`, and stops with an error at 4 300 digits. Sources: Go's strconv/atoi.go, time/format.go (ParseDuration),
apimachinery pkg/util/intstr/intstr.go.
"""

from typing import Any

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.text.times import quoted

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_DIGITS = frozenset("0123456789")
_LONGEST = 21
"""More digits have no number of 64 bits."""

_MICROSECOND, _MILLISECOND, SECOND = 10**3, 10**6, 10**9
_UNITS = {
    "ns": 1, "us": _MICROSECOND, "\u00b5s": _MICROSECOND, "\u03bcs": _MICROSECOND, "ms": _MILLISECOND, "s": SECOND,
    "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip


class NumberError(ValueError):
    """The text is no such number; the message is Go's."""


def parse_int(text: str, bits: int = 64, function: str = "strconv.ParseInt") -> int:
    """Parse a signed whole number of so many bits; `function` is the one that Go names. Raises NumberError."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not _DIGITS.issuperset(digits):
        raise NumberError(f"{function}: parsing {go_quote(text)}: invalid syntax")
    digits = digits.lstrip("0") or "0"
    number = int(digits) if len(digits) < _LONGEST else 10**_LONGEST
    number = -number if text[0] == "-" else number
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise NumberError(f"{function}: parsing {go_quote(text)}: value out of range")
    return number


def parse_uint(text: str, bits: int = 64) -> int:
    """Parse an unsigned whole number of so many bits. Raises NumberError. (`strconv.ParseUint`)"""
    function = "strconv.ParseUint"
    if text[:1] in ("+", "-"):
        raise NumberError(f"{function}: parsing {go_quote(text)}: invalid syntax")
    number = parse_int(text, bits + 1, function)
    if number >= 1 << bits:
        raise NumberError(f"{function}: parsing {go_quote(text)}: value out of range")
    return number


def int_of(text: str | None, bits: int = 64) -> int | None:
    """Parse as `parse_int` does; None for invalid text."""
    if text is None:
        return None
    try:
        return parse_int(text, bits)
    except NumberError:
        return None


def is_int64(value: Any) -> bool:
    """Return whether decoded JSON is a whole number of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -INT64_MAX - 1 <= value <= INT64_MAX


def is_percent(value: Any) -> bool:
    """Return whether a value is `N%`. (`IsValidPercent`)"""
    return isinstance(value, str) and len(value) > 1 and value[-1] == "%" and _DIGITS.issuperset(value[:-1])


def percent_of(value: str) -> int:
    """Return the number of an `N%`, at most 2^63-1; 0 for anything else. (`getIntOrPercentValue`)"""
    if not is_percent(value):
        return 0
    number = int_of(value[:-1])
    return INT64_MAX if number is None else number


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """Return a count, or a percentage of `total` rounded up or down; at most 2^31-1.
    (`GetScaledValueFromIntOrPercent`)"""
    if not isinstance(value, str):
        return value or 0
    share = percent_of(value) * total
    return min(-(-share // 100) if up else share // 100, INT32_MAX)


def parse_duration(text: str) -> int:
    """Return the nanoseconds of `1h30m`, `1.5s`, … Raises NumberError. (`time.ParseDuration`)"""
    wrong = NumberError(f"time: invalid duration {quoted(text)}")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise wrong
    total = 0
    while rest:
        whole, rest = _leading(rest)
        fraction = ""
        if rest.startswith("."):
            fraction, rest = _leading(rest[1:])
        if not whole and not fraction:
            raise wrong
        unit = rest[: next((at for at, sign in enumerate(rest) if sign == "." or sign in _DIGITS), len(rest))]
        if not unit:
            raise NumberError(f"time: missing unit in duration {quoted(text)}")
        if unit not in _UNITS:
            raise NumberError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
        rest = rest[len(unit) :]
        whole = whole.lstrip("0")
        if len(whole) >= _LONGEST:
            raise wrong
        total += int(whole or 0) * _UNITS[unit]
        total += _share(fraction, _UNITS[unit])
        if total > INT64_MAX + 1:
            raise wrong
    total = -total if text[0] == "-" else total
    if total > INT64_MAX:
        raise wrong
    return total


def _share(digits: str, unit: int) -> int:
    """The digits behind the point, up to 64 bits, of a unit. (`leadingFraction`)"""
    number, scale = 0, 1
    for digit in digits[:400]:
        if (more := number * 10 + int(digit)) > INT64_MAX:
            break
        number, scale = more, scale * 10
    return int(number * (unit / scale))


def _leading(text: str) -> tuple[str, str]:
    end = next((at for at, sign in enumerate(text) if sign not in _DIGITS), len(text))
    return text[:end], text[end:]
