"""Pods (pkg/registry/core/pod/strategy.go)."""

from lastcall.api import pods
from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.apiserver.deletion import DeleteRules, check_graceful_delete_pod
from lastcall.apiserver.strategies.base import Strategy


class PodStrategy(Strategy):
    returns_deleted_object = True
    tracks_generation = True

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        self.delete_rules = DeleteRules(resource.kind, resource.group, check_graceful_delete_pod)

    def prepare_for_create(self, obj: Object) -> None:
        """A new Pod is Pending whatever its manifest says; gates are a condition (applySchedulingGatedCondition)."""
        obj["status"] = {"phase": "Pending", "qosClass": pods.qos_class(obj)}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": obj["metadata"]["creationTimestamp"],
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if subresource == "status":
            self.keep(new["metadata"], old["metadata"], "ownerReferences", "deletionTimestamp")
            # The quality of service class is decided once, at creation.
            if "qosClass" in old.get("status", {}):
                new.setdefault("status", {})["qosClass"] = old["status"]["qosClass"]
