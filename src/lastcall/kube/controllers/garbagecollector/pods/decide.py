"""Which Pods nobody will end any more. Pure.

Source: pkg/controller/podgc/gc_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, name_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.scheduling import OUT_OF_SERVICE
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod

PERIOD_SECONDS = 20.0
QUARANTINE_SECONDS = 40.0
"""How long a node is missing before its Pods are given up."""
TERMINATED_POD_THRESHOLD = 12500


def is_pod_terminated(pod: Pod) -> bool:
    """Return True if a Pod has succeeded or failed. (`isPodTerminated`)"""
    phase = (pod.get("status") or {}).get("phase") or ""
    return phase not in ("Pending", "Running", "Unknown", "")


def is_unscheduled_terminating(pod: Pod) -> bool:
    return is_terminating(pod) and not (pod.get("spec") or {}).get("nodeName")


def excess_terminated(pods: Sequence[Pod], threshold: int) -> list[Pod]:
    """Return the terminated Pods above `threshold` (0 keeps all): those evicted by the kubelet first, then the oldest.

    (`gcTerminated`, byEvictionAndCreationTimestamp)
    """
    excess = len(pods) - threshold
    if threshold <= 0 or excess <= 0:
        return []
    return sorted(pods, key=_by_eviction_and_creation)[:excess]


def _by_eviction_and_creation(pod: Pod) -> tuple[bool, str, str]:
    status = pod.get("status") or {}
    evicted = status.get("phase") == "Failed" and status.get("reason") == "Evicted"
    return not evicted, pod["metadata"].get("creationTimestamp") or "", name_of(pod)


def is_out_of_service(node: Node) -> bool:
    """Return whether a node is not Ready and its taint says that it is off for good. (`gcTerminating`)"""
    ready = get_condition(node.get("status") or {}, "Ready")
    if ready is not None and ready.get("status") == "True":
        return False
    return any(taint.get("key") == OUT_OF_SERVICE for taint in (node.get("spec") or {}).get("taints") or ())


@dataclass(slots=True)
class Quarantine:
    """Since when nodes are missing, by name, in seconds of any clock."""

    since: dict[str, float] = field(default_factory=dict)

    def look(self, missing: Iterable[str], now: float) -> list[str]:
        """Return the nodes that have been missing for `QUARANTINE_SECONDS`; a node that is back is forgotten."""
        names = list(missing)
        self.since = {name: self.since.get(name, now) for name in names}
        return [name for name in names if now - self.since[name] >= QUARANTINE_SECONDS]
