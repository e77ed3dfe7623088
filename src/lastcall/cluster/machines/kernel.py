"""The machine's part of the Pod network in the kernel: routes to other machines, by VXLAN or by their addresses.

All of it can be told from what is others': routes by their protocol, links and the table of nftables by their names.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Network
from typing import Protocol

from lastcall.cluster.machines import messages
from lastcall.cluster.machines.messages import PROTOCOL, Route
from lastcall.cluster.machines.rules import NODE_NETWORK, Network, Peer, hardware_address, vxlan_source
from lastcall.cluster.machines.settings import OVERHEAD, PodNetwork
from lastcall.nftables import encode
from lastcall.nftables import statements as nft
from lastcall.nftables.objects import AddChain, AddRule, Chain, Hook, Transaction
from lastcall.world import netlink

VXLAN = "lastcall-vxlan"
LINK = "lastcall-pods"
"""The link to the cluster that is on this machine (`link.py`)."""
TABLE = "lastcall-machines"
_CHAIN = "to-outside"
_SRCNAT = 100
FORWARD = "/proc/sys/net/ipv4/ip_forward"


class Inside(Protocol):
    """The cluster on this machine, whose Pods are behind a link."""

    ranges: Sequence[str]
    """Of its own Pods."""

    def lead_out(self, networks: Sequence[str]) -> None:
        """These networks are reached through the machine, and no others. Raises OSError."""


def usual_mtu(address: str) -> int:
    """Of the link that has an address of this machine. Raises OSError."""
    with netlink.NetlinkSocket() as kernel:
        return messages.mtu_of(kernel, messages.link_with(kernel, address))


def mtu_for(mode: str, address: str) -> int:
    """Of Pods on this machine. Raises OSError."""
    return usual_mtu(address) - (OVERHEAD if mode == "vxlan" else 0)


class Kernel:
    """`apply` as often as something changes, and now and then: others change routes, too."""

    def __init__(self, settings: PodNetwork, address: str, inside: Inside | None = None) -> None:
        """`address` is this machine's. The network namespace is that of the thread that applies first."""
        self._settings, self._address, self._inside = settings, address, inside
        self._socket: netlink.NetlinkSocket | None = None
        self._vxlan = 0
        self._peers: dict[str, Peer] = {}
        self._masqueraded: tuple[str, ...] = ()

    def apply(self, network: Network) -> list[str]:
        """Make it so; answers what could not be done. Raises OSError for what nothing can be done about."""
        if self._socket is None:
            self._socket = netlink.NetlinkSocket()
        source = self._address
        if self._settings.mode == "vxlan":
            source = vxlan_source(network.own) or self._address
            self._open_vxlan(source)
            self._tell_peers(network.peers)
        problems = self._route(network, source)
        self._masquerade(network.own)
        if self._inside is not None:
            # Also to other nodes of this machine.
            own = [each for each in network.own if each not in (*self._inside.ranges, NODE_NETWORK)]
            out = [*network.routes, *own, *(f"{peer.address}/32" for peer in network.peers), f"{self._address}/32"]
            if source != self._address:
                out.append(f"{source}/32")
            self._inside.lead_out(out)
        return problems

    def close(self) -> None:
        """What was made stays: `remove_all` is for the end."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open_vxlan(self, source: str) -> None:
        assert self._socket is not None
        index = messages.link_named(self._socket, VXLAN)
        if not index:
            vni, port = self._settings.vni, self._settings.port
            hardware = hardware_address(self._address)
            made = messages.new_vxlan(VXLAN, hardware, self._settings.mtu, vni=vni, port=port, local=self._address)
            try:
                self._socket.transact([made])
            except netlink.NetlinkError as error:
                if error.errno == errno.EOPNOTSUPP:
                    raise OSError(error.errno, f"{error.strerror}; fix: sudo modprobe vxlan") from error
                raise
            index, self._peers = messages.link_named(self._socket, VXLAN), {}
        self._vxlan = index
        if source != self._address:
            self._socket.transact([netlink.new_address(index, source)])

    def _tell_peers(self, peers: Sequence[Peer]) -> None:
        assert self._socket is not None
        wanted = {peer.address: peer for peer in peers}
        told: list[netlink.Message] = []
        for address in self._peers.keys() - wanted.keys():
            told += messages.delete_peer(address, self._vxlan, hardware_address(address))
        for address in wanted:
            told += messages.new_peer(address, self._vxlan, hardware_address(address))
        if told:
            self._socket.transact(told)
        self._peers = wanted

    def _route(self, network: Network, source: str) -> list[str]:
        assert self._socket is not None
        problems: list[str] = []
        wanted: dict[str, Route] = {}
        for peer in network.peers:
            try:
                index = self._link_to(peer)
            except OSError as error:
                problems.append(f"the machine {peer.address}: {error.strerror}")
                continue
            wanted |= {each: Route(each, index, peer.address, source) for each in peer.networks}
        there = list(messages.routes(self._socket))
        for each in there:
            if each.protocol != PROTOCOL and each.network in wanted:
                del wanted[each.network]
                problems.append(f"the route to {each.network} is there already, and is not ours")
        ours = {each.network: each for each in there if each.protocol == PROTOCOL}
        told = [messages.delete_route(each) for each in ours.values() if each.network not in wanted]
        on_link = self._settings.mode == "vxlan"
        new = [each for each in wanted.values() if ours.get(each.network) != each]
        told += [messages.new_route(each, on_link=on_link) for each in new]
        if told:
            self._socket.transact(told)
        return problems

    def _link_to(self, peer: Peer) -> int:
        """Raises OSError."""
        assert self._socket is not None
        if self._vxlan:
            return self._vxlan
        found = messages.route_to(self._socket, peer.address)
        if found.gateway:
            why = f"it is behind the router {found.gateway}, and host-gw is for one network; fix: --pod-network vxlan"
            raise OSError(errno.EHOSTUNREACH, why)
        if found.index == netlink.LOOPBACK_INDEX:
            raise OSError(errno.EHOSTUNREACH, "it is this machine by another of its addresses")
        return found.index

    def _masquerade(self, own: tuple[str, ...]) -> None:
        """What Pods send to others than Pods comes from this machine, as others know no way back to a Pod."""
        if own == self._masqueraded and (not own or netlink.has_nftables_table(TABLE)):
            return  # a firewall that is started again flushes all tables
        inside = (self._settings.cluster_cidr, NODE_NETWORK)
        rules = [(nft.daddr_within(each), nft.verdict("return")) for each in inside]
        rules += [(nft.saddr_within(each), nft.masquerade()) for each in own]
        chain = Chain(_CHAIN, hook=Hook("nat", "postrouting", _SRCNAT))
        transaction = Transaction((AddChain(chain), *(AddRule(_CHAIN, rule) for rule in rules)), replace=True)
        with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as netfilter:
            netfilter.batch(encode.NF_TABLES, encode.batch(transaction, TABLE))
        self._masqueraded = own


def remove_all() -> None:
    """Remove everything of ours in this network namespace. What is not found, and what fails, is passed over."""
    with netlink.NetlinkSocket() as kernel:
        for name in (VXLAN, LINK):
            with suppress(OSError):
                if index := messages.link_named(kernel, name):
                    kernel.transact([netlink.delete_link(index)])
        with suppress(OSError):
            left = [each for each in messages.routes(kernel) if each.protocol == PROTOCOL]
            if left:
                kernel.transact([messages.delete_route(each) for each in left])
    with suppress(OSError):
        if netlink.has_nftables_table(TABLE):
            with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as netfilter:
                netfilter.batch(encode.NF_TABLES, encode.removal(TABLE))


def why_not(address: str, own: Sequence[str]) -> str:
    """Why this machine cannot be a part, and what to do; "" when it can. `own` are the networks that it will route."""
    if os.getuid() != 0:
        return "it needs root for routes on this machine; fix: sudo"
    if why := why_not_forwarding():
        return why
    with netlink.NetlinkSocket() as kernel:
        try:
            messages.link_with(kernel, address)
        except OSError as error:
            return str(error.strerror)
        for each in messages.routes(kernel):
            if each.protocol != PROTOCOL and _overlap(each.network, own):
                return f"{each.network} is routed elsewhere on this machine; fix: ip route del {each.network}"
    return ""


def why_not_forwarding() -> str:
    """As `why_not`."""
    with open(FORWARD) as file:
        if file.read().strip() != "1":
            return "this machine does not forward packets; fix: sudo sysctl -w net.ipv4.ip_forward=1"
    return ""


def _overlap(network: str, others: Sequence[str]) -> bool:
    return any(IPv4Network(network).overlaps(IPv4Network(each)) for each in others)
