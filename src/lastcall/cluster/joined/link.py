"""The veth pair between the machine's network namespace and the node's, and what the machine does for the node.

The node has a link-local address of its own, and all it sends to elsewhere comes from the machine's address. Its Pods
are known by their own. On the machine there are the link `lastcall-joinN`, routes to the node's address and to its
podCIDR, and a table of nftables of that name; the kernel removes all of it with the node's namespace and with front
(NFT_TABLE_F_OWNER), whatever becomes of them.
"""

import errno
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from lastcall.cluster.joined.facts import NEVER_MASQUERADED, Joined
from lastcall.cluster.nodes.network import write_sysctl
from lastcall.nftables import encode
from lastcall.nftables import statements as nft
from lastcall.nftables.objects import AddChain, AddRule, Chain, Command, FlushChain, Hook, Transaction
from lastcall.nftables.statements import Rule
from lastcall.world import netlink

Port = tuple[str, int]
"""(protocol as Kubernetes names it, number)"""

MOST_NODES = 64
"""Joined from one machine."""
_NAME = "lastcall-join"
_INSIDE_INDEX = 50
_INDICES = range(20_100, 20_300)
"""Of the machine's ends: the kernel counts links from 1 on."""
_SYSCTLS = {"ip_forward": "1", "conf/all/rp_filter": "0", "conf/default/rp_filter": "0"}
_PORTS = "ports"
_SRCNAT, _DSTNAT = 100, -100
_NODE_PORTS = (30000, 32767)
"""The API server's default --service-node-port-range."""


@dataclass(frozen=True, slots=True)
class Link:
    """The pair of the `number`th node of this machine; `claim` says which is free."""

    number: int
    claimed: socket.socket
    _netfilter: list[netlink.NetlinkSocket] = field(default_factory=list)
    _indices: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of the machine's end, and of the table."""
        return f"{_NAME}{self.number}"

    @property
    def machine_ip(self) -> str:
        return f"169.254.77.{2 * self.number + 1}"

    @property
    def node_ip(self) -> str:
        return f"169.254.77.{2 * self.number + 2}"

    def connect(self, init_pid: int, joined: Joined) -> None:
        """Make the pair and the machine's side of it, in the machine's namespace. Raises OSError.

        The end inside is down until `join`.
        """
        netns = os.open(f"/proc/{init_pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with netlink.NetlinkSocket() as here:
                index = self._make(here, netns)
                self._indices.append(index)
                here.transact(
                    [
                        netlink.new_address(index, self.machine_ip),
                        netlink.new_neighbour(self.node_ip, index, _hardware(self.node_ip)),
                        netlink.new_link_route(self.node_ip, index, self.machine_ip),
                        netlink.new_gateway_route(joined.pod_cidr, self.node_ip, index),
                    ]
                )
        finally:
            os.close(netns)
        self._netfilter.append(netlink.NetlinkSocket(netlink.NETLINK_NETFILTER))
        messages = encode.batch(rules(joined, self.node_ip), self.name, owned=True)
        self._netfilter[0].batch(encode.NF_TABLES, messages)

    def _make(self, here: netlink.NetlinkSocket, netns: int) -> int:
        for index in _INDICES:
            ends = (self.name, index, _hardware(self.machine_ip), "eth0", _INSIDE_INDEX, _hardware(self.node_ip))
            try:
                here.transact([netlink.new_veth(*ends, netns)])
                return index
            except netlink.NetlinkError as error:
                # Kernels say the one or the other of an index that another link has.
                if error.errno not in (errno.EBUSY, errno.EEXIST) or index == _INDICES[-1]:
                    raise
        raise AssertionError("there are indices")

    def join(self, node_ip: str) -> None:
        """The end inside, in the node's namespace; `node_ip` is the machine's address. Raises OSError."""
        for name, value in _SYSCTLS.items():
            write_sysctl(f"/proc/sys/net/ipv4/{name}", value)
        with netlink.NetlinkSocket() as here:
            here.transact(
                [
                    netlink.link_up(netlink.LOOPBACK_INDEX),
                    netlink.new_address(_INSIDE_INDEX, self.node_ip),
                    *([netlink.new_address(netlink.LOOPBACK_INDEX, node_ip)] if node_ip else []),
                    netlink.link_up(_INSIDE_INDEX),
                    netlink.new_neighbour(self.machine_ip, _INSIDE_INDEX, _hardware(self.machine_ip)),
                    netlink.new_link_route(self.machine_ip, _INSIDE_INDEX, self.node_ip),
                    netlink.new_gateway_route("0.0.0.0/0", self.machine_ip, _INSIDE_INDEX, self.node_ip),
                ]
            )

    def open_ports(self, joined: Joined, ports: Iterable[Port]) -> None:
        """These of the machine's address lead to the node from now on, and no others. Raises OSError."""
        rules = (
            (nft.daddr_within(f"{joined.node_ip}/32"), nft.to_port(protocol, port), nft.dnat_address(self.node_ip))
            for protocol, port in sorted(ports)
        )
        commands: tuple[Command, ...] = (FlushChain(_PORTS), *(AddRule(_PORTS, rule) for rule in rules))
        if self._netfilter:
            self._netfilter[0].batch(encode.NF_TABLES, encode.batch(Transaction(commands), self.name, owned=True))

    def disconnect(self) -> None:
        """Give back at once what the kernel would some time later. Idempotent."""
        if self._indices:
            with suppress(OSError), netlink.NetlinkSocket() as here:
                here.transact([netlink.delete_link(self._indices.pop())])
        for each in self._netfilter:
            each.close()
        self._netfilter.clear()
        self.claimed.close()


def claim() -> Link:
    """A pair that no other node of this machine has. Raises OSError."""
    for number in range(MOST_NODES):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            sock.bind(f"\0{_NAME}{number}")  # of this network namespace
        except OSError:
            sock.close()
            continue
        return Link(number, sock)
    raise OSError(errno.EADDRINUSE, f"{MOST_NODES} nodes have joined from this machine")


def rules(joined: Joined, link_ip: str) -> Transaction:
    """The machine's table: what the node sends is the machine's, what its Pods send to the outside is, too; node ports
    of the machine's address are the node's."""
    near = tuple(nft.daddr_within(network, outside=True) for network in NEVER_MASQUERADED)
    here = nft.daddr_within(f"{joined.node_ip}/32")
    node_ports = ((here, nft.to_ports(each, *_NODE_PORTS), nft.dnat_address(link_ip)) for each in ("TCP", "UDP"))
    to_node: tuple[Rule, ...] = (*node_ports, (nft.verdict(f"jump {_PORTS}"),))
    chains = (
        Chain(
            "nat-postrouting",
            (
                (nft.saddr_within(f"{link_ip}/32"), nft.masquerade()),
                # The node has the machine's address, too: from there it would take no packet with it.
                (nft.saddr_within(f"{joined.node_ip}/32"), nft.daddr_within(f"{link_ip}/32"), nft.masquerade()),
                (nft.saddr_within(joined.pod_cidr), *near, nft.masquerade()),
            ),
            Hook("nat", "postrouting", _SRCNAT),
        ),
        Chain(_PORTS, ()),
        Chain("nat-prerouting", to_node, Hook("nat", "prerouting", _DSTNAT)),
        Chain("nat-output", to_node, Hook("nat", "output", _DSTNAT)),
    )
    return Transaction(
        (
            *(AddChain(chain) for chain in chains),
            *(AddRule(chain.name, rule) for chain in chains for rule in chain.rules),
        ),
    )


def _hardware(ip: str) -> bytes:
    """A locally administered address made of the IP."""
    return bytes([0x02, 0x03, *(int(part) for part in ip.split("."))])


def kubelet_socket(joined: Joined) -> socket.socket:
    """Listens at the machine's address; the node serves it. Raises OSError, which says the fix."""
    try:
        return socket.create_server((joined.node_ip, joined.kubelet_port), backlog=1024)  # with SO_REUSEADDR
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise OSError(error.errno, f"{joined.node_ip} is not an address of this machine; fix: --node-ip") from None
        why = os.strerror(error.errno or 0).lower()
        where = f"{joined.node_ip}:{joined.kubelet_port}"
        raise OSError(error.errno, f"{where}: {why}; fix: --kubelet-port with a free port") from None
