"""The schedules of CronJobs, read as github.com/robfig/cron/v3 reads them. (parser.go, constantdelay.go)"""

from typing import NamedTuple

from lastcall.kube.api.text.numbers import SECOND, NumberError, parse_duration, parse_int

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_EVERY = "@every "


class ScheduleError(ValueError):
    """The text is not a schedule; the message is the parser's."""


class FieldValues(NamedTuple):
    """What a field matches; `any_value`: it was `*` or `?`."""

    values: frozenset[int]
    any_value: bool


class Fields(NamedTuple):
    """A schedule of five fields."""

    minute: FieldValues
    hour: FieldValues
    day: FieldValues
    month: FieldValues
    weekday: FieldValues


def parse(text: str) -> Fields | int:
    """Return its fields, or the whole seconds between two times of `@every 1h30m`. Raises ScheduleError."""
    if text.startswith(_EVERY):
        try:
            return max(1, parse_duration(text[len(_EVERY) :]) // SECOND)
        except NumberError as error:
            raise ScheduleError(f"failed to parse duration {text}: {error}") from None
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minute, hour, day, month, weekday = fields
    return Fields(
        _field(minute, 0, 59),
        _field(hour, 0, 23),
        _field(day, 1, 31),
        _field(month, 1, 12, _MONTHS),
        _field(weekday, 0, 6, _DAYS),
    )


def _field(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> FieldValues:
    """(`getField`) Empty parts are nothing: `,` is never due."""
    values: set[int] = set()
    any_value = False
    for part in filter(None, text.split(",")):
        span, whole = _range(part, low, high, names)
        values.update(span)
        any_value = any_value or whole
    return FieldValues(frozenset(values), any_value)


def _range(part: str, low: int, high: int, names: tuple[str, ...]) -> tuple[range, bool]:
    """(`getRange`)"""
    span, *steps = part.split("/")
    ends = span.split("-")
    first, last, step = low, high, 1
    any_value = ends[0] in ("*", "?")
    if not any_value:
        first = _value(ends[0], low, names)
        if len(ends) > 2:
            raise ScheduleError(f"too many hyphens: {part}")
        last = _value(ends[1], low, names) if len(ends) == 2 else first
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    if steps:
        step = _number(steps[0])
        if len(ends) == 1:  # `5/15` is `5-59/15`
            last = high
        any_value = any_value and step <= 1
    if first < low:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({low}): {part}")
    if last > high:
        raise ScheduleError(f"end of range ({last}) above maximum ({high}): {part}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")
    return range(first, last + 1, step), any_value


def _value(text: str, low: int, names: tuple[str, ...]) -> int:
    """(`parseIntOrName`)"""
    return names.index(text.lower()) + low if text.lower() in names else _number(text)


def _number(text: str) -> int:
    """(`mustParseInt`)"""
    try:
        number = parse_int(text, function="strconv.Atoi")
    except NumberError as error:
        raise ScheduleError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
