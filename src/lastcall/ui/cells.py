"""Objects of the API as the overview shows them: small, and without what changes with every heartbeat. Pure."""

# check: pure

from collections.abc import Mapping
from typing import Any

from lastcall.kube.api import AnyObject, job_status, name_of, namespace_of, pod_summary, uid_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.signal_names import SIGKILL, signal_name
from lastcall.ui.board import Value

STAGES: Mapping[str, str] = {
    kinds.DELETE_ACCEPTED: "deleted",
    kinds.TERMINATION_OBSERVED: "deleted",
    kinds.PRE_STOP_STARTED: "hook",
    kinds.SANDBOX_STOPPED: "cleanup",
    kinds.VOLUMES_UNMOUNTED: "cleanup",
    kinds.HELD_BY_FINALIZERS: "held",
}
"""Kind of a record → how far the end is. The stop signal has no row: `stage_of` reads which one it was."""

_BEGINNINGS = ("deleted", "hook")
"""Stages that others follow without a sign in the API."""
_SAY_THE_PHASE = ("Pending", "Running", "Succeeded", "Completed", "Failed", "Unknown")


def stage_of(record: Record) -> str:
    """Return how far the end of its Pod is once the record is written; "" where it says nothing about that."""
    if record.kind == kinds.SIGNAL_SENT:
        name = signal_name(record.facts_as(kinds.SIGNAL_SENT).get("signal"))
        return "kill" if name == SIGKILL else "term"
    return STAGES.get(record.kind, "")


def stage_seen(record: Record) -> str:
    """Return the same as `stage_of` for an end that had begun before it was watched.

    What is only concluded of its beginning does not say how far it is.
    """
    stage = stage_of(record)
    return "" if record.evidence == "inferred" and stage in _BEGINNINGS else stage


def pod_cell(pod: AnyObject, stage: str = "", watched: float | None = None) -> Value:
    """Return what a list shows of a Pod.

    `ready`, `restarts` and `reason` are what `kubectl get` shows, `reason` only where it says more than the phase.
    `deletion`: when the grace period is over (RFC 3339), and its length in seconds. `watched`: since when it is watched
    (milliseconds of the epoch), if its end had begun before; then only a later step says how far that is.
    """
    meta, status = pod.get("metadata") or {}, pod.get("status") or {}
    reason, ready, containers, restarts = pod_summary(dict(pod))
    cell: dict[str, Any] = {
        "namespace": namespace_of(pod),
        "name": name_of(pod),
        "uid": uid_of(pod),
        "node": (pod.get("spec") or {}).get("nodeName") or "",
        "phase": status.get("phase") or "Pending",
        "ready": [ready, containers],
        "isReady": condition(status, "Ready"),
        "restarts": restarts,
        "reason": "" if reason in _SAY_THE_PHASE else reason,
        "labels": meta.get("labels") or {},
        "owner": _owner(meta),
        "ip": status.get("podIP") or "",
        "created": meta.get("creationTimestamp") or "",
    }
    if meta.get("deletionTimestamp"):
        cell["deletion"] = {"at": meta["deletionTimestamp"], "grace": int(meta.get("deletionGracePeriodSeconds") or 0)}
        cell["stage"] = stage or ("deleted" if watched is None else "unseen")
        if cell["stage"] == "unseen":
            cell["watched"] = watched
        cell["finalizers"] = list(meta.get("finalizers") or ())
    return cell


def node_cell(node: AnyObject) -> Value:
    """Return what a list shows of a node, without addresses and capacities."""
    status, spec = node.get("status") or {}, node.get("spec") or {}
    return {
        "name": name_of(node),
        "isReady": condition(status, "Ready"),
        "unschedulable": bool(spec.get("unschedulable")),
        "taints": [f"{each.get('key')}:{each.get('effect')}" for each in spec.get("taints") or ()],
        "version": (status.get("nodeInfo") or {}).get("kubeletVersion") or "",
    }


def workload_cell(kind: str, workload: AnyObject) -> Value:
    """Return what a list shows of a workload.

    `wanted` is None for a kind that does not say how many Pods it wants, and a Job that does not say how many are to
    succeed. `ready` are, of a Job, those that have succeeded, and of a CronJob its Jobs under way.
    """
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    if kind == "Job":
        more: dict[str, Any] = {"state": job_status(dict(workload))}
        return _workload(kind, workload, spec.get("completions"), status.get("succeeded"), more)
    if kind == "CronJob":
        more = {"schedule": spec.get("schedule") or "", "suspended": bool(spec.get("suspend"))}
        return _workload(kind, workload, None, len(status.get("active") or ()), more)
    wanted = status.get("desiredNumberScheduled") if kind == "DaemonSet" else spec.get("replicas")
    ready = status.get("numberReady") if kind == "DaemonSet" else status.get("readyReplicas")
    updated = int(status.get("updatedReplicas") or status.get("updatedNumberScheduled") or 0)
    return _workload(kind, workload, wanted, ready, {"updated": updated})


def _workload(
    kind: str, workload: AnyObject, wanted: int | None, ready: int | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    names = {"kind": kind, "namespace": namespace_of(workload), "name": name_of(workload)}
    return {**names, "wanted": wanted, "ready": int(ready or 0), "updated": 0, **more}


def condition(status: AnyObject, kind: str) -> bool:
    """Return whether the condition is True."""
    return any(each.get("type") == kind and each.get("status") == "True" for each in status.get("conditions") or ())


def _owner(meta: AnyObject) -> dict[str, str] | None:
    """Return the controller; for the ReplicaSet of a Deployment, the Deployment."""
    owner = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), None)
    if owner is None:
        return None
    kind, name = str(owner.get("kind")), str(owner.get("name"))
    template = (meta.get("labels") or {}).get("pod-template-hash")
    if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
        return {"kind": "Deployment", "name": name.removesuffix(f"-{template}")}
    return {"kind": kind, "name": name}
