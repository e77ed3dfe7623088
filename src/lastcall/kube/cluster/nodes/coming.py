"""A node that joins a running cluster, and one that leaves it. In init, which forks what becomes of it.

What front makes for the nodes of the start before the clone, it hands in here as descriptors (`control/channel.py`).
"""

# check: starts processes because it removes what a node leaves in a fork that ends with it

import os
import signal
from contextlib import ExitStack, suppress
from dataclasses import field
from socket import socket

from lastcall.kube.cluster.control.channel import JOIN_FDS, Join
from lastcall.kube.cluster.health.heartbeat import Heartbeat
from lastcall.kube.cluster.layout import DISK_DIR, SWEEPER, NodeLayout, joining_layout
from lastcall.kube.cluster.nodes.network import join_network, leave_network
from lastcall.kube.cluster.options import DURABLE_DIR
from lastcall.kube.cluster.plan import NodePlan, Plan
from lastcall.kube.cluster.root import make_directories
from lastcall.kube.cluster.staying.credentials import Identity, Issuing
from lastcall.kube.cluster.user_ids import UserIDBlocks
from lastcall.kube.node.volumes.orphans import unmount_below
from lastcall.records.ring import Ring
from lastcall.world import linux
from lastcall.world.dataclass import dataclass
from lastcall.world.messages import WrongMessage
from lastcall.world.remove_tree import remove_tree


def join(plan: Plan, asked: Join, fds: tuple[int, ...]) -> NodePlan:
    """Add the node to the plan, with its keys, directories and network. The descriptors belong to the plan then.

    Raises OSError, ValueError and WrongMessage, with nothing left of it.
    """
    with ExitStack() as undo:
        for fd in fds:
            undo.callback(_close, fd)
        if len(fds) != len(JOIN_FDS):
            raise WrongMessage(f"join needs {len(JOIN_FDS)} descriptors: {', '.join(JOIN_FDS)}")
        layout = joining_layout(asked.number)
        if layout.name in {each.layout.name for each in plan.nodes}:
            raise WrongMessage(f"there is a node {layout.name!r} already")
        shim_ring, shim_log, node_ring, node_log, egress, control = fds
        _issue(plan, layout)
        undo.callback(_forget, plan, layout)
        undo.callback(_remove_files, layout)
        make_directories(layout)
        plan.netns[layout.name] = join_network(layout)
        plan.rings[layout.shim] = Ring(shim_ring, plan.wake_fd)
        plan.rings[layout.name] = Ring(node_ring, plan.wake_fd)
        plan.logs[layout.shim], plan.logs[layout.name] = shim_log, node_log
        plan.hearts[layout.name] = Heartbeat(layout.name)
        ids = UserIDBlocks(asked.first_id, asked.id_ranges)
        node = NodePlan.inside(layout, (socket(fileno=egress), socket(fileno=control)), asked.capacity, ids)
        plan.nodes.append(node)
        undo.pop_all()
    return node


def part(plan: Plan, node: NodePlan) -> None:
    """Remove the node, whose processes have ended, from the plan, with what is left of its network and groups."""
    with suppress(OSError):
        leave_network(node.layout)
    plan.cgroups.remove_node(node.layout.name)
    node.close_node()
    for role in (node.layout.shim, node.layout.name):
        if (ring := plan.rings.get(role)) is not None:
            ring.close()
            _close(ring.fd)
        _close(plan.logs.get(role, -1))
    _forget(plan, node.layout)
    plan.nodes.remove(node)


@dataclass(slots=True)
class Leaving:
    """A node that was asked to leave. `calls` are the numbers of those who wait for it."""

    node: NodePlan
    calls: list[object] = field(default_factory=list)
    _sweeper: int = 0

    def sweep(self, plan: Plan, children: dict[int, str]) -> bool:
        """Remove what the node's processes left, some of it in a child of this process; return True when it is done."""
        if not self._sweeper:
            part(plan, self.node)
            self._sweeper = _fork_sweeper(self.node.layout)
            children[self._sweeper] = SWEEPER
        return self._sweeper not in children


def _issue(plan: Plan, layout: NodeLayout) -> None:
    own = plan.credentials
    identity = Identity(own.ca_certificate, own.ca_key, own.service_account_key, own.admin_token)
    issued = Issuing(identity, (layout,)).result()
    own.kubelet_server.update(issued.kubelet_server)
    own.kubelet_client.update(issued.kubelet_client)


def _forget(plan: Plan, layout: NodeLayout) -> None:
    plan.credentials.kubelet_server.pop(layout.name, None)
    plan.credentials.kubelet_client.pop(layout.name, None)
    _close(plan.netns.pop(layout.name, -1))
    if (heart := plan.hearts.pop(layout.name, None)) is not None:
        _close(heart.stack_fd)
    for role in (layout.shim, layout.name):
        plan.rings.pop(role, None)
        plan.logs.pop(role, None)


def _fork_sweeper(layout: NodeLayout) -> int:
    """A node may leave many files, and this process has others to wait for. Return its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            linux.set_parent_death_signal(signal.SIGKILL)
            _remove_files(layout)
        finally:
            os._exit(0)
    return pid


def _remove_files(layout: NodeLayout) -> None:
    """Remove the node's directories, but none in which something is mounted still: that may be another program's."""
    runtime = f"{DURABLE_DIR}/{layout.runtime_records}"
    for path in (layout.shim_state, layout.directory, f"{DISK_DIR}/{layout.name}", runtime, f"{runtime}-cni"):
        with suppress(OSError):
            unmount_below(path)
            remove_tree(path)
    with suppress(OSError):
        os.unlink(layout.shim_socket)


def _close(fd: int) -> None:
    if fd >= 0:
        with suppress(OSError):
            os.close(fd)
