"""The veth pair between a machine and the cluster of `lastcall up` on it: Pods of other machines come in by it.

The machine routes the cluster's Pods and nodes to it; the cluster routes to the machine what is on other machines, and
nothing else: Pods reach no other addresses this way. All of it goes with the cluster's network namespace.
"""

import errno
import os
from collections.abc import Sequence

from lastcall.cluster.layout import CONTROL_PLANE_IP
from lastcall.cluster.machines import messages
from lastcall.cluster.machines.kernel import LINK
from lastcall.cluster.machines.messages import PROTOCOL, Route
from lastcall.cluster.machines.rules import NODE_NETWORK
from lastcall.cluster.nodes.network import write_sysctl
from lastcall.world import linux, netlink

_INSIDE_NAME, _INSIDE_INDEX = "machine", 60
_INDICES = range(21_000, 21_100)
_SYSCTLS = {"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0"}


class Link:
    """The cluster's side. Implements `kernel.Inside`."""

    def __init__(self, inside: netlink.NetlinkSocket, address: str, ranges: Sequence[str]) -> None:
        self._inside, self._address, self.ranges = inside, address, ranges

    @classmethod
    def connect(cls, init_pid: int, address: str, ranges: Sequence[str]) -> "Link":
        """Between this process's network namespace and that of init; `ranges` are its Pods'. Raises OSError.

        The caller must have one thread only: it visits the namespace.
        """
        netns = os.open(f"/proc/{init_pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            inside = _socket_in(netns)
            try:
                with netlink.NetlinkSocket() as here:
                    _make(here, netns, address, ranges)
                _open_inside(inside, address)
            except BaseException:
                inside.close()
                raise
        finally:
            os.close(netns)
        return cls(inside, address, ranges)

    def lead_out(self, networks: Sequence[str]) -> None:
        """As `kernel.Inside.lead_out`."""
        wanted = {
            each: Route(each, _INSIDE_INDEX, self._address, CONTROL_PLANE_IP)
            for each in networks
            if each != f"{self._address}/32"
        }
        there = {each.network: each for each in messages.routes(self._inside) if each.protocol == PROTOCOL}
        told = [messages.delete_route(each) for each in there.values() if each.network not in wanted]
        told += [messages.new_route(each) for each in wanted.values() if there.get(each.network) != each]
        if told:
            self._inside.transact(told)

    def close(self) -> None:
        self._inside.close()


def _socket_in(netns: int) -> netlink.NetlinkSocket:
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        linux.setns(netns, linux.CLONE_NEWNET)
        try:
            found = netlink.NetlinkSocket()
            for name, value in _SYSCTLS.items():
                write_sysctl(f"/proc/sys/net/ipv4/{name}", value)
            return found
        finally:
            linux.setns(back, linux.CLONE_NEWNET)
    finally:
        os.close(back)


def _make(here: netlink.NetlinkSocket, netns: int, address: str, ranges: Sequence[str]) -> None:
    for index in _INDICES:
        ends = (LINK, index, _hardware(address), _INSIDE_NAME, _INSIDE_INDEX, _hardware(CONTROL_PLANE_IP))
        try:
            here.transact([netlink.new_veth(*ends, netns)])
            break
        except netlink.NetlinkError as error:
            # Kernels say the one or the other of an index that another link has.
            if error.errno not in (errno.EBUSY, errno.EEXIST) or index == _INDICES[-1]:
                raise
    to_control_plane = netlink.new_link_route(CONTROL_PLANE_IP, index, address)
    here.transact(
        [
            netlink.new_neighbour(CONTROL_PLANE_IP, index, _hardware(CONTROL_PLANE_IP)),
            to_control_plane,
            *(netlink.new_gateway_route(each, CONTROL_PLANE_IP, index, address) for each in (*ranges, NODE_NETWORK)),
        ]
    )


def _open_inside(inside: netlink.NetlinkSocket, address: str) -> None:
    inside.transact(
        [
            netlink.link_up(netlink.LOOPBACK_INDEX),
            netlink.link_up(_INSIDE_INDEX),
            # The way back needs it before any node's process has given it to lo.
            netlink.new_address(netlink.LOOPBACK_INDEX, CONTROL_PLANE_IP),
            netlink.new_neighbour(address, _INSIDE_INDEX, _hardware(address)),
            netlink.new_link_route(address, _INSIDE_INDEX, CONTROL_PLANE_IP),
        ]
    )


def _hardware(ip: str) -> bytes:
    """A locally administered address made of the IP."""
    return bytes([0x02, 0x04, *(int(part) for part in ip.split("."))])
