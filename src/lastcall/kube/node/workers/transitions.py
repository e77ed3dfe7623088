"""The life of one Pod on the node, as tables and pure functions (kubelet pod_workers.go).

Theory
======

A UID is in one of five states:

    UNKNOWN ──▶ SYNC ──▶ TERMINATING ──▶ TERMINATED ──▶ FINISHED ──▶ UNKNOWN

* SYNC: containers may be started (`sync_pod` runs again and again).
* TERMINATING: containers are being stopped (`sync_terminating_pod` runs until it succeeds once).
* TERMINATED: no container runs; volumes and the like are taken down (`sync_terminated_pod`, until it succeeds once).
* FINISHED: nothing is left to do; the worker has gone; every further update is ignored.

No edge leads back: a UID leaves TERMINATING only forward, and returns to SYNC only after it was forgotten. That is the
whole point of the design: "this Pod's containers cannot start again" and "no container of this Pod runs" become facts
that volumes, probes and status may rely on.

`EDGES` says which cause leads from where to where; `move` goes one of them, and nothing else sets a state. Everything
that decides is a pure function of (status, options): `decide_update` for what comes from outside, `complete_*` for what
a sync call reports, `remove_terminated_worker` for the sweep. `lastcall.kube.node.workers.manager` is the thin shell
that performs them.

The grace period lives here too: it is computed again at every update while terminating and only ever shrinks.
"""

# check: pure

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, uid_of
from lastcall.kube.node.pods.runtime_pod import RunningPod, is_terminal, pod_full_name
from lastcall.kube.node.pods.spec import is_static_pod
from lastcall.kube.node.runtime.backoff import BackoffError
from lastcall.kube.node.stopping.grace import effective_grace_period_of
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus


class State(StrEnum):
    UNKNOWN = "unknown"
    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FINISHED = "finished"


class UpdateType(StrEnum):
    """kubelet types: SyncPodType."""

    CREATE = "create"
    UPDATE = "update"
    SYNC = "sync"
    KILL = "kill"


class Cause(StrEnum):
    """Everything that moves a Pod from one state to another."""

    FIRST_UPDATE = "first update"
    FIRST_UPDATE_OF_ENDED_POD = "first update of a Pod that had ended"
    # the four ways an update ends a Pod, in the order they are tried
    RUNTIME_ONLY = "runtimeOnly"
    DELETION_TIMESTAMP = "deletionTimestamp"
    API_TERMINAL_PHASE = "apiTerminalPhase"
    KILL = "kill"
    # what a sync call or the sweep finds
    COMPLETED = "completed"
    REMOVED = "removed"
    CONTAINERS_STOPPED = "containers stopped"
    RUNTIME_POD_STOPPED = "runtime Pod stopped"
    TEARDOWN_DONE = "teardown done"
    NEVER_STARTED = "never started"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Edge:
    """One way from a state to another. `source`: the function of pod_workers.go that goes it. `deleted`: the Pod
    counts as deleted from then on."""

    state: State
    cause: Cause
    target: State
    source: str
    deleted: bool = False


EDGES: tuple[Edge, ...] = (
    Edge(State.UNKNOWN, Cause.FIRST_UPDATE, State.SYNC, "UpdatePod"),
    Edge(State.UNKNOWN, Cause.FIRST_UPDATE_OF_ENDED_POD, State.TERMINATED, "UpdatePod"),
    Edge(State.SYNC, Cause.RUNTIME_ONLY, State.TERMINATING, "UpdatePod", deleted=True),
    Edge(State.SYNC, Cause.DELETION_TIMESTAMP, State.TERMINATING, "UpdatePod", deleted=True),
    Edge(State.SYNC, Cause.API_TERMINAL_PHASE, State.TERMINATING, "UpdatePod"),
    Edge(State.SYNC, Cause.KILL, State.TERMINATING, "UpdatePod"),
    Edge(State.SYNC, Cause.COMPLETED, State.TERMINATING, "completeSync"),
    Edge(State.SYNC, Cause.REMOVED, State.TERMINATING, "removeTerminatedWorker", deleted=True),
    Edge(State.SYNC, Cause.FORGOTTEN, State.UNKNOWN, "removeTerminatedWorker"),  # an orphan that never started
    Edge(State.TERMINATING, Cause.CONTAINERS_STOPPED, State.TERMINATED, "completeTerminating"),
    Edge(State.TERMINATING, Cause.RUNTIME_POD_STOPPED, State.UNKNOWN, "completeTerminatingRuntimePod"),
    # a static Pod that was killed before its turn came
    Edge(State.TERMINATING, Cause.NEVER_STARTED, State.FINISHED, "cleanupUnstartedPod"),
    Edge(State.TERMINATING, Cause.FORGOTTEN, State.UNKNOWN, "removeTerminatedWorker"),  # it never started
    Edge(State.TERMINATED, Cause.TEARDOWN_DONE, State.FINISHED, "completeTerminated"),
    Edge(State.TERMINATED, Cause.FORGOTTEN, State.UNKNOWN, "removeTerminatedWorker"),  # it never started
    Edge(State.FINISHED, Cause.FORGOTTEN, State.UNKNOWN, "removeTerminatedWorker"),
)
"""All of them. What is not here cannot happen: `move` raises."""

_EDGES = {(edge.state, edge.cause): edge for edge in EDGES}


@dataclass(frozen=True, slots=True)
class KillPodOptions:
    """How a termination is to go (pod_workers.go:KillPodOptions). `completed` is called once no container runs."""

    completed: Callable[[], None] | None = None
    evict: bool = False
    pod_status_func: Callable[[APIPodStatus], None] | None = None
    override: int | None = None
    """PodTerminationGracePeriodSecondsOverride, seconds."""


@dataclass(frozen=True, slots=True)
class UpdatePodOptions:
    """One update for a worker. Either `pod`, or `running_pod` alone for a Pod that only the runtime knows."""

    update_type: UpdateType
    pod: Pod | None = None
    running_pod: RunningPod | None = None
    kill_pod_options: KillPodOptions | None = None

    @property
    def uid(self) -> str:
        if self.pod is not None:
            return uid_of(self.pod)
        return self.running_pod.uid if self.running_pod is not None else ""


@dataclass(frozen=True, slots=True)
class PodSyncStatus:
    """What the worker knows of one UID (pod_workers.go:podSyncStatus). Only `move` sets `state`, which represents
    syncedAt, terminatingAt, terminatedAt and finished."""

    uid: str
    full_name: str
    _: KW_ONLY
    state: State = State.UNKNOWN
    started: bool = False
    """The first call was allowed (startedAt)."""
    deleted: bool = False
    evicted: bool = False
    restart_requested: bool = False
    observed_runtime: bool = False
    grace_period: int = 0
    """Effective grace period in seconds, 0 = not decided."""
    status_post_terminating: tuple[Callable[[APIPodStatus], None], ...] = ()
    notify_post_terminating: tuple[Callable[[], None], ...] = ()

    @property
    def finished(self) -> bool:
        return self.state is State.FINISHED

    @property
    def termination_requested(self) -> bool:
        return self.state in (State.TERMINATING, State.TERMINATED, State.FINISHED)

    @property
    def terminated(self) -> bool:
        return self.state in (State.TERMINATED, State.FINISHED)


class IllegalTransition(AssertionError):
    """The table has no such edge: a bug in lastcall, never the user's fault.

    Nothing was changed: the Pod stays in its state, and only the turn that asked for the edge ends. The next turn does
    the work of that state, which is how the kubelet recovers from everything else, too.
    """


def move(status: PodSyncStatus, cause: Cause) -> PodSyncStatus:
    """Return the status after one edge of `EDGES`. Raises IllegalTransition if there is none."""
    edge = _EDGES.get((status.state, cause))
    if edge is None:
        pod = f"pod {status.full_name} ({status.uid})"
        raise IllegalTransition(f"{pod}: its worker cannot leave the state {status.state} by {cause.value!r}")
    return replace(status, state=edge.target, deleted=status.deleted or edge.deleted)


TERMINATION_CAUSES: tuple[tuple[Cause, Callable[[Pod, UpdatePodOptions, bool], bool]], ...] = (
    (Cause.RUNTIME_ONLY, lambda pod, options, runtime_only: runtime_only),
    (Cause.DELETION_TIMESTAMP, lambda pod, options, runtime_only: is_terminating(pod)),
    (Cause.API_TERMINAL_PHASE, lambda pod, options, runtime_only: is_terminal(pod)),
    (Cause.KILL, lambda pod, options, runtime_only: options.update_type is UpdateType.KILL),
)
"""Why an update ends a Pod in SYNC; the first that holds is the cause."""


@dataclass(frozen=True, slots=True)
class UpdateDecision:
    """What an update does. `options` None: nothing reaches the worker. `completed` are to be called now."""

    status: PodSyncStatus | None
    options: UpdatePodOptions | None = None
    cause: Cause | None = None
    """Why the Pod became terminating with this update."""
    shortened: bool = False
    cancel: bool = False
    completed: tuple[Callable[[], None], ...] = ()


def decide_update(
    status: PodSyncStatus | None,
    options: UpdatePodOptions,
    known_pod: Pod | None,
    *,
    runtime_is_quiet: bool = False,
) -> UpdateDecision:
    """Decide what `update_pod` does with one update (pod_workers.go:UpdatePod).

    `known_pod` is the Pod of the pending update, else of the active one. `runtime_is_quiet`: the runtime has no running
    container and no ready sandbox of this UID.
    """
    runtime_only = options.pod is None
    pod = _pod_of(options)
    if runtime_only and options.update_type is not UpdateType.KILL:
        return UpdateDecision(status)
    if not runtime_only and options.running_pod is not None:
        options = replace(options, running_pod=None)

    first_time = status is None
    if status is None:
        ended = not runtime_only and is_terminal(pod) and runtime_is_quiet
        status = move(
            PodSyncStatus(uid_of(pod), pod_full_name(pod)),
            Cause.FIRST_UPDATE_OF_ENDED_POD if ended else Cause.FIRST_UPDATE,
        )

    if runtime_only:
        status = replace(status, observed_runtime=True)
        if known_pod is not None:
            pod = known_pod
            options = replace(options, pod=known_pod, running_pod=None)

    if not first_time and status.termination_requested and options.update_type is UpdateType.CREATE:
        return UpdateDecision(replace(status, restart_requested=True))
    if status.finished:
        return UpdateDecision(status)

    cause: Cause | None = None
    if not status.termination_requested:
        cause = next((c for c, holds in TERMINATION_CAUSES if holds(pod, options, runtime_only)), None)
        if cause is not None:
            status = _begin_termination(status, cause, options)

    kill = options.kill_pod_options
    completed: tuple[Callable[[], None], ...] = ()
    shortened = False
    if status.state is State.TERMINATING:
        kill = kill or KillPodOptions()
        if kill.completed is not None:
            status = replace(status, notify_post_terminating=(*status.notify_post_terminating, kill.completed))
        if kill.pod_status_func is not None:
            status = replace(status, status_post_terminating=(*status.status_post_terminating, kill.pod_status_func))
        grace_period, shortened = effective_grace_period_of(pod, status.grace_period, kill.override)
        status = replace(status, grace_period=grace_period)
        options = replace(options, kill_pod_options=replace(kill, override=grace_period))
    else:
        if status.terminated and runtime_only:
            return UpdateDecision(status)
        if kill is not None and kill.completed is not None:
            completed = (kill.completed,)
        options = replace(options, kill_pod_options=None)
    return UpdateDecision(status, options, cause, shortened, cause is not None or shortened, completed)


def _pod_of(options: UpdatePodOptions) -> Pod:
    """Return the Pod of an update, or what is known of it from the runtime alone."""
    if options.pod is not None:
        return options.pod
    if options.running_pod is None:
        raise ValueError("an update needs a pod or a running_pod")
    return options.running_pod.to_api_pod()


def _begin_termination(status: PodSyncStatus, cause: Cause, options: UpdatePodOptions) -> PodSyncStatus:
    status, kill = move(status, cause), options.kill_pod_options
    evicted = cause is Cause.KILL and kill is not None and kill.evict
    return replace(status, evicted=True) if evicted else status


def merge_last_update(active: UpdatePodOptions | None, consumed: UpdatePodOptions) -> UpdatePodOptions:
    """Return the new active update (pod_workers.go:mergeLastUpdate).

    A runtime-only update keeps the Pod already known, and kill options stay until others come.
    """
    if active is None:
        return consumed
    return UpdatePodOptions(
        update_type=consumed.update_type,
        pod=consumed.pod if consumed.pod is not None else active.pod,
        running_pod=consumed.running_pod if consumed.pod is None and active.pod is None else None,
        kill_pod_options=consumed.kill_pod_options or active.kill_pod_options,
    )


class StartVerdict(StrEnum):
    START = "start"
    NOT_YET = "not yet"
    NEVER = "never"


def allow_pod_start(status: PodSyncStatus, pod: Pod, *, full_name_is_taken: bool) -> StartVerdict:
    """Decide whether a worker may make its first call (pod_workers.go:allowPodStart). Only static Pods ever wait."""
    if not is_static_pod(pod):
        return StartVerdict.START
    if status.termination_requested:
        return StartVerdict.NEVER
    return StartVerdict.NOT_YET if full_name_is_taken else StartVerdict.START


def start(status: PodSyncStatus) -> PodSyncStatus:
    """Return the status with the first call allowed: other components see the Pod from now on."""
    return status if status.started else replace(status, started=True)


def cleanup_unstarted_pod(status: PodSyncStatus) -> PodSyncStatus:
    """Return the status of a Pod that never starts: it ends without any call (pod_workers.go:cleanupUnstartedPod)."""
    return move(status, Cause.NEVER_STARTED)


def last_status_function(status: PodSyncStatus) -> Callable[[APIPodStatus], None] | None:
    """Return what changes the status that says that the Pod terminates: the one given last applies."""
    return status.status_post_terminating[-1] if status.status_post_terminating else None


def complete_sync(status: PodSyncStatus) -> PodSyncStatus:
    """Return the status after `sync_pod` found the Pod ended. If an update has ended it already, nothing changes."""
    return status if status.termination_requested else move(status, Cause.COMPLETED)


def complete_terminating(status: PodSyncStatus) -> tuple[PodSyncStatus, tuple[Callable[[], None], ...]]:
    """Return the status when no container runs, and the functions that notify those that wait for it."""
    moved = move(status, Cause.CONTAINERS_STOPPED)
    return replace(moved, notify_post_terminating=(), status_post_terminating=()), status.notify_post_terminating


def complete_terminating_runtime_pod(status: PodSyncStatus) -> PodSyncStatus:
    """Return the status when nothing runs of a Pod that only the runtime knew: nobody else knows its UID."""
    return move(status, Cause.RUNTIME_POD_STOPPED)


def complete_terminated(status: PodSyncStatus) -> PodSyncStatus:
    """Return the status when the volumes are down and the last status is set."""
    return move(status, Cause.TEARDOWN_DONE)


class Sweep(StrEnum):
    FORGET = "forget"
    WAIT = "wait"
    REPLAY = "replay"


def remove_terminated_worker(
    status: PodSyncStatus, active_pod: Pod | None, *, orphaned: bool
) -> tuple[PodSyncStatus, Sweep, Cause | None]:
    """Decide what the sweep does with a UID that is not desired or whose restart is requested, and return the cause.

    The cause is why the Pod became terminating with it. Source: pod_workers.go:removeTerminatedWorker.
    """
    if status.finished:
        return move(status, Cause.FORGOTTEN), Sweep.FORGET, None
    if not orphaned:
        return status, Sweep.WAIT, None
    if not status.started and not status.observed_runtime:
        return move(status, Cause.FORGOTTEN), Sweep.FORGET, None
    if status.termination_requested:
        return replace(status, deleted=True), Sweep.REPLAY, None
    status = move(status, Cause.REMOVED)
    grace_period = 1
    if active_pod is not None:
        grace_period, _ = effective_grace_period_of(active_pod, status.grace_period, None)
    return replace(status, grace_period=grace_period), Sweep.REPLAY, Cause.REMOVED


# When a worker is called again (pod_workers.go:completeWork), seconds.
RESYNC_SECONDS = 60.0
BACK_OFF_SECONDS = 10.0
BACK_OFF_ON_TRANSIENT_ERROR_SECONDS = 1.0
MAX_BACK_OFF_SECONDS = 60.0
JITTER = 0.5
NETWORK_NOT_READY = "network is not ready"


def requeue_delay(error: BaseException | None, *, phase_transition: bool, random: Random, now_ns: int) -> float:
    """Return the seconds until the next call. `now_ns` is wall clock nanoseconds, as BackoffError's expiry."""
    if phase_transition:
        return 0.0
    if error is None:
        base = RESYNC_SECONDS
    elif NETWORK_NOT_READY in str(error):
        base = BACK_OFF_ON_TRANSIENT_ERROR_SECONDS
    elif isinstance(error, BackoffError):
        base = min(max((error.expires_ns - now_ns) / 1e9, 0.0), MAX_BACK_OFF_SECONDS)
    else:
        base = BACK_OFF_SECONDS
    return base + random.random() * JITTER * base


# Predicates that other parts ask. `None` status: the UID is unknown. Each row: known, unknown before the first
# sync_known_pods, unknown after it.
PREDICATES: dict[str, tuple[Callable[[PodSyncStatus], bool], bool, bool]] = {
    "could_have_running_containers": (lambda s: not s.terminated, True, False),
    "is_pod_termination_requested": (lambda s: s.termination_requested, False, False),
    "should_pod_runtime_be_removed": (lambda s: s.terminated, False, True),
    "should_pod_be_finished": (lambda s: s.finished, False, True),
    "should_pod_content_be_removed": (lambda s: s.evicted or (s.deleted and s.terminated), False, True),
    "is_pod_known_terminated": (lambda s: s.terminated, False, False),
}


def predicate(name: str, status: PodSyncStatus | None, *, pods_synced: bool) -> bool:
    """Evaluate one row of `PREDICATES`."""
    known, unknown_before, unknown_after = PREDICATES[name]
    if status is not None:
        return known(status)
    return unknown_after if pods_synced else unknown_before
