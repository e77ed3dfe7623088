"""How far the owners of Pods are: how many Pods they want, and how many are Ready. Pure."""

# check: pure

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lastcall.kube.api import DAEMONSETS, JOBS, Object, Resource, get_condition

if TYPE_CHECKING:
    from lastcall.experiment.reasons.pod_watch import FollowedPod


@dataclass(frozen=True, slots=True)
class Progress:
    """`wanted` is None while the owner's controller has not said it. `settled`: there is nothing to wait for."""

    ready: int
    wanted: int | None
    settled: bool


def progress(resource: Resource, owner: Object, pods: "Sequence[FollowedPod]") -> Progress:
    """How far an owner is, by its status and by those of its Pods that were seen."""
    there = [pod for pod in pods if not pod.gone]
    if resource == JOBS:
        return _job_progress(owner, there)
    status = owner.get("status") or {}
    ready = sum(pod.ready for pod in there)
    up_to_date = (status.get("observedGeneration") or 0) >= (owner["metadata"].get("generation") or 0)
    if resource == DAEMONSETS:
        wanted = status.get("desiredNumberScheduled") or 0
        available = status.get("numberAvailable") or 0
    else:
        wanted = owner["spec"].get("replicas", 1)
        available = status.get("availableReplicas") or 0
    if not up_to_date:
        return Progress(ready, None if resource == DAEMONSETS else wanted, False)
    return Progress(ready, wanted, available >= wanted and ready >= wanted)


def _job_progress(job: Object, there: "Sequence[FollowedPod]") -> Progress:
    """A Job has done what it can when all Pods that it has at a time run, or when it is done."""
    spec, status = job["spec"], job.get("status") or {}
    wanted = spec.get("parallelism", 1)
    if spec.get("completions") is not None:
        wanted = min(wanted, spec["completions"])
    ready = sum(pod.ready or pod.ended_by_itself for pod in there)
    done = any(
        (get_condition(status, name) or {}).get("status") == "True" for name in ("Complete", "Failed", "Suspended")
    )
    return Progress(ready, wanted, done or ready >= wanted)


def unsettled(workload: Object) -> str:
    """Return what is missing until every replica is of the newest template and available, and nothing older is left."""
    status, spec = workload.get("status") or {}, workload["spec"]
    if (status.get("observedGeneration") or 0) < workload["metadata"].get("generation", 0):
        return "its controller has not seen it"
    if "desiredNumberScheduled" in status:
        wanted = there = status.get("desiredNumberScheduled", 0)
        ready, updated = status.get("numberAvailable", 0), status.get("updatedNumberScheduled", 0)
    else:
        wanted, there, ready = spec.get("replicas", 1), status.get("replicas", 0), status.get("availableReplicas", 0)
        updated = status.get("updatedReplicas", 0) if "strategy" in spec or "updateStrategy" in spec else there
    if ready < wanted or updated < wanted or there > wanted:
        old = f", {there - wanted} more to go" if there > wanted else ""
        return f"{ready} of {wanted} Pods are available, {updated} of {wanted} are updated{old}"
    return ""
