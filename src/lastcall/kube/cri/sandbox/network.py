"""The Pod network without a bridge: a routed veth per Pod.

The Pod has `<ip>/32` on eth0 and an on-link default gateway, 169.254.1.1, that no link owns: a permanent neighbour
entry gives it the hardware address of the node's end, which the kernel then routes. The node has `<ip>/32 dev veth…`
and a permanent neighbour entry for the Pod, so no packet ever waits for ARP. A same-node Pod → VIP → Pod connection
works with and without br_netfilter, which a bridge cannot say.

Detaching drops the route and the address and nothing else: the veth ends with the Pod's network namespace, in the
kernel's own time. Deleting it in line holds the rtnl lock for 15 to 50 ms, and every other attach waits behind it.

An address of the Pod network that no Pod has swallows what it is sent, as on a cluster of many nodes: the rest of the
range leads to a link without a carrier. Without that route the kernel would take the packet back before connection
tracking knew it, and the SYN that TCP repeats a second later would be sent to another endpoint: a Service whose rules
name a Pod that is gone would be slow in place of losing connections.

Netlink work happens in one thread of its own. It is the only one that ever enters another network namespace, so the
process never does. While that thread rests, dropping a route is done in line: it takes the kernel 0.1 ms, and a thread
would first have to be woken and then wait for the interpreter's lock.
"""

import asyncio
import errno
import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from lastcall.kube.cri.api import PodSandboxConfig, PortMapping, RuntimeServiceError
from lastcall.kube.cri.sandbox.address_pool import AddressPool, AddressPoolError
from lastcall.kube.cri.sandbox.spec import NETWORK
from lastcall.kube.nftables.names import HOST_PORTS
from lastcall.world import crash_guard, linux, netlink

if TYPE_CHECKING:
    from lastcall.kube.cri.sandbox.host_ports import HostPorts

log = logging.getLogger(__name__)

KeptAddresses = tuple[tuple[str, ...], tuple[tuple[str, int], ...]]
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

GATEWAY = "169.254.1.1"
NOWHERE = "no-pod"
"""The link to which addresses without a Pod lead; its peer is never opened."""
NODE_HARDWARE_ADDRESS = bytes([0xEE] * 6)
"""Of every node-side end: the links are point to point, so one address serves all."""

# Link indices: above those that a fresh network namespace may have by itself (lo, tunl0, sit0, …).
_POD_INDEX = 500
_NOWHERE_INDEX, _NOWHERE_PEER_INDEX = 900, 901
_FIRST_INDEX = 1000
_LINK_TRIES, _LINK_PAUSE = 100, 0.0005  # seconds

POD_LINKS = 1042
"""The group of the node's ends of Pods' links, for rules about all of them."""

_SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    # `sources.py` checks sources, before packets are translated and not after.
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
}
_POD_SYSCTLS = {
    # containerd 2 enable_unprivileged_ports: a container without capabilities may listen on port 80.
    "net/ipv4/ip_unprivileged_port_start": "0",
}


class PodNetwork:
    """The network of one node: `prepare_node` once, then `attach` and `detach` per sandbox.

    Implements `spec.Network`; the runtime writes the records.
    """

    def __init__(self, pod_cidr: str = "10.244.0.0/24", kept: KeptAddresses = ((), ())) -> None:
        """`kept` is what no `hostPort` takes: networks, and (address, TCP port) of the node's daemons.

        Raises ValueError for a `pod_cidr` that is not an IPv4 network or is too small.
        """
        self._pool = AddressPool(pod_cidr)
        self._pod_cidr = pod_cidr
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pod-network")
        self._jobs: list[Future[Any]] = []
        """Of the worker thread, those that may not have ended."""
        # Everything below, and the pool, belongs to the worker thread; while it has no job, to the loop's.
        self._attached: dict[str, str] = {}  # sandbox id → ip
        self._node_ip = ""
        self._node_netns = -1
        self._route: netlink.NetlinkSocket | None = None
        self._next_index = 0
        self._kept = kept
        self._host_ports: HostPorts | None = None
        """From the first Pod on that asks for a port of the node."""

    async def prepare_node(self, addresses: list[str]) -> None:
        """Give this network namespace's `lo` its addresses (the first is the node's own) and let it forward.

        Idempotent. Raises RuntimeServiceError.
        """
        await self._run(self._prepare_node, addresses)
        # Nobody waits for it but the first Pod: its turn in this thread comes after.
        self._jobs.append(self._worker.submit(self._check_sources))

    async def attach(self, sandbox_id: str, netns_fd: int, pod_uid: str, config: PodSandboxConfig | None = None) -> str:
        """Configure the Pod's network namespace (the fd stays the caller's) and return its address.

        A sandbox that has an address keeps it. Raises RuntimeServiceError; nothing stays behind then. After a
        cancelled call the sandbox may be attached: `detach` it like any other.
        """
        return await self._run(self._attach, sandbox_id, netns_fd, config.port_mappings if config is not None else ())

    async def detach(self, sandbox_id: str, ip: str = "") -> None:
        """Stop routing to the sandbox and free its address. Unknown, or detached already, is a success.

        `ip` matters only for a sandbox that an earlier node process attached. Raises RuntimeServiceError.
        """
        quick = self._host_ports is None or sandbox_id not in self._host_ports
        await self._run(self._detach, sandbox_id, ip, in_line=quick)

    async def adopt(self, sandbox_id: str, ip: str, config: PodSandboxConfig | None = None) -> None:
        """Adopt a sandbox that an earlier node process attached. Raises RuntimeServiceError for a foreign ip."""
        await self._run(self._adopt, sandbox_id, ip, config.port_mappings if config is not None else ())

    async def adopted(self) -> None:
        """Close the ports of the node that lead elsewhere, after all known sandboxes were adopted.

        Raises RuntimeServiceError.
        """
        await self._run(self._adopted)

    async def status(self) -> str:
        """Return "": this network needs nothing that could be missing."""
        return ""

    async def close(self) -> None:
        """Stop the worker thread and close its sockets; what is attached stays attached."""
        with suppress(RuntimeError):  # closed before
            await self._run(self._close)
        self._worker.shutdown(wait=True)

    async def _run(self, function: Callable[[*Arguments], T], *arguments: *Arguments, in_line: bool = False) -> T:
        """In the worker thread; with `in_line` at once when that has nothing to do."""
        self._jobs = [job for job in self._jobs if not job.done()]
        try:
            if in_line and not self._jobs:
                return function(*arguments)
            job = self._worker.submit(function, *arguments)
            self._jobs.append(job)
            return await asyncio.wrap_future(job)
        except AddressPoolError as error:
            raise RuntimeServiceError(f"failed to setup network for sandbox: {error}") from error
        except OSError as error:
            raise RuntimeServiceError(f"the Pod network failed: {error.strerror or error}") from error

    # -- in the worker thread ----------------------------------------------------------------------------------------

    def _prepare_node(self, addresses: list[str]) -> None:
        self._node_ip = addresses[0] if addresses else ""
        lo, node = netlink.LOOPBACK_INDEX, self._socket()
        node.transact([netlink.link_up(lo), *(netlink.new_address(lo, address) for address in addresses)])
        self._lead_nowhere(node)
        for name, value in _SYSCTLS.items():
            write_sysctl(name, value)

    @staticmethod
    def _check_sources() -> None:
        """On a kernel without nftables Pods run unchecked, as on one with a plain bridge."""
        # late: 10 ms of a node's start, beside the rest of it
        from lastcall.kube.cri.sandbox.sources import check_sources

        with crash_guard.Turn(NETWORK, "sources"):
            try:
                check_sources(POD_LINKS)
            except OSError as error:
                log.warning("Pods may send from addresses of others: nftables: %s", error.strerror or error)

    def _lead_nowhere(self, node: netlink.NetlinkSocket) -> None:
        """By a gateway with a neighbour entry, because a link route would ask for each address by ARP first."""
        ends = (NOWHERE, _NOWHERE_INDEX, NODE_HARDWARE_ADDRESS, f"{NOWHERE}-end", _NOWHERE_PEER_INDEX)
        pair = netlink.new_veth(*ends, pod_hardware_address(GATEWAY), self._node_netns)
        node.transact(
            [
                replace(pair, tolerate=(errno.EEXIST,)),  # an earlier node process made it
                netlink.new_neighbour(GATEWAY, _NOWHERE_INDEX, pod_hardware_address(GATEWAY)),
                netlink.new_link_route(GATEWAY, _NOWHERE_INDEX, self._node_ip),
                netlink.new_gateway_route(self._pod_cidr, GATEWAY, _NOWHERE_INDEX, self._node_ip),
            ]
        )

    def _socket(self) -> netlink.NetlinkSocket:
        """The socket in the node's namespace; opened in this thread, where the way back from a Pod is kept too."""
        if self._route is None:
            self._node_netns = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            self._route = netlink.NetlinkSocket()
            self._next_index = max(_FIRST_INDEX, *(index for index, _ in socket.if_nameindex()))
        return self._route

    def _attach(self, sandbox_id: str, netns_fd: int, ports: tuple[PortMapping, ...]) -> str:
        known = self._attached.get(sandbox_id)
        if known is not None:
            return known
        node = self._socket()
        ip = self._pool.allocate()
        pod_address = pod_hardware_address(ip)
        self._next_index = index = self._next_index + 1
        created = False
        try:
            name = host_link_name(sandbox_id)
            ends = (name, index, NODE_HARDWARE_ADDRESS, "eth0", _POD_INDEX, pod_address)
            node.transact([netlink.new_veth(*ends, netns_fd, group=POD_LINKS, arp=False)])
            created = True
            self._configure_pod(netns_fd, ip)
            node.transact(
                [
                    netlink.new_neighbour(ip, index, pod_address),
                    netlink.new_link_route(ip, index, self._node_ip),
                ]
            )
            self._wait_for_link(node, index)
            if ports:
                self._open_ports(sandbox_id, ip, ports)
        except BaseException:
            self._pool.release(ip)
            if created:
                with suppress(OSError):
                    node.transact([netlink.delete_link(index)])
            raise
        self._attached[sandbox_id] = ip
        return ip

    @staticmethod
    def _wait_for_link(node: netlink.NetlinkSocket, index: int) -> None:
        """The node's end was opened before the Pod's, so it got its carrier later; until the kernel has noticed, it
        drops what is sent, and a dropped SYN is a second lost. Kernels before 6.8 do not hurry when asked.
        """
        for _ in range(_LINK_TRIES):
            if node.link_operates(index):
                return
            threading.Event().wait(_LINK_PAUSE)  # in the worker thread there is no loop to sleep in

    def _configure_pod(self, netns_fd: int, ip: str) -> None:
        linux.setns(netns_fd, linux.CLONE_NEWNET)
        try:
            pod = netlink.NetlinkSocket()
            for name, value in _POD_SYSCTLS.items():
                write_sysctl(name, value)
        finally:
            linux.setns(self._node_netns, linux.CLONE_NEWNET)
        with pod:
            pod.transact(
                [
                    netlink.link_up(netlink.LOOPBACK_INDEX),
                    netlink.link_up(_POD_INDEX),
                    netlink.new_address(_POD_INDEX, ip),
                    netlink.new_link_route(GATEWAY, _POD_INDEX),
                    netlink.new_neighbour(GATEWAY, _POD_INDEX, NODE_HARDWARE_ADDRESS),
                    netlink.new_default_route(GATEWAY, _POD_INDEX),
                ]
            )

    def _detach(self, sandbox_id: str, ip: str) -> None:
        known = self._attached.get(sandbox_id, ip)
        if not known or (sandbox_id not in self._attached and known in self._attached.values()):
            return  # never attached; or a late repetition, and the address has a new owner
        if self._host_ports is not None:
            self._host_ports.close(sandbox_id, [self._node_ip])
        self._socket().transact([netlink.delete_link_route(known)])
        if self._attached.pop(sandbox_id, None) is not None:
            self._pool.release(known)

    def _open_ports(self, sandbox_id: str, ip: str, ports: tuple[PortMapping, ...]) -> None:
        try:
            # So that 127.0.0.1 leads to the Pod. Where it cannot be written, the node's other addresses still do.
            write_sysctl(f"net/ipv4/conf/{host_link_name(sandbox_id)}/route_localnet", "1")
        except OSError as error:
            log.warning("hostPort on 127.0.0.1: %s", error)
        try:
            self._ports_of_the_node().open(sandbox_id, ip, ports, [self._node_ip])
        except OSError as error:
            text = f'failed to setup network for sandbox "{sandbox_id}": hostPort: nftables: {error.strerror or error}'
            raise RuntimeServiceError(text) from error

    def _ports_of_the_node(self) -> "HostPorts":
        if self._host_ports is None:
            # late: rules are for the first Pod that asks for a port of the node
            from lastcall.kube.cri.sandbox.host_ports import HostPorts, Kept

            self._host_ports = HostPorts(Kept(*self._kept))
        return self._host_ports

    def _adopt(self, sandbox_id: str, ip: str, ports: tuple[PortMapping, ...]) -> None:
        self._pool.reserve(ip)
        self._attached[sandbox_id] = ip
        if ports:
            with crash_guard.Turn(NETWORK, sandbox_id):  # others keep their ports
                self._ports_of_the_node().adopt(sandbox_id, ip, ports)

    def _adopted(self) -> None:
        with suppress(OSError):  # a kernel that cannot be asked has no rules
            if self._host_ports is None and not netlink.has_nftables_table(HOST_PORTS):
                return
        with crash_guard.Turn(NETWORK, "hostPort"):  # the rules of before go on
            self._ports_of_the_node().write()

    def _close(self) -> None:
        if self._route is not None:
            self._route.close()
            os.close(self._node_netns)
            self._route = None


def host_link_name(sandbox_id: str) -> str:
    """Return the name of the node's end: `veth` and the start of the sandbox id (Linux allows 15 characters)."""
    return f"veth{sandbox_id[:11]}"


def pod_hardware_address(ip: str) -> bytes:
    """Return the Pod's address: a locally administered one made of the IP, so that it needs no lookup."""
    return bytes([0x02, 0x00]) + IPv4Address(ip).packed


def write_sysctl(name: str, value: str) -> None:
    """Write a sysctl of the calling thread's network namespace. Raises OSError."""
    path = Path("/proc/sys") / name
    try:
        path.write_text(value)
    except OSError as error:
        # /proc/sys may be read-only (in Docker). What already has the value needs no writing.
        with suppress(OSError):
            if path.read_text().strip() == value:
                return
        raise OSError(error.errno, f"sysctl {name.replace('/', '.')}={value}: {error.strerror}") from error
