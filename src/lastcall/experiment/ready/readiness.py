"""When an object is ready, as `kubectl rollout status` and `kubectl wait` would say. Pure.

Source: kubectl polymorphichelpers/rollout_status.go (DeploymentStatusViewer, StatefulSetStatusViewer,
DaemonSetStatusViewer).
"""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Readiness:
    """`failed` says why it will never be ready, "" while there is hope; `text` is how far it is."""

    ready: bool
    text: str = ""
    failed: str = ""


HAVE_PODS = (DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS, JOBS, REPLICATIONCONTROLLERS)


def readiness(resource: Resource, obj: Object | None) -> Readiness:
    """How far an object is; None for one that is not there. Kinds without a status are ready as soon as they exist."""
    if obj is None:
        return Readiness(False, "it does not exist")
    decide = _DECIDE.get(resource)
    return decide(obj) if decide is not None else Readiness(True)


def is_waited_for(resource: Resource) -> bool:
    """Whether its objects take a while to be ready, so that it is worth waiting for all of a manifest's."""
    return resource in _DECIDE and resource != PERSISTENTVOLUMECLAIMS  # one may wait for its first consumer


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
    status, wanted = obj.get("status") or {}, _wanted(obj)
    if _behind(obj):
        return Readiness(False, "its controller has not seen its newest spec")
    late = get_condition(status, "Progressing") or {}
    if late.get("reason") == "ProgressDeadlineExceeded":
        return Readiness(False, "", f"it exceeded its progress deadline: {late.get('message')}")
    updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    available = status.get("availableReplicas", 0)
    if updated < wanted:
        return Readiness(False, f"{updated} of {wanted} Pods are made from the new template")
    if total > updated:
        return Readiness(False, f"{total - updated} old Pods are still there")
    return Readiness(available >= updated, f"{available} of {wanted} Pods are available")


def _replicated(obj: Object) -> Readiness:
    if _behind(obj):
        return Readiness(False, "its controller has not seen its newest spec")
    status, wanted = obj.get("status") or {}, _wanted(obj)
    available, total = status.get("availableReplicas", 0), status.get("replicas", 0)
    return Readiness(available >= wanted and total == wanted, f"{available} of {wanted} Pods are available")


def _stateful_set(obj: Object) -> Readiness:
    if _behind(obj):
        return Readiness(False, "its controller has not seen its newest spec")
    status, wanted = obj.get("status") or {}, _wanted(obj)
    available = status.get("availableReplicas", 0)
    if available < wanted or status.get("replicas", 0) != wanted:
        return Readiness(False, f"{available} of {wanted} Pods are available")
    update = (obj.get("spec") or {}).get("updateStrategy") or {}
    if update.get("type", "RollingUpdate") != "RollingUpdate":
        return Readiness(True)
    partition = (update.get("rollingUpdate") or {}).get("partition") or 0
    updated, needed = status.get("updatedReplicas", 0), max(0, wanted - partition)
    if updated < needed:
        return Readiness(False, f"{updated} of {needed} Pods are made from the new template")
    done = bool(partition) or status.get("updateRevision") == status.get("currentRevision")
    return Readiness(done, "its update is not complete")


def _daemon_set(obj: Object) -> Readiness:
    if _behind(obj):
        return Readiness(False, "its controller has not seen its newest spec")
    status = obj.get("status") or {}
    wanted, available = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
    rolling = ((obj.get("spec") or {}).get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    updated = status.get("updatedNumberScheduled", 0) if rolling else wanted
    if updated < wanted:
        return Readiness(False, f"{updated} of {wanted} Pods are made from the new template")
    return Readiness(available >= wanted, f"{available} of {wanted} Pods are available")


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


def _behind(obj: Object) -> bool:
    seen = (obj.get("status") or {}).get("observedGeneration") or 0
    return seen < (obj["metadata"].get("generation") or 0)


def _wanted(obj: Object) -> int:
    replicas = (obj.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


_DECIDE = {
    PODS: _pod,
    DEPLOYMENTS: _deployment,
    REPLICASETS: _replicated,
    REPLICATIONCONTROLLERS: _replicated,
    STATEFULSETS: _stateful_set,
    DAEMONSETS: _daemon_set,
    JOBS: _job,
    PERSISTENTVOLUMECLAIMS: _claim,
    NAMESPACES: _namespace,
    CUSTOMRESOURCEDEFINITIONS: _definition,
}
