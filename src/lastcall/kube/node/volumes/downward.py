"""Downward API: a Pod's own fields as text. Sources: pkg/fieldpath/fieldpath.go, pkg/volume/downwardapi."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import annotations_of, labels_of
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.node.pods.spec import find_container

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import ResourceFieldSelector, ResourceRequirements
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

_SUBSCRIPT = re.compile(r"^metadata\.(labels|annotations)\['(.*)'\]$")


def field_value(pod: Pod, path: str) -> str:
    """Return the text of `fieldRef.fieldPath`. Raises ValueError for an unsupported path."""
    if match := _SUBSCRIPT.match(path):
        source = labels_of(pod) if match.group(1) == "labels" else annotations_of(pod)
        return source.get(match.group(2), "")
    metadata = pod["metadata"]
    status: APIPodStatus = pod.get("status") or {}
    simple = {
        "metadata.name": metadata.get("name", ""),
        "metadata.namespace": metadata.get("namespace", ""),
        "metadata.uid": metadata.get("uid", ""),
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.hostIP": status.get("hostIP", ""),
        "status.podIP": status.get("podIP", ""),
        "status.hostIPs": ",".join(ip["ip"] for ip in status.get("hostIPs") or []),
        "status.podIPs": ",".join(ip["ip"] for ip in status.get("podIPs") or []),
    }
    if path in simple:
        return str(simple[path])
    if path in ("metadata.labels", "metadata.annotations"):
        source = labels_of(pod) if path.endswith("labels") else annotations_of(pod)
        return "\n".join(f"{key}={go_quote(value)}" for key, value in sorted(source.items()))
    raise ValueError(f"unsupported fieldPath: {path}")


def resource_value(pod: Pod, reference: ResourceFieldSelector, allocatable: dict[str, str]) -> str:
    """Return the text of a `resourceFieldRef`: the container's limit or request divided by `divisor`, rounded up.

    A missing limit is the node's allocatable. Raises ValueError.
    """
    name = reference.get("containerName", "")
    container = find_container(pod, name)
    if container is None:
        raise ValueError(f"container {name} not found")
    kind, _, resource = str(reference.get("resource", "")).partition(".")
    if kind not in ("limits", "requests") or not resource:
        raise ValueError(f"unsupported container resource : {reference.get('resource')}")
    resources: ResourceRequirements = container.get("resources") or {}
    amounts = resources.get("limits") if kind == "limits" else resources.get("requests")
    quantity = (amounts or {}).get(resource)
    if quantity is None and kind == "limits":
        quantity = allocatable.get(resource)
    if quantity is None:
        quantity = "0"
    divisor = str(reference.get("divisor") or "1")
    if divisor in ("0", ""):
        divisor = "1"
    return str(math.ceil(parse_quantity(quantity).value / parse_quantity(divisor).value))
