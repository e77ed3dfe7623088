"""Which Job a CronJob starts now, and which of its old ones go. Pure.

Source: pkg/controller/cronjob/cronjob_controllerv2.go (syncCronJob, cleanupFinishedJobs), utils.go
(mostRecentScheduleTime, nextScheduleTimeDuration, getJobFromTemplate2).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import copy_object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import CRONJOBS, JOBS
from lastcall.kube.api.text.times import from_unix, parse_rfc3339, zone_of
from lastcall.kube.controllers.cronjob.schedule import Schedule, parse_schedule
from lastcall.kube.controllers.job.decide import COMPLETE, FAILED, finished
from lastcall.kube.controllers.ownership import controller_reference
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.batch import CronJob, Job
    from lastcall.kube.api.types.meta import ObjectReference

MANY_MISSED = 100
LATER_SECONDS = 0.1
"""Looked at again so much later than due, so that it is certainly due (`nextScheduleDelta`)."""
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"

CronEvent = tuple[str, str, str]
"""(type, reason, message)."""


@dataclass(frozen=True, slots=True)
class Start:
    """`due` is the time (seconds since the epoch) of the Job to start, None for none. `replaces`: what runs goes first.

    `look_again` is in seconds, None when only a change can help.
    """

    due: float | None = None
    replaces: bool = False
    look_again: float | None = None
    events: tuple[CronEvent, ...] = ()


def decide_start(cron_job: CronJob, active: list[ObjectReference], now: float) -> Start:
    """Decide whether a Job starts now. `active` are the current references of `status.active`."""
    spec, status = cron_job["spec"], cron_job.get("status") or {}
    if spec.get("suspend"):
        return Start()
    try:
        schedule = parse_schedule(spec["schedule"], spec.get("timeZone"))
    except ValueError as error:
        return Start(
            events=(("Warning", "UnparseableSchedule", f'unparseable schedule: "{spec["schedule"]}" : {error}'),)
        )
    again = seconds_until_next(cron_job, schedule, now)
    due, many = last_due(cron_job, schedule, now, with_deadline=True)
    if due is None:
        return Start(look_again=again)
    events: tuple[CronEvent, ...] = ()
    if many:
        message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        events = (("Warning", "TooManyMissedTimes", message),)
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None and due + deadline < now:
        missed = f"Missed scheduled time to start a job: {format_datetime(from_unix(due))}"
        return Start(look_again=again, events=(*events, ("Warning", "MissSchedule", missed)))
    last = status.get("lastScheduleTime")
    done = last is not None and parse_rfc3339(last).timestamp() == due
    if done or any(each.get("name") == job_name(cron_job, due) for each in active):
        return Start(look_again=again)
    policy = spec.get("concurrencyPolicy")
    if policy == "Forbid" and active:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return Start(look_again=again, events=(*events, ("Normal", "JobAlreadyActive", message)))
    return Start(due, policy == "Replace", again, events)


def last_due(cron_job: CronJob, schedule: Schedule, now: float, *, with_deadline: bool) -> tuple[float | None, bool]:
    """Return (the last time that was due and may have been missed, whether many were missed).

    (`mostRecentScheduleTime`; where that guesses from the distance of the first two, this looks.)
    """
    earliest = _earliest(cron_job)
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if with_deadline and deadline is not None:
        earliest = max(earliest, now - deadline)
    first = schedule.next(earliest)
    if first is None or first > now:
        return None, False
    second = schedule.next(first)
    if second is None or second > now:
        return first, False
    many = (now - first) // (second - first) + 1 > MANY_MISSED
    return schedule.last(earliest, now), many


def _earliest(cron_job: CronJob) -> float:
    """What was due until then is settled."""
    last = (cron_job.get("status") or {}).get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"]
    return parse_rfc3339(last).timestamp()


def seconds_until_next(cron_job: CronJob, schedule: Schedule, now: float) -> float | None:
    """Return the seconds until the next start, None when it is never due. (`nextScheduleTimeDuration`)"""
    last, _ = last_due(cron_job, schedule, now, with_deadline=False)
    due = schedule.next(max(_earliest(cron_job) if last is None else last, 0.0))
    if due is not None and due <= now:
        due = schedule.next(now)
    return None if due is None else due + LATER_SECONDS - now


def job_name(cron_job: CronJob, due: float) -> str:
    """Name the Job by the minute, so that no time can start two."""
    return f"{name_of(cron_job)}-{int(due) // 60}"


def new_job(cron_job: CronJob, due: float) -> Job:
    """Return the Job for a time of the schedule. (`getJobFromTemplate2`)"""
    template = cron_job["spec"].get("jobTemplate") or {}
    meta = template.get("metadata") or {}
    zone = cron_job["spec"].get("timeZone")
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": job_name(cron_job, due),
            "namespace": namespace_of(cron_job),
            "labels": dict(meta.get("labels") or {}),
            "annotations": {**(meta.get("annotations") or {}), SCHEDULED: _local(due, zone)},
            "ownerReferences": [controller_reference(cron_job, CRONJOBS)],
        },
        "spec": copy_object(template.get("spec") or {}),
    }


def _local(due: float, zone: str | None) -> str:
    """RFC 3339 in the CronJob's own zone."""
    if zone is None:
        return from_unix(due).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = datetime.fromtimestamp(due, zone_of(zone)).isoformat(timespec="seconds")
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def reference_to(job: Job) -> ObjectReference:
    """Return an entry of `status.active`."""
    return {
        "kind": JOBS.kind,
        "namespace": namespace_of(job),
        "name": name_of(job),
        "uid": uid_of(job),
        "apiVersion": JOBS.api_version,
        "resourceVersion": resource_version_of(job),
    }


def jobs_to_forget(cron_job: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """Return finished Jobs beyond the history limits, the oldest first. (`cleanupFinishedJobs`)"""
    spec, found = cron_job["spec"], list(jobs)
    gone: list[Job] = []
    for how, limit in (
        (COMPLETE, spec.get("successfulJobsHistoryLimit")),
        (FAILED, spec.get("failedJobsHistoryLimit")),
    ):
        ended = sorted((job for job in found if finished(job) == how), key=_age)
        if limit is not None and len(ended) > limit:
            gone += ended[: len(ended) - limit]
    return gone


def _age(job: Job) -> tuple[bool, str, str]:
    start = (job.get("status") or {}).get("startTime")
    return start is None, start or "", name_of(job)
