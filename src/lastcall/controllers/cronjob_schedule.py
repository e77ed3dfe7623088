"""When a schedule is due. Pure: seconds since the epoch in, seconds since the epoch out.

Source: github.com/robfig/cron/v3 (parser.go, spec.go, constantdelay.go), which Kubernetes uses. A schedule of five
fields is due at every whole minute whose month, day, hour and minute in its time zone match: where clocks are put
forward, what would be due in the hour that does not exist is left out; where they are put back, it is due twice.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from lastcall.api.times import FIRST, LAST
from lastcall.api.validators.batch import schedule_problem

MINUTE, HOUR, DAY = 60, 3600, 86400
YEARS = 5
"""A schedule that is not due within so many years (31 February) is never due."""
_EARLIEST, _LATEST = int(FIRST.timestamp()) + 2 * DAY, int(LAST.timestamp()) - 40 * DAY
"""The times that are looked at: a zone's or the next month's must still be one."""

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class Every:
    """`@every 1h30m`: so many whole seconds after the last time, at least one."""

    seconds: int

    def next(self, after: float) -> float | None:
        return float(int(after) + self.seconds)

    def last(self, earliest: float, now: float) -> float | None:
        count = (int(now) - int(earliest)) // self.seconds
        return float(int(earliest) + count * self.seconds) if count > 0 else None


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields. `any_day`: one of the two day fields was `*`, so both have to match, else one is enough."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    zone: tzinfo

    def matches_day(self, moment: datetime) -> bool:
        day, weekday = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return (day and weekday) if self.any_day else (day or weekday)

    def matches(self, moment: datetime) -> bool:
        """`moment` is a whole minute in the schedule's zone."""
        return (
            moment.minute in self.minutes
            and moment.hour in self.hours
            and moment.month in self.months
            and self.matches_day(moment)
        )

    def next(self, after: float) -> float | None:
        """The first time later than `after`; None when there is none within five years."""
        at = (max(int(after), _EARLIEST) // MINUTE + 1) * MINUTE
        last = min(at + YEARS * 366 * DAY, _LATEST)
        while at <= last:
            local = datetime.fromtimestamp(at, self.zone)
            if self.matches(local):
                return float(at)
            at = self._skip(at, local)
        return None

    def _skip(self, at: int, local: datetime) -> int:
        """The next time at which it may match."""
        if local.month not in self.months:
            first = (local.replace(day=1) + timedelta(days=32)).replace(day=1)
            return _midnight(first, at)
        if not self.matches_day(local):
            return _midnight(local + timedelta(days=1), at)
        if local.hour not in self.hours:
            return at + (60 - local.minute) * MINUTE
        later = min((minute for minute in self.minutes if minute > local.minute), default=60)
        return at + (later - local.minute) * MINUTE

    def last(self, earliest: float, now: float) -> float | None:
        """The last time after `earliest` that is not later than `now`."""
        found = self.next(earliest)
        if found is None or found > now:
            return None
        low, high = int(earliest), int(now) + 1  # due after low, not due after high
        while high - low > 1:
            middle = (low + high) // 2
            due = self.next(middle)
            if due is not None and due <= now:
                low, found = middle, due
            else:
                high = middle
        return found


Schedule = Cron | Every


def _midnight(day: datetime, after: int) -> int:
    """The beginning of a day; a clock change there must not turn time back."""
    begin = int(day.replace(hour=0, minute=0, fold=0).timestamp())
    return begin if begin > after else after + HOUR


@lru_cache(maxsize=1024)
def parse_schedule(text: str, zone: str | None = None) -> Schedule:
    """`zone` is an IANA name; None is UTC. Raises ValueError with the parser's own words, or for an unknown zone."""
    if problem := schedule_problem(text):
        raise ValueError(problem)
    if text.startswith("@every "):
        total = sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9.]+)(ns|us|µs|ms|s|m|h)", text))
        return Every(max(1, int(total)))
    minute, hour, day, month, weekday = _DESCRIPTORS.get(text, text).split()
    days, any_date = _field(day, 1, 31)
    weekdays, any_weekday = _field(weekday, 0, 6, _DAYS)
    return Cron(
        minutes=_field(minute, 0, 59)[0],
        hours=_field(hour, 0, 23)[0],
        days=days,
        months=_field(month, 1, 12, _MONTHS)[0],
        weekdays=weekdays,
        any_day=any_date or any_weekday,
        zone=_zone(zone),
    )


def _zone(name: str | None) -> tzinfo:
    from zoneinfo import ZoneInfo

    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as error:
        raise ValueError(f"unknown time zone {name}") from error


def _field(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> tuple[frozenset[int], bool]:
    """(the values, whether it stands for any value). (`getField`)"""
    values: dict[int, None] = {}
    any_value = False
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = int(step_text) if slash else 1
        if span in ("*", "?"):
            first, last = low, high
            any_value = any_value or step == 1
        else:
            ends = [_value(each, low, names) for each in span.split("-")]
            # `5/15` is `5-59/15`.
            first, last = ends[0], high if slash and len(ends) == 1 else ends[-1]
        values |= dict.fromkeys(range(first, last + 1, step))
    return frozenset(values), any_value


def _value(text: str, low: int, names: tuple[str, ...]) -> int:
    return names.index(text.lower()) + low if text.lower() in names else int(text)
