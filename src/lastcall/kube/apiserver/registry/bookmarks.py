"""The object of a bookmark: a new one of its kind to which nobody has written anything but a version.

Sources: apiserver pkg/storage/cacher/cache_watcher.go:getBookmarkAfterResourceVersionLockedIfNeeded, the conversions of
apps/v1 (pkg/apis/apps/v1/conversion.go), which write pointers that are nil in the internal object.
"""

from typing import Any

from lastcall.kube.api.defaults.workloads import TEMPLATE_GENERATION
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.types import empty, known_types, struct

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_NO_SELECTOR: dict[str, Any] = {"selector": None}
_SPECS = {
    "DaemonSet": _NO_SELECTOR,
    "Deployment": {"replicas": 0, **_NO_SELECTOR},
    "ReplicaSet": {"replicas": 0, **_NO_SELECTOR},
    "StatefulSet": {"replicas": 0, **_NO_SELECTOR},
}
"""What the encoder of apps/v1 finds in an empty spec."""


def bookmark(resource: Resource, revision: int, *, initial_events_end: bool = False) -> Object:
    """Make a bookmark; `initial_events_end`: all that was there when the watch began has been sent."""
    meta: Object = {"resourceVersion": str(revision)}
    if initial_events_end:
        meta["annotations"] = {INITIAL_EVENTS_END: "true"}
    found: Object = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
    if resource.kind == "DaemonSet" and resource.group == "apps":
        meta["annotations"] = {**meta.get("annotations", {}), TEMPLATE_GENERATION: "0"}
    if name := known_types().get(f"{resource.api_version}/{resource.kind}"):
        found = {**found, **empty(struct(name)), "metadata": meta}
        if resource.group == "apps" and resource.kind in _SPECS:
            found["spec"] = {**_SPECS[resource.kind], **found["spec"]}
    return found
