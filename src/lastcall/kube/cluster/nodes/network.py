"""The network namespaces of several nodes, and the veth pairs that join them to the control plane's. In init.

Routed, as Pods are (`kube/cri/sandbox/network.py`): no bridge, and neighbour entries that never expire, so no packet
waits for ARP. The control plane's namespace is the router between the nodes.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from lastcall.kube.cluster.layout import CONTROL_PLANE_IP, NodeLayout
from lastcall.world import linux, netlink

_FIRST_INDEX = 100
"""Link indices of the control plane's ends; a fresh namespace has few links of its own."""
_NODE_INDEX = 50
"""Of every node's eth0."""
_SYSCTLS = {"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0"}


def make_node_networks(nodes: Iterable[NodeLayout], addresses: Iterable[str]) -> dict[str, int]:
    """Make a network namespace for each node, joined to this one, which gets `addresses`, too; return node → fd.

    The caller must have one thread only: it visits the namespaces. Raises OSError.
    """
    for name, value in _SYSCTLS.items():
        write_sysctl(f"/proc/sys/net/ipv4/{name}", value)
    with netlink.NetlinkSocket() as here:
        own = (CONTROL_PLANE_IP, *addresses)
        here.transact([netlink.new_address(netlink.LOOPBACK_INDEX, each) for each in own])
        return {each.name: _make(here, each) for each in nodes}


def join_network(node: NodeLayout) -> int:
    """Return the fd of the network namespace of one node more, joined to this one, which is a router already.

    Raises OSError; nothing stays behind then.
    """
    with netlink.NetlinkSocket() as here:
        return _make(here, node)


def leave_network(node: NodeLayout) -> None:
    """Remove the node's link, and with it its routes. Raises OSError."""
    with netlink.NetlinkSocket() as here:
        here.transact([netlink.delete_link(_index(node))])


def connect(node: NodeLayout) -> None:
    """Connect the node: open the control plane's end of its link, set what the kernel forgot. Raises OSError."""
    with netlink.NetlinkSocket() as here:
        here.transact(_ways_to(node))


def disconnect(node: NodeLayout) -> None:
    """Disconnect the node, as pulling its cable would. Raises OSError."""
    with netlink.NetlinkSocket() as here:
        here.transact([netlink.link_down(_index(node))])


def _make(here: netlink.NetlinkSocket, node: NodeLayout) -> int:
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        linux.unshare(linux.CLONE_NEWNET)
        netns = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        there = netlink.NetlinkSocket()
        linux.setns(back, linux.CLONE_NEWNET)
    finally:
        os.close(back)
    try:
        _link(here, there, node, netns)
    except BaseException:
        os.close(netns)
        raise
    return netns


def _link(here: netlink.NetlinkSocket, there: netlink.NetlinkSocket, node: NodeLayout, netns: int) -> None:
    ends = (node.link, _index(node), _address(CONTROL_PLANE_IP), "eth0", _NODE_INDEX, _address(node.ip))
    with there:
        here.transact([netlink.new_veth(*ends, netns)])
        there.transact(
            [
                netlink.link_up(netlink.LOOPBACK_INDEX),
                netlink.new_address(netlink.LOOPBACK_INDEX, node.ip),
                netlink.link_up(_NODE_INDEX),
                netlink.new_link_route(CONTROL_PLANE_IP, _NODE_INDEX, node.ip),
                netlink.new_neighbour(CONTROL_PLANE_IP, _NODE_INDEX, _address(CONTROL_PLANE_IP)),
                netlink.new_gateway_route("0.0.0.0/0", CONTROL_PLANE_IP, _NODE_INDEX, node.ip),
            ]
        )
    here.transact(_ways_to(node))


def _ways_to(node: NodeLayout) -> list[netlink.Message]:
    index = _index(node)
    return [
        netlink.link_up(index),
        netlink.new_neighbour(node.ip, index, _address(node.ip)),
        netlink.new_link_route(node.ip, index, CONTROL_PLANE_IP),
        netlink.new_gateway_route(node.pod_cidr, node.ip, index, CONTROL_PLANE_IP),
    ]


def _index(node: NodeLayout) -> int:
    return _FIRST_INDEX + node.number


def _address(ip: str) -> bytes:
    """A locally administered hardware address made of the IP."""
    return bytes([0x02, 0x01, *(int(part) for part in ip.split("."))])


def write_sysctl(path: str, value: str) -> None:
    """Write a sysctl. Raises OSError, unless the value is there already."""
    try:
        Path(path).write_text(value)
    except OSError:
        # /proc/sys may be read-only (in Docker). What already has the value needs no writing.
        with suppress(OSError):
            if Path(path).read_text().strip() == value:
                return
        raise
