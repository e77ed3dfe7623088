"""What all Pods of a node use together, where the node has a size of its own: read from the control group above them.

The kubelet reads the same: its `allocatableMemory.available` is the limit of `kubepods` less its working set
(pkg/kubelet/eviction/helpers.go:makeSignalObservations).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lastcall.kube.cluster.plan import NodePlan, Plan
from lastcall.kube.cri.cpu_shares import KUBEPODS
from lastcall.kube.cri.sandbox.cgroups.api import Usage
from lastcall.kube.cri.sandbox.cgroups.place import open_cgroups
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.cri.sandbox.cgroups.api import Cgroups

_NOTHING = Usage(0, 0, 0, 0)
"""Of a node that has had no Pod yet, and so no group."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A `NodeUsage`. `limits` are those that are enforced: `cpu` in thousandths, `memory` in bytes."""

    cgroups: "Cgroups"
    limits: Mapping[str, int]

    def memory(self) -> tuple[int, int, int] | None:
        """Return (capacity, usage, working set) in bytes; None if the machine's memory is the node's."""
        if "memory" not in self.limits:
            return None
        used = self._usage()
        return self.limits["memory"], used.memory_bytes, used.working_set_bytes

    def cpu_ns(self) -> int | None:
        """Return the CPU time that was used; None if the machine's processors are the node's."""
        return self._usage().cpu_ns if "cpu" in self.limits else None

    def _usage(self) -> Usage:
        return self.cgroups.usage(KUBEPODS) or _NOTHING


def node_group(plan: Plan, node: NodePlan) -> NodeGroup | None:
    """Return the group of a node, None for one whose size is the machine's or only declared."""
    limits = {name: most for name, most in node.enforceable.items() if name in plan.enforced}
    return NodeGroup(open_cgroups(plan.cgroups_of(node.layout)), limits) if limits else None
