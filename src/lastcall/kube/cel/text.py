"""Numbers, times and strings as Go writes and reads them (strconv, fmt, time)."""

import math
import re
from calendar import monthrange
from datetime import date, timedelta
from decimal import Decimal

from lastcall.kube.api.text.numbers import NumberError, parse_duration, parse_uint
from lastcall.kube.api.text.times import unix_time
from lastcall.kube.cel.operations import find, is_list, is_map, keys_of
from lastcall.kube.cel.values import NOTHING, Duration, Optional, Timestamp, TypeValue, Uint

SECOND = 1_000_000_000
EARLIEST, LATEST = -62135596800, 253402300799
"""Unix times of the first and the last second that a timestamp may have (years 1 to 9999)."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)
_HEX = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+\Z", re.ASCII)
_BESIDE_NO_DIGIT = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])", re.ASCII)
_SPECIAL = re.compile(r"[+-]?(?:inf|infinity)\Z|nan\Z", re.ASCII | re.IGNORECASE)
_OFFSET = re.compile(r"([+-])([0-9]{2}):([0-9]{2})\Z", re.ASCII)
_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})\Z", re.ASCII
)
TRUE, FALSE = frozenset(("1", "t", "T", "TRUE", "true", "True")), frozenset(("0", "f", "F", "FALSE", "false", "False"))


def read_uint(text: str) -> int | None:
    try:
        return parse_uint(text)
    except NumberError:
        return None


def read_float(text: str) -> float | None:
    """Parse as strconv.ParseFloat does: None for what is not a number, and for numbers beyond every double."""
    if "_" in text:
        if _BESIDE_NO_DIGIT.search(text):
            return None
        text = text.replace("_", "")
    if _SPECIAL.match(text):
        return float(text)
    if _DECIMAL.match(text):
        value = float(text)
    elif _HEX.match(text):
        try:
            value = float.fromhex(text)
        except OverflowError:
            return None
    else:
        return None
    return None if math.isinf(value) else value


def short_float(value: float) -> str:
    """Format as Go's `%g` does: the shortest digits that read back as the same double."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + int(exponent)
    if text == "0":
        return "-0" if sign else "0"
    minus = "-" if sign else ""
    power = point - 1
    if power < -4 or power >= 6:
        return f"{minus}{text[0]}{'.' if text[1:] else ''}{text[1:]}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return minus + fixed_digits(text, point)


def fixed_digits(text: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + text
    return text.ljust(point, "0") if len(text) <= point else f"{text[:point]}.{text[point:]}"


def long_float(value: float) -> str:
    """Format as strconv.FormatFloat(value, 'f', -1, 64) does: all digits, no exponent."""
    if math.isnan(value) or math.isinf(value):
        return short_float(value)
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def read_duration(text: str) -> Duration | None:
    try:
        return Duration(parse_duration(text))
    except NumberError:
        return None


def written_duration(value: Duration) -> str:
    """Format the seconds without an exponent, as duration-to-string conversion writes them."""
    seconds, rest = divmod(abs(value.nanoseconds), SECOND)
    amount = float(seconds) + float(rest) / 1e9
    return f"{long_float(-amount if value.nanoseconds < 0 else amount)}s"


def go_duration(value: Duration) -> str:
    """Format as time.Duration.String does: `1h2m0.5s`, `1.5ms`."""
    total = abs(value.nanoseconds)
    sign = "-" if value.nanoseconds < 0 else ""
    if total == 0:
        return "0s"
    if total < SECOND:
        unit, size = next(each for each in (("ms", 1_000_000), ("µs", 1000), ("ns", 1)) if total >= each[1])
        return f"{sign}{_trimmed(total, size)}{unit}"
    minutes, rest = divmod(total, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_trimmed(rest, SECOND)}s"


def _trimmed(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1)}".rstrip("0").rstrip(".")


def read_timestamp(text: str) -> Timestamp | None:
    """Parse as time.Parse(time.RFC3339) does; the caller checks the range of years."""
    if not _RFC3339.match(text):
        return None
    date, clock = text.split("T")
    if clock[1] == ":":
        clock = f"0{clock}"
    year, month, day = map(int, date.split("-"))
    if not (1 <= month <= 12 and 1 <= day <= monthrange(year or 4, month)[1] and clock[:2] < "24"):
        return None
    if clock[3:5] >= "60" or clock[6:8] >= "60":
        return None
    zone, offset = _OFFSET.search(clock), 0
    if zone:
        if zone[2] > "24" or zone[3] >= "60":
            return None
        offset = (int(zone[2]) * 3600 + int(zone[3]) * 60) * (-1 if zone[1] == "-" else 1)
    seconds, rest = unix_time(f"{date}T{clock}")
    return Timestamp(seconds * SECOND + rest, offset)


def in_range(value: Timestamp) -> bool:
    return EARLIEST <= value.nanoseconds // SECOND <= LATEST


def written_timestamp(value: Timestamp) -> str:
    """Format as RFC 3339 with nanoseconds, without zeros at the end, in the zone that it was written in."""
    seconds, rest = divmod(value.nanoseconds, SECOND)
    days, seconds = divmod(seconds + value.offset, 86400)
    when = calendar_day(days)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    zone = "Z"
    if value.offset:
        minutes = abs(value.offset) // 60
        zone = f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{when}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}{zone}"


def calendar_day(days: int) -> str:
    """Return the date some days after 1970-01-01; a zone may shift it out of the years 1 to 9999."""
    try:
        return (date(1970, 1, 1) + timedelta(days)).isoformat()
    except OverflowError:
        return f"{0 if days < 0 else 10000:04d}-{'12-31' if days < 0 else '01-01'}"


def shown(value: object) -> str:
    """Format a value as Go's `%v` does, for messages."""
    if value is None:
        return "0"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return short_float(value)
    if isinstance(value, int | str | Uint):
        return str(value)
    if isinstance(value, bytes):
        return "[" + " ".join(map(str, value)) + "]"
    if isinstance(value, Duration):
        return go_duration(value)
    if isinstance(value, Timestamp):
        return written_timestamp(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Optional):
        return "optional.none()" if value.value is NOTHING else f"optional({shown(value.value)})"
    if is_map(value):
        return "{" + ", ".join(f"{shown(key)}: {shown(find(value, key))}" for key in keys_of(value)) + "}"
    if is_list(value):
        return "[" + ", ".join(shown(item) for item in value) + "]"  # type: ignore[attr-defined]
    return str(value)
