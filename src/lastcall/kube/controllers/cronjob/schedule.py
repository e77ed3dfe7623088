"""When a schedule is due. Pure: seconds since the epoch in, seconds since the epoch out.

Source: github.com/robfig/cron/v3 (parser.go, spec.go, constantdelay.go), which Kubernetes uses. A schedule of five
fields is due at every whole minute whose month, day, hour and minute in its time zone match: where clocks are put
forward, what would be due in the hour that does not exist is left out; where they are put back, it is due twice.
"""

# check: pure

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from lastcall.kube.api.text.cron import parse
from lastcall.kube.api.text.times import FIRST, LAST, zone_of
from lastcall.world.dataclass import dataclass

MINUTE, HOUR, DAY = 60, 3600, 86400
YEARS = 5
"""A schedule that is not due within so many years (31 February) is never due."""
_EARLIEST, _LATEST = int(FIRST.timestamp()) + 2 * DAY, int(LAST.timestamp()) - 40 * DAY
"""The times that are looked at: a zone's or the next month's must still be one."""


@dataclass(frozen=True, slots=True)
class Every:
    """`@every 1h30m`: that many whole seconds after the last time, at least one."""

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
        """Return whether `moment`, a whole minute in the schedule's zone, is due."""
        return (
            moment.minute in self.minutes
            and moment.hour in self.hours
            and moment.month in self.months
            and self.matches_day(moment)
        )

    def next(self, after: float) -> float | None:
        """Return the first time later than `after`; None when there is none within five years."""
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
        """Return the last time after `earliest` that is not later than `now`."""
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
    """Parse a schedule; `zone` is an IANA name, None is UTC.

    Raises ValueError with the parser's own words, or for an unknown zone.
    """
    read = parse(text)
    if isinstance(read, int):
        return Every(read)
    return Cron(
        minutes=read.minute.values,
        hours=read.hour.values,
        days=read.day.values,
        months=read.month.values,
        weekdays=read.weekday.values,
        any_day=read.day.any_value or read.weekday.any_value,
        zone=zone_of(zone) if zone else UTC,
    )
