"""Pods (pkg/registry/core/pod/strategy.go)."""

from typing import ClassVar

from lastcall.api import pods
from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.apiserver.deletion import DeleteRules, check_graceful_delete_pod
from lastcall.apiserver.strategies.base import FieldLabels, Strategy


def _pod_ips(pod: Object) -> str:
    return ",".join(entry.get("ip", "") for entry in pod.get("status", {}).get("podIPs") or [])


class PodStrategy(Strategy):
    returns_deleted_object = True
    tracks_generation = True
    field_labels: ClassVar[FieldLabels] = {
        "spec.nodeName": lambda pod: pod.get("spec", {}).get("nodeName", ""),
        "spec.host": lambda pod: pod.get("spec", {}).get("nodeName", ""),
        "spec.restartPolicy": lambda pod: pod.get("spec", {}).get("restartPolicy", ""),
        "spec.schedulerName": lambda pod: pod.get("spec", {}).get("schedulerName", ""),
        "spec.serviceAccountName": lambda pod: pod.get("spec", {}).get("serviceAccountName", ""),
        "spec.hostNetwork": lambda pod: "true" if pod.get("spec", {}).get("hostNetwork") else "false",
        "status.phase": lambda pod: pod.get("status", {}).get("phase", ""),
        "status.podIP": lambda pod: pod.get("status", {}).get("podIP", ""),
        "status.podIPs": _pod_ips,
        "status.nominatedNodeName": lambda pod: pod.get("status", {}).get("nominatedNodeName", ""),
    }

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
