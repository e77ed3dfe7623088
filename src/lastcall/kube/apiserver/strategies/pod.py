"""Pods (pkg/registry/core/pod/strategy.go)."""

from collections.abc import Iterator

from lastcall.kube.api.errors import resource_not_found
from lastcall.kube.api.features.gates import EPHEMERAL_CONTAINERS, IN_PLACE_POD_VERTICAL_SCALING, FeatureGates
from lastcall.kube.api.meta import Object, is_terminating
from lastcall.kube.api.pods import spec as pods
from lastcall.kube.api.pods.resize import resized
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.deletion import DeleteRules, check_graceful_delete_pod
from lastcall.kube.apiserver.strategies.base import Strategy, Undo, nothing
from lastcall.kube.apiserver.wire.context import RequestContext

_GATED = {"ephemeralcontainers": EPHEMERAL_CONTAINERS, "resize": IN_PLACE_POD_VERTICAL_SCALING}
"""Subresources that change a Pod's spec, and what switches them on."""


def _debugged(stored: Object, wanted: Object) -> Object:
    """The stored spec with the ephemeral containers that a request wants."""
    spec = {key: value for key, value in stored.items() if key != "ephemeralContainers"}
    if wanted.get("ephemeralContainers"):
        spec["ephemeralContainers"] = wanted["ephemeralContainers"]
    return spec


class PodsOfNodes:
    """Which Pods nodes have, by node, namespace and name.

    Entered before the write and taken out after it: it may name a Pod that is not there (any more, or yet), and never
    leaves one out. `known`: what was stored before this process has been entered, too.
    """

    def __init__(self) -> None:
        self.known = False
        self._uids: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {}

    def newest(self, node: str, namespace: str) -> Iterator[str]:
        """Return the names of its Pods, the last first: a kubelet asks about those. Do not write meanwhile."""
        return reversed(self._uids.get(node, {}).get(namespace, {}))

    def add(self, pod: Object) -> None:
        meta, node = pod["metadata"], pod["spec"].get("nodeName")
        if node:
            pods = self._uids.setdefault(node, {}).setdefault(meta["namespace"], {})
            # Of one name two may be on their way: one is refused then.
            pods[meta["name"]] = (*pods.get(meta["name"], ()), meta["uid"])

    def discard(self, pod: Object) -> None:
        meta, namespaces = pod["metadata"], self._uids.get(pod["spec"].get("nodeName") or "", {})
        pods = namespaces.get(meta["namespace"], {})
        left = tuple(uid for uid in pods.pop(meta["name"], ()) if uid != meta["uid"])
        if left:
            pods[meta["name"]] = left
        elif not pods:
            namespaces.pop(meta["namespace"], None)


class PodStrategy(Strategy):
    returns_deleted_object = True
    tracks_generation = True
    defaults_in_spec = True
    trigger_field = "spec.nodeName"

    @staticmethod
    def trigger_of(obj: Object) -> str:
        return obj["spec"].get("nodeName") or ""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        self.of_nodes = PodsOfNodes()
        self.delete_rules = DeleteRules(resource.kind, resource.group, check_graceful_delete_pod)

    def check_write(self, subresource: str, gates: FeatureGates) -> None:
        gate = _GATED.get(subresource)
        if gate is None:
            super().check_write(subresource, gates)
        elif not gates.enabled(gate):
            raise resource_not_found()

    def prepare_for_create(self, obj: Object) -> None:
        """Make a new Pod Pending whatever its manifest says; gates are a condition (applySchedulingGatedCondition)."""
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
        if subresource in _GATED:
            # Whatever else the request says is not heard (dropNonEphemeralContainerUpdates, dropNonResizeUpdates).
            wanted = new.get("spec") or {}
            heard = ("resourceVersion", "managedFields")
            self.keep(new, old, *(key for key in {**old, **new} if key != "metadata"))
            kept = {key: new["metadata"][key] for key in heard if key in new["metadata"]}
            new["metadata"] = {**{key: value for key, value in old["metadata"].items() if key not in heard}, **kept}
            new["spec"] = resized(old["spec"], wanted) if subresource == "resize" else _debugged(old["spec"], wanted)
            return
        super().prepare_for_update(new, old, subresource)
        if subresource == "status":
            self.keep(new["metadata"], old["metadata"], "ownerReferences", "deletionTimestamp")
            # The quality of service class is decided once, at creation; a write with another is refused.
            if "qosClass" in old.get("status", {}) and not new.setdefault("status", {}).get("qosClass"):
                new["status"]["qosClass"] = old["status"]["qosClass"]

    def begin_create(self, obj: Object, context: RequestContext) -> Undo:
        self.of_nodes.add(obj)
        return lambda: self.of_nodes.discard(obj)

    def begin_update(self, new: Object, old: Object, context: RequestContext) -> Undo:
        if new["spec"].get("nodeName") == old["spec"].get("nodeName"):
            return nothing
        self.of_nodes.add(new)
        return lambda: self.of_nodes.discard(new)

    def after_delete(self, obj: Object) -> None:
        self.of_nodes.discard(obj)

    def acts_on_mark(self, old: Object) -> bool:
        """Return whether a Pod runs: its endpoint turns terminating before it goes (golden recording force-delete)."""
        return bool(old["spec"].get("nodeName")) and not pods.is_pod_terminal(old) and not is_terminating(old)
