"""Numbers and formats in structural schemas, as kube-openapi judges them: also those that make no sense.

Sources: kube-openapi pkg/validation/validate (values.go, validator.go: numberValidator, IsValueValidAgainstRange),
pkg/validation/strfmt/time.go, go-openapi swag (IsFloat64AJSONInteger).
"""

import math
import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from typing import Any

from lastcall.kube.api.field import FieldError, go_json, invalid
from lastcall.kube.api.meta import Object
from lastcall.kube.api.text.numbers import INT64_MAX, is_int64

_EPSILON = 1e-9
_LAST_EXACT = 2**53 - 1
_LIMITS = {
    ("integer", "int32"): (-(2**31), 2**31 - 1),
    ("integer", "uint32"): (0, 2**32 - 1),
    ("integer", "uint64"): (0, 2**64 - 1),
}
_FLOATS = ("float", "float32")
_FLOAT32_MAX = 3.4028235677973366e38
"""From here on a number is none of 32 bits, also rounded."""


def is_json_integer(value: float) -> bool:
    """Return whether decoded JSON counts as a whole number: of 64 bits, or a float very near to one below 2^53."""
    if isinstance(value, int) and is_int64(value):
        return True
    if isinstance(value, int) or not math.isfinite(value) or abs(value) > _LAST_EXACT:
        return False
    size, whole = abs(value), float(int(abs(value)))
    if size == whole:
        return True
    return whole != 0 and (size - whole) / (size + whole) < _EPSILON


def number_errors(schema: Object, value: float, path: str) -> Iterable[FieldError]:
    """Yield what is wrong with a number. A limit that is not of the schema's own type is wrong with every number."""
    yield from _range("Checked", value, schema, path)
    if (factor := schema.get("multipleOf")) is not None:
        wrong = list(_range("MultipleOf", factor, schema, path))
        yield from wrong
        yield from _multiple(value, factor, path, whole=not wrong and is_int64(value))
    for name, words in (("maximum", "Maximum boundary"), ("minimum", "Minimum boundary")):
        if (limit := schema.get(name)) is None:
            continue
        wrong = list(_range(words, limit, schema, path))
        yield from wrong
        if not wrong and is_int64(value):
            limit = int(limit)  # whole numbers are compared as such
        high, exclusive = name == "maximum", schema.get(f"exclusive{name.capitalize()}")
        beyond = value > limit if high else value < limit
        if beyond or (exclusive and value == limit):
            than = "less than" if high else "greater than"
            words = than if exclusive else f"{than} or equal to"
            yield invalid(path, value, f"{path} in body should be {words} {go_json(schema[name])}")


def _range(what: str, number: float, schema: Object, path: str) -> Iterable[FieldError]:
    kind, form = schema.get("type") or "", schema.get("format") or ""
    if kind == "integer":
        low, high = _LIMITS.get((kind, form), (-INT64_MAX - 1, INT64_MAX))
        fits = number == math.floor(number) and low <= number <= high if math.isfinite(number) else False
    else:
        fits = form not in _FLOATS or abs(number) < _FLOAT32_MAX
    if not fits:
        named = f"with format {form}" if form else "(default format)"
        yield invalid("<nil>", "", f"{what} value must be of type {kind} {named} in {path}")


def _multiple(value: float, factor: float, path: str, *, whole: bool) -> Iterable[FieldError]:
    if whole:
        divisor = int(factor)
        if divisor <= 0:
            yield invalid(path, divisor, f"factor MultipleOf declared for {path} must be positive: {divisor}")
            return
        fits = int(value) % divisor == 0
    elif factor <= 0:
        yield invalid(path, factor, f"factor MultipleOf declared for {path} must be positive: {go_json(factor)}")
        return
    else:
        size = abs(float(value))
        try:
            quotient = 1 / factor * size if factor < 1 else size / factor
        except (OverflowError, ZeroDivisionError):
            quotient = math.inf
        fits = not math.isnan(quotient) and is_json_integer(quotient)
    if not fits:
        yield invalid(path, value, f"{path} in body should be a multiple of {go_json(factor)}")


# -- formats -----------------------------------------------------------------------------------------------------------

_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(?:\.|$)){4}")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    return 0 < month < 13 and 0 < day <= monthrange(year or 2000, month)[1]


def is_date_time(text: str) -> bool:
    """Return True for a date-time (`strfmt.IsDateTime`). Unlike `metav1.Time` it takes any sign before the decimals."""
    day, separator, rest = text.lower().partition("t")
    found = _CLOCK.fullmatch(rest.partition("t")[0])
    if not separator or not is_date(day) or found is None:
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": is_date_time,
    "date": is_date,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "ipv4": lambda text: _IPV4.fullmatch(text) is not None,
    "byte": lambda text: len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None,
}


def type_of(value: Any) -> str:
    """Return what the validator calls the type of decoded JSON."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if is_json_integer(value) else "number"
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
