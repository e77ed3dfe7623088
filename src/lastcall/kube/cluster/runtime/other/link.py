"""The veth pair between the runtime's network namespace, where its Pods are, and the cluster's, where Services are.

The runtime's end is the node: 172.18.0.2, on which the kubelet listens. Routes lead from there to the Services and to
the API server, and back from the cluster to whatever the runtime's network plugin connects. Both ends and all routes go
with the cluster's namespace, whatever becomes of its processes.
"""

import errno
import os
import select
import socket

from lastcall.kube.cluster.layout import CONTROL_PLANE_IP, NodeLayout
from lastcall.kube.cluster.nodes.network import write_sysctl
from lastcall.kube.cluster.options import (
    CLUSTER_DNS_IP,
    KUBELET_PORT,
    KUBERNETES_SERVICE_IP,
    LOAD_BALANCER_CIDR,
    SERVICE_CIDR,
)
from lastcall.world import netlink

NAME = "lastcall-node"
_INSIDE_INDEX = 50
_INDICES = range(20_000, 20_100)
"""Of the runtime's end: the kernel counts links from 1 on."""
TRIES = 50
PAUSE_SECONDS = 0.1
"""The link of a cluster that has just ended goes a moment later."""
_SYSCTLS = {"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0"}


def kubelet_socket(node: NodeLayout) -> socket.socket:
    """Listen on the node's address, which comes later. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_IP, 15, 1)  # IP_FREEBIND
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((node.ip, KUBELET_PORT))
        sock.listen(1024)
    except OSError:
        sock.close()
        raise
    return sock


def connect(init_pid: int, node: NodeLayout) -> int:
    """Make the pair; this process is in the runtime's namespace. Return the index of the end here. Raises OSError.

    The end inside is down until `join`.
    """
    netns = os.open(f"/proc/{init_pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with netlink.NetlinkSocket() as here:
            index = _make(here, node, netns)
            here.transact(
                [
                    netlink.new_address(index, node.ip),
                    netlink.new_neighbour(CONTROL_PLANE_IP, index, _hardware(CONTROL_PLANE_IP)),
                    netlink.new_link_route(CONTROL_PLANE_IP, index, node.ip),
                    *(
                        netlink.new_gateway_route(network, CONTROL_PLANE_IP, index, node.ip)
                        for network in (SERVICE_CIDR, LOAD_BALANCER_CIDR)
                    ),
                ]
            )
    finally:
        os.close(netns)
    return index


def _make(here: netlink.NetlinkSocket, node: NodeLayout, netns: int) -> int:
    tries = TRIES
    indices = iter(_INDICES)
    index = next(indices)
    while True:
        ends = (NAME, index, _hardware(node.ip), "eth0", _INSIDE_INDEX, _hardware(CONTROL_PLANE_IP))
        try:
            here.transact([netlink.new_veth(*ends, netns)])
            return index
        except netlink.NetlinkError as error:
            if error.errno == errno.EBUSY and (following := next(indices, 0)):
                index = following
                continue
            if error.errno != errno.EEXIST:
                raise
            tries -= 1
            if not tries:
                raise OSError(
                    errno.EEXIST,
                    f"the link {NAME} exists: another cluster of lastcall uses this runtime; fix: stop that cluster",
                ) from None
        select.select([], [], [], PAUSE_SECONDS)


def disconnect(index: int) -> None:
    """Delete the link at once; the kernel alone would do it later."""
    with netlink.NetlinkSocket() as here:
        here.transact([netlink.delete_link(index)])


def join(node: NodeLayout) -> None:
    """Bring up the end inside, in the cluster's network namespace. Raises OSError."""
    for name, value in _SYSCTLS.items():
        write_sysctl(f"/proc/sys/net/ipv4/{name}", value)
    with netlink.NetlinkSocket() as here:
        here.transact(
            [
                netlink.link_up(_INSIDE_INDEX),
                *(
                    netlink.new_address(netlink.LOOPBACK_INDEX, each)
                    for each in (CONTROL_PLANE_IP, KUBERNETES_SERVICE_IP, CLUSTER_DNS_IP)
                ),
                # also here: the address that translated connections get as their source
                netlink.new_address(_INSIDE_INDEX, CONTROL_PLANE_IP),
                netlink.new_neighbour(node.ip, _INSIDE_INDEX, _hardware(node.ip)),
                netlink.new_link_route(node.ip, _INSIDE_INDEX, CONTROL_PLANE_IP),
                netlink.new_gateway_route("0.0.0.0/0", node.ip, _INSIDE_INDEX, CONTROL_PLANE_IP),
            ]
        )


def _hardware(ip: str) -> bytes:
    """A locally administered address made of the IP."""
    return bytes([0x02, 0x02, *(int(part) for part in ip.split("."))])
