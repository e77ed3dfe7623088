"""Names, addresses and directories of a cluster's nodes. Pure.

The only node of a cluster shares the network namespace of the control plane. Several have one each, joined to that of
the control plane, which routes between them, by a veth pair: cutting it is losing the node.
"""

# check: pure

import re
from collections.abc import Iterable

from lastcall.world.dataclass import dataclass

STATE_DIR = "/lastcall"
"""A tmpfs in the cluster's own mount namespace: image layers, ConfigMaps and Secrets, what processes share."""

DISK_DIR = f"{STATE_DIR}/disk"
"""What containers write, by node, and the directories of claims: on the host's disk, where that can be (`scratch/`)."""

MOST_NODES = 64
"""Each is two processes of some 35 MB together; the addresses would last for 253."""

CONTROL_PLANE_IP = "172.18.0.1"
"""Of the control plane's network namespace. The only node of a cluster has it too, because that namespace is its
own."""
_API_PORT = 6443


_NODE_NAME = re.compile(r"node-([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """The node `number` (from 1) of a cluster that has `of` nodes, or whose last one has the number `of`."""

    number: int
    of: int

    @property
    def name(self) -> str:
        """Return the name of the Node object and of its process."""
        return f"node-{self.number}"

    @property
    def shim(self) -> str:
        """Return the name of its shim's process."""
        return f"shim-{self.number}"

    @property
    def ip(self) -> str:
        return f"172.18.0.{self.number + 1}"

    @property
    def pod_cidr(self) -> str:
        return f"10.244.{self.number - 1}.0/24"

    @property
    def api_server(self) -> tuple[str, int]:
        """Return where its processes reach the API server."""
        return CONTROL_PLANE_IP if self.has_netns else "127.0.0.1", _API_PORT

    @property
    def has_netns(self) -> bool:
        """Return whether its network namespace is its own."""
        return self.of > 1

    @property
    def link(self) -> str:
        """Return the name of the control plane's end of its veth pair; the node's end is eth0."""
        return f"veth-{self.name}"

    @property
    def directory(self) -> str:
        """Return the directory of images, containers, volumes and logs; the first node's is that of an only node."""
        return STATE_DIR if self.number == 1 else f"{STATE_DIR}/{self.name}"

    @property
    def on_disk(self) -> tuple[tuple[str, str], ...]:
        """Return the directories below `DISK_DIR`, and where they are mounted.

        Logs are not among them: the shim writes them, so they are no memory of containers; on disk they would slow each
        start.
        """
        names = ("containers", "empty-dirs")
        return tuple((f"{DISK_DIR}/{self.name}/{name}", f"{self.directory}/{name}") for name in names)

    @property
    def runtime_records(self) -> str:
        """Return the name below `DURABLE_DIR` of the directory with its runtime's records."""
        return "runtime" if self.number == 1 else f"runtime-{self.name}"

    @property
    def shim_socket(self) -> str:
        return f"{STATE_DIR}/{self.shim}.sock"

    @property
    def shim_state(self) -> str:
        return f"{STATE_DIR}/{self.shim}"

    @property
    def shim_journals(self) -> str:
        return f"{self.shim_state}/processes"


def layouts(count: int, numbers: Iterable[int] = ()) -> tuple[NodeLayout, ...]:
    """Return the layouts of a cluster of `count` nodes, or of one with these `numbers`, the first of which is 1."""
    found = sorted(numbers) or range(1, count + 1)
    return tuple(NodeLayout(number, found[-1]) for number in found)


def joining_layout(number: int) -> NodeLayout:
    """Return the layout of a node that joins a running cluster: its network namespace is its own."""
    return NodeLayout(number, max(number, 2))


def number_of(name: str) -> int | None:
    """Return the number of a node by its name, None for what is no name of a node."""
    found = _NODE_NAME.fullmatch(name)
    return int(found[1]) if found is not None and int(found[1]) <= MOST_NODES else None


LOAD = "load"
"""The role that sends requests (`traffic/process.py`), in the first node's network namespace."""


SWEEPER = "sweeper"
"""The role of a child of init that removes the files of a node that has left."""


def looped(names: Iterable[str]) -> list[str]:
    """Return the roles that should have an event loop that turns: all that init forks except shims."""
    return [name for name in names if name not in ("front", "init") and not name.startswith("shim-")]


def roles(of: Iterable[NodeLayout], load: bool = False) -> tuple[str, ...]:
    """Return the processes of a cluster of these nodes, in the order in which the CLI shows them."""
    nodes = (role for each in of for role in (each.shim, each.name))
    return ("front", "init", "control-plane", *nodes, *((LOAD,) if load else ()))
