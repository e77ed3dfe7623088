"""Small questions about a Pod's spec that several parts of the kubelet ask.

Sources: pkg/api/v1/pod/util.go, pkg/kubelet/types/pod_update.go.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.meta import annotations_of
from lastcall.kube.api.pods.spec import QOSClass, qos_class

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, ResourceRequirements
    from lastcall.kube.api.types.pod import Pod, PodSpec
    from lastcall.kube.api.types.scalars import Quantity

TERMINAL_PHASES = ("Succeeded", "Failed")


def containers_of(pod: Pod) -> list[Container]:
    return pod["spec"].get("containers") or []


def init_containers_of(pod: Pod) -> list[Container]:
    return pod["spec"].get("initContainers") or []


def all_containers_of(pod: Pod) -> Iterator[Container]:
    """Yield init, regular, then ephemeral containers."""
    yield from init_containers_of(pod)
    yield from containers_of(pod)
    yield from pod["spec"].get("ephemeralContainers") or []


def find_container(pod: Pod, name: str) -> Container | None:
    return next((c for c in all_containers_of(pod) if c["name"] == name), None)


def is_restartable_init_container(container: Container) -> bool:
    """Return whether it is a native sidecar. Only meaningful for a member of `initContainers`."""
    return bool(container.get("restartPolicy") == "Always")


def is_static_pod(pod: Pod) -> bool:
    """Return whether the Pod came from a file or URL, not from the API server."""
    source = annotations_of(pod).get("kubernetes.io/config.source", "api")
    return source != "api"


def is_mirror_pod(pod: Pod) -> bool:
    return "kubernetes.io/config.mirror" in annotations_of(pod)


def is_host_network_pod(pod: Pod) -> bool:
    return bool(pod["spec"].get("hostNetwork"))


def is_terminal_phase(phase: str | None) -> bool:
    return phase in TERMINAL_PHASES


def image_volumes_of(pod: Pod) -> dict[str, str]:
    """Return the Pod's volumes that are images: name → reference."""
    volumes = pod["spec"].get("volumes") or ()
    return {each["name"]: each["image"].get("reference") or "" for each in volumes if each.get("image") is not None}


def container_field_path(pod: Pod, name: str) -> str:
    """Return `fieldPath` for Events about a container: `spec.containers{web}`. Source: container/ref.go:fieldPath."""
    for field, items in (
        ("spec.containers", containers_of(pod)),
        ("spec.initContainers", init_containers_of(pod)),
        ("spec.ephemeralContainers", pod["spec"].get("ephemeralContainers") or []),
    ):
        if any(c["name"] == name for c in items):
            return f"{field}{{{name}}}"
    return ""


def get_pod_qos(pod: Pod) -> QOSClass:
    """Return Guaranteed, Burstable or BestEffort; a missing request is the limit, as the API's defaulting makes it."""
    spec: PodSpec = {**pod["spec"]}
    field: Literal["initContainers", "containers"]
    for field in ("initContainers", "containers"):
        spec[field] = [_with_default_requests(container) for container in spec.get(field) or []]
    return qos_class({"spec": spec})


def _with_default_requests(container: Container) -> Container:
    resources: ResourceRequirements = container.get("resources") or {}
    limits: dict[str, Quantity] = resources.get("limits") or {}
    return {**container, "resources": {**resources, "requests": {**limits, **(resources.get("requests") or {})}}}
