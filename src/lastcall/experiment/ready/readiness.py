"""When an object is ready, as `kubectl rollout status` and `kubectl wait` would say. Pure.

Source: kubectl polymorphichelpers/rollout_status.go (DeploymentStatusViewer, StatefulSetStatusViewer,
DaemonSetStatusViewer). For kinds that Kubernetes does not have: cli-utils pkg/kstatus
(generic.go:checkGenericProperties, status.go:checkReadyCondition).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api import (
    CUSTOMRESOURCEDEFINITIONS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Object,
    Resource,
    get_condition,
)
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.experiment.reasons.pod_watch import FollowedPod


@dataclass(frozen=True, slots=True)
class Readiness:
    """`failed` says why it will never be ready, "" while there is hope; `text` is how far it is."""

    ready: bool
    text: str = ""
    failed: str = ""


HAVE_PODS = (DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS, JOBS, REPLICATIONCONTROLLERS)


def readiness(resource: Resource, obj: Object | None) -> Readiness:
    """Return how far an object is; not ready for None. Kinds without a status are ready as soon as they exist."""
    if obj is None:
        return Readiness(False, "it does not exist")
    decide = _DECIDE.get(resource, _custom if is_custom(resource) else None)
    return decide(obj) if decide is not None else Readiness(True)


def is_custom(resource: Resource) -> bool:
    """Return True for a kind that is not Kubernetes's own: its group is another project's domain."""
    return "." in resource.group and not resource.group.endswith(".k8s.io")


def is_waited_for(resource: Resource) -> bool:
    """Return whether its objects take a while to be ready, so that it is worth waiting for all of a manifest's."""
    if resource == PERSISTENTVOLUMECLAIMS:  # one may wait for its first consumer
        return False
    return resource in _DECIDE or is_custom(resource)


def _pod(pod: Object) -> Readiness:
    status = pod.get("status") or {}
    phase = status.get("phase") or "Pending"
    if phase == "Succeeded" or (get_condition(status, "Ready") or {}).get("status") == "True":
        return Readiness(True)
    failed = f"its phase is Failed{_because(status)}" if phase == "Failed" else ""
    return Readiness(False, f"it is {phase} and not Ready", failed)


def _because(status: Object) -> str:
    return f" ({status['reason']})" if status.get("reason") else ""


def _deployment(obj: Object) -> Readiness:
    late = get_condition(obj.get("status") or {}, "Progressing") or {}
    if late.get("reason") == "ProgressDeadlineExceeded" and replicas(DEPLOYMENTS, obj).seen:
        return Readiness(False, "", f"it exceeded its progress deadline: {late.get('message')}")
    return _ready_unless(unsettled(DEPLOYMENTS, obj))


def _stateful_set(obj: Object) -> Readiness:
    found, partition = replicas(STATEFULSETS, obj), (_rolling_update(obj) or {}).get("partition") or 0
    needed = 0 if _rolling_update(obj) is None else max(0, found.wanted - partition)
    status = obj.get("status") or {}
    same = bool(partition) or not needed or status.get("updateRevision") == status.get("currentRevision")
    return _ready_unless(found.missing(needed) or ("" if same else "its update is not complete"))


def _daemon_set(obj: Object) -> Readiness:
    found = replicas(DAEMONSETS, obj)
    return _ready_unless(found.missing(0 if _rolling_update(obj) is None else found.wanted))


def _rolling_update(obj: Object) -> Object | None:
    """Return the parameters of its rolling update; None where its Pods are not replaced by themselves."""
    strategy = (obj.get("spec") or {}).get("updateStrategy") or {}
    return (strategy.get("rollingUpdate") or {}) if strategy.get("type", "RollingUpdate") == "RollingUpdate" else None


def _ready_unless(missing: str) -> Readiness:
    return Readiness(not missing, missing)


def _job(obj: Object) -> Readiness:
    status = obj.get("status") or {}
    failed = get_condition(status, "Failed") or {}
    if failed.get("status") == "True":
        return Readiness(False, "", f"it failed: {failed.get('reason')}: {failed.get('message')}")
    done = (get_condition(status, "Complete") or {}).get("status") == "True"
    return Readiness(done, f"{status.get('succeeded', 0)} of its Pods have succeeded")


def _claim(obj: Object) -> Readiness:
    phase = (obj.get("status") or {}).get("phase") or "Pending"
    return Readiness(phase == "Bound", f"it is {phase}", "the volume of it is lost" if phase == "Lost" else "")


def _namespace(obj: Object) -> Readiness:
    phase = (obj.get("status") or {}).get("phase")
    return Readiness(phase == "Active", f"it is {phase}")


def _definition(obj: Object) -> Readiness:
    status = obj.get("status") or {}
    names = get_condition(status, "NamesAccepted") or {}
    if names.get("status") == "False":
        return Readiness(False, "", f"its names are not accepted: {names.get('message')}")
    return Readiness((get_condition(status, "Established") or {}).get("status") == "True", "it is not Established")


def _custom(obj: Object) -> Readiness:
    """Return what its conditions say. Ready without any: its controller may not know them."""
    status = obj.get("status")
    if not isinstance(status, dict):
        return Readiness(True)
    observed, found = status.get("observedGeneration"), status.get("conditions")
    conditions = {str(c.get("type")): c for c in found if isinstance(c, dict)} if isinstance(found, list) else {}
    if isinstance(observed, int) and observed != (obj["metadata"].get("generation") or 0):
        return Readiness(False, "its controller has not seen its newest spec")
    if (conditions.get("Stalled") or {}).get("status") == "True":
        return Readiness(False, "", f"it is stalled{_why(conditions['Stalled'])}")
    for name, good in (("Reconciling", "False"), ("Ready", "True")):
        if name in conditions and (now := str(conditions[name].get("status"))) != good:
            return Readiness(False, f"its condition {name} is {now}{_why(conditions[name])}")
    return Readiness(True)


def _why(condition: Object) -> str:
    said = ": ".join(str(condition[each]) for each in ("reason", "message") if condition.get(each))
    return f" ({said})" if said else ""


@dataclass(frozen=True, slots=True)
class Replicas:
    """Pods of an owner, as its status counts them. `seen`: its controller has seen its newest spec."""

    wanted: int
    there: int
    updated: int
    available: int
    seen: bool = True

    def missing(self, needed: int) -> str:
        """Return what is missing until all are available, `needed` of the newest template, and nothing else is left."""
        if not self.seen:
            return "its controller has not seen its newest spec"
        if self.available >= self.wanted >= self.there and self.updated >= needed:
            return ""
        old = f", {self.there - self.wanted} more to go" if self.there > self.wanted else ""
        return f"{self.available} of {self.wanted} Pods are available, {self.updated} of {self.wanted} are updated{old}"


def replicas(resource: Resource, owner: Object) -> Replicas:
    """Count the Pods of an owner by its status."""
    status, spec = owner.get("status") or {}, owner.get("spec") or {}
    seen = (status.get("observedGeneration") or 0) >= (owner["metadata"].get("generation") or 0)
    if resource == DAEMONSETS:
        wanted = status.get("desiredNumberScheduled") or 0
        updated, available = status.get("updatedNumberScheduled") or 0, status.get("numberAvailable") or 0
        return Replicas(wanted, wanted, updated, available, seen)
    wanted, there = spec.get("replicas", 1), status.get("replicas") or 0
    updated = (status.get("updatedReplicas") or 0) if resource in (DEPLOYMENTS, STATEFULSETS) else there
    return Replicas(wanted, there, updated, status.get("availableReplicas") or 0, seen)


def unsettled(resource: Resource, workload: Object) -> str:
    """Return what is missing until every replica is of the newest template and available, and nothing older is left."""
    found = replicas(resource, workload)
    return found.missing(found.wanted)


@dataclass(frozen=True, slots=True)
class Progress:
    """`wanted` is None while the owner's controller has not said it. `settled`: there is nothing to wait for."""

    ready: int
    wanted: int | None
    settled: bool


def progress(resource: Resource, owner: Object, pods: "Sequence[FollowedPod]") -> Progress:
    """Return how far an owner is, by its status and by those of its Pods that were seen.

    A Job has done what it can when all Pods that it has at a time run, or when it is done.
    """
    there, status = [pod for pod in pods if not pod.gone], owner.get("status") or {}
    if resource == JOBS:
        wanted = owner["spec"].get("parallelism", 1)
        wanted = min(wanted, owner["spec"].get("completions") or wanted)
        ready = sum(pod.ready or pod.ended_by_itself for pod in there)
        ends = (get_condition(status, name) or {} for name in ("Complete", "Failed", "Suspended"))
        return Progress(ready, wanted, ready >= wanted or any(each.get("status") == "True" for each in ends))
    found, ready = replicas(resource, owner), sum(pod.ready for pod in there)
    wanted = None if resource == DAEMONSETS and not found.seen else found.wanted
    return Progress(ready, wanted, found.seen and min(found.available, ready) >= found.wanted)


_DECIDE = {
    PODS: _pod,
    DEPLOYMENTS: _deployment,
    REPLICASETS: lambda obj: _ready_unless(unsettled(REPLICASETS, obj)),
    REPLICATIONCONTROLLERS: lambda obj: _ready_unless(unsettled(REPLICATIONCONTROLLERS, obj)),
    STATEFULSETS: _stateful_set,
    DAEMONSETS: _daemon_set,
    JOBS: _job,
    PERSISTENTVOLUMECLAIMS: _claim,
    NAMESPACES: _namespace,
    CUSTOMRESOURCEDEFINITIONS: _definition,
}
