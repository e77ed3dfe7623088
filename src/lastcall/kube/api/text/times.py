"""Times as Go reads and prints them: `metav1.Time` (whole seconds) and `metav1.MicroTime` (six decimals).

Sources: Go's time/format.go (parse, appendTime, quote), apimachinery pkg/apis/meta/v1 time.go, micro_time.go and
time_proto.go. What a client sends is read by `canonical_time`; what is stored by
`parse_rfc3339`, which never overflows.
"""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, tzinfo

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"

ZERO_SECONDS = -62135596800
"""Go's zero time, 1 January of the year 1, which is written as null."""

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The times that Python has. Go has more: offsets reach into the years -1 and 10000."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE_YEARS, _CYCLE_SECONDS = 400, 146097 * 86400
_LENIENT = re.compile(
    r"(-?[0-9]{4,12})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,]([0-9]+))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_PRINTED = re.compile(r"(-0001-12-3[01]|10000-01-0[12])T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z")
_DIGITS = frozenset("0123456789")


class TimeError(ValueError):
    """The text is not a time; the message is Go's."""


def canonical_time(text: str, *, micro: bool = False) -> str:
    """Return the time as Kubernetes hands it back, in UTC; "" for the zero time. Raises TimeError.

    By its offset a time can lie in the years -1 and 10000. It is read again as it is printed; Go refuses that, and the
    components of Kubernetes can work with such an object nevertheless because they speak protobuf.
    """
    try:
        seconds, nanos = _read(text, RFC3339_MICRO if micro else RFC3339)
    except TimeError:
        if _PRINTED.fullmatch(text) is None or ("." in text) is not micro:
            raise
        seconds, nanos = unix_time(text)
    return time_text(seconds, nanos, micro=micro)


def time_text(seconds: int, nanos: int = 0, *, micro: bool = False) -> str:
    """Format seconds and nanoseconds since 1970, in any year; "" for the zero time."""
    nanos = nanos // 1000 * 1000 if micro else 0
    if seconds == ZERO_SECONDS and not nanos:
        return ""
    cycles, rest = divmod(seconds, _CYCLE_SECONDS)
    moment = _EPOCH + timedelta(seconds=rest)
    year = moment.year + cycles * _CYCLE_YEARS
    decimals = f".{nanos // 1000:06d}" if micro else ""
    return f"{'-' if year < 0 else ''}{abs(year):04d}{moment:-%m-%dT%H:%M:%S}{decimals}Z"


def unix_time(text: str) -> tuple[int, int]:
    """Return the seconds and nanoseconds since 1970 of a stored time, in any year. Raises ValueError."""
    found = _LENIENT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:64]!r} is not an RFC 3339 time")
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    offset = (int(found[9]) * 60 + int(found[10])) * 60 if found[8] else 0
    clock = hour * 3600 + minute * 60 + second - (-offset if found[8] == "-" else offset)
    return _midnight(year, month, day) + clock, int((found[7] or "0")[:9].ljust(9, "0"))


def parse_rfc3339(text: str | None) -> datetime:
    """Return the aware UTC time of an RFC 3339 text, the nearest possible for a year outside 1 to 9999.

    No time is the first one, as in Go. Raises ValueError for an invalid time.
    """
    if not text:
        return FIRST
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is UTC:
            return moment if moment < LAST else LAST
        return min(moment.astimezone(UTC), LAST) if moment.tzinfo is not None else _saturated(text)
    except (ValueError, OverflowError):
        return _saturated(text)


def later(moment: datetime, seconds: float) -> datetime:
    """Add so many seconds, which may be negative, to `moment`; the result is between the first and the last time."""
    try:
        return min(moment + timedelta(seconds=seconds), LAST)
    except OverflowError:
        return LAST if seconds > 0 else FIRST


def from_unix(seconds: float) -> datetime:
    """Return the aware UTC time of seconds since 1970; the nearest that there is."""
    return later(_EPOCH, seconds)


def _saturated(text: str) -> datetime:
    seconds, nanos = unix_time(text)
    return later(later(_EPOCH, seconds), nanos / 1e9)


def _midnight(year: int, month: int, day: int) -> int:
    """Seconds since 1970. Raises ValueError for a day that no calendar has."""
    cycles, within = divmod(year - 2000, _CYCLE_YEARS)
    days = (datetime(2000 + within, month, day, tzinfo=UTC) - _EPOCH).days
    return days * 86400 + cycles * _CYCLE_SECONDS


def _read(text: str, layout: str) -> tuple[int, int]:
    """(`time.Parse`, for the two layouts; each `hold` is what Go shows of the text)"""
    if len(text) < 4 or not _DIGITS.issuperset(text[:4]):
        raise _bad(text, layout, text, "2006")
    year, rest = int(text[:4]), text[4:]
    month, rest = _number(text, layout, _after(text, layout, rest, "-"), "01")
    if not 0 < month <= 12:
        raise _error(text, ": month out of range")
    day, rest = _number(text, layout, _after(text, layout, rest, "-"), "02")
    hour, rest = _number(text, layout, _after(text, layout, rest, "T"), "15", one_digit=True)
    if hour > 23:
        raise _error(text, ": hour out of range")
    minute, rest = _number(text, layout, _after(text, layout, rest, ":"), "04")
    if minute > 59:
        raise _error(text, ": minute out of range")
    second, rest = _number(text, layout, _after(text, layout, rest, ":"), "05")
    if second > 59:
        raise _error(text, ": second out of range")
    nanos, rest = (_six_decimals if layout == RFC3339_MICRO else _any_decimals)(text, rest)
    offset, rest = _offset(text, layout, rest)
    if rest:
        raise _error(text, f": extra text: {quoted(rest)}")
    if not 1 <= day <= monthrange(year or 2000, month)[1]:  # the year 0 is a leap year
        raise _error(text, ": day out of range")
    return _midnight(year, month, day) + hour * 3600 + minute * 60 + second - offset, nanos


def _after(text: str, layout: str, rest: str, sign: str) -> str:
    if not rest.startswith(sign):
        raise _bad(text, layout, rest, sign)
    return rest[1:]


def _number(text: str, layout: str, rest: str, part: str, *, one_digit: bool = False) -> tuple[int, str]:
    """(`getnum`)"""
    if len(rest) > 1 and rest[0] in _DIGITS and rest[1] in _DIGITS:
        return int(rest[:2]), rest[2:]
    if one_digit and rest and rest[0] in _DIGITS:
        return int(rest[0]), rest[1:]
    raise _bad(text, layout, rest, part)


def _any_decimals(text: str, rest: str) -> tuple[int, str]:
    """Decimals that the layout does not have are read all the same; what is finer than a nanosecond is not."""
    if len(rest) < 2 or rest[0] not in ".," or rest[1] not in _DIGITS:
        return 0, rest
    end = next((at for at in range(1, len(rest)) if rest[at] not in _DIGITS), len(rest))
    return int(rest[1 : min(end, 10)].ljust(9, "0")), rest[end:]


def _six_decimals(text: str, rest: str) -> tuple[int, str]:
    """(`parseNanoseconds`, whose atoi takes a sign)"""
    decimals = rest[1:7]
    unsigned = decimals.removeprefix(decimals[:1]) if decimals[:1] in ("+", "-") else decimals
    if len(decimals) < 6 or rest[0] not in ".," or not _DIGITS.issuperset(unsigned):
        raise _bad(text, RFC3339_MICRO, rest, ".000000")
    if decimals[0] == "-" and int(unsigned):
        raise _error(text, ": fractional second out of range")
    return int(unsigned) * 1000, rest[7:]


def _offset(text: str, layout: str, rest: str) -> tuple[int, str]:
    """Seconds to the east. 24 hours and 60 minutes are allowed, "as some people do write" them."""
    if rest.startswith("Z"):
        return 0, rest[1:]
    hours, minutes = rest[1:3], rest[4:6]
    if len(rest) < 6 or rest[3] != ":" or not _DIGITS.issuperset(hours + minutes):
        raise _bad(text, layout, rest, "Z07:00")
    if int(minutes) > 60:
        raise _error(text, ": time zone offset minute out of range")
    if int(hours) > 24:
        raise _error(text, ": time zone offset hour out of range")
    if rest[0] not in "+-":
        raise _bad(text, layout, rest, "Z07:00")
    seconds = (int(hours) * 60 + int(minutes)) * 60
    return (-seconds if rest[0] == "-" else seconds), rest[6:]


def _bad(text: str, layout: str, hold: str, part: str) -> TimeError:
    return _error(text, f" as {quoted(layout)}: cannot parse {quoted(hold)} as {quoted(part)}")


def _error(text: str, why: str) -> TimeError:
    return TimeError(f"parsing time {quoted(text)}{why}")


def quoted(text: str) -> str:
    """Return a text in quotes, with bytes that are not plain ASCII in hexadecimal. (`time.quote`)"""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = (chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))
    return f'"{"".join(shown)}"'


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name. Raises ValueError for one that is not known."""
    # late: 9 ms of the control plane's start, for the first CronJob with a time zone
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"unknown time zone {name}") from error
