"""Static Pods among one another, and the mirrors that stand for them in the API. Pure.

Source: pkg/kubelet/config/config.go:filterInvalidPods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import copy_object, name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod

CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SEEN = "kubernetes.io/config.seen"
CONFIG_MIRROR = "kubernetes.io/config.mirror"

MAX_BYTES = 1 << 20
"""Of one file. The kubelet takes 10 MiB; no Pod that the API server would mirror is greater than this."""


class ManifestError(ValueError):
    """The file is not a static Pod; the text says why."""


def without_duplicates(pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Return (the first Pod of each name, the others), in the order given (config.go:filterInvalidPods)."""
    names: dict[tuple[str, str], None] = {}
    kept: list[Pod] = []
    dropped: list[Pod] = []
    for pod in pods:
        key = (namespace_of(pod), name_of(pod))
        (dropped if key in names else kept).append(pod)
        names[key] = None
    return kept, dropped


def duplicate_message(pod: Pod) -> str:
    """Return the message of the Event FailedValidation."""
    name, namespace = name_of(pod), namespace_of(pod)
    reference = f"{name}_{namespace}({uid_of(pod)})"
    return f'Error validating pod {reference} from file due to duplicate pod name "{name}_{namespace}", ignoring'


def mirror_pod(pod: Pod, node: Node) -> Pod:
    """Return the API object of a static Pod (pod/mirror_client.go:CreateMirrorPod). `node` is its owner."""
    mirror = copy_object(pod)
    metadata = mirror["metadata"]
    metadata.pop("uid", None)
    metadata["annotations"] = {**metadata["annotations"], CONFIG_MIRROR: metadata["annotations"][CONFIG_HASH]}
    metadata["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "name": node["metadata"]["name"],
            "uid": uid_of(node),
            "controller": True,
        }
    ]
    mirror.pop("status", None)
    return mirror


def is_mirror_of(mirror: Pod, pod: Pod) -> bool:
    """Return whether the mirror was made of this very static Pod (pod/mirror_client.go:IsMirrorPodOf)."""
    if (namespace_of(mirror), name_of(mirror)) != (namespace_of(pod), name_of(pod)):
        return False
    made_of = (mirror["metadata"].get("annotations") or {}).get(CONFIG_MIRROR)
    return bool(made_of) and made_of == (pod["metadata"].get("annotations") or {}).get(CONFIG_HASH)
