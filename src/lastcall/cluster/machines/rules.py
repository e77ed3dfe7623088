"""Which machines a cluster's Nodes are on, and where each one's Pods are. Pure.

What a Node says is not trusted beyond the Pod network: a range that is not part of it, or that an older Node has, is
ignored, so that no node draws traffic to itself that is not its Pods'.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from lastcall.api.meta import annotations_of, name_of
from lastcall.controllers.nodes.ipam.ranges import pod_cidrs

if TYPE_CHECKING:
    from lastcall.api.types.node import Node

MACHINE = "lastcall.dev/machine"
"""Annotation of a Node whose own address is not its machine's: the address of that."""
NODE_NETWORK = "172.18.0.0/24"
"""Addresses of the nodes of `lastcall up`, and of its control plane: all on its machine."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another machine, by its address, and the networks that are on it."""

    address: str
    networks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """`peers` by address. `own` are the Pods of this machine. `refused` says what was ignored, and why."""

    peers: tuple[Peer, ...] = ()
    own: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def routes(self) -> dict[str, str]:
        """Network → address of the machine that has it."""
        return {network: peer.address for peer in self.peers for network in peer.networks}


def network_of(nodes: Iterable[Node], address: str, cluster_cidr: str) -> Network:
    """As it is seen from the machine `address`."""
    whole = IPv4Network(cluster_cidr)
    taken: list[tuple[IPv4Network, str]] = []
    machines: dict[str, list[str]] = {}
    refused: list[str] = []
    for node in sorted(nodes, key=_age):
        name, at = name_of(node), machine_of(node)
        if not at and not (node.get("status") or {}).get("addresses"):
            continue  # its kubelet has not said anything yet
        if not at:
            refused.append(f"node {name} has no InternalIP (IPv4)")
            continue
        networks = machines.setdefault(at, [])
        for text in ipv4_pod_cidrs(node):
            found, why = _checked(text, whole, taken)
            if found is None:
                refused.append(f"node {name}: podCIDR {text} {why}")
            else:
                taken.append((found, name))
                networks.append(str(found))
        if MACHINE in annotations_of(node) and NODE_NETWORK not in networks and _is_of_up(node):
            if any(NODE_NETWORK in others for others in machines.values()):
                refused.append(f"node {name}: {NODE_NETWORK} is on another machine")
            else:
                networks.append(NODE_NETWORK)
    peers = [Peer(at, tuple(networks)) for at, networks in machines.items() if at != address]
    return Network(
        tuple(sorted(peers, key=lambda peer: IPv4Address(peer.address))),
        tuple(machines.get(address, ())),
        tuple(refused),
    )


def machine_of(node: Node) -> str:
    """The address of the machine that a Node is on, "" when it is not known."""
    annotated = _address(annotations_of(node).get(MACHINE, ""))
    return annotated or node_address(node)


def ipv4_pod_cidrs(node: Node) -> list[str]:
    """The ranges of a Node, without those of IPv6."""
    return [each for each in pod_cidrs(node) if ":" not in each]


def node_address(node: Node) -> str:
    """The first InternalIP of IPv4, "" when the Node has none."""
    addresses = (node.get("status") or {}).get("addresses") or []
    found = (_address(each.get("address", "")) for each in addresses if each.get("type") == "InternalIP")
    return next((each for each in found if each), "")


def hardware_address(address: str) -> bytes:
    """Of the VXLAN link of the machine `address`: everybody can compute it, so nobody has to tell it."""
    return bytes([0x02, 0x03]) + IPv4Address(address).packed


def vxlan_source(own: Iterable[str]) -> str:
    """What a machine itself has as its address in the VXLAN network: the first of its Pods' ranges, which no Pod gets
    (as flannel's). "" when it has no Pods."""
    return next((str(IPv4Network(each).network_address) for each in own if each != NODE_NETWORK), "")


def _is_of_up(node: Node) -> bool:
    address = node_address(node)
    return bool(address) and IPv4Address(address) in IPv4Network(NODE_NETWORK)


def _checked(text: str, whole: IPv4Network, taken: list[tuple[IPv4Network, str]]) -> tuple[IPv4Network | None, str]:
    try:
        network = IPv4Network(text)
    except ValueError:
        return None, "is not an IPv4 network"
    if not network.subnet_of(whole):
        return None, f"is not in the Pod network {whole}"
    other = next((name for each, name in taken if each.overlaps(network)), "")
    return (None, f"is node {other}'s") if other else (network, "")


def _address(text: str) -> str:
    try:
        address = IPv4Address(text)
    except AddressValueError:
        return ""
    return "" if address.is_loopback or address.is_unspecified or address.is_multicast else str(address)


def _age(node: Node) -> tuple[str, str]:
    return str(node["metadata"].get("creationTimestamp") or ""), name_of(node)
