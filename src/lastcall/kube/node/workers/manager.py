"""One worker per Pod: the thin async shell around `transitions` (kubelet pod_workers.go:podWorkers).

Each UID has one task, a slot for one pending update (a newer one overwrites an older one) and a `SyncContext` that an
update may cancel. Every decision is made in `transitions`; here it is performed and recorded.
"""

# check: observes because it saw the deletion and decided the grace period

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, resource_version_of, uid_of
from lastcall.kube.client.events import tell_of_fault
from lastcall.kube.node.interfaces import EventRecorder, PodStatus
from lastcall.kube.node.pods.spec import is_static_pod
from lastcall.kube.node.workers import transitions
from lastcall.kube.node.workers.calls import PodStatusCache, PodSyncer, SyncCancelled, SyncContext
from lastcall.kube.node.workers.static_starts import StaticPodStarts
from lastcall.kube.node.workers.transitions import (
    Cause,
    KillPodOptions,
    PodSyncStatus,
    StartVerdict,
    State,
    Sweep,
    UpdatePodOptions,
    UpdateType,
)
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus
    from lastcall.records.definitions.kubelet_end import GraceDecided, TerminationObserved

COMPONENT = "kubelet pod worker"

QUICK_RETRIES = 2
"""Failures in a row before events of the runtime no longer cause an immediate retry."""
RETRY_SECONDS = 1.0
_MOST_LOGGED = 16
_TERMINATION_RULES = {Cause.COMPLETED: rules.COMPLETE_SYNC, Cause.REMOVED: rules.REMOVE_TERMINATED_WORKER}
"""What moves a Pod to terminating, where that is not `UpdatePod`."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Worker:
    status: PodSyncStatus
    pending: UpdatePodOptions | None = None
    active: UpdatePodOptions | None = None
    signal: asyncio.Event = field(default_factory=asyncio.Event)
    context: SyncContext | None = None
    task: asyncio.Task[None] | None = None
    last_sync_at: int = 0
    failures: int = 0
    failed_at: int = 0
    logged: dict[str, None] = field(default_factory=dict)
    """Failures of this row that the log has."""
    cause_id: str = ""


class PodWorkers:
    """Implements `PodStateProvider`. `requeue(uid, seconds)` asks the sync loop to update the Pod again later."""

    def __init__(
        self,
        *,
        world: World,
        tasks: Tasks,
        cache: PodStatusCache,
        events: EventRecorder,
        recorder: Recorder,
        requeue: Callable[[str, float], None],
    ) -> None:
        self._world = world
        self._tasks = tasks
        self._cache = cache
        self._events = events
        self._recorder = recorder
        self._requeue = requeue
        self._syncer: PodSyncer | None = None
        self._workers: dict[str, _Worker] = {}
        self._pods_synced = False
        self._static = StaticPodStarts()

    def bind(self, syncer: PodSyncer) -> None:
        """Set who does the work; before the first update. (The syncer's parts need these workers' predicates.)"""
        self._syncer = syncer

    # -- updates ------------------------------------------------------------------------------------------------

    def update_pod(self, options: UpdatePodOptions) -> None:
        """Hand one update to the worker of its Pod (pod_workers.go:UpdatePod)."""
        uid = options.uid
        worker = self._workers.get(uid)
        decision = transitions.decide_update(
            worker.status if worker else None,
            options,
            _known_pod(worker),
            runtime_is_quiet=worker is None and self._runtime_is_quiet(uid),
        )
        if decision.status is None:
            return
        if worker is None:
            worker = self._workers[uid] = _Worker(decision.status)
        old_grace_period = worker.status.grace_period
        worker.status = decision.status
        for complete in decision.completed:
            complete()
        if decision.options is None:
            return
        if decision.cause is not None:
            self._record_termination(worker, decision.cause, decision.options.pod)
        if decision.status.grace_period != old_grace_period:
            self._record_grace(worker, decision.shortened)
        if worker.task is None:
            if decision.options.pod is not None and is_static_pod(decision.options.pod):
                self._static.wait(worker.status.full_name, uid)
            worker.task = self._tasks.spawn(self._keep_working(uid, worker), name=f"pod-worker {uid}")
        if decision.cause is None and not decision.shortened and self._put_off(worker, decision.options):
            return
        worker.pending = decision.options
        worker.signal.set()
        if decision.cancel and worker.context is not None:
            worker.context.cancelled.set()

    def sync_known_pods(self, desired_pods: Iterable[Pod]) -> dict[str, State]:
        """Forget what has ended and end what is no longer desired (pod_workers.go:SyncKnownPods).

        Return the UIDs the workers still know, with their states.
        """
        desired = {uid_of(pod) for pod in desired_pods}
        self._pods_synced = True
        for uid, worker in list(self._workers.items()):
            orphaned = uid not in desired
            if not orphaned and not worker.status.restart_requested:
                continue
            with crash_guard.Turn(COMPONENT, _key(worker)):
                self._remove_terminated_worker(uid, worker, orphaned)
        return {uid: worker.status.state for uid, worker in self._workers.items()}

    def _remove_terminated_worker(self, uid: str, worker: _Worker, orphaned: bool) -> None:
        active_pod = worker.active.pod if worker.active else None
        worker.status, sweep, cause = transitions.remove_terminated_worker(worker.status, active_pod, orphaned=orphaned)
        if cause is not None:
            self._record_termination(worker, cause, active_pod)
            self._record_grace(worker, False)
        if sweep is Sweep.FORGET:
            self._forget(uid, worker)
        elif sweep is Sweep.REPLAY:
            self._replay_active_update(worker)

    async def kill_pod_now(
        self,
        pod: Pod,
        *,
        evict: bool,
        grace_period: int | None,
        pod_status_func: Callable[[APIPodStatus], None] | None = None,
    ) -> None:
        """Kill a Pod and wait until no container of it runs (pod_workers.go:killPodNow).

        Raises TimeoutError, after a Warning ExceededGracePeriod, when that takes longer than max(10 s, 1.5 times the
        grace period); the worker goes on.
        """
        stopped = asyncio.Event()
        period = grace_period
        if period is None:
            period = pod.get("spec", {}).get("terminationGracePeriodSeconds") or 0
        options = KillPodOptions(stopped.set, evict, pod_status_func, grace_period)
        self.update_pod(UpdatePodOptions(UpdateType.KILL, pod, kill_pod_options=options))
        try:
            async with asyncio.timeout(max(10, period + period // 2)):
                await stopped.wait()
        except TimeoutError:
            message = "Container runtime did not kill the pod within specified grace period."
            self._events.event(pod, "Warning", "ExceededGracePeriod", message)
            raise

    # -- the worker ---------------------------------------------------------------------------------------------

    async def _keep_working(self, uid: str, worker: _Worker) -> None:
        while True:
            with crash_guard.Turn(COMPONENT, uid) as turn:
                await self._pod_worker_loop(uid, worker)
            if turn.error is None:
                return
            worker.failures += 1
            worker.failed_at = self._now()
            self._requeue(uid, RETRY_SECONDS * 2 ** min(worker.failures, 6))

    async def _pod_worker_loop(self, uid: str, worker: _Worker) -> None:
        """pod_workers.go:podWorkerLoop."""
        while True:
            await worker.signal.wait()
            worker.signal.clear()
            consumed = self._start_pod_sync(uid, worker)
            if worker.status.finished:
                return
            if consumed is None:
                continue
            update, state = consumed
            if crash_guard.on_turn is not None:
                crash_guard.on_turn(COMPONENT, _key(worker))
            phase_transition = False
            error: BaseException | None = None
            try:
                phase_transition = await self._sync(worker, update, state)
            except SyncCancelled:
                pass  # the update that cancelled the call is pending
            except Exception as failure:
                error = failure
                self._log_failure(worker, state, failure)
            if self._workers.get(uid) is not worker or worker.status.finished:
                return
            if error is None:
                worker.failures = 0
                worker.logged.clear()
            else:
                worker.failures += 1
                worker.failed_at = self._now()
            self._complete_work(uid, worker, phase_transition, error)
            if phase_transition:
                # A status that was just set leaves for the API while the next call works: volumes are unmounted
                # meanwhile, as in the kubelet, where each has a goroutine.
                assert self._syncer is not None
                await self._syncer.handed_over(uid)

    def _log_failure(self, worker: _Worker, state: State, failure: Exception) -> None:
        """Once while it goes on: what fails is tried again, and fails alike, for as long as the Pod is there."""
        if crash_guard.noticed(COMPONENT, _key(worker), failure) and worker.active and worker.active.pod:
            tell_of_fault(self._events, worker.active.pod, failure)
        text = f"{state} failed: {type(failure).__name__}: {failure}"
        level = logging.DEBUG if text in worker.logged else logging.WARNING
        if len(worker.logged) >= _MOST_LOGGED:
            worker.logged.clear()
        worker.logged[text] = None
        log.log(level, "pod %s (%s): %s", worker.status.full_name, worker.status.uid, text)

    def _start_pod_sync(self, uid: str, worker: _Worker) -> tuple[UpdatePodOptions, State] | None:
        """Take the pending update; None when there is nothing to do (pod_workers.go:startPodSync)."""
        update, worker.pending = worker.pending, None
        if update is None or self._workers.get(uid) is not worker:
            return None
        state = worker.status.state
        if worker.context is None or worker.context.cancelled.is_set():
            worker.context = SyncContext()
        started = worker.status.started
        if not started and not (update.running_pod is not None and state is State.TERMINATING):
            if update.pod is None:
                return None
            full_name = worker.status.full_name
            taken = self._static.name_is_taken(full_name, uid, self._may_start)
            verdict = transitions.allow_pod_start(worker.status, update.pod, full_name_is_taken=taken)
            if verdict is StartVerdict.NEVER:
                worker.status = transitions.cleanup_unstarted_pod(worker.status)
                return None
            if verdict is StartVerdict.NOT_YET:
                worker.pending = worker.pending or update
                delay = transitions.BACK_OFF_SECONDS * (1 + transitions.JITTER * self._world.random.random())
                self._requeue(uid, delay)
                return None
            worker.status = transitions.start(worker.status)
            if is_static_pod(update.pod):
                self._static.started(full_name, uid)
        worker.active = transitions.merge_last_update(worker.active, update)
        return update, state

    async def _sync(self, worker: _Worker, update: UpdatePodOptions, state: State) -> bool:
        """One call of the syncer; True when it moved the Pod to another state."""
        uid, syncer = worker.status.uid, self._syncer
        assert syncer is not None
        if update.running_pod is not None:
            await syncer.sync_terminating_runtime_pod(update.running_pod, worker.cause_id)
            worker.status = transitions.complete_terminating_runtime_pod(worker.status)
            self._recorder.record(kinds.WORKER_FINISHED, pod_uid=uid, rule=rules.COMPLETE_TERMINATING_RUNTIME_POD)
            self._forget(uid, worker)
            return True
        pod = update.pod
        assert pod is not None
        pod_status = await self._fresh_status(pod, uid, worker.last_sync_at)
        assert worker.context is not None
        try:
            if state is State.TERMINATED:
                await syncer.sync_terminated_pod(pod, pod_status, worker.cause_id)
            elif state is State.TERMINATING:
                function = transitions.last_status_function(worker.status)
                override = update.kill_pod_options.override if update.kill_pod_options else None
                await syncer.sync_terminating_pod(pod, pod_status, override, function, worker.cause_id)
            else:
                ended = await syncer.sync_pod(worker.context, update.update_type, pod, pod_status)
        finally:
            worker.last_sync_at = self._cache.now()
        if state is State.TERMINATED:
            self._complete_terminated(worker)
        elif state is State.TERMINATING:
            # The call ended with a fresh look at the runtime, and nothing runs any more: no need to look again.
            worker.last_sync_at = self._cache.refreshed_at(uid)
            worker.status, completed = transitions.complete_terminating(worker.status)
            for complete in completed:
                complete()
            self._replay_active_update(worker)
        elif ended:
            ended_before = worker.status.termination_requested
            worker.status = transitions.complete_sync(worker.status)
            if not ended_before:
                self._record_termination(worker, Cause.COMPLETED, pod)
            self._replay_active_update(worker)
        else:
            return False
        return True

    async def _fresh_status(self, pod: Pod, uid: str, after: int) -> PodStatus:
        """Return what the runtime has of a Pod, looked at after that time. A failure is an Event, too, and raised."""
        metadata = pod["metadata"]
        try:
            return await self._cache.get_newer_than(uid, metadata["name"], metadata.get("namespace", ""), after)
        except Exception as error:
            self._events.event(pod, "Warning", "FailedSync", f"error determining status: {error}")
            raise

    def _complete_terminated(self, worker: _Worker) -> None:
        worker.status = transitions.complete_terminated(worker.status)
        self._static.ended(worker.status.full_name, worker.status.uid)
        self._recorder.record(
            kinds.WORKER_FINISHED,
            pod_uid=worker.status.uid,
            rule=rules.COMPLETE_TERMINATED,
            cause_id=worker.cause_id,
        )

    def _complete_work(self, uid: str, worker: _Worker, phase_transition: bool, error: BaseException | None) -> None:
        """Say when the Pod is to be looked at again (pod_workers.go:completeWork)."""
        delay = transitions.requeue_delay(
            error, phase_transition=phase_transition, random=self._world.random, now_ns=self._world.clock.wall_ns()
        )
        if not (phase_transition and worker.pending is not None):
            self._requeue(uid, delay)
        if error is not None and worker.pending is not None and self._put_off(worker, worker.pending):
            worker.pending = None
        if worker.pending is not None:
            worker.signal.set()

    def _put_off(self, worker: _Worker, options: UpdatePodOptions) -> bool:
        """A call that keeps failing is repeated at most once a second, however many runtime events it causes itself.

        The kubelet has this from its PLEG, which looks once a second. News of the Pod is never put off.
        """
        if options.update_type is not UpdateType.SYNC or worker.failures < QUICK_RETRIES or worker.active is None:
            return False
        left = RETRY_SECONDS - (self._now() - worker.failed_at) / 1e9
        if left <= 0 or options.pod is not worker.active.pod:
            return False
        self._requeue(worker.status.uid, left)
        return True

    def _replay_active_update(self, worker: _Worker) -> None:
        """Call again with what was last called (pod_workers.go:requeueLastPodUpdate)."""
        worker.pending = worker.pending or worker.active
        if worker.pending is not None:
            worker.signal.set()

    def _forget(self, uid: str, worker: _Worker) -> None:
        """All history of the UID goes, which is UNKNOWN now (pod_workers.go:cleanupPodUpdates)."""
        self._workers.pop(uid, None)
        self._static.forget(worker.status.full_name, uid)
        if worker.task is not None and worker.task is not asyncio.current_task():
            worker.task.cancel()

    def _may_start(self, uid: str) -> bool:
        worker = self._workers.get(uid)
        return worker is not None and not worker.status.termination_requested

    # -- records ------------------------------------------------------------------------------------------------

    def _record_termination(self, worker: _Worker, cause: Cause, pod: Pod | None) -> None:
        metadata = pod.get("metadata", {}) if pod else {}
        facts: TerminationObserved = {
            "cause": cause.value,
            "gracePeriodSeconds": metadata.get("deletionGracePeriodSeconds")
            if is_terminating(pod or {})
            else (pod or {}).get("spec", {}).get("terminationGracePeriodSeconds"),
            "observedResourceVersion": resource_version_of(pod) if pod else "",
        }
        worker.cause_id = self._recorder.record(
            kinds.TERMINATION_OBSERVED,
            pod_uid=worker.status.uid,
            rule=_TERMINATION_RULES.get(cause, rules.UPDATE_POD),
            facts=facts,
        )

    def _record_grace(self, worker: _Worker, shortened: bool) -> None:
        period = worker.status.grace_period
        why = "the least of the deletion grace period and any override"
        if shortened:
            why += "; it may only shrink, and does not interrupt a hook or stop that is under way"
        facts: GraceDecided = {"gracePeriodSeconds": period, "shortened": shortened, "why": why}
        worker.cause_id = self._recorder.record(
            kinds.GRACE_DECIDED,
            pod_uid=worker.status.uid,
            rule=rules.CALCULATE_EFFECTIVE_GRACE_PERIOD,
            facts=facts,
            cause_id=worker.cause_id,
        )

    # -- predicates (PodStateProvider) ----------------------------------------------------------------------------

    def _ask(self, name: str, uid: str) -> bool:
        worker = self._workers.get(uid)
        return transitions.predicate(name, worker.status if worker else None, pods_synced=self._pods_synced)

    def could_have_running_containers(self, uid: str) -> bool:
        return self._ask("could_have_running_containers", uid)

    def is_pod_termination_requested(self, uid: str) -> bool:
        return self._ask("is_pod_termination_requested", uid)

    def should_pod_runtime_be_removed(self, uid: str) -> bool:
        return self._ask("should_pod_runtime_be_removed", uid)

    def should_pod_content_be_removed(self, uid: str) -> bool:
        return self._ask("should_pod_content_be_removed", uid)

    def should_pod_be_finished(self, uid: str) -> bool:
        return self._ask("should_pod_be_finished", uid)

    def is_pod_known_terminated(self, uid: str) -> bool:
        return self._ask("is_pod_known_terminated", uid)

    def is_static_pod_terminating(self, namespace: str, name: str) -> bool:
        """Return whether a started static Pod of this name is stopping (IsPodForMirrorPodTerminatingByFullName)."""
        uid = self._static.uid_of(f"{name}_{namespace}")
        return uid is not None and self.state_of(uid) is State.TERMINATING

    def state_of(self, uid: str) -> State:
        """Return the state of a UID; UNKNOWN without a worker."""
        worker = self._workers.get(uid)
        return worker.status.state if worker else State.UNKNOWN

    def known_uids(self) -> list[str]:
        """Return every UID with a worker, in the order in which they came."""
        return list(self._workers)

    def _runtime_is_quiet(self, uid: str) -> bool:
        status = self._cache.get(uid)
        return status is None or not (status.running_containers() or status.ready_sandboxes())

    def _now(self) -> int:
        return self._world.clock.monotonic_ns()


def _key(worker: _Worker) -> str:
    name, _, namespace = worker.status.full_name.rpartition("_")
    return f"{namespace}/{name}"


def _known_pod(worker: _Worker | None) -> Pod | None:
    """The Pod of the pending update, else of the active one."""
    if worker is None:
        return None
    for options in (worker.pending, worker.active):
        if options is not None and options.pod is not None:
            return options.pod
    return None
