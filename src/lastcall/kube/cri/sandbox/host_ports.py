"""`hostPort`: ports of the node that lead to a Pod. `rules_of` is pure; `HostPorts` keeps the kernel in step.

Source: CNI plugins plugins/meta/portmap (portmap_nftables.go), which containerd runs after the Pod has its address. New
connections to an address of the node are translated, wherever they come from: other nodes, Pods, the node itself by
127.0.0.1, the Pod itself. A Service that asks for the same address and port has it: its translation comes first.

The table `lastcall-hostports` exists while a Pod asks for a port of the node. Each change replaces it in one
transaction: such Pods are few.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv4Address

from lastcall.kube.cri.api import PortMapping
from lastcall.kube.nftables import conntrack, encode
from lastcall.kube.nftables import statements as nft
from lastcall.kube.nftables.names import HOST_PORTS as TABLE
from lastcall.kube.nftables.objects import AddChain, AddElements, AddRule, AddSet, Chain, Hook, NftSet, Transaction
from lastcall.kube.nftables.statements import Rule
from lastcall.world import netlink
from lastcall.world.dataclass import dataclass

LOOPBACK = "127.0.0.0/8"
_ANY = ("", "0.0.0.0", "::")  # noqa: S104 - what a Pod asks for, not an address to bind
_BEFORE_DSTNAT, _AFTER_SERVICES, _SRCNAT = -110, -95, 100
"""The service proxy translates at -100, connections of Pods to the outside are redirected at -90."""
_HAIRPIN = NftSet("hairpin", "address pairs")
_PODS = NftSet("pods", "addresses")


@dataclass(frozen=True, slots=True)
class PodPorts:
    """What one Pod asks for; `mappings` are those of IPv4 that name a port of the node."""

    address: str
    mappings: tuple[PortMapping, ...]


def wanted(mappings: Iterable[PortMapping]) -> tuple[PortMapping, ...]:
    """Return those that can lead to an IPv4 Pod: a hostIP of IPv6, or one that is not an address, is not served."""
    return tuple(each for each in mappings if each.host_port > 0 and _is_served(each.host_ip))


def _is_served(host_ip: str) -> bool:
    if host_ip in _ANY:
        return True
    try:
        IPv4Address(host_ip)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Kept:
    """What no Pod can take: `networks` whose addresses the kernel counts as local though they are not the node's own
    (the Service network, part of which the node answers), and TCP `ports` of the node's own daemons."""

    networks: tuple[str, ...] = ()
    ports: tuple[tuple[str, int], ...] = ()


def rules_of(pods: Iterable[PodPorts], kept: Kept) -> Transaction:
    """Return the whole table."""
    pods = list(pods)
    specific, anywhere = _translations(pods)
    loopback_from_outside: tuple[Rule, ...] = (
        (nft.not_from_loopback(), nft.daddr_within(LOOPBACK), nft.verdict("drop")),
    )
    translate: tuple[Rule, ...] = (
        *((nft.daddr_within(network), nft.verdict("return")) for network in kept.networks),
        *(
            (nft.daddr_within(f"{address}/32"), nft.to_port("TCP", port), nft.verdict("return"))
            for address, port in kept.ports
        ),
        (nft.daddr_local(), nft.verdict("jump ports")),
    )
    chains = (
        Chain("ports", (*specific, *anywhere)),
        # Packets to 127.0.0.1 may be routed to these Pods, so they must not come in from a Pod either.
        Chain("guard", loopback_from_outside, Hook("filter", "prerouting", _BEFORE_DSTNAT)),
        Chain("nat-prerouting", translate, Hook("nat", "prerouting", _AFTER_SERVICES)),
        Chain("nat-output", translate, Hook("nat", "output", _AFTER_SERVICES)),
        Chain(
            "nat-postrouting",
            (
                (nft.both_addresses_in(_HAIRPIN.name), nft.masquerade()),
                (nft.saddr_within(LOOPBACK), nft.daddr_in(_PODS.name), nft.masquerade()),
            ),
            Hook("nat", "postrouting", _SRCNAT),
        ),
    )
    addresses = sorted({pod.address for pod in pods})
    return Transaction(
        (
            AddSet(_HAIRPIN),
            AddSet(_PODS),
            *(AddChain(chain) for chain in chains),
            *(AddRule(chain.name, rule) for chain in chains for rule in chain.rules),
            AddElements(_HAIRPIN.name, tuple(((address, address), None) for address in addresses)),
            AddElements(_PODS.name, tuple(((address,), None) for address in addresses)),
        ),
        replace=True,
    )


def _translations(pods: Iterable[PodPorts]) -> tuple[list[Rule], list[Rule]]:
    """Those for one address of the node, and those for all. Of two Pods with one port the older has it."""
    specific: list[Rule] = []
    anywhere: list[Rule] = []
    for pod in pods:
        for each in pod.mappings:
            to = (
                nft.to_port(each.protocol, each.host_port),
                nft.dnat_to(each.protocol, pod.address, each.container_port),
            )
            if each.host_ip in _ANY:
                anywhere.append(to)
            else:
                specific.append((nft.daddr_within(f"{each.host_ip}/32"), *to))
    return specific, anywhere


def udp_frontends(pod: PodPorts, node_addresses: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the (address, port) to which UDP clients of these ports send."""
    for each in pod.mappings:
        if each.protocol == "UDP":
            for address in node_addresses if each.host_ip in _ANY else (each.host_ip,):
                yield address, each.host_port


class HostPorts:
    """The ports of one node's Pods. Every method belongs to one thread, in the node's network namespace, and raises
    OSError. Mappings that no rule can express raise any Exception, and are not taken in."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._pods: dict[str, PodPorts] = {}
        """By sandbox; the oldest first."""

    def __contains__(self, sandbox_id: str) -> bool:
        return sandbox_id in self._pods

    def open(self, sandbox_id: str, address: str, mappings: Iterable[PortMapping], node_addresses: list[str]) -> None:
        """Open the Pod's ports: they lead to it when this returns; nothing has changed when it raises."""
        self.adopt(sandbox_id, address, mappings)
        if sandbox_id not in self._pods:
            return
        try:
            self.write()
        except Exception:
            del self._pods[sandbox_id]
            raise
        self._end_flows(self._pods[sandbox_id], frozenset([address]), node_addresses)

    def adopt(self, sandbox_id: str, address: str, mappings: Iterable[PortMapping]) -> None:
        """Store known ports; `write` puts them into the kernel."""
        if ports := wanted(mappings):
            pod = PodPorts(address, ports)
            encode.batch(rules_of([pod], self._kept), TABLE)  # raises for it alone, not for all that are written later
            self._pods[sandbox_id] = pod

    def close(self, sandbox_id: str, node_addresses: list[str]) -> None:
        """Close the ports of a sandbox; unknown is a success. Repeat it after an error."""
        pod = self._pods.pop(sandbox_id, None)
        if pod is None:
            return
        try:
            self.write()
        except Exception:
            self._pods[sandbox_id] = pod
            raise
        self._end_flows(pod, frozenset(), node_addresses)

    def write(self) -> None:
        """Write the table that the Pods ask for, whatever it holds; without Pods there is none."""
        messages = encode.batch(rules_of(self._pods.values(), self._kept), TABLE)
        with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as netfilter:
            netfilter.widen(16 << 20)
            netfilter.batch(encode.NF_TABLES, messages if self._pods else encode.removal(TABLE))

    @staticmethod
    def _end_flows(pod: PodPorts, answering: frozenset[str], node_addresses: list[str]) -> None:
        """A UDP client that goes on sending stays in its flow, also when another Pod has the port."""
        frontends = dict.fromkeys(udp_frontends(pod, [*node_addresses, "127.0.0.1"]), answering)
        with suppress(OSError):  # the flow ends by itself when its client rests
            conntrack.clean(frontends)
