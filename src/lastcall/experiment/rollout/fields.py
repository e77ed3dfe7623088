"""The fields of a workload that experiments change. Pure."""

# check: pure

from typing import Any

from lastcall.kube.api import Resource

RESTARTED_AT = ("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
REPLICAS = ("spec", "replicas")


def is_custom(resource: Resource) -> bool:
    """Return True for a kind that is not Kubernetes's own: its group is somebody's domain."""
    return "." in resource.group and not resource.group.endswith(".k8s.io")


def replicas_after(count: int) -> int:
    """Return what a scale-in leaves: half, and one at least."""
    return max(1, count // 2)


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return the merge patch that sets the field at `path`."""
    for step in reversed(path):
        value = {step: value}
    return dict(value)
