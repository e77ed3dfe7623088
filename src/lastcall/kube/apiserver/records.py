"""Which writes become records of a Pod's story. Called right after the store acknowledged the write."""

# check: asks for kinds because only Pods and their owners have a story
# check: observes because it records the API server's own writes

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.pods.recorded import container_facts, status_problems
from lastcall.kube.api.resources import (
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Resource,
)
from lastcall.kube.apiserver.audit.request import current_facts
from lastcall.kube.apiserver.auth.authentication import NODES_GROUP
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder

if TYPE_CHECKING:
    from lastcall.records.definitions.apiserver import (
        DeleteAccepted,
        DeleteRefused,
        EphemeralContainersAdded,
        GraceShortened,
        HeldByFinalizers,
        ObjectRemoved,
        OwnerDeleted,
        OwnerWritten,
        PodBound,
        PodCreated,
        PodStatusWritten,
    )
    from lastcall.records.definitions.controllers import DeletionDecided
    from lastcall.records.definitions.parts import GroundsOfDecision, Owner, SpecChange
    from lastcall.records.record import Facts, Kind


OWNERS = frozenset(
    each.kind for each in (DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS, JOBS, CRONJOBS, REPLICATIONCONTROLLERS)
)
"""Kinds whose writes tell why Pods end."""


class WriteRecords:
    """Only Pods have a story. Of their owners and of namespaces it is kept who changed what they ask for, and who
    deleted them; other writes are left out."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def created(self, context: RequestContext, resource: Resource, pod: Object) -> None:
        if resource.kind in OWNERS:
            self._owner_written(context, resource, pod, {"changed": []})
        elif resource is PODS:
            facts: PodCreated = {
                "namespace": namespace_of(pod),
                "name": name_of(pod),
                "user": context.user.name,
                "containers": container_facts(pod),
                "resourceVersion": resource_version_of(pod),
            }
            if owner := _controller(pod):
                facts["owner"] = owner
            if subdomain := (pod.get("spec") or {}).get("subdomain"):
                facts["subdomain"] = str(subdomain)
            self._write(kinds.POD_CREATED, pod, rules.CREATE, facts)

    def updated(self, context: RequestContext, resource: Resource, pod: Object, old: Object, subresource: str) -> None:
        if resource.kind in OWNERS:
            if subresource != "status" and pod.get("spec") != old.get("spec"):
                self._owner_written(context, resource, pod, _changes(pod, old))
            return
        if resource is not PODS:
            return
        if subresource == "status":
            status = pod.get("status", {})
            ready = any(
                condition.get("type") == "Ready" and condition.get("status") == "True"
                for condition in status.get("conditions") or []
            )
            written: PodStatusWritten = {
                "phase": status.get("phase", ""),
                "ready": ready,
                "reason": status.get("reason", ""),
                **status_problems(status),
                "resourceVersion": resource_version_of(pod),
            }
            self._write(kinds.POD_STATUS_WRITTEN, pod, rules.UPDATE_POD_STATUS, written)
        elif subresource == "ephemeralcontainers":
            known = [each["name"] for each in old["spec"].get("ephemeralContainers") or []]
            added = [each for each in pod["spec"].get("ephemeralContainers") or [] if each["name"] not in known]
            facts: EphemeralContainersAdded = {
                "containers": [
                    {"name": each["name"], "target": each.get("targetContainerName") or ""} for each in added
                ],
                "user": context.user.name,
                "resourceVersion": resource_version_of(pod),
            }
            self._write(kinds.EPHEMERAL_CONTAINERS_ADDED, pod, rules.UPDATE_EPHEMERAL_CONTAINERS, facts)
        elif subresource == "binding":
            bound: PodBound = {
                "node": pod.get("spec", {}).get("nodeName", ""),
                "resourceVersion": resource_version_of(pod),
            }
            self._write(kinds.POD_BOUND, pod, rules.ASSIGN_POD, bound)

    @contextmanager
    def refusals(self, context: RequestContext, resource: Resource, pod: Object) -> Iterator[None]:
        """Record a DELETE that admission refuses in the block."""
        try:
            yield
        except StatusError as error:
            if resource is PODS and not context.dry_run:
                facts: DeleteRefused = {
                    "user": context.user.name,
                    "userAgent": context.user_agent,
                    "message": error.message,
                    "resourceVersion": resource_version_of(pod),
                }
                self._write(kinds.DELETE_REFUSED, pod, rules.DELETE, facts)
            raise

    def marked(self, context: RequestContext, resource: Resource, pod: Object, old: Object, rule: rules.Rule) -> None:
        """Record the first write of a DELETE: it is acknowledged as graceful, or its grace period became shorter."""
        if resource.kind in OWNERS or resource is NAMESPACES:
            if old["metadata"].get("deletionTimestamp") is None:
                self._owner_deleted(context, resource, pod, rule)
            return
        if resource is not PODS:
            return
        meta, before = pod["metadata"], old["metadata"]
        grace = meta.get("deletionGracePeriodSeconds", 0)
        if before.get("deletionTimestamp") is None:
            facts: DeleteAccepted = {
                "user": context.user.name,
                "userAgent": context.user_agent,
                "gracePeriodSeconds": grace,
                "deletionTimestamp": meta["deletionTimestamp"],
                "resourceVersion": resource_version_of(pod),
                **current_facts(),
            }
            self._write(kinds.DELETE_ACCEPTED, pod, rule, facts)
        # The kubelet's final DELETE shortens nothing: the Pod has ended.
        elif grace != before.get("deletionGracePeriodSeconds") and (grace or NODES_GROUP not in context.user.groups):
            shortened: GraceShortened = {
                "from": before.get("deletionGracePeriodSeconds", 0),
                "to": grace,
                "user": context.user.name,
                "resourceVersion": resource_version_of(pod),
            }
            self._write(kinds.GRACE_SHORTENED, pod, rule, shortened)
        if not grace and (finalizers := meta.get("finalizers")):
            held: HeldByFinalizers = {
                "finalizers": list(finalizers),
                "user": context.user.name,
                "resourceVersion": resource_version_of(pod),
            }
            self._write(kinds.HELD_BY_FINALIZERS, pod, rules.MARK_AS_DELETING, held)

    def evicted(
        self, context: RequestContext, pod: Object, rule: rules.Rule, why: str, budget: "GroundsOfDecision"
    ) -> None:
        """Record that an eviction is granted; its DELETE comes next. `why` says what the budget said."""
        by = context.user.name
        if client := context.user_agent.partition("/")[0]:
            by = f"{client} (user {by})"
        facts: DeletionDecided = {
            "why": f"evicted by {by}: {why}",
            "user": context.user.name,
            "userAgent": context.user_agent,
            **budget,
            "observedResourceVersion": resource_version_of(pod),
            **current_facts(),
        }
        self._recorder.record(kinds.DELETION_DECIDED, pod_uid=uid_of(pod), rule=rule, facts=facts)

    def removed(self, context: RequestContext, resource: Resource, pod: Object) -> None:
        if resource is PODS:
            facts: ObjectRemoved = {"user": context.user.name, "resourceVersion": resource_version_of(pod)}
            self._write(kinds.OBJECT_REMOVED, pod, rules.DELETE, facts)
        elif resource.kind in OWNERS and not pod["metadata"].get("deletionTimestamp"):
            self._owner_deleted(context, resource, pod, rules.DELETE)

    def _owner_written(self, context: RequestContext, resource: Resource, obj: Object, change: "SpecChange") -> None:
        facts: OwnerWritten = {**_about(context, resource, obj), **change}
        self._recorder.record(kinds.OWNER_WRITTEN, facts=facts)

    def _owner_deleted(self, context: RequestContext, resource: Resource, obj: Object, rule: rules.Rule) -> None:
        self._recorder.record(kinds.OWNER_DELETED, rule=rule, facts=_about(context, resource, obj))

    def _write(self, kind: "Kind[Facts]", pod: Object, rule: rules.Rule, facts: "Facts") -> None:
        self._recorder.record(kind, pod_uid=uid_of(pod), rule=rule, facts=facts)


def _about(context: RequestContext, resource: Resource, obj: Object) -> "OwnerDeleted":
    """Which owner of Pods, and whose request."""
    meta = obj["metadata"]
    controller = next((each["uid"] for each in meta.get("ownerReferences") or () if each.get("controller")), "")
    return {
        "ofKind": resource.kind,
        "namespace": namespace_of(obj),
        "name": name_of(obj),
        "uid": uid_of(obj),
        "ownerUid": controller,
        "generation": meta.get("generation", 0),
        "resourceVersion": resource_version_of(obj),
        "user": context.user.name,
        "userAgent": context.user_agent,
        **current_facts(),
    }


def _changes(new: Object, old: Object) -> "SpecChange":
    """Which fields of an owner's spec were written, and the sizes when that is one of them."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    changed = sorted(key for key in {**after, **before} if after.get(key) != before.get(key))
    facts: SpecChange = {"changed": changed}
    if "replicas" in changed:
        facts["from"], facts["to"] = before.get("replicas"), after.get("replicas")
    return facts


def _controller(pod: Object) -> "Owner | None":
    """What owns the Pod and made it: kind, name and uid."""
    for each in pod["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return {"kind": each.get("kind", ""), "name": each.get("name", ""), "uid": each.get("uid", "")}
    return None
