"""Job: runs Pods until enough of them have succeeded, or too many have failed.

Source: pkg/controller/job/job_controller.go. What to do is decided in `decide`, how Pods are counted in
`tracking`; here it is done. Two syncs for one Job never run at once, and none runs on a Job whose own last write
the cache has not seen: an old count would make Pods that nobody needs.
"""

# check: many attributes JobController because it has a cache for each kind that it joins, and what is expected of each

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import AnyObject, copy_object, is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import is_pod_ready, pod_key
from lastcall.kube.api.resources import JOBS, PODS
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import RateLimit
from lastcall.kube.controllers.errors import namespace_is_terminating
from lastcall.kube.controllers.expectations import Expectations
from lastcall.kube.controllers.informers import CONTROLLER, NAMESPACE, Informers, owned_and_orphans
from lastcall.kube.controllers.job.backoff import BackOff
from lastcall.kube.controllers.job.decide import Decision, View, decide, finished
from lastcall.kube.controllers.job.pods import TRACKING, Surplus, is_failed, is_tracked, new_pod, phase_of
from lastcall.kube.controllers.job.tracking import Outcome, Tracking, events_at_the_end, settle, track
from lastcall.kube.controllers.ownership import AdoptionRefused, claim, controller_of, decide_claim
from lastcall.kube.controllers.pods.control import PodControl, slow_start_batch
from lastcall.kube.controllers.worker import Retry, Worker, split_key
from lastcall.records import rules
from lastcall.records.record import Recorder
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks, gather
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.features.gates import FeatureGates
    from lastcall.kube.api.types.batch import Job, JobStatus
    from lastcall.kube.api.types.meta import OwnerReference
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.parts import GroundsOfDecision

COMPONENT = "job-controller"
COUNTS_WHILE_BACKING_OFF = 37
"""Minor version since which `status.active` stays while a replacement waits (kubernetes#139457)."""
MANAGED_BY = "kubernetes.io/job-controller"
"""`spec.managedBy` of a Job that is left to this controller; an empty one means the same."""

API_BACK_OFF = RateLimit(1.0, 60.0, per_second=0)
"""Between syncs that fail (`DefaultJobApiBackOff`, `MaxJobApiBackOff`)."""

MAX_BATCH_SECONDS = 1.0


def batch_seconds(pods: int) -> float:
    """Return how long changes of `pods` Pods are gathered before one sync.

    Kubernetes always takes a second (`syncJobBatchPeriod`), so that a big Job is not counted again for each of its
    Pods. A small one is cheap to count, so it need not wait.
    """
    return min(MAX_BATCH_SECONDS, 0.02 + pods / 1000)


class JobController:
    def __init__(
        self, world: World, client: Client, informers: Informers, recorder: Recorder, gates: FeatureGates
    ) -> None:
        self._world = world
        self._counts_while_backing_off = gates.minor >= COUNTS_WHILE_BACKING_OFF
        self._client = client
        self._events = EventRecorder(client, world, COMPONENT)
        self._pod_control = PodControl(client, self._events, recorder)
        self._expectations = Expectations(world.clock)
        self._removed: dict[str, dict[str, None]] = {}
        self._back_off: dict[str, tuple[str, BackOff]] = {}
        self._written: dict[str, tuple[str, int]] = {}
        self._uncertain: dict[str, None] = {}
        self._sizes: dict[str, int] = {}
        self._jobs: Informer[Job] = informers.get(JOBS)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._worker = Worker(world, COMPONENT, self._sync, rate_limit=API_BACK_OFF, events=self._events)
        self._orphans = Worker(world, f"{COMPONENT} orphans", self._sync_orphan, workers=1, events=self._events)
        self._jobs.add_handler(self._enqueue, self._job_updated, self._job_deleted)
        informers.pod_routes.add_handler(
            JOBS.kind, self._pod_added, self._pod_updated, lambda pod: self._pod_gone(pod, final=True)
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            tasks.spawn(self._worker.run([self._jobs, self._pods]), name=COMPONENT)
            tasks.spawn(self._orphans.run([self._pods, self._jobs]), name=f"{COMPONENT} orphans")

    # -- what happened → which Jobs to look at -----------------------------------------------------------------------

    def _enqueue(self, job: Job) -> None:
        self._worker.queue.add(_key(job))

    def _enqueue_batched(self, job: Job) -> None:
        key = _key(job)
        self._worker.queue.add_after(key, batch_seconds(self._sizes.get(key, 0)))

    def _job_updated(self, old: Job, new: Job) -> None:
        if old["metadata"].get("generation") == new["metadata"].get("generation"):
            self._enqueue_batched(new)
        else:
            self._enqueue(new)
        if finished(new):
            self._release_left_over(new)

    def _job_deleted(self, job: Job) -> None:
        self._enqueue(job)
        self._release_left_over(job)

    def _release_left_over(self, job: Job) -> None:
        """No sync will take these finalizers off any more. (`cleanupPodFinalizers`)"""
        removed = self._removed.get(_key(job), {})
        for pod in self._pods.by_index(CONTROLLER, uid_of(job)):
            if is_tracked(pod) and uid_of(pod) not in removed:
                self._orphans.queue.add(pod_key(pod))

    def _job_of(self, pod: Pod) -> Job | None:
        """The Job that controls `pod`, by uid."""
        reference = controller_of(pod)
        if reference is None or reference["kind"] != JOBS.kind:
            return None
        job = self._jobs.get(namespace_of(pod), reference["name"])
        return job if job is not None and uid_of(job) == reference["uid"] else None

    def _enqueue_matching(self, pod: Pod) -> None:
        for job in self._jobs.by_index(NAMESPACE, namespace_of(pod)):
            if selector_of_expressions(job["spec"].get("selector")).matches(labels_of(pod)):
                self._enqueue_batched(job)

    def _pod_added(self, pod: Pod) -> None:
        if is_terminating(pod):
            self._pod_gone(pod)
            return
        if (job := self._job_of(pod)) is not None:
            self._expectations.creation_observed(_key(job))
            self._enqueue_batched(job)
        self._look_after_stray(pod, job)
        if controller_of(pod) is None:
            self._enqueue_matching(pod)

    def _look_after_stray(self, pod: Pod, job: Job | None) -> None:
        """A Pod that was a Job's and has its finalizer still, although no sync will take it off."""
        if is_tracked(pod) and (job is None or finished(job)):
            self._orphans.queue.add(pod_key(pod))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if is_terminating(new):
            self._pod_gone(new)
            return
        job, before = self._job_of(new), self._job_of(old)
        if before is not None and (job is None or uid_of(before) != uid_of(job)):
            self._removal_observed(before, new)
            self._enqueue_batched(before)
        if job is not None:
            if not is_tracked(new):
                self._removal_observed(job, new)
            self._enqueue_batched(job)
        self._look_after_stray(new, job)
        if controller_of(new) is None and (labels_of(old) != labels_of(new) or controller_of(old) is not None):
            self._enqueue_matching(new)

    def _pod_gone(self, pod: Pod, *, final: bool = False) -> None:
        """Deleted, or being deleted."""
        job = self._job_of(pod)
        if not final:
            self._look_after_stray(pod, job)
        if job is None:
            return
        self._expectations.deletion_observed(_key(job), uid_of(pod))
        if final or not is_tracked(pod):
            self._removal_observed(job, pod)
        self._enqueue_batched(job)

    def _removal_observed(self, job: Job, pod: Pod) -> None:
        self._removed.get(_key(job), {}).pop(uid_of(pod), None)

    # -- sync --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        """(`syncJob`)"""
        job = self._jobs.get(*split_key(key))
        if job is None:
            self._forget(key)
            return
        if _is_foreign(job):
            return
        if finished(job):
            self._back_off.pop(key, None)
            return
        if not await self._is_current(key, job):
            return  # the cache will tell
        satisfied = self._expectations.satisfied(key)
        view = await self._view(key, job)
        decision = decide(view, satisfied)
        outcome, error = await self._do(key, view, decision, satisfied)
        if decision.look_again is not None:
            self._worker.queue.add_after(key, decision.look_again)  # whatever becomes of the status
        await self._track(key, view, track(view, decision, outcome, self._stamp()))
        if error:
            raise Retry(error)

    def _forget(self, key: str) -> None:
        self._expectations.forget(key)
        for known in (self._removed, self._back_off, self._written, self._uncertain, self._sizes):
            known.pop(key, None)

    async def _is_current(self, key: str, job: Job) -> bool:
        """Whether the cache has this controller's last write to the Job."""
        if key in self._uncertain:
            fresh = await self._client.get(JOBS, name_of(job), namespace_of(job))
            self._note_written(key, fresh)
            self._uncertain.pop(key, None)
        uid, version = self._written.get(key, ("", 0))
        return uid != uid_of(job) or _version(job) >= version

    def _note_written(self, key: str, job: AnyObject) -> None:
        self._written[key] = (uid_of(job), _version(job))

    async def _view(self, key: str, job: Job) -> View:
        pods = await self._claim(job)
        self._sizes[key] = len(pods)
        uid, back_off = self._back_off.get(key, ("", BackOff()))
        if uid != uid_of(job):
            # Another Job of this name, or another life of this process: what was counted reports the failures.
            counted = [pod for pod in pods if not is_tracked(pod)]
            succeeded = [pod for pod in counted if phase_of(pod) == "Succeeded"]
            back_off = BackOff().after(succeeded, [pod for pod in counted if is_failed(job, pod)])
            self._back_off[key] = (uid_of(job), back_off)
        moment = now(self._world.clock).timestamp()
        return View(job, pods, self._removed.get(key, {}).keys(), back_off, moment)

    async def _claim(self, job: Job) -> list[Pod]:
        found = owned_and_orphans(self._pods, uid_of(job), namespace_of(job))
        decision = decide_claim(job, selector_of_expressions(job["spec"].get("selector")), found)
        try:
            return await claim(self._client, job, JOBS, PODS, decision, finalizers=(TRACKING,))
        except AdoptionRefused as refused:
            raise Retry(str(refused)) from refused
        except StatusError as error:
            if is_not_found(error):
                raise Retry(f"{_key(job)} is gone") from error
            raise

    # -- making and deleting Pods ------------------------------------------------------------------------------------

    async def _do(self, key: str, view: View, decision: Decision, satisfied: bool) -> tuple[Outcome, str]:
        """What became of it, and the first error ("" for none)."""
        active, ready, terminating = len(view.active), view.ready, len(view.terminating)
        if decision.backs_off and not self._counts_while_backing_off:
            # As `manageJob` of 1.36.2 answers (kubernetes/kubernetes#139428, fixed in 1.36.3 and 1.37): while another
            # Pod is Ready the server refuses that status, so that the failure is counted only when the wait is over.
            active = 0
        made, error = await self._create(key, view, decision)
        deleted: list[Pod] = []
        if decision.delete:
            deleted, error = await self._delete(key, view, decision)
        declared = satisfied and not error and len(deleted) == len(decision.delete)
        gone = len(deleted)
        outcome = Outcome(active + made - gone, ready - sum(map(is_pod_ready, deleted)), terminating + gone, declared)
        return outcome, error

    async def _create(self, key: str, view: View, decision: Decision) -> tuple[int, str]:
        if not decision.create:
            return 0, ""
        self._expectations.expect_creations(key, len(decision.create))
        indexes = iter(decision.create)
        started = refused = 0

        async def create_one() -> None:
            nonlocal started, refused
            started += 1
            index = next(indexes)
            pod = new_pod(view.job, index, None if index is None else view.delayed.get(index))
            try:
                await self._pod_control.create(pod, namespace_of(view.job), view.job)
            except StatusError as error:
                self._expectations.creation_observed(key)
                if not namespace_is_terminating(error):
                    raise
                refused += 1

        done, error = await slow_start_batch(len(decision.create), create_one)
        if error is not None:
            for _ in range(len(decision.create) - started):
                self._expectations.creation_observed(key)
            if not isinstance(error, StatusError):
                raise error
        return done - refused, "" if error is None else str(error)

    async def _delete(self, key: str, view: View, decision: Decision) -> tuple[list[Pod], str]:
        """The Pods that are being deleted now, and the first error."""
        self._expectations.expect_deletions(key, [uid_of(each.pod) for each in decision.delete])

        async def delete_one(each: Surplus) -> None:
            try:
                if decision.target is None:
                    # It ends because it is not needed, which is not a failure: it leaves the count first.
                    await self._remove_finalizer(each.pod)
                await self._delete_pod(view, decision, each)
            except BaseException:
                self._expectations.deletion_observed(key, uid_of(each.pod))
                raise

        results = await gather(map(delete_one, decision.delete))
        errors = [result for result in results if result is not None]
        for error in errors:
            if not isinstance(error, StatusError):
                raise error
        deleted = [each.pod for each, result in zip(decision.delete, results, strict=True) if result is None]
        return deleted, str(errors[0]) if errors else ""

    async def _delete_pod(self, view: View, decision: Decision, each: Surplus) -> None:
        target = decision.target
        facts: GroundsOfDecision = {"reason": each.reason, "active": len(view.active)}
        if target is None:
            facts["wanted"] = decision.wanted
            facts["step"] = "suspended" if view.job["spec"].get("suspend") else "scaling"
        else:
            facts["condition"], facts["conditionReason"] = target.type, target.reason
            facts["step"] = "finished"
        rule = rules.MANAGE_JOB if target is None else rules.DELETE_ACTIVE_PODS
        why = f"Job {name_of(view.job)} {each.reason}"
        await self._pod_control.delete(each.pod, view.job, rule=rule, why=why, facts=facts)

    # -- counting ----------------------------------------------------------------------------------------------------

    async def _track(self, key: str, view: View, tracking: Tracking) -> None:
        """(`trackJobStatusAndRemoveFinalizers`)"""
        job = view.job
        if tracking.status != (job.get("status") or {}):
            job = await self._write_status(key, job, tracking.status)
        for event in tracking.events:
            self._event(job, *event)
        self._count_failures(key, view, tracking.release)
        kept, failure = await self._release(key, tracking.release)
        still = tracking.tracked - {uid_of(pod) for pod in tracking.release} | kept
        status, done = settle(job.get("status") or {}, still, tracking, self._stamp())
        if status != (job.get("status") or {}):
            job = await self._write_status(key, job, status)
        if done and tracking.target is not None:
            for event in events_at_the_end(job, status, tracking.target):
                self._event(job, *event)
        if failure is not None:
            raise failure

    def _event(self, job: Job, kind: str, reason: str, message: str) -> None:
        self._events.event(job, "Warning" if kind == "Warning" else "Normal", reason, message)

    def _count_failures(self, key: str, view: View, release: Sequence[Pod]) -> None:
        """Only those that leave now: the others are looked at again."""
        going = {uid_of(pod) for pod in release}
        uid, back_off = self._back_off[key]
        succeeded = [pod for pod in view.succeeded_now if uid_of(pod) in going]
        failed = [pod for pod in view.failed_now if uid_of(pod) in going]
        self._back_off[key] = (uid, back_off.after(succeeded, failed))

    async def _release(self, key: str, pods: Sequence[Pod]) -> tuple[set[str], Exception | None]:
        """(the uids of Pods that could not be released, the first error)."""
        removed = self._removed.setdefault(key, {})
        removed.update(dict.fromkeys(map(uid_of, pods)))
        kept: set[str] = set()
        first: Exception | None = None
        for pod, error in zip(pods, await gather(map(self._remove_finalizer, pods)), strict=True):
            if error is not None:
                removed.pop(uid_of(pod), None)
                kept.add(uid_of(pod))
                first = first or error
        return kept, first

    async def _remove_finalizer(self, pod: Pod) -> None:
        """Raises StatusError, ConnectionLost. A Pod that is gone has none."""
        if not is_tracked(pod):
            return
        patch = {"metadata": {"uid": uid_of(pod), "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
        try:
            await self._client.patch(
                PODS, name_of(pod), patch, namespace_of(pod), content_type=STRATEGIC_MERGE_PATCH
            )  # fmt: skip
        except StatusError as error:
            if not is_not_found(error) and error.code != 422:
                raise

    async def _write_status(self, key: str, job: Job, status: JobStatus) -> Job:
        new: Job = {**job, "status": status}
        try:
            written = await self._client.update(JOBS, new, namespace_of(job), subresource="status")
        except ConnectionLost:
            self._uncertain[key] = None
            raise
        self._note_written(key, written)
        return cast("Job", copy_object(written))

    def _stamp(self) -> str:
        return rfc3339(now(self._world.clock))

    # -- Pods that no Job counts any more ----------------------------------------------------------------------------

    async def _sync_orphan(self, key: str) -> None:
        """(`syncOrphanPod`)"""
        pod = self._pods.get(*split_key(key))
        if pod is None or not is_tracked(pod):
            return
        reference = controller_of(pod)
        if reference is not None:
            if reference["kind"] != JOBS.kind or reference["apiVersion"] != JOBS.api_version:
                return
            job = self._job_of(pod) or await self._live_job(pod, reference)
            if job is not None and (_is_foreign(job) or not finished(job)):
                return
        await self._remove_finalizer(pod)

    async def _live_job(self, pod: Pod, reference: OwnerReference) -> Job | None:
        """The cache of Jobs may be behind the cache of Pods."""
        try:
            job = cast("Job", await self._client.get(JOBS, reference["name"], namespace_of(pod)))
        except StatusError as error:
            if is_not_found(error):
                return None
            raise
        return job if uid_of(job) == reference["uid"] else None


def _key(job: Job) -> str:
    return f"{namespace_of(job)}/{name_of(job)}"


def _is_foreign(job: Job) -> bool:
    """Another controller looks after it. (`managedByExternalController`)"""
    return job["spec"].get("managedBy") not in (None, "", MANAGED_BY)


def _version(obj: AnyObject) -> int:
    """Of an API server whose versions cannot be compared: 0."""
    return int_of(obj["metadata"].get("resourceVersion")) or 0
