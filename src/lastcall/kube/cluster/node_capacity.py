"""How large the nodes of a cluster are: what `--node-capacity` says, and what of it this machine does not have. Pure.

Where the control groups are the cluster's own, a size is enforced: the group of all of a node's Pods has the memory and
the CPU time. Elsewhere only the scheduler and the kubelet count with it.
"""

# check: pure

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from lastcall.kube.api.quantity import Quantity, QuantityError, parse_quantity
from lastcall.world.dataclass import dataclass

RESOURCES = ("cpu", "memory", "ephemeral-storage")
ENFORCED = ("cpu", "memory")
"""What control groups enforce. Local storage is counted by the kubelet, everywhere."""

_LEAST = {"cpu": parse_quantity("10m"), "memory": parse_quantity("100Mi"), "ephemeral-storage": parse_quantity("1Mi")}
"""The kernel gives no less CPU time than 1 ms in 100; the kubelet keeps 100Mi of memory free, and evicts below that."""
_EXAMPLE = "cpu=2,memory=4Gi,ephemeral-storage=20Gi"
_UNITS = {"k": 10, "m": 20, "g": 30}


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """`every` has the quantities of all nodes by resource, `nodes` those of single nodes, which come first."""

    every: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, node: str) -> dict[str, str]:
        """Return what is declared of a node; what is not there is the machine's."""
        return {**self.every, **self.nodes.get(node, {})}

    def enforced(self, node: str) -> dict[str, int]:
        """Return what control groups can enforce of it: `cpu` in thousandths, `memory` in bytes."""
        return enforceable(self.of(node))


def enforceable(capacity: Mapping[str, str]) -> dict[str, int]:
    """Return what control groups can enforce of a capacity: `cpu` in thousandths, `memory` in bytes."""
    declared = {name: parse_quantity(text) for name, text in capacity.items() if name in ENFORCED}
    return {name: each.milli if name == "cpu" else each.whole for name, each in declared.items()}


def parse_node_capacity(texts: Sequence[str]) -> NodeCapacity:
    """Return what several `--node-capacity` say: `cpu=2,memory=4Gi`, for one node `node-1:memory=512Mi`.

    Raises ValueError.
    """
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        node, colon, rest = text.partition(":")
        name = node.strip() if colon else ""
        if name in found:
            whose = f"{name} has" if name else "All nodes have"
            where = f"{name}:" if name else ""
            raise ValueError(f"{text!r}: {whose} a size already. Write all of it together: {where}{_EXAMPLE}")
        if colon and not name:
            raise ValueError(f"{text!r} names no node: write node-1:{_EXAMPLE}")
        found[name] = _amounts(rest if colon else text)
    return NodeCapacity(found.pop("", {}), found)


def _amounts(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        resource, equals, amount = (each.strip() for each in part.partition("="))
        if not equals:
            raise ValueError(f"{part.strip()!r} is not RESOURCE=QUANTITY: write {_EXAMPLE}")
        if ":" in resource:
            raise ValueError(f"{part.strip()!r}: one --node-capacity is for one node. Give each node its own")
        if resource not in RESOURCES:
            more = "; use --max-pods for the number of Pods" if resource == "pods" else ""
            raise ValueError(f"{part.strip()!r}: {resource!r} is not a resource of nodes: {', '.join(RESOURCES)}{more}")
        if resource in found:
            raise ValueError(f"{part.strip()!r}: {resource} has a quantity already: {found[resource]}. Give one")
        found[resource] = _amount(resource, amount)
    return found


def _amount(resource: str, text: str) -> str:
    """Return the quantity as Kubernetes writes it. Raises ValueError."""
    examples = "2 or 500m" if resource == "cpu" else "512Mi or 4Gi"
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        raise ValueError(f"{resource}={text}: {text!r} is not a quantity: write {examples}") from None
    least = _LEAST[resource]
    if quantity <= least if resource == "memory" else quantity < least:
        kept = ", which the kubelet keeps free" if resource == "memory" else ""
        word = "more than" if resource == "memory" else "at least"
        raise ValueError(f"{resource}={text} is too little: give {word} {least}{kept}: {examples}")
    step = Fraction(1, 1000) if resource == "cpu" else Fraction(1)
    return str(Quantity(-(-quantity.value // step) * step, quantity.format))


def state_bytes(size: str, memory: int) -> int:
    """Return the bytes of a size as mount(8) takes it (`50%`, `4g`), on a machine of `memory` bytes."""
    if size.endswith("%"):
        return memory * int(size[:-1]) // 100
    return int(size[:-1]) << _UNITS[size[-1].lower()]


def beyond(wanted: NodeCapacity, nodes: Iterable[str], machine: Mapping[str, str]) -> dict[str, str]:
    """Return what is more than the machine has, in words, by resource: `memory=64Gi of node-1, node-2`."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        for resource, text in wanted.of(node).items():
            if parse_quantity(machine[resource]) < parse_quantity(text):
                found.setdefault((resource, text), []).append(node)
    excess: dict[str, str] = {}
    for (resource, text), names in found.items():
        said = f"{resource}={text} of {', '.join(names)}"
        excess[resource] = f"{excess[resource]}, {said}" if resource in excess else said
    return excess


def judge(excess: Mapping[str, str], machine: Mapping[str, str], enforced: Iterable[str]) -> tuple[str, str]:
    """Return (error, note), each "" for none, of what `beyond` found where control groups enforce `enforced`."""
    refused = [resource for resource in excess if resource in enforced]
    if refused:
        first = refused[0]
        return (
            f"--node-capacity {excess[first]}: this machine has {first}={machine[first]}, and its control groups "
            "enforce sizes of nodes. Give at most that",
            "",
        )
    if not excess:
        return "", ""
    has = ", ".join(f"{resource}={machine[resource]}" for resource in excess)
    return "", f"--node-capacity {'; '.join(excess.values())}: declared only, because this machine has {has}"
