"""`string.format`: `%s %d %f %e %b %x %X %o %%` (cel-go ext/formatting.go).

Numbers of `%f` and `%e` are written as golang.org/x/text does it for American English: thousands in groups, exponents
as a power of ten.
"""

import math
import re
from collections.abc import Callable
from typing import Any

from lastcall.kube.api.field import go_quote
from lastcall.kube.cel.operations import MAX_CHARACTERS, elements, find, is_list, is_map, keys_of, type_name
from lastcall.kube.cel.text import short_float, written_duration, written_timestamp
from lastcall.kube.cel.values import CostExceeded, Duration, EvaluationError, Timestamp, TypeValue, Uint

CLAUSE = re.compile(r"%(?:\.([0-9]*))?(.?)", re.DOTALL)
SPECIAL = ("NaN", "Infinity", "-Infinity")
PRECISION = 6
MAX_PRECISION = 100_000
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def wrong(what: str, value: object) -> EvaluationError:
    return EvaluationError(f"error during formatting: {what}, was given {type_name(value)}")


def formatted(text: str, arguments: Any) -> str:
    values, parts, at, used, length = list(elements(arguments)), [], 0, 0, 0
    while at < len(text):
        sign = text.find("%", at)
        if sign < 0:
            parts.append(text[at:])
            break
        parts.append(text[at:sign])
        if text[sign + 1 : sign + 2] == "%":
            parts.append("%")
            at = sign + 2
            continue
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        if sign + 1 >= len(text):
            raise EvaluationError("unexpected end of string")
        part, at = clause(text, sign, values[used])
        used += 1
        parts.append(part)
        length += len(part)
        if length > MAX_CHARACTERS:
            raise CostExceeded
    return "".join(parts)


def clause(text: str, at: int, value: object) -> tuple[str, int]:
    """Format a value by the clause that begins at an index. Return the text and where the clause ends."""
    found = CLAUSE.match(text, at)
    assert found
    precision = PRECISION
    if found[1] is not None:
        if not found[2]:
            raise EvaluationError(
                "could not parse formatting clause: error while parsing precision: "
                "could not find end of precision specifier"
            )
        if not found[1] or len(found[1]) > 18:
            raise EvaluationError(
                "could not parse formatting clause: error while parsing precision: error while converting precision "
                f'to integer: strconv.Atoi: parsing "{found[1]}": '
                f"{'value out of range' if found[1] else 'invalid syntax'}"
            )
        precision = int(found[1])
        if precision > MAX_PRECISION:
            raise CostExceeded
    if found[2] in PRECISE:
        return PRECISE[found[2]](value, precision), found.end()
    if found[2] not in CLAUSES:
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{found[2]}"')
    return CLAUSES[found[2]](value), found.end()


def as_string(value: Any) -> str:
    """Format a value for `%s`."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Uint):
        return str(int(value))
    if isinstance(value, float):
        return short_float(value)
    if isinstance(value, Timestamp):
        return written_timestamp(value)
    if isinstance(value, Duration):
        return written_duration(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError(
                "error during formatting: could not convert argument "
                '"invalid UTF-8 in bytes, cannot convert to string" to string'
            ) from None
    if is_list(value):
        return list_text(value)
    if is_map(value):
        return map_text(value)
    raise wrong(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps",
        value,
    )


def inner(value: Any) -> str:
    """Format a value within a list or a map, as an expression would write it."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bytes):
        return f"b{go_quote(as_string(value))}"
    if isinstance(value, float):
        text = f"{value:.{PRECISION}f}" if math.isfinite(value) else short_float(value)
        return text if math.isfinite(value) else go_quote(text)
    if isinstance(value, Timestamp):
        return f"timestamp({go_quote(written_timestamp(value))})"
    if isinstance(value, Duration):
        return f"duration({go_quote(written_duration(value))})"
    if value is None or isinstance(value, bool | int | TypeValue) or is_list(value) or is_map(value):
        return as_string(value)
    raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")


def list_text(value: Any) -> str:
    return bounded("[", (inner(item) for item in elements(value)), "]")


def map_text(value: Any) -> str:
    pairs = []
    for key in keys_of(value):
        if not isinstance(key, str | bool | int):
            raise EvaluationError(
                f"error during formatting: no formatting function for map key of type {type_name(key)}"
            )
        pairs.append((inner(key), inner(find(value, key))))
    return bounded("{", (f"{key}:{text}" for key, text in sorted(pairs, key=lambda pair: pair[0])), "}")


def bounded(start: str, parts: Any, end: str) -> str:
    kept, length = [], 0
    for part in parts:
        kept.append(part)
        length += len(part) + 2
        if length > MAX_CHARACTERS:
            raise CostExceeded
    return f"{start}{', '.join(kept)}{end}"


def as_decimal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    raise wrong("decimal clause can only be used on integers", value)


def as_double(value: Any, what: str) -> float:
    if isinstance(value, float):
        return value
    if value in SPECIAL and isinstance(value, str):
        return float(value)
    raise wrong(f"{what} clause can only be used on doubles", value)


def special(number: float) -> str | None:
    if math.isnan(number):
        return "NaN"
    return None if math.isfinite(number) else "-∞" if number < 0 else "∞"


def as_fixed(value: Any, precision: int) -> str:
    number = as_double(value, "fixed-point")
    return special(number) or f"{number:,.{precision}f}"


def as_scientific(value: Any, precision: int) -> str:
    """Format a number for `%e`. Go takes the precision for the width."""
    number = as_double(value, "scientific")
    text = special(number)
    if not text:
        digits, _, power = f"{number:.{PRECISION}e}".partition("e")
        text = f"{digits}\u00d710{power.removeprefix('+').translate(RAISED)}"
    return text.rjust(precision)


def as_binary(value: Any) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise wrong("only integers and bools can be formatted as binary", value)


def as_hex(value: Any) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):x}"
    raise wrong("only integers, byte buffers, and strings can be formatted as hex", value)


def as_octal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise wrong("octal clause can only be used on integers", value)


CLAUSES: dict[str, Callable[[Any], str]] = {
    "s": as_string,
    "d": as_decimal,
    "b": as_binary,
    "x": as_hex,
    "X": lambda value: as_hex(value).upper(),
    "o": as_octal,
}
PRECISE: dict[str, Callable[[Any, int], str]] = {"f": as_fixed, "e": as_scientific}
