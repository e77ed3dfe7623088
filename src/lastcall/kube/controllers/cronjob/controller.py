"""CronJob: starts a Job at each time of its schedule.

Source: pkg/controller/cronjob/cronjob_controllerv2.go. The name of a Job is made of the time it was due, so that after
a death between two writes the same Job is found again and not started twice.
"""

# check: observes because it records its own decision

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.kube.api.meta import copy_object, is_terminating, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import CRONJOBS, JOBS
from lastcall.kube.api.text.times import from_unix, parse_rfc3339
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.cronjob.decide import (
    Start,
    decide_start,
    job_name,
    jobs_to_forget,
    new_job,
    reference_to,
    seconds_until_next,
)
from lastcall.kube.controllers.cronjob.schedule import parse_schedule
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.informers import CONTROLLER, Informers
from lastcall.kube.controllers.job.decide import COMPLETE, finished
from lastcall.kube.controllers.ownership import controller_of, is_controlled_by
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.batch import CronJob, Job
    from lastcall.kube.api.types.meta import ObjectReference
    from lastcall.records.definitions.controllers import DeletionDecided

COMPONENT = "cronjob-controller"


class CronJobController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, COMPONENT)
        self._cron_jobs: Informer[CronJob] = informers.get(CRONJOBS)
        self._jobs: Informer[Job] = informers.get(JOBS)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._cron_jobs.add_handler(self._enqueue, self._updated, self._enqueue)
        self._jobs.add_handler(self._job_changed, lambda _, new: self._job_changed(new), self._job_changed)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._cron_jobs, self._jobs]), name=COMPONENT)

    # -- what happened → which CronJobs to look at -------------------------------------------------------------------

    def _enqueue(self, cron_job: CronJob) -> None:
        self._worker.queue.add(_key(cron_job))

    def _updated(self, old: CronJob, new: CronJob) -> None:
        keys = ("schedule", "timeZone")
        if all(old["spec"].get(key) == new["spec"].get(key) for key in keys):
            self._enqueue(new)
            return
        # A new schedule counts from now on: what it would have asked for in the past is not caught up with.
        try:
            schedule = parse_schedule(new["spec"]["schedule"], new["spec"].get("timeZone"))
        except ValueError:
            self._enqueue(new)  # the sync says what is wrong with it
            return
        wait = seconds_until_next(new, schedule, self._now())
        if wait is not None:
            self._worker.queue.add_after(_key(new), wait)

    def _job_changed(self, job: Job) -> None:
        reference = controller_of(job)
        if reference is not None and reference["kind"] == CRONJOBS.kind:
            self._worker.queue.add(f"{namespace_of(job)}/{reference['name']}")

    def _now(self) -> float:
        return now(self._world.clock).timestamp()

    # -- sync --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        cached = self._cron_jobs.get(*split_key(key))
        if cached is None:
            return
        cron_job = copy_object(cached)
        status = cron_job.setdefault("status", {})
        active: list[ObjectReference] = status.get("active") or []
        jobs = self._jobs.by_index(CONTROLLER, uid_of(cron_job))
        if await self._is_behind(cron_job, jobs, active):
            return  # the newer version is seen soon, and enqueued
        for job in jobs_to_forget(cron_job, jobs):
            if not is_terminating(job):
                active = await self._delete_job(cron_job, job, active, "is beyond its history limit")
        active = await self._notice(cron_job, jobs, active)
        start = Start()
        if not is_terminating(cron_job):
            start = decide_start(cron_job, active, self._now())
        for event in start.events:
            self._event(cron_job, *event)
        try:
            if start.due is not None:
                active = await self._start(cron_job, start, start.due, active)
        finally:
            await self._write_status(cached, cron_job, active)
        if start.look_again is not None:
            self._worker.queue.add_after(key, start.look_again)

    async def _notice(self, cron_job: CronJob, jobs: list[Job], active: list[ObjectReference]) -> list[ObjectReference]:
        """What became of its Jobs; the references that remain."""
        status = cron_job["status"]
        listed = {each.get("uid") for each in active}
        for job in sorted(jobs, key=name_of):
            how = finished(job)
            if how and uid_of(job) in listed:
                active = [each for each in active if each.get("uid") != uid_of(job)]
                message = f"Saw completed job: {name_of(job)}, condition: {how}"
                self._event(cron_job, "Normal", "SawCompletedJob", message)
            elif not how and uid_of(job) not in listed and not await self._is_known(cron_job, job):
                message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
                self._event(cron_job, "Warning", "UnexpectedJob", message)
            done = (job.get("status") or {}).get("completionTime") if how == COMPLETE else None
            last = status.get("lastSuccessfulTime")
            if done and (last is None or parse_rfc3339(done) > parse_rfc3339(last)):
                status["lastSuccessfulTime"] = done
        children = {uid_of(job) for job in jobs}
        for each in list(active):
            if each.get("uid") not in children and await self._live(each) is None:
                self._event(cron_job, "Normal", "MissingJob", f"Active job went missing: {each.get('name', '')}")
                active = [other for other in active if other is not each]
        return active

    async def _is_behind(self, cron_job: CronJob, jobs: list[Job], active: list[ObjectReference]) -> bool:
        """Return True if a Job of `active` is gone because this controller has replaced it, in a newer status.

        The cache of CronJobs may be behind the cache of Jobs: the Job would be said to be missing (MissingJob).
        """
        children = {uid_of(job) for job in jobs}
        if all(each.get("uid") in children for each in active):
            return False
        try:
            fresh = await self._client.get(CRONJOBS, name_of(cron_job), namespace_of(cron_job))
        except StatusError as error:
            if is_not_found(error):
                return True
            raise
        return resource_version_of(fresh) != resource_version_of(cron_job)

    async def _is_known(self, cron_job: CronJob, job: Job) -> bool:
        """The cache of CronJobs may be behind the cache of Jobs."""
        fresh = await self._client.get(CRONJOBS, name_of(cron_job), namespace_of(cron_job))
        return any(each.get("uid") == uid_of(job) for each in (fresh.get("status") or {}).get("active") or ())

    async def _live(self, reference: ObjectReference) -> Job | None:
        """The Job of an entry of `status.active`, which may say anything."""
        name, namespace = reference.get("name"), reference.get("namespace")
        if not name or not namespace:
            return None
        try:
            return cast("Job", await self._client.get(JOBS, name, namespace))
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    # -- starting ----------------------------------------------------------------------------------------------------

    async def _start(
        self, cron_job: CronJob, start: Start, due: float, active: list[ObjectReference]
    ) -> list[ObjectReference]:
        """The references after it."""
        if start.replaces:
            for each in list(active):
                running = await self._live(each)
                if running is not None:
                    why = "still runs when the next is due, and concurrencyPolicy is Replace"
                    active = await self._delete_job(cron_job, running, active, why)
        try:
            job = cast("Job", await self._client.create(JOBS, new_job(cron_job, due), namespace_of(cron_job)))
            self._event(cron_job, "Normal", "SuccessfulCreate", f"Created job {name_of(job)}")
        except StatusError as error:
            if not is_already_exists(error):
                if not namespace_is_terminating(error):
                    self._event(cron_job, "Warning", "FailedCreate", f"Error creating job: {error.message}")
                raise
            found = await self._live({"namespace": namespace_of(cron_job), "name": job_name(cron_job, due)})
            if found is None:
                raise Retry(f"Job {job_name(cron_job, due)} came and went") from error
            if not is_controlled_by(found, cron_job) or any(each.get("uid") == uid_of(found) for each in active):
                return active
            job = found  # started before the last death, or noted in a write that got lost
        cron_job["status"]["lastScheduleTime"] = rfc3339(from_unix(due))
        return [*active, reference_to(job)]

    async def _delete_job(
        self, cron_job: CronJob, job: Job, active: list[ObjectReference], why: str
    ) -> list[ObjectReference]:
        """DELETE with its Pods; the references that remain. Raises StatusError."""
        facts: DeletionDecided = {
            "why": f"Job {name_of(job)} of CronJob {name_of(cron_job)} {why}",
            "ownerKind": CRONJOBS.kind,
            "owner": name_of(cron_job),
            "kind": JOBS.kind,
            "name": name_of(job),
            "namespace": namespace_of(job),
            "uid": uid_of(job),
            "observedResourceVersion": resource_version_of(job),
        }
        self._recorder.record(kinds.DELETION_DECIDED, rule=rules.DELETE_JOB_OF_CRON_JOB, facts=facts)
        try:
            await self._client.delete(
                JOBS, name_of(job), namespace_of(job), uid=uid_of(job), propagation_policy="Background"
            )
        except StatusError as error:
            if not is_not_found(error):
                self._event(cron_job, "Warning", "FailedDelete", f"Deleted job: {error.message}")
                raise
        else:
            self._event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}")
        return [each for each in active if each.get("uid") != uid_of(job)]

    async def _write_status(self, cached: CronJob, cron_job: CronJob, active: list[ObjectReference]) -> None:
        status = {key: value for key, value in cron_job["status"].items() if key != "active"}
        if active:
            status["active"] = active
        if status == (cached.get("status") or {}):
            return
        try:
            await self._client.update(
                CRONJOBS, {**cron_job, "status": status}, namespace_of(cron_job), subresource="status"
            )  # fmt: skip
        except StatusError as error:
            if not is_not_found(error):
                raise

    def _event(self, cron_job: CronJob, kind: str, reason: str, message: str) -> None:
        self._events.event(cron_job, "Warning" if kind == "Warning" else "Normal", reason, message)


def _key(cron_job: CronJob) -> str:
    return f"{namespace_of(cron_job)}/{name_of(cron_job)}"
