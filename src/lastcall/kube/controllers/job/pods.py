"""What a Job asks of its Pods, and the Pods it makes. Pure.

Sources: pkg/controller/job/{pod_failure_policy,indexed_job_utils,backoff_utils}.go, job_controller.go:isPodFailed,
pkg/controller/controller_utils.go:ActivePods.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import annotations_of, is_terminating, name_of, namespace_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.resources import JOBS
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.controllers.ownership import controller_reference
from lastcall.kube.controllers.pods.control import pod_from_template
from lastcall.kube.controllers.replicaset.ranking import Candidate, candidate
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.batch import (
        Job,
        PodFailurePolicyOnExitCodesRequirement,
        PodFailurePolicyOnPodConditionsPattern,
    )
    from lastcall.kube.api.types.container import ObjectFieldSelector
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerStatus, PodCondition

TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a Pod until its Job has counted it."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
INDEX_ENV = "JOB_COMPLETION_INDEX"
MAX_GENERATED_PREFIX = 58


def is_indexed(job: Job) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_suspended(job: Job) -> bool:
    return bool(job["spec"].get("suspend"))


def replaces_failed_only(job: Job) -> bool:
    """Return whether a Pod that is still ending is not replaced. (`onlyReplaceFailedPods`)"""
    spec = job["spec"]
    return bool(spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy"))


def is_tracked(pod: Pod) -> bool:
    """Return whether the Pod has the finalizer: it is not counted yet, or its count is not final."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def phase_of(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def is_failed(job: Job, pod: Pod) -> bool:
    """Return whether the Pod failed, or is being deleted where that counts as failure. (`isPodFailed`)"""
    phase = phase_of(pod)
    if phase == "Failed":
        return True
    return not replaces_failed_only(job) and is_terminating(pod) and phase != "Succeeded"


def completion_index(pod: Pod) -> int | None:
    """Return the completion index, None for a Pod without one that can be read."""
    index = int_of(annotations_of(pod).get(COMPLETION_INDEX))
    return index if index is not None and index >= 0 else None


def valid_index(job: Job, pod: Pod) -> int | None:
    """Return the completion index if the Job has a use for it."""
    index = completion_index(pod)
    return index if index is not None and index < job["spec"]["completions"] else None


# -- podFailurePolicy ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Match:
    """What the policy says of a failed Pod. `message` is why the Job has to fail, "" when it has not."""

    action: str = ""
    counts: bool = True
    message: str = ""


def match_failure_policy(job: Job, pod: Pod) -> Match:
    """Return the first rule that fits. (`matchPodFailurePolicy`)"""
    for number, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        action = rule["action"]
        what = ""
        if (codes := rule.get("onExitCodes")) is not None:
            if (container := _exited_with(pod, codes)) is not None:
                code = container["state"]["terminated"]["exitCode"]
                where = f"{namespace_of(pod)}/{name_of(pod)}"
                what = f"Container {container['name']} for pod {where} failed with exit code {code}"
        elif (condition := _has_condition(pod, rule.get("onPodConditions") or ())) is not None:
            what = f"Pod {namespace_of(pod)}/{name_of(pod)} has condition {condition['type']}"
        if what:
            message = f"{what} matching {action} rule at index {number}" if action == "FailJob" else ""
            return Match(action, action != "Ignore", message)
    return Match()


def _exited_with(pod: Pod, codes: PodFailurePolicyOnExitCodesRequirement) -> ContainerStatus | None:
    status = pod.get("status") or {}
    for container in (*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])):
        ended = (container.get("state") or {}).get("terminated")
        if not ended or codes.get("containerName") not in (None, container["name"]):
            continue
        code = ended["exitCode"]
        if code != 0 and (code in codes["values"]) == (codes["operator"] == "In"):
            return container
    return None


def _has_condition(pod: Pod, patterns: Iterable[PodFailurePolicyOnPodConditionsPattern]) -> PodCondition | None:
    wanted = [(pattern["type"], pattern.get("status", "True")) for pattern in patterns]
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if (condition.get("type"), condition.get("status")) in wanted:
            return condition
    return None


# -- failures of one index -----------------------------------------------------------------------------------------


def _number(pod: Pod, key: str) -> int:
    return max(0, int_of(annotations_of(pod).get(key), 32) or 0)


def index_failures(pod: Pod) -> int:
    """Return the failures of the Pod's index before it, those that count."""
    return _number(pod, INDEX_FAILURES)


def all_index_failures(pod: Pod) -> int:
    """Return the failures of the Pod's index before it, with those that did not count."""
    return _number(pod, INDEX_FAILURES) + _number(pod, INDEX_IGNORED_FAILURES)


def fails_its_index(job: Job, pod: Pod) -> bool:
    """Return whether the index has used all its tries. (`isIndexFailed`)"""
    if not is_failed(job, pod):
        return False
    match = match_failure_policy(job, pod)
    if match.action == "FailIndex":
        return True
    return match.counts and index_failures(pod) >= job["spec"]["backoffLimitPerIndex"]


# -- times ---------------------------------------------------------------------------------------------------------


def finish_time(pod: Pod) -> float:
    """Return when the Pod ended, in seconds since the epoch; if it is still ending, when that began.

    (`backoff_utils.go:getFinishedTime`)
    """
    status, meta = pod.get("status") or {}, pod["metadata"]
    ended = [((each.get("state") or {}).get("terminated") or {}) for each in status.get("containerStatuses") or ()]
    if ended and all(each.get("finishedAt") for each in ended):
        return max(_seconds(each.get("finishedAt")) for each in ended)
    ready = get_condition(status, "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return _seconds(ready.get("lastTransitionTime"))
    if is_terminating(pod):
        return _seconds(meta["deletionTimestamp"]) - (meta.get("deletionGracePeriodSeconds") or 0)
    return _seconds(meta["creationTimestamp"])


def _seconds(text: str | None) -> float:
    return parse_rfc3339(text).timestamp()


# -- which active Pods go ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Surplus:
    """A Pod that a Job has too many, and why this one."""

    pod: Pod
    reason: str


_ORDER = (
    "not assigned to a node",
    "phase before Running",
    "not Ready",
    "Ready for a shorter time",
    "more restarts",
    "more restarts of sidecars",
    "created later",
)


def _rank(each: Candidate) -> tuple[float, ...]:
    """The lower goes first. (`ActivePods.Less`)"""
    ready_at = each.ready_at if each.ready and each.ready_at is not None else 0.0
    created = each.created_at if each.created_at is not None else float("inf")
    return (each.assigned, each.phase, each.ready, -ready_at, -each.restarts, -each.sidecar_restarts, -created)


def _sorted(pods: Iterable[Pod]) -> list[Candidate]:
    return sorted((candidate(pod, 0) for pod in pods), key=lambda each: (_rank(each), each.uid))


def choose_surplus(job: Job, active: Sequence[Pod], at_least: int) -> list[Surplus]:
    """Choose Pods whose index is wrong or taken, then as many more as it takes to remove `at_least`.

    (`activePodsForRemoval`)
    """
    chosen: list[Surplus] = []
    left = list(active)
    if is_indexed(job):
        by_index: dict[int, list[Pod]] = {}
        for pod in active:
            index = valid_index(job, pod)
            if index is None:
                chosen.append(Surplus(pod, "the Job does not ask for its completion index"))
            else:
                by_index.setdefault(index, []).append(pod)
        left = []
        for index in sorted(by_index):
            *extra, stays = _sorted(by_index[index])
            chosen += [Surplus(each.pod, f"another Pod has its completion index {index}") for each in extra]
            left.append(stays.pod)
    more = at_least - len(chosen)
    if more <= 0:
        return chosen
    ordered = _sorted(left)
    for each in ordered[:more]:
        if more >= len(ordered):
            chosen.append(Surplus(each.pod, "all of them go"))
            continue
        pairs = zip(_ORDER, _rank(each), _rank(ordered[more]), strict=True)
        chosen.append(
            Surplus(each.pod, next((why for why, one, two in pairs if one != two), "no rule tells them apart"))
        )
    return chosen


# -- Pods to make --------------------------------------------------------------------------------------------------


def new_pod(job: Job, index: int | None, replaced: Pod | None) -> Pod:
    """Make the Pod for `index`; `replaced` is the failed one of the same index where each index has its own limit.

    (`manageJob`, `addCompletionIndexEnvVariables`, `getNewIndexFailureCounts`)
    """
    pod = pod_from_template(job["spec"].get("template") or {}, name_of(job), controller_reference(job, JOBS))
    meta = pod["metadata"]
    if TRACKING not in meta.setdefault("finalizers", []):
        meta["finalizers"].append(TRACKING)
    if index is None:
        return pod
    meta.setdefault("annotations", {})[COMPLETION_INDEX] = str(index)
    meta.setdefault("labels", {})[COMPLETION_INDEX] = str(index)
    meta["generateName"] = f"{name_of(job)[: MAX_GENERATED_PREFIX - len(f'-{index}-')]}-{index}-"
    spec = pod["spec"]
    spec["hostname"] = f"{name_of(job)}-{index}"
    for container in (*(spec.get("initContainers") or []), *(spec.get("containers") or [])):
        env = container["env"] = list(container.get("env") or ())
        if all(each["name"] != INDEX_ENV for each in env):
            field: ObjectFieldSelector = {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}
            env.append({"name": INDEX_ENV, "valueFrom": {"fieldRef": field}})
    if job["spec"].get("backoffLimitPerIndex") is not None:
        failures, ignored = 0, 0
        if replaced is not None:
            counts = match_failure_policy(job, replaced).counts
            failures = index_failures(replaced) + counts
            ignored = _number(replaced, INDEX_IGNORED_FAILURES) + (not counts)
        meta["annotations"][INDEX_FAILURES] = str(failures)
        if ignored:
            meta["annotations"][INDEX_IGNORED_FAILURES] = str(ignored)
    return pod
