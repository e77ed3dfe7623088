"""Whether the nodes that are asked for are larger than this machine."""

from collections.abc import Iterable

from lastcall.kube.cluster.errors import ClusterUsageError
from lastcall.kube.cluster.node_capacity import NodeCapacity, beyond, judge, state_bytes
from lastcall.kube.cluster.plan import Plan
from lastcall.kube.node.capacity import machine_cpus
from lastcall.kube.node.meminfo import read_meminfo


def check_node_sizes(plan: Plan, capacity: NodeCapacity, nodes: Iterable[str]) -> str:
    """Return a note on sizes that are declared only, "" for none. Raises ClusterUsageError for those that cannot be
    enforced, OSError."""
    machine = machine_sizes(plan.options.state_size)
    larger = beyond(capacity, nodes, machine)
    error, note = judge(larger, machine, plan.enforced)
    if error:
        raise ClusterUsageError(error)
    return note


def machine_sizes(state_size: str) -> dict[str, str]:
    """Return what a node has at most, as quantities by resource. Its files have `state_size`. Raises OSError."""
    memory = read_meminfo()["MemTotal"]
    sizes = {"memory": memory, "ephemeral-storage": state_bytes(state_size, memory)}
    return {"cpu": str(machine_cpus()), **{name: f"{size // 1024}Ki" for name, size in sizes.items()}}
