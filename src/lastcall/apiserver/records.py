"""Which writes become records of a Pod's story. Called right after the store acknowledged the write."""

from lastcall.api.meta import Object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.api.resources import (
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
from lastcall.apiserver.auth.authentication import NODES_GROUP
from lastcall.apiserver.wire.context import RequestContext
from lastcall.timeline import kinds
from lastcall.timeline.facts.pod import container_facts, status_problems
from lastcall.timeline.record import Recorder

RULE_EPHEMERAL = "pkg/registry/core/pod/strategy.go:podEphemeralContainersStrategy"
RULE_CREATE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:Create"
RULE_ASSIGN = "pkg/registry/core/pod/storage/storage.go:assignPod"
RULE_STATUS = "pkg/registry/core/pod/strategy.go:podStatusStrategy.PrepareForUpdate"
RULE_HELD = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:markAsDeleting"
RULE_REMOVE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:Delete"


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
            self._owner(kinds.OWNER_WRITTEN, context, resource, pod, {"changed": []})
        elif resource is PODS:
            facts: Object = {"namespace": namespace_of(pod), "name": name_of(pod), "user": context.user.name}
            facts["containers"] = container_facts(pod)
            if owner := _controller(pod):
                facts["owner"] = owner
            self._write(kinds.POD_CREATED, pod, RULE_CREATE, facts)

    def updated(self, context: RequestContext, resource: Resource, pod: Object, old: Object, subresource: str) -> None:
        if resource.kind in OWNERS:
            if subresource != "status" and pod.get("spec") != old.get("spec"):
                self._owner(kinds.OWNER_WRITTEN, context, resource, pod, _changes(pod, old))
            return
        if resource is not PODS:
            return
        if subresource == "status":
            status = pod.get("status", {})
            ready = any(
                condition.get("type") == "Ready" and condition.get("status") == "True"
                for condition in status.get("conditions") or []
            )
            facts = {"phase": status.get("phase", ""), "ready": ready, "reason": status.get("reason", "")}
            facts |= status_problems(status)
            self._write(kinds.POD_STATUS_WRITTEN, pod, RULE_STATUS, facts)
        elif subresource == "ephemeralcontainers":
            known = [each["name"] for each in old["spec"].get("ephemeralContainers") or []]
            added = [each for each in pod["spec"].get("ephemeralContainers") or [] if each["name"] not in known]
            told = [{"name": each["name"], "target": each.get("targetContainerName") or ""} for each in added]
            facts = {"containers": told, "user": context.user.name}
            self._write(kinds.EPHEMERAL_CONTAINERS_ADDED, pod, RULE_EPHEMERAL, facts)
        elif subresource == "binding":
            self._write(kinds.POD_BOUND, pod, RULE_ASSIGN, {"node": pod.get("spec", {}).get("nodeName", "")})

    def marked(self, context: RequestContext, resource: Resource, pod: Object, old: Object, rule: str) -> None:
        """The first write of a DELETE: the graceful delete is acknowledged, or its grace period became shorter."""
        if resource.kind in OWNERS or resource is NAMESPACES:
            if old["metadata"].get("deletionTimestamp") is None:
                self._owner(kinds.OWNER_DELETED, context, resource, pod, {}, rule)
            return
        if resource is not PODS:
            return
        meta, before = pod["metadata"], old["metadata"]
        grace = meta.get("deletionGracePeriodSeconds", 0)
        if before.get("deletionTimestamp") is None:
            facts = {
                "user": context.user.name,
                "userAgent": context.user_agent,
                "gracePeriodSeconds": grace,
                "deletionTimestamp": meta["deletionTimestamp"],
            }
            self._write(kinds.DELETE_ACCEPTED, pod, rule, facts)
        # The kubelet's final DELETE shortens nothing: the Pod has ended.
        elif grace != before.get("deletionGracePeriodSeconds") and (grace or NODES_GROUP not in context.user.groups):
            facts = {
                "from": before.get("deletionGracePeriodSeconds", 0),
                "to": grace,
                "user": context.user.name,
            }
            self._write(kinds.GRACE_SHORTENED, pod, rule, facts)
        if not grace and (finalizers := meta.get("finalizers")):
            facts = {"finalizers": list(finalizers), "user": context.user.name}
            self._write(kinds.HELD_BY_FINALIZERS, pod, RULE_HELD, facts)

    def evicted(self, context: RequestContext, pod: Object, rule: str, why: str, facts: Object) -> None:
        """An eviction is granted; its DELETE comes next. `why` says what the budget said."""
        by = context.user.name
        if client := context.user_agent.partition("/")[0]:
            by = f"{client} (user {by})"
        more = {"user": context.user.name, "userAgent": context.user_agent, **facts}
        more["observedResourceVersion"] = resource_version_of(pod)
        facts = {"why": f"evicted by {by}: {why}", **more}
        self._recorder.record(kinds.DELETION_DECIDED, pod_uid=uid_of(pod), rule=rule, facts=facts)

    def removed(self, context: RequestContext, resource: Resource, pod: Object) -> None:
        if resource is PODS:
            self._write(kinds.OBJECT_REMOVED, pod, RULE_REMOVE, {"user": context.user.name})
        elif resource.kind in OWNERS and not pod["metadata"].get("deletionTimestamp"):
            self._owner(kinds.OWNER_DELETED, context, resource, pod, {}, RULE_REMOVE)

    def _owner(
        self, kind: str, context: RequestContext, resource: Resource, obj: Object, facts: Object, rule: str = ""
    ) -> None:
        meta = obj["metadata"]
        controller = next((each["uid"] for each in meta.get("ownerReferences") or () if each.get("controller")), "")
        about = {
            "ofKind": resource.kind,
            "namespace": namespace_of(obj),
            "name": name_of(obj),
            "uid": uid_of(obj),
            "ownerUid": controller,
            "generation": meta.get("generation", 0),
            "resourceVersion": resource_version_of(obj),
            "user": context.user.name,
            "userAgent": context.user_agent,
        }
        self._recorder.record(kind, rule=rule, facts={**about, **facts})

    def _write(self, kind: str, pod: Object, rule: str, facts: Object) -> None:
        facts["resourceVersion"] = resource_version_of(pod)
        self._recorder.record(kind, pod_uid=uid_of(pod), rule=rule, facts=facts)


def _changes(new: Object, old: Object) -> Object:
    """Which fields of an owner's spec were written, and the sizes when that is one of them."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    changed = sorted(key for key in {**after, **before} if after.get(key) != before.get(key))
    facts: Object = {"changed": changed}
    if "replicas" in changed:
        facts |= {"from": before.get("replicas"), "to": after.get("replicas")}
    return facts


def _controller(pod: Object) -> Object | None:
    """What owns the Pod and made it: kind, name and uid."""
    for each in pod["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return {name: each.get(name) for name in ("kind", "name", "uid")}
    return None
