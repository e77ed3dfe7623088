"""Which Job a CronJob starts and which of its old ones go, as tables (cronjob/decide.py).

Source: pkg/controller/cronjob/cronjob_controllerv2.go, utils.go.
"""

from datetime import UTC, datetime

import pytest

from lastcall.kube.controllers.cronjob.decide import (
    LATER_SECONDS,
    MANY_MISSED,
    Start,
    decide_start,
    job_name,
    jobs_to_forget,
    last_due,
    new_job,
    reference_to,
    seconds_until_next,
)
from lastcall.kube.controllers.cronjob.schedule import Every, parse_schedule

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
HOUR = 3600
MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"


def stamp(hour: float) -> str:
    return datetime.fromtimestamp(MIDNIGHT + hour * HOUR, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cron_job(schedule: str = "0 * * * *", *, created: float = -0.5, last: float | None = None, **spec: object) -> dict:
    meta = {"name": "c", "namespace": "default", "uid": "u", "creationTimestamp": stamp(created)}
    status = {} if last is None else {"lastScheduleTime": stamp(last)}
    return {"metadata": meta, "spec": {"schedule": schedule, "jobTemplate": {}, **spec}, "status": status}


def started(of: dict, at: float, active: list | None = None) -> Start:
    """Return what is decided so many hours after midnight."""
    return decide_start(of, active or [], MIDNIGHT + at * HOUR)


def running(hour: float) -> dict:
    return {"name": job_name(cron_job(), MIDNIGHT + hour * HOUR), "uid": "j"}


@pytest.mark.parametrize(
    ("of", "at", "due"),
    [
        (cron_job(), 0, 0),
        (cron_job(), -0.001, None),
        (cron_job(), 0.5, 0),
        (cron_job(), 3.5, 3),  # of several that were missed the last
        (cron_job(last=0), 0.5, None),
        (cron_job(last=0), 1, 1),
        (cron_job(created=-9, last=0), 0.5, None),  # the last start, not the creation
        (cron_job("0 0 31 2 *"), 5, None),
        (cron_job(suspend=True), 1, None),
        (cron_job(suspend=False), 1, 1),
        (cron_job(timeZone="Asia/Kathmandu"), 0.5, 0.25),
        (cron_job(created=-1.5), 0, 0),
        (cron_job(startingDeadlineSeconds=1801), 3.5, 3),
        (cron_job(startingDeadlineSeconds=1800), 3.5, None),
        (cron_job(startingDeadlineSeconds=0), 3, None),
    ],
)
def test_the_last_time_that_was_due_and_not_met_is_started(of: dict, at: float, due: float | None) -> None:
    found = started(of, at)
    assert found.due == (None if due is None else MIDNIGHT + due * HOUR)
    assert (found.replaces, found.events) == (False, ())


@pytest.mark.parametrize(
    ("of", "at", "wait"),
    [
        (cron_job(), 0, 1.0),
        (cron_job(), -0.25, 0.25),
        (cron_job(), 3.75, 0.25),
        (cron_job(last=0), 0.5, 0.5),
        (cron_job(startingDeadlineSeconds=60), 3.75, 0.25),
        (cron_job(created=-9000, startingDeadlineSeconds=60), 0.75, 0.25),
        (cron_job("@every 2h", created=0, last=2), 3, 1.0),
        (cron_job("0 0 31 2 *"), 5, None),
        (cron_job(suspend=True), 1, None),
    ],
)
def test_it_is_looked_at_again_just_after_the_next_time(of: dict, at: float, wait: float | None) -> None:
    found = started(of, at).look_again
    assert found == (None if wait is None else pytest.approx(wait * HOUR + LATER_SECONDS, abs=1e-3))
    assert LATER_SECONDS == 0.1


def test_a_time_that_was_never_due_is_looked_for_from_its_creation_on() -> None:
    of = cron_job("@every 2h", created=0)
    assert seconds_until_next(of, Every(2 * HOUR), MIDNIGHT + 0.5 * HOUR) == pytest.approx(1.5 * HOUR + LATER_SECONDS)


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(MANY_MISSED, False), (MANY_MISSED + 0.5, False), (MANY_MISSED + 1, True), (MANY_MISSED + 50, True)],
)
def test_more_than_a_hundred_missed_times_are_many(hours: float, expected: bool) -> None:
    of = cron_job(created=0)
    schedule = parse_schedule("0 * * * *")
    due, many = last_due(of, schedule, MIDNIGHT + hours * HOUR, with_deadline=True)
    assert (due, many) == (MIDNIGHT + int(hours) * HOUR, expected)
    found = started(of, hours)
    assert found.due == due
    assert found.events == ((("Warning", "TooManyMissedTimes", MANY),) if expected else ())


def test_a_deadline_bounds_what_was_missed_only_where_it_is_asked_for() -> None:
    of, schedule = cron_job(created=0, startingDeadlineSeconds=2 * HOUR), parse_schedule("0 * * * *")
    now = MIDNIGHT + 500.5 * HOUR
    assert last_due(of, schedule, now, with_deadline=True) == (MIDNIGHT + 500 * HOUR, False)
    assert last_due(of, schedule, now, with_deadline=False) == (MIDNIGHT + 500 * HOUR, True)
    late = cron_job(created=0, startingDeadlineSeconds=60)
    assert last_due(late, schedule, now, with_deadline=True) == (None, False)


def test_a_schedule_that_is_due_once_within_five_years_has_no_second_time() -> None:
    # 29 February 2096 is followed by none before 2104.
    of = cron_job("0 0 29 2 *", created=(datetime(2095, 3, 1, tzinfo=UTC).timestamp() - MIDNIGHT) / HOUR)
    due = datetime(2096, 2, 29, tzinfo=UTC).timestamp()
    schedule = parse_schedule("0 0 29 2 *")
    assert last_due(of, schedule, due, with_deadline=True) == (due, False)
    assert last_due(of, schedule, due + HOUR, with_deadline=True) == (due, False)
    assert last_due(of, schedule, due - 1, with_deadline=True) == (None, False)


def test_an_unreadable_schedule_is_said_and_waits_for_a_change() -> None:
    found = started(cron_job("61 * * * *"), 1)
    ((kind, reason, message),) = found.events
    assert (kind, reason) == ("Warning", "UnparseableSchedule")
    assert message.startswith('unparseable schedule: "61 * * * *" : ')
    assert (found.due, found.look_again) == (None, None)


@pytest.mark.parametrize(
    ("policy", "active", "due", "replaces"),
    [
        ("Allow", [], True, False),
        ("Allow", [running(0)], True, False),
        ("Forbid", [], True, False),
        ("Forbid", [running(0)], False, False),
        ("Replace", [running(0)], True, True),
        ("Replace", [], True, True),
        (None, [running(0)], True, False),
        ("Allow", [running(1)], False, False),  # it runs already, though the time of its start got lost
        ("Replace", [running(1)], False, False),
    ],
)
def test_what_still_runs_is_kept_waited_for_or_replaced(
    policy: str | None, active: list, due: bool, replaces: bool
) -> None:
    of = cron_job(last=0, **({"concurrencyPolicy": policy} if policy else {}))
    found = started(of, 1, active)
    assert (found.due == MIDNIGHT + HOUR, found.replaces and found.due is not None) == (due, replaces)
    assert found.look_again == pytest.approx(HOUR + LATER_SECONDS)
    if policy == "Forbid" and active:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        assert found.events == (("Normal", "JobAlreadyActive", text),)


def test_a_job_is_named_by_the_minute_and_knows_the_time_it_was_due() -> None:
    of = cron_job(jobTemplate={
        "metadata": {"labels": {"a": "b"}, "annotations": {"k": "v"}}, "spec": {"parallelism": 2},
    })  # fmt: skip
    due = MIDNIGHT + 61
    name = f"c-{int(MIDNIGHT) // 60 + 1}"
    assert job_name(of, due) == name
    made = new_job(of, due)
    assert made == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"a": "b"},
            "annotations": {"k": "v", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2030-01-01T00:01:01Z"},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u",
                 "controller": True, "blockOwnerDeletion": True}
            ],
        },
        "spec": {"parallelism": 2},
    }  # fmt: skip
    made["spec"]["parallelism"] = 3
    assert of["spec"]["jobTemplate"]["spec"] == {"parallelism": 2}


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        (None, "2030-01-01T00:00:00Z"),
        ("Etc/UTC", "2030-01-01T00:00:00Z"),
        ("Asia/Kathmandu", "2030-01-01T05:45:00+05:45"),
        ("America/New_York", "2029-12-31T19:00:00-05:00"),
    ],
)
def test_the_time_a_job_was_due_is_said_in_the_cron_jobs_zone(zone: str | None, expected: str) -> None:
    of = cron_job(**({"timeZone": zone} if zone else {}))
    (found,) = new_job(of, MIDNIGHT)["metadata"]["annotations"].values()
    assert found == expected


def test_a_reference_names_one_job() -> None:
    meta = {"name": "j", "namespace": "default", "uid": "u", "resourceVersion": "5"}
    assert reference_to({"metadata": meta}) == {"kind": "Job", "apiVersion": "batch/v1", **meta}


def job(name: str, how: str = "Complete", start: float | None = 0) -> dict:
    conditions = [{"type": how, "status": "True"}] if how else []
    status = {"conditions": conditions} | ({} if start is None else {"startTime": stamp(start)})
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "status": status}


JOBS = [
    job("b", start=2), job("a", start=2), job("c", start=1), job("d", start=None), job("f", "Failed", 3),
    job("g", "Failed", 1), job("r", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, []),
        ({"successfulJobsHistoryLimit": 4, "failedJobsHistoryLimit": 2}, []),
        ({"successfulJobsHistoryLimit": 3}, ["c"]),
        ({"successfulJobsHistoryLimit": 2}, ["c", "a"]),
        ({"successfulJobsHistoryLimit": 1}, ["c", "a", "b"]),
        ({"successfulJobsHistoryLimit": 0}, ["c", "a", "b", "d"]),
        ({"failedJobsHistoryLimit": 1}, ["g"]),
        ({"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 0}, ["c", "g", "f"]),
    ],
)
def test_the_oldest_finished_jobs_beyond_the_limits_go(limits: dict, expected: list) -> None:
    found = jobs_to_forget(cron_job(**limits), iter(JOBS))
    assert [each["metadata"]["name"] for each in found] == expected
