"""Owners of Pods in the manifests: which may have Pods, and what `--grace` means for them. Pure."""

# check: pure

from lastcall.kube.api import (
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Object,
    Resource,
    copy_object,
)

OWNERS = (DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS, JOBS, REPLICATIONCONTROLLERS)
"""What `lastcall run` takes, waits for and deletes."""


def may_have_pods(resource: Resource, obj: Object) -> bool:
    """Return whether an owner as written in a manifest will make any Pod."""
    spec = obj.get("spec") or {}
    if resource == DAEMONSETS:
        return True
    if resource == JOBS:
        return not spec.get("suspend") and spec.get("parallelism") != 0 and spec.get("completions") != 0
    return spec.get("replicas") != 0


def with_grace(resource: Resource, obj: Object, grace: int | None) -> Object:
    """Return the owner with `grace` as the grace period of its Pods.

    The garbage collector deletes Pods with their own grace period: what a user asks for in the DELETE of the owner
    does not reach them.
    """
    if grace is None or resource not in OWNERS:
        return obj
    changed = copy_object(obj)
    changed["spec"]["template"].setdefault("spec", {})["terminationGracePeriodSeconds"] = grace
    return changed
