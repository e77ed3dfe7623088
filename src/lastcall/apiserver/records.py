"""Which writes become records of a Pod's story. Called right after the store acknowledged the write."""

from lastcall.api.meta import Object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.api.resources import PODS, Resource
from lastcall.apiserver.auth import NODES_GROUP
from lastcall.apiserver.context import RequestContext
from lastcall.timeline import kinds
from lastcall.timeline.pod_facts import container_facts
from lastcall.timeline.record import Recorder

RULE_CREATE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:Create"
RULE_ASSIGN = "pkg/registry/core/pod/storage/storage.go:assignPod"
RULE_STATUS = "pkg/registry/core/pod/strategy.go:podStatusStrategy.PrepareForUpdate"
RULE_REMOVE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go:Delete"


class WriteRecords:
    """Only Pods have a story; writes of other kinds are left out."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def created(self, context: RequestContext, resource: Resource, pod: Object) -> None:
        if resource is PODS:
            facts: Object = {"namespace": namespace_of(pod), "name": name_of(pod), "user": context.user.name}
            facts["containers"] = container_facts(pod)
            self._write(kinds.POD_CREATED, pod, RULE_CREATE, facts)

    def updated(self, context: RequestContext, resource: Resource, pod: Object, old: Object, subresource: str) -> None:
        if resource is not PODS:
            return
        if subresource == "status":
            status = pod.get("status", {})
            ready = any(
                condition.get("type") == "Ready" and condition.get("status") == "True"
                for condition in status.get("conditions") or []
            )
            facts = {"phase": status.get("phase", ""), "ready": ready, "reason": status.get("reason", "")}
            self._write(kinds.POD_STATUS_WRITTEN, pod, RULE_STATUS, facts)
        elif subresource == "binding":
            self._write(kinds.POD_BOUND, pod, RULE_ASSIGN, {"node": pod.get("spec", {}).get("nodeName", "")})

    def marked(self, context: RequestContext, resource: Resource, pod: Object, old: Object, rule: str) -> None:
        """The first write of a DELETE: the graceful delete is acknowledged, or its grace period became shorter."""
        if resource is not PODS:
            return
        meta, before = pod["metadata"], old["metadata"]
        if before.get("deletionTimestamp") is None:
            facts = {
                "user": context.user.name,
                "userAgent": context.user_agent,
                "gracePeriodSeconds": meta.get("deletionGracePeriodSeconds", 0),
                "deletionTimestamp": meta["deletionTimestamp"],
            }
            self._write(kinds.DELETE_ACCEPTED, pod, rule, facts)
        elif meta.get("deletionGracePeriodSeconds") != before.get("deletionGracePeriodSeconds"):
            if NODES_GROUP in context.user.groups and not meta.get("deletionGracePeriodSeconds"):
                return  # the kubelet's final DELETE shortens nothing: the Pod has ended
            facts = {
                "from": before.get("deletionGracePeriodSeconds", 0),
                "to": meta.get("deletionGracePeriodSeconds", 0),
                "user": context.user.name,
            }
            self._write(kinds.GRACE_SHORTENED, pod, rule, facts)

    def evicted(self, context: RequestContext, pod: Object, rule: str, why: str, facts: Object) -> None:
        """An eviction is granted; its DELETE comes next. `why` says what the budget said."""
        by = context.user.name
        if client := context.user_agent.partition("/")[0]:
            by = f"{by} with {client}"
        more = {"user": context.user.name, "userAgent": context.user_agent, **facts}
        more["observedResourceVersion"] = resource_version_of(pod)
        facts = {"why": f"evicted by {by}: {why}", **more}
        self._recorder.record(kinds.DELETION_DECIDED, pod_uid=uid_of(pod), rule=rule, facts=facts)

    def removed(self, context: RequestContext, resource: Resource, pod: Object) -> None:
        if resource is PODS:
            self._write(kinds.OBJECT_REMOVED, pod, RULE_REMOVE, {"user": context.user.name})

    def _write(self, kind: str, pod: Object, rule: str, facts: Object) -> None:
        facts["resourceVersion"] = resource_version_of(pod)
        self._recorder.record(kind, pod_uid=uid_of(pod), rule=rule, facts=facts)
