"""How a Job counts its Pods, so that each is counted once whatever is killed when. Pure.

Three writes, in this order: the uids of ended Pods go into `status.uncountedTerminatedPods`; their finalizers are
taken off; the uids turn into numbers. A Pod with a finalizer and no entry is not counted; one with an entry is in the
count of every reader; an entry whose Pod has no finalizer any more becomes part of the number.
Source: pkg/controller/job/job_controller.go (trackJobStatusAndRemoveFinalizers, flushUncountedAndRemoveFinalizers,
enactJobFinished).
"""

# check: pure

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Literal, cast

from lastcall.kube.api.meta import copy_object, is_terminating, uid_of
from lastcall.kube.controllers.job.decide import COMPLETE, FAILED, FAILURE, SUCCESS, Decision, Target, View
from lastcall.kube.controllers.job.indexes import Indexes
from lastcall.kube.controllers.job.pods import completion_index, is_failed, is_suspended, match_failure_policy, phase_of
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.batch import Job, JobCondition, JobStatus, UncountedTerminatedPods
    from lastcall.kube.api.types.pod import Pod

_Count = Literal["active", "succeeded", "failed"]
_ENDED: tuple[Literal["succeeded", "failed"], ...] = ("succeeded", "failed")
MAX_UNCOUNTED = 500
"""Pods that one sync counts (`MaxUncountedPods`)."""

JobEvent = tuple[str, str, str]
"""(type, reason, message)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a decision.

    `declared`: the cache knows all Pods, and what was to be deleted is being deleted, so that an end may be stated.
    """

    active: int
    ready: int
    terminating: int
    declared: bool = True


@dataclass(frozen=True, slots=True)
class Tracking:
    """`status` is the first write; then `release` lose their finalizers. `target` may become final after that."""

    status: JobStatus
    release: tuple[Pod, ...]
    tracked: frozenset[str]
    target: Target | None
    events: tuple[JobEvent, ...] = ()
    more: bool = False


def track(view: View, decision: Decision, outcome: Outcome, stamp: str) -> Tracking:
    """Compute the first write of the status; `stamp` is now (RFC 3339)."""
    status = copy_object(view.status)
    tracked = frozenset(uid_of(pod) for pod in view.tracked)
    if not status.get("startTime") and not is_suspended(view.job):
        status["startTime"] = stamp
    target = decision.target
    events: tuple[JobEvent, ...] = ()
    held = target is not None and not outcome.declared
    if held:
        target = None
    elif target is None:
        target = _completed(view, outcome)
        if target is None and decision.manages:
            events = _suspend_or_resume(view, status, stamp)
    _count_released(status, tracked)
    # As long as an end is certain and cannot be stated yet, nothing goes that says why.
    release: tuple[Pod, ...] = ()
    more = False
    if not held:
        release, more = _count(view, status, target)
    _set_count(status, "active", outcome.active)
    status["ready"], status["terminating"] = outcome.ready, outcome.terminating
    if target is not None and not target.stated:
        status["conditions"] = [
            *(status.get("conditions") or ()), _condition(target.type, target.reason, target.message, stamp)
        ]  # fmt: skip
    return Tracking(status, release, tracked, target, events, more)


def settle(status: JobStatus, still_tracked: Set[str], tracking: Tracking, stamp: str) -> tuple[JobStatus, bool]:
    """Compute the second write: (status, whether the Job is finished). `still_tracked` are Pods with a finalizer."""
    status = copy_object(status)
    _count_released(status, still_tracked)
    target = tracking.target
    if target is None or tracking.more or status.get("terminating") or any(_uncounted(status).values()):
        return status, False
    final = COMPLETE if target.type == SUCCESS else FAILED
    condition = _condition(final, target.reason, target.message, stamp)
    status["conditions"] = [*(status.get("conditions") or ()), condition]
    if final == COMPLETE:
        status["completionTime"] = stamp
    return status, True


def events_at_the_end(job: Job, status: JobStatus, target: Target) -> list[JobEvent]:
    """Return the events of a Job that has ended. (`recordJobFinished`)"""
    if target.type == FAILURE:
        return [("Warning", target.reason, target.message)]
    events: list[JobEvent] = []
    completions = job["spec"].get("completions")
    if completions is not None and (status.get("succeeded") or 0) > completions:
        message = "Too many succeeded pods running after completion count reached"
        events.append(("Warning", "TooManySucceededPods", message))
    return [*events, ("Normal", "Completed", "Job completed")]


def _completed(view: View, outcome: Outcome) -> Target | None:
    completions = view.spec.get("completions")
    enough = view.succeeded > 0 if completions is None else view.succeeded >= completions
    if not enough or outcome.active or not outcome.declared:
        return None
    return Target(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")


def _count(view: View, status: JobStatus, target: Target | None) -> tuple[tuple[Pod, ...], bool]:
    """Enter ended Pods into `status`; (the Pods that may lose their finalizer then, whether some had to wait)."""
    uncounted = _uncounted(status)
    counted = {*uncounted["succeeded"], *uncounted["failed"]}
    fresh = {uid_of(pod) for pod in view.fresh}
    # When a Job fails, what has not ended counts as failed.
    fails = target is not None and target.type == FAILURE
    indexes: list[int] = []
    release: list[Pod] = []
    more = False
    for pod in view.tracked:
        if not _may_release(view, pod, target):
            continue
        if len(indexes) + len(uncounted["succeeded"]) + len(uncounted["failed"]) >= MAX_UNCOUNTED:
            more = True
            break
        release.append(pod)
        uid = uid_of(pod)
        if uid in counted or uid not in fresh:
            continue
        if phase_of(pod) == "Succeeded":
            if view.completed is None:
                uncounted["succeeded"].append(uid)
            else:
                indexes.append(completion_index(pod) or 0)
        elif (is_failed(view.job, pod) or fails) and match_failure_policy(view.job, pod).counts:
            uncounted["failed"].append(uid)
    status["uncountedTerminatedPods"] = cast(
        "UncountedTerminatedPods", {key: uids for key, uids in uncounted.items() if uids}
    )
    if view.completed is not None:
        completed = view.completed | Indexes.of(indexes)
        _set_count(status, "succeeded", len(completed))
        if text := str(completed):
            status["completedIndexes"] = text
        else:
            status.pop("completedIndexes", None)
        if view.failed_indexes is not None:
            status["failedIndexes"] = str(view.failed_indexes)
        else:
            status.pop("failedIndexes", None)
    return tuple(release), more


def _may_release(view: View, pod: Pod, target: Target | None) -> bool:
    """(`canRemoveFinalizer`)"""
    if is_terminating(view.job) or target is not None or phase_of(pod) == "Succeeded":
        return True
    if not is_failed(view.job, pod):
        return False
    index = completion_index(pod)
    return index is None or view.delayed.get(index) is not pod


def _uncounted(status: JobStatus) -> UncountedTerminatedPods:
    found = status.get("uncountedTerminatedPods") or {}
    return {"succeeded": list(found.get("succeeded") or ()), "failed": list(found.get("failed") or ())}


def _count_released(status: JobStatus, tracked: Set[str]) -> None:
    """Uids of Pods without a finalizer become numbers. (`cleanUncountedPodsWithoutFinalizers`)"""
    kept: UncountedTerminatedPods = {}
    uncounted = _uncounted(status)
    for key in _ENDED:
        uids = uncounted[key]
        still = [uid for uid in uids if uid in tracked]
        _set_count(status, key, (status.get(key) or 0) + len(uids) - len(still))
        if still:
            kept[key] = still
    status["uncountedTerminatedPods"] = kept


def _set_count(status: JobStatus, key: _Count, value: int) -> None:
    if value:
        status[key] = value
    else:
        status.pop(key, None)


def _condition(kind: str, reason: str, message: str, stamp: str, state: str = "True") -> JobCondition:
    return {
        "type": kind,
        "status": state,
        "lastProbeTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }


def _suspend_or_resume(view: View, status: JobStatus, stamp: str) -> tuple[JobEvent, ...]:
    """The condition Suspended, and the beginning anew of one that goes on."""
    conditions = list(status.get("conditions") or ())
    old = next((each for each in conditions if each.get("type") == "Suspended"), None)
    if is_suspended(view.job):
        event, new = "Suspended", _condition("Suspended", "JobSuspended", "Job suspended", stamp)
    elif old is None:
        return ()
    else:
        event, new = "Resumed", _condition("Suspended", "JobResumed", "Job resumed", stamp, "False")
    if old is not None and all(old.get(key) == new[key] for key in ("status", "reason", "message")):
        return ()
    status["conditions"] = [new if each is old else each for each in conditions] if old else [*conditions, new]
    if event == "Resumed":
        status["startTime"] = stamp
    return (("Normal", event, new["message"]),)
