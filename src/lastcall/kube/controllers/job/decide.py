"""What a Job does next: which Pods it makes and deletes, whether it has ended. Pure.

Source: pkg/controller/job/job_controller.go (syncJob, manageJob). How its Pods are counted is `tracking`,
what podFailurePolicy says of one is `pods`.
"""

# check: many attributes View because it is data: what one sync of a Job counts

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, uid_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.controllers.job.backoff import BackOff, index_remaining
from lastcall.kube.controllers.job.indexes import Indexes
from lastcall.kube.controllers.job.pods import (
    Surplus,
    all_index_failures,
    choose_surplus,
    completion_index,
    fails_its_index,
    finish_time,
    is_failed,
    is_indexed,
    is_suspended,
    is_tracked,
    match_failure_policy,
    phase_of,
    replaces_failed_only,
    valid_index,
)
from lastcall.kube.controllers.pods.control import is_pod_active, is_pod_terminating
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.batch import Job, JobCondition, JobSpec, JobStatus
    from lastcall.kube.api.types.pod import Pod

MAX_PODS_PER_SYNC = 500
"""Pods that one sync makes or deletes (`MaxPodCreateDeletePerSync`)."""

SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"
"""Interim conditions: how it ends is certain, its Pods have not all ended yet."""
COMPLETE, FAILED = "Complete", "Failed"


@dataclass(frozen=True, slots=True)
class Target:
    """How the Job ends. `stated` says that the status has the interim condition already."""

    type: str
    reason: str
    message: str
    stated: bool = False


class View:
    """A Job and its Pods as one sync sees them.

    `removed` are uids of Pods whose finalizer was taken off although the cache still shows it. `now` is seconds since
    the epoch.
    """

    def __init__(self, job: Job, pods: Sequence[Pod], removed: Set[str], back_off: BackOff, now: float) -> None:
        self.job = job
        self.spec: JobSpec = job["spec"]
        self.status: JobStatus = job.get("status") or {}
        self.now = now
        indexed = is_indexed(job)
        self.pods = sorted(pods, key=lambda pod: completion_index(pod) or 0) if indexed else list(pods)
        self.active = [pod for pod in self.pods if is_pod_active(pod)]
        self.terminating = [pod for pod in self.pods if is_pod_terminating(pod)]
        self.ready = sum(map(is_pod_ready, self.active))
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        self.uncounted_succeeded: list[str] = list(uncounted.get("succeeded") or ())
        self.uncounted_failed: list[str] = list(uncounted.get("failed") or ())
        # Tracked Pods are those with a finalizer; fresh ones are in no count yet.
        self.tracked = [pod for pod in self.pods if is_tracked(pod) and uid_of(pod) not in removed]
        counted = {*self.uncounted_succeeded, *self.uncounted_failed}
        fresh = [pod for pod in self.tracked if uid_of(pod) not in counted]
        self.fresh = [pod for pod in fresh if not indexed or valid_index(job, pod) is not None]
        self.succeeded_now = [pod for pod in self.fresh if phase_of(pod) == "Succeeded"]
        self.failed_now = [pod for pod in self.fresh if is_failed(job, pod)]
        self.back_off = back_off.after(self.succeeded_now, self.failed_now)
        self.completed = self.newly_completed = self.failed_indexes = None
        self.delayed: dict[int, Pod] = {}
        if indexed:
            self._sort_indexes()

    completed: Indexes | None
    """The indexes of `status.completedIndexes`; None where there are none."""
    newly_completed: Indexes | None
    """`completed` with those of `succeeded_now`."""
    failed_indexes: Indexes | None
    """None unless each index has its own back-off limit."""

    def _sort_indexes(self) -> None:
        completions = self.spec["completions"]
        self.completed = Indexes.parse(self.status.get("completedIndexes"), completions)
        self.newly_completed = self.completed | Indexes.of(completion_index(pod) or 0 for pod in self.succeeded_now)
        if self.spec.get("backoffLimitPerIndex") is None:
            return
        failed = [completion_index(pod) or 0 for pod in self.fresh if fails_its_index(self.job, pod)]
        self.failed_indexes = Indexes.parse(self.status.get("failedIndexes"), completions) | Indexes.of(failed)
        self.delayed = self._delayed()

    def _delayed(self) -> dict[int, Pod]:
        """The last failed Pod of each index that will be tried again: its replacement takes over its count.

        It keeps its finalizer until then. (`getPodsWithDelayedDeletionPerIndex`)
        """
        assert self.newly_completed is not None
        assert self.failed_indexes is not None
        active = {completion_index(pod) for pod in self.active}
        found: dict[int, Pod] = {}
        for pod in self.tracked:
            index = valid_index(self.job, pod)
            if index is None or not is_failed(self.job, pod):
                continue
            if index in self.newly_completed or index in self.failed_indexes or index in active:
                continue
            other = found.get(index)
            if other is None or _age(pod) >= _age(other):
                found[index] = pod
        return found

    @property
    def succeeded(self) -> int:
        """Count succeeded Pods, or completed indexes."""
        if self.newly_completed is not None:
            return len(self.newly_completed)
        return (self.status.get("succeeded") or 0) + len(self.uncounted_succeeded) + len(self.succeeded_now)

    @property
    def failed(self) -> int:
        """Count failed Pods, without those that the policy ignores."""
        counting = sum(match_failure_policy(self.job, pod).counts for pod in self.failed_now)
        return (self.status.get("failed") or 0) + len(self.uncounted_failed) + counting


def _age(pod: Pod) -> tuple[int, float]:
    return all_index_failures(pod), finish_time(pod)


@dataclass(frozen=True, slots=True)
class Decision:
    """`delete` keep their finalizer when the Job ends (`target`), because they are counted then, and lose it before
    they are deleted when they are just too many. `create` holds completion indexes, or None for each Pod without one.
    `manages` says that it was decided how many Pods there are to be; `look_again` is in seconds. `backs_off`: Pods are
    missing, and none of them may be made yet.
    """

    target: Target | None = None
    delete: tuple[Surplus, ...] = ()
    create: tuple[int | None, ...] = ()
    manages: bool = False
    look_again: float | None = None
    wanted: int = 0
    backs_off: bool = False


def decide(view: View, satisfied: bool) -> Decision:
    """Decide about a Job. `satisfied`: the cache has caught up with what this controller made and deleted."""
    target = find_target(view)
    if target is not None:
        if not satisfied:
            return Decision(target)
        why = _why_finished(view, target)
        return Decision(target, delete=tuple(Surplus(pod, why) for pod in view.active))
    deadline = _deadline(view)
    look_again = None if deadline is None else max(0.0, deadline - view.now)
    if not satisfied or is_terminating(view.job):
        return Decision(look_again=look_again)
    return _manage(view, look_again)


# -- how it ends ---------------------------------------------------------------------------------------------------


def find_target(view: View) -> Target | None:
    """Return None while the Job goes on. What its status says already stays."""
    for kind in (SUCCESS, FAILURE):
        if (stated := condition_of(view.status, kind)) is not None:
            return Target(kind, stated.get("reason", ""), stated.get("message", ""), stated=True)
    spec = view.spec
    for pod in view.pods:
        if is_failed(view.job, pod) and (message := match_failure_policy(view.job, pod).message):
            return Target(FAILURE, "PodFailurePolicy", message)
    if view.failed > spec["backoffLimit"] or _too_many_restarts(view):
        return Target(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = _deadline(view)
    if deadline is not None and view.now >= deadline:
        return Target(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
    if view.newly_completed is None:
        return None
    if view.failed_indexes is not None:
        failed, most = len(view.failed_indexes), spec.get("maxFailedIndexes")
        if most is not None and failed > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return Target(FAILURE, "MaxFailedIndexesExceeded", message)
        if failed and failed + len(view.newly_completed) >= spec["completions"]:
            return Target(FAILURE, "FailedIndexes", "Job has failed indexes")
    rule = matching_success_rule(spec, view.newly_completed)
    return None if rule is None else Target(SUCCESS, "SuccessPolicy", f"Matched rules at index {rule}")


def condition_of(status: JobStatus, kind: str) -> JobCondition | None:
    """Return the condition of this type if it is True."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind and condition.get("status") == "True":
            return condition
    return None


def finished(job: Job) -> str:
    """Return `Complete`, `Failed`, or "" for a Job that has not finished. (`IsJobFinished`)"""
    status = job.get("status") or {}
    return next((kind for kind in (COMPLETE, FAILED) if condition_of(status, kind) is not None), "")


def matching_success_rule(spec: JobSpec, succeeded: Indexes) -> int | None:
    """Return the number of the first rule of the success policy that is met. (`matchSuccessPolicy`)"""
    if not succeeded:
        return None
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        text, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if text is None:
            if count is not None and len(succeeded) >= count:
                return number
            continue
        wanted = Indexes.parse(text, spec["completions"])
        have = wanted.common(succeeded)
        if wanted and (have == len(wanted) or (count is not None and have >= count)):
            return number
    return None


def _too_many_restarts(view: View) -> bool:
    """Restarts in place count as failures. (`pastBackoffLimitOnFailure`)"""
    if (view.spec["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in view.pods:
        if phase_of(pod) in ("Running", "Pending"):
            status = pod["status"]
            for statuses in (status.get("initContainerStatuses"), status.get("containerStatuses")):
                restarts += sum(each.get("restartCount", 0) for each in statuses or ())
    limit = view.spec["backoffLimit"]
    return restarts > 0 if limit == 0 else bool(restarts >= limit)


def _deadline(view: View) -> float | None:
    """In seconds since the epoch; a Job that is suspended has none. (`pastActiveDeadline`)"""
    seconds, start = view.spec.get("activeDeadlineSeconds"), view.status.get("startTime")
    if seconds is None or is_suspended(view.job):
        return None
    return (parse_rfc3339(start).timestamp() if start else view.now) + float(seconds)


def _why_finished(view: View, target: Target) -> str:
    """For people."""
    if target.reason == "DeadlineExceeded":
        seconds = view.spec.get("activeDeadlineSeconds")
        return f"was active longer than its activeDeadlineSeconds of {seconds} s"
    if target.reason == "BackoffLimitExceeded":
        return f"has {view.failed} failed Pods at a backoffLimit of {view.spec['backoffLimit']}"
    if target.reason == "SuccessPolicy":
        return f"has met its success policy ({target.message.lower()})"
    if target.type == SUCCESS:
        return "has its completions"
    return f"has failed: {target.message}"


# -- how many Pods -------------------------------------------------------------------------------------------------


def wanted_active(view: View) -> int:
    """Return how many Pods are to run."""
    parallelism, completions = int(view.spec["parallelism"]), view.spec.get("completions")
    if completions is None:
        # One success is enough; what runs then may end by itself.
        return len(view.active) if view.succeeded else parallelism
    return max(0, min(parallelism, int(completions) - view.succeeded))


def _manage(view: View, look_again: float | None) -> Decision:
    job, active = view.job, view.active
    if is_suspended(job):
        gone = tuple(Surplus(each.pod, "is suspended") for each in choose_surplus(job, active, len(active)))
        return Decision(delete=gone, manages=True, look_again=look_again)
    wanted = wanted_active(view)
    surplus = choose_surplus(job, active, max(0, len(active) - wanted))[:MAX_PODS_PER_SYNC]
    if surplus:
        why = f"wants {wanted} active Pods and has {len(active)}"
        gone = tuple(Surplus(each.pod, f"{why}: {each.reason}") for each in surplus)
        return Decision(delete=gone, manages=True, look_again=look_again, wanted=wanted)
    ending = len(view.terminating) if replaces_failed_only(job) else 0
    missing = min(wanted - ending - len(active), MAX_PODS_PER_SYNC)
    if missing <= 0:
        return Decision(manages=True, look_again=look_again, wanted=wanted)
    create, wait = _create(view, missing)
    if wait > 0:
        look_again = wait if look_again is None else min(wait, look_again)
    backs_off = wait > 0 and not create
    return Decision(create=create, manages=True, look_again=look_again, wanted=wanted, backs_off=backs_off)


def _create(view: View, missing: int) -> tuple[tuple[int | None, ...], float]:
    """(what to make now, seconds until more may be made)."""
    per_index = view.failed_indexes is not None
    if not per_index and (wait := view.back_off.remaining(view.now)) > 0:
        return (), wait
    if view.newly_completed is None:
        return (None,) * missing, 0.0
    taken = view.newly_completed | Indexes.of(_indexes(view.active))
    if replaces_failed_only(view.job):
        taken |= Indexes.of(_indexes(view.terminating))
    if view.failed_indexes is not None:
        taken |= view.failed_indexes
    pending = taken.first_missing(missing, view.spec["completions"])
    if not per_index:
        return tuple(pending), 0.0
    waits = {index: index_remaining(view.delayed.get(index), view.now) for index in pending}
    now = tuple(index for index in pending if waits[index] <= 0)
    return now, min((wait for wait in waits.values() if wait > 0), default=0.0)


def _indexes(pods: Sequence[Pod]) -> list[int]:
    return [index for pod in pods if (index := completion_index(pod)) is not None]
