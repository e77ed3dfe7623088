"""Deletes finished Jobs when their `ttlSecondsAfterFinished` is over, their Pods first (Foreground).

Source: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go. The cache only says when to look: whether the
time is over is decided on the object as it is now, and the DELETE names its uid.
"""

# check: observes because it records its own decision

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import is_terminating, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import JOBS
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.job.decide import condition_of, finished
from lastcall.kube.controllers.worker import Worker, split_key
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.clock import now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.batch import Job
    from lastcall.records.definitions.controllers import DeletionDecided

COMPONENT = "ttl-after-finished-controller"


def expires_at(job: Job) -> float | None:
    """Return when it expires, in seconds since the epoch; None if there is nothing to clean up. (`timeLeft`)"""
    ttl, how = job["spec"].get("ttlSecondsAfterFinished"), finished(job)
    if ttl is None or not how or is_terminating(job):
        return None
    condition = condition_of(job["status"], how) or {}
    return parse_rfc3339(condition.get("lastTransitionTime")).timestamp() + float(ttl)


class TTLAfterFinishedController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, COMPONENT)
        self._jobs: Informer[Job] = informers.get(JOBS)
        self._worker = Worker(world, COMPONENT, self._sync, events=self._events)
        self._jobs.add_handler(self._changed, lambda _, new: self._changed(new))

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._jobs]), name=COMPONENT)

    def _changed(self, job: Job) -> None:
        if (left := self._seconds_left(job)) is not None:
            self._worker.queue.add_after(f"{namespace_of(job)}/{name_of(job)}", left)

    def _seconds_left(self, job: Job) -> float | None:
        at = expires_at(job)
        return None if at is None else at - now(self._world.clock).timestamp()

    async def _sync(self, key: str) -> None:
        cached = self._jobs.get(*split_key(key))
        if cached is None or self._waits(key, cached):
            return
        try:
            job = cast("Job", await self._client.get(JOBS, name_of(cached), namespace_of(cached)))
            if uid_of(job) == uid_of(cached) and not self._waits(key, job):
                await self._delete(job)
        except StatusError as error:
            if not is_not_found(error):
                raise

    def _waits(self, key: str, job: Job) -> bool:
        """True when there is nothing to do now; it is looked at again when there will be."""
        left = self._seconds_left(job)
        if left is not None and left > 0:
            self._worker.queue.add_after(key, left)
        return left is None or left > 0

    async def _delete(self, job: Job) -> None:
        ttl = job["spec"]["ttlSecondsAfterFinished"]
        facts: DeletionDecided = {
            "why": f"Job {name_of(job)} finished longer than its ttlSecondsAfterFinished of {ttl} s ago",
            "kind": JOBS.kind,
            "name": name_of(job),
            "namespace": namespace_of(job),
            "uid": uid_of(job),
            "observedResourceVersion": resource_version_of(job),
        }
        self._recorder.record(kinds.DELETION_DECIDED, rule=rules.DELETE_FINISHED_JOB, facts=facts)
        await self._client.delete(
            JOBS, name_of(job), namespace_of(job), uid=uid_of(job), propagation_policy="Foreground"
        )  # fmt: skip
