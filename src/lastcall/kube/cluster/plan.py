"""Everything the roles inherit: made by front before the clone, so that nothing has to be sent or written to disk."""

import errno
import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import field
from typing import TYPE_CHECKING, Any, Self

from lastcall.kube.cluster.control.node import node_control_pair
from lastcall.kube.cluster.egress.pair import egress_pair
from lastcall.kube.cluster.errors import ClusterStartError
from lastcall.kube.cluster.health.heartbeat import Heartbeat
from lastcall.kube.cluster.layout import NodeLayout, looped
from lastcall.kube.cluster.node_capacity import ENFORCED, enforceable, state_bytes
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.scratch.directory import Scratch, claim
from lastcall.kube.cluster.scratch.owners import owners_pair
from lastcall.kube.cluster.staying.credentials import Credentials
from lastcall.kube.cluster.user_ids import UserIDBlocks, claim_blocks, own_ids
from lastcall.kube.cri.sandbox.cgroups.place import Place, make_place
from lastcall.kube.node.meminfo import read_meminfo
from lastcall.kube.node.pods.user_ids import UserIDs
from lastcall.records.ring import Ring
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.cluster.runtime.other.runtime import OtherRuntime


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What front made for one node.

    `capacity` has the quantities that are declared of it, by resource. `ids` are the user ids of a node that joined a
    running cluster, None for those of `Plan.user_ids`. `egress_front` and `egress_node` are the two ends of the way out
    (`kube/cluster/egress/pair.py`), `control_front` and `control_node` those of what front asks the node
    (`kube/cluster/control/node.py`).
    """

    layout: NodeLayout
    egress_front: socket.socket
    egress_node: socket.socket
    control_front: socket.socket
    control_node: socket.socket
    capacity: Mapping[str, str] = field(default_factory=dict)
    ids: UserIDBlocks | None = None

    @classmethod
    def make(cls, layout: NodeLayout, capacity: Mapping[str, str], ids: UserIDBlocks | None = None) -> Self:
        return cls(layout, *egress_pair(), *node_control_pair(), capacity, ids)

    @classmethod
    def inside(
        cls, layout: NodeLayout, ends: tuple[socket.socket, socket.socket], capacity: Mapping[str, str],
        ids: UserIDBlocks,
    ) -> Self:  # fmt: skip
        """Return the plan of a node that joins, in init, which has only the node's `ends`: for egress, for control."""
        egress, control = ends
        return cls(layout, egress, egress, control, control, capacity, ids)

    @property
    def joined(self) -> bool:
        """Return whether it joined a running cluster, which may have had Services and NetworkPolicies."""
        return self.ids is not None

    @property
    def enforceable(self) -> dict[str, int]:
        """Return what control groups can enforce of its capacity: `cpu` in thousandths, `memory` in bytes."""
        return enforceable(self.capacity)

    def close_front(self) -> None:
        self.egress_front.close()
        self.control_front.close()

    def close_node(self) -> None:
        self.egress_node.close()
        self.control_node.close()


@dataclass(frozen=True, slots=True)
class Plan:
    """What front made. `rings` and `logs` are per role, `hearts` per role whose event loop init watches.

    `wake_fd` is an eventfd that every ring writer signals.
    `boot_id` is this cluster's, as a machine has one for every boot. `inside_sockets` are the API's listening sockets
    in the cluster's network namespace, opened by init. `cgroups` is where the containers' groups go.
    `user_ids` are for the Pods that have ids of their own.
    `load` are front's and the load generator's ends of what they say to each other, where there is one. `netns` has the
    nodes' network namespaces, opened by init, where they have their own.
    """

    options: ClusterOptions
    credentials: Credentials
    api_socket: socket.socket
    api_port: int
    rings: dict[str, Ring]
    logs: dict[str, int]
    wake_fd: int
    nodes: list[NodePlan]
    hearts: dict[str, Heartbeat] = field(default_factory=dict)
    load: tuple[socket.socket, socket.socket] | None = None
    store_way: tuple[socket.socket, socket.socket] | None = None
    """Front's and the control plane's ends of the way to an etcd outside (`kube/cluster/egress/pair.py`)."""
    other: "OtherRuntime | None" = None
    """The container runtime of `ClusterOptions.container_runtime`."""
    scratch: Scratch | None = None
    """The directory for what containers write, None where no disk can hold it."""
    why_in_memory: str = ""
    """Why no disk can."""
    owners: tuple[socket.socket, socket.socket] | None = None
    """Front's and the shims' ends of the way to mounts for the ids of Pods (`scratch/owners.py`)."""
    boot_id: str = ""
    inside_sockets: list[socket.socket] = field(default_factory=list)
    netns: dict[str, int] = field(default_factory=dict)
    user_ids: UserIDBlocks = field(default_factory=UserIDBlocks)
    cgroups: Place = field(default_factory=lambda: Place("none", {}, "none were asked for"))

    @property
    def ways(self) -> tuple[tuple[socket.socket, socket.socket], ...]:
        """Return front's and the inner ends of all connections that are not a node's."""
        return tuple(each for each in (self.load, self.store_way, self.owners) if each is not None)

    def cgroups_of(self, layout: NodeLayout) -> dict[str, Any]:
        """Return where the control groups of a node are.

        Each of several nodes has a `kubepods` of its own, whose shares follow from its own Pods.
        """
        return {**self.cgroups.facts(), "node": layout.name if layout.has_netns else ""}

    def user_ids_of(self, node: NodePlan) -> UserIDs:
        """Return the ids of Pods with a user namespace; the node's process asks for them."""
        if node.ids is not None:
            return node.ids.of_joined()
        return self.user_ids.of_node(node.layout.number, node.layout.of)

    def claims_in_memory(self) -> bool:
        """Return True if Pods may have ids for which claims on the disk cannot be mounted. Init asks."""
        return self.scratch is not None and not self.scratch.maps_owners and own_ids(1, 1).pods > 0

    @property
    def enforced(self) -> tuple[str, ...]:
        """Return the resources for which our control groups hold a node to its size."""
        if self.other is not None or self.cgroups.mode == "none":
            return ()
        return tuple(each for each in self.cgroups.controllers() if each in ENFORCED)


def make_plan(options: ClusterOptions, credentials: Credentials, api_port: int = 0) -> Plan:
    """Open the listening socket on 127.0.0.1 and make the rings. Raises OSError.

    `api_port` is taken when it is free, else (and for 0) another one.
    """
    with ExitStack() as undo:
        api_socket = undo.enter_context(_listen(api_port))
        wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        nodes, names = options.layouts, options.roles
        boot_id = World().new_uid()
        if (other := _other_runtime(options, boot_id, nodes[0])) is not None:
            undo.callback(other.end)
        user_ids = claim_blocks(nodes[-1].of, options.max_pods)
        undo.callback(user_ids.release)
        scratch, why_in_memory = _scratch(options, boot_id, user_ids)
        if scratch is not None:
            undo.callback(scratch.remove)
        plan = Plan(
            options=options,
            credentials=credentials,
            api_socket=api_socket,
            api_port=api_socket.getsockname()[1],
            rings={role: Ring.create(f"lastcall-{role}", wake_fd) for role in names},
            logs={role: os.memfd_create(f"lastcall-log-{role}", os.MFD_CLOEXEC) for role in names if role != "front"},
            wake_fd=wake_fd,
            hearts={role: Heartbeat(role) for role in looped(names)},
            other=other,
            boot_id=boot_id,
            cgroups=make_place(options.name),
            user_ids=user_ids,
            scratch=scratch,
            why_in_memory=why_in_memory,
            owners=owners_pair() if scratch is not None and scratch.maps_owners else None,
            nodes=[NodePlan.make(each, options.node_capacity.of(each.name)) for each in nodes],
            load=socket.socketpair() if options.load else None,
            store_way=egress_pair() if options.etcd is not None else None,
        )
        undo.pop_all()
    return plan


def _scratch(options: ClusterOptions, boot_id: str, user_ids: UserIDBlocks) -> tuple[Scratch | None, str]:
    """Pods that have ids of their own by default need files that can be mounted for them."""
    if options.container_runtime:
        return None, ""
    size = state_bytes(options.state_size, read_meminfo()["MemTotal"])
    return claim(boot_id, size, mapped=user_ids.pods > 0)


def _other_runtime(options: ClusterOptions, boot_id: str, node: NodeLayout) -> "OtherRuntime | None":
    if not options.container_runtime:
        return None
    # late: only with a container runtime outside
    from lastcall.kube.cluster.runtime.other.runtime import OtherRuntime

    try:
        return OtherRuntime.make(options, boot_id, node)
    except OSError as error:
        raise ClusterStartError(str(error)) from error


def _listen(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Also for the next time: connections of a server that had the port before may still be in TIME_WAIT, and then
        # both sockets need the option.
        if port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.listen(1024)
    except OSError as error:
        sock.close()
        if port and error.errno in (errno.EADDRINUSE, errno.EACCES):
            return _listen(0)
        raise
    return sock
