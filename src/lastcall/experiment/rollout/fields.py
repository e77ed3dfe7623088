"""The values of options, and the fields of a workload that experiments change. Pure."""

# check: pure

from typing import Any

DISRUPTIONS = ("rollout", "scale-in", "delete", "drain", "evict")
SOURCES = ("node", "pod", "published", "balancer", "client")
"""What `--disrupt` and `--from` take."""
RESTARTED_AT = ("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
REPLICAS = ("spec", "replicas")


def replicas_after(count: int) -> int:
    """Return what a scale-in leaves: half, and one at least."""
    return max(1, count // 2)


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return the merge patch that sets the field at `path`."""
    for step in reversed(path):
        value = {step: value}
    return dict(value)
