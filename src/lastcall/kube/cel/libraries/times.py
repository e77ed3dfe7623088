"""Parts of timestamps and durations (cel-go common/stdlib/standard.go, common/types/timestamp.go)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lastcall.kube.api.text.numbers import NumberError, parse_int
from lastcall.kube.cel.text import SECOND
from lastcall.kube.cel.values import Duration, EvaluationError, Timestamp

PARTS: dict[str, Callable[[datetime], int]] = {
    "timestamp_to_year": lambda when: when.year,
    "timestamp_to_month": lambda when: when.month - 1,
    "timestamp_to_day_of_year": lambda when: when.timetuple().tm_yday - 1,
    "timestamp_to_day_of_month": lambda when: when.day - 1,
    "timestamp_to_day_of_month_1_based": lambda when: when.day,
    "timestamp_to_day_of_week": lambda when: when.isoweekday() % 7,
    "timestamp_to_hours": lambda when: when.hour,
    "timestamp_to_minutes": lambda when: when.minute,
    "timestamp_to_seconds": lambda when: when.second,
    "timestamp_to_milliseconds": lambda when: when.microsecond // 1000,
}


def at(moment: Timestamp, zone: tzinfo) -> datetime:
    seconds, rest = divmod(moment.nanoseconds, SECOND)
    start = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        return (start + timedelta(seconds=seconds, microseconds=rest // 1000)).astimezone(zone)
    except (OverflowError, ValueError):
        raise EvaluationError("timestamp overflow") from None


def zone_of(text: str) -> tzinfo:
    """Find a zone by its name, or by hours and minutes east of UTC (`-02:00`)."""
    hours, colon, minutes = text.partition(":")
    if colon:
        east = whole(hours) * 60
        east += -whole(minutes) if text[0] == "-" else whole(minutes)
        try:
            return timezone(timedelta(minutes=east))
        except ValueError:
            raise EvaluationError(f"unknown time zone {text}") from None
    if text in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo("UTC" if text == "Local" else text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {text}") from None


def whole(text: str) -> int:
    try:
        return parse_int(text, function="strconv.Atoi")
    except NumberError as error:
        raise EvaluationError(str(error)) from None


def part(read: Callable[[datetime], int]) -> Callable[[Timestamp], int]:
    return lambda moment: read(at(moment, UTC))


def part_in_zone(read: Callable[[datetime], int]) -> Callable[[Timestamp, str], int]:
    return lambda moment, zone: read(at(moment, zone_of(zone)))


def units(nanoseconds: int) -> Callable[[Duration], int]:
    """Make the conversion of a duration to units of so many nanoseconds, cut towards zero."""
    return lambda span: int(abs(span.nanoseconds) // nanoseconds * (-1 if span.nanoseconds < 0 else 1))


def with_zone(overload: str) -> str:
    """Return cel-go's name of the same overload with a zone; one of them is different."""
    return "timestamp_to_seconds_tz" if overload == "timestamp_to_seconds" else f"{overload}_with_tz"


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    **{overload: part(read) for overload, read in PARTS.items()},
    **{with_zone(overload): part_in_zone(read) for overload, read in PARTS.items()},
    "duration_to_hours": units(3600 * SECOND),
    "duration_to_minutes": units(60 * SECOND),
    "duration_to_seconds": units(SECOND),
    "duration_to_milliseconds": units(SECOND // 1000),
}
