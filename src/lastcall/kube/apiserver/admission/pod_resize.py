"""Whether a Pod's node can do what a write of the Pod's spec asks of it. Pure.

Sources: plugin/pkg/admission/nodedeclaredfeatures/admission.go, plugin/pkg/admission/podresize/admission.go (1.36).
"""

from lastcall.kube.api.errors import forbidden
from lastcall.kube.api.meta import Object, labels_of, name_of
from lastcall.kube.api.pods.spec import is_restartable_init
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.resource_lists import pod_requests
from lastcall.kube.api.resources import PODS

POD_LEVEL_RESIZE = "InPlacePodLevelResourcesVerticalScaling"
INIT_CONTAINERS_RESIZE = "InPlacePodVerticalScalingInitContainers"
"""What a node declares that it can do (`status.declaredFeatures`)."""


def needed_features(new: Object, old: Object) -> list[str]:
    """Return the features that a node must have declared for this change of a spec. (`InferForPodUpdate`)"""
    needed = []
    if (new.get("resources") or {}) != (old.get("resources") or {}):
        needed.append(POD_LEVEL_RESIZE)
    before = old.get("initContainers") or []
    for container, was in zip(new.get("initContainers") or (), before, strict=False):
        if not is_restartable_init(was) and (container.get("resources") or {}) != (was.get("resources") or {}):
            needed.append(INIT_CONTAINERS_RESIZE)
            break
    return needed


def check(new: Object, old: Object, node: Object | None, subresource: str) -> None:
    """Raise the 403 StatusError of a resize. `node` is that of the Pod, None when there is no such object."""
    needed = needed_features(new["spec"], old["spec"])
    if not needed and subresource != "resize":
        return
    pod, name = name_of(new), new["spec"]["nodeName"]
    if node is None:
        raise forbidden(PODS, pod, f'node "{name}" not found')
    declared = (node.get("status") or {}).get("declaredFeatures") or ()
    if missing := [feature for feature in needed if feature not in declared]:
        why = f'pod update requires features {", ".join(missing)} which are not available on node "{name}"'
        raise forbidden(PODS, pod, why)
    if subresource == "resize":
        _check_node(pod, new, node)


def _check_node(pod: str, new: Object, node: Object) -> None:
    system = labels_of(node).get("kubernetes.io/os", "linux")
    if system != "linux":
        why = f'pod resize is only supported on linux nodes, node "{name_of(node)}" is "{system}"'
        raise forbidden(PODS, pod, why, [{"reason": "UnsupportedPlatform"}])
    requests = pod_requests(new["spec"])
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    beyond = []
    for resource in ("cpu", "memory"):
        wanted = requests.get(resource)
        most = parse_quantity(allocatable.get(resource, "0"))
        if wanted is not None and most < wanted:
            asked, there = (wanted.milli, most.milli) if resource == "cpu" else (wanted.whole, most.whole)
            beyond.append(f"{resource}, requested: {asked}, allocatable: {there}")
    if beyond:
        why = f"node didn't have enough allocatable resources: {'; '.join(beyond)}"
        raise forbidden(PODS, pod, why, [{"reason": "NodeCapacity"}])
