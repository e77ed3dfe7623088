"""When a schedule is due: tables, and a plain search minute by minute as the measure."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.api.validators.jobs.specs import schedule_problems
from lastcall.kube.controllers.cronjob.schedule import Every, parse_schedule


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def shown(seconds, zone=UTC):
    return None if seconds is None else datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M:%S")


NEXT = [
    # From robfig/cron's own table, in UTC.
    ("0/15 * * * *", "2012-07-09 14:45", "2012-07-09 15:00:00"),
    ("0/15 * * * *", "2012-07-09 14:59", "2012-07-09 15:00:00"),
    ("20-35/15 * * * *", "2012-07-09 15:45", "2012-07-09 16:20:00"),
    ("*/15 * * * *", "2012-07-09 23:46", "2012-07-10 00:00:00"),
    ("20-35/15 * * * *", "2012-07-09 23:35:51", "2012-07-10 00:20:00"),
    ("0 0 9 Apr-Oct ?", "2012-07-09 23:35", "2012-08-09 00:00:00"),
    ("0 0 * Apr,Aug,Oct Mon", "2012-07-09 23:35", "2012-08-06 00:00:00"),
    ("0 0 * Feb Mon", "2012-07-09 23:35", "2013-02-04 00:00:00"),
    ("0 0 * Feb Mon/2", "2012-07-09 23:35", "2013-02-01 00:00:00"),
    ("0 0 29 Feb ?", "2012-07-09 23:35", "2016-02-29 00:00:00"),
    ("0 0 30 Feb ?", "2012-07-09 23:35", None),
    ("0 0 31 Apr ?", "2012-07-09 23:35", None),
    # Of two days that are given, one is enough; with a * both have to match.
    ("0 0 13 * 5", "2026-01-01 00:00", "2026-01-02 00:00:00"),
    ("0 0 * * 5", "2026-01-01 00:00", "2026-01-02 00:00:00"),
    ("0 0 13 * *", "2026-01-01 00:00", "2026-01-13 00:00:00"),
    # A step takes the * its meaning of any day.
    ("0 0 */2 * 5", "2026-01-01 00:00", "2026-01-02 00:00:00"),
    ("0 0 */1 * 5", "2026-01-01 00:00", "2026-01-02 00:00:00"),
    ("5 4 * * sun", "2026-01-01 00:00", "2026-01-04 04:05:00"),
    ("@hourly", "2026-01-01 00:00", "2026-01-01 01:00:00"),
    ("@daily", "2026-01-01 00:00", "2026-01-02 00:00:00"),
    ("@midnight", "2026-01-01 00:00", "2026-01-02 00:00:00"),
    ("@weekly", "2026-01-01 00:00", "2026-01-04 00:00:00"),
    ("@monthly", "2026-01-01 00:00", "2026-02-01 00:00:00"),
    ("@yearly", "2026-01-01 00:00", "2027-01-01 00:00:00"),
    ("@every 90s", "2026-01-01 00:00:10.5", "2026-01-01 00:01:40"),
    ("@every 1h30m", "2026-01-01 00:00", "2026-01-01 01:30:00"),
    ("@every 10ms", "2026-01-01 00:00", "2026-01-01 00:00:01"),
]


@pytest.mark.parametrize(("schedule", "after", "expected"), NEXT)
def test_the_next_time(schedule, after, expected):
    assert shown(parse_schedule(schedule).next(at(after))) == expected


NEW_YORK = [
    # 2012-03-11: at 2:00 clocks go to 3:00; 2012-11-04: at 2:00 they go back to 1:00.
    ("30 2 * * *", "2012-03-10T12:00-05:00", "2012-03-12 02:30:00"),
    ("0 3 * * *", "2012-03-10T12:00-05:00", "2012-03-11 03:00:00"),
    ("0 * * * *", "2012-03-11T01:30-05:00", "2012-03-11 03:00:00"),
    ("30 1 * * *", "2012-11-04T00:00-04:00", "2012-11-04 01:30:00"),
]


@pytest.mark.parametrize(("schedule", "after", "expected"), NEW_YORK)
def test_the_next_time_where_clocks_change(schedule, after, expected):
    zone = ZoneInfo("America/New_York")
    due = parse_schedule(schedule, "America/New_York").next(datetime.fromisoformat(after).timestamp())
    assert shown(due, zone) == expected


def test_an_hour_that_comes_twice_is_due_twice():
    schedule = parse_schedule("30 1 * * *", "America/New_York")
    first = schedule.next(datetime.fromisoformat("2012-11-04T00:00-04:00").timestamp())
    assert schedule.next(first) == first + 3600


@pytest.mark.parametrize("schedule", ["", "60 * * * *", "* * * * 7", "@often", "a * * * *", "TZ=UTC * * * * *"])
def test_what_validation_refuses_is_not_parsed(schedule):
    with pytest.raises(ValueError, match=r"."):
        parse_schedule(schedule)


def test_an_unknown_zone_is_named():
    with pytest.raises(ValueError, match="unknown time zone Mars/Olympus"):
        parse_schedule("* * * * *", "Mars/Olympus")


@st.composite
def fields(draw, low, high):
    def part():
        kind = draw(st.sampled_from(["*", "one", "range"]))
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        text = {"*": "*", "one": str(first), "range": f"{first}-{last}"}[kind]
        return text + (f"/{draw(st.integers(1, 9))}" if draw(st.booleans()) else "")

    return ",".join(part() for _ in range(draw(st.integers(1, 2))))


SCHEDULES = st.builds(
    lambda *parts: " ".join(parts),
    st.one_of(st.just("*"), fields(0, 59)),
    st.one_of(st.just("*"), fields(0, 23)),
    st.one_of(st.just("*"), fields(1, 31)),
    st.one_of(st.just("*"), fields(1, 12)),
    st.one_of(st.just("*"), fields(0, 6)),
)
ZONES = st.sampled_from(
    [None, "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo"]
)
# Around changes of the clocks in most of these zones.
MOMENTS = st.builds(
    lambda base, minutes: at(base) + 60 * minutes + 7,
    st.sampled_from(
        ["2026-03-07 22:00", "2026-03-28 22:00", "2026-04-04 12:00", "2026-10-24 22:00", "2026-12-31 12:00"]
    ),
    st.integers(0, 60 * 30),
)


@settings(max_examples=120, deadline=None)
@given(text=SCHEDULES, zone=ZONES, after=MOMENTS)
def test_the_next_time_is_the_first_minute_that_matches(text, zone, after):
    assert schedule_problems(text) == []
    schedule = parse_schedule(text, zone)
    minutes = range((int(after) // 60 + 1) * 60, int(after) + 2 * 86400, 60)
    first = next((m for m in minutes if schedule.matches(datetime.fromtimestamp(m, schedule.zone))), None)
    due = schedule.next(after)
    if first is None:
        assert due is None or due > minutes[-1]
    else:
        assert due == first


@settings(max_examples=80, deadline=None)
@given(text=SCHEDULES, zone=ZONES, now=MOMENTS, back=st.integers(1, 2 * 86400))
def test_the_last_time_is_the_one_that_no_other_follows(text, zone, now, back):
    schedule = parse_schedule(text, zone)
    last = schedule.last(now - back, now)
    first = schedule.next(now - back)
    if last is None:
        assert first is None or first > now
    else:
        assert now - back < last <= now
        following = schedule.next(last)
        assert following is None or following > now


@given(seconds=st.integers(1, 5000), earliest=st.integers(0, 10**6), later=st.integers(0, 10**6))
def test_every_counts_from_the_last_time(seconds, earliest, later):
    last = Every(seconds).last(earliest, earliest + later)
    if later < seconds:
        assert last is None
    else:
        assert (last - earliest) % seconds == 0
        assert earliest + later - seconds < last <= earliest + later
