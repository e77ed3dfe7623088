"""NetworkPolicies, Pods and namespaces → what each Pod may receive and send. Pure.

A Pod is isolated for a direction when a policy that selects it is about that direction; then exactly what some of
those policies allow is allowed. Both ends have to agree: the sender's egress and the receiver's ingress.
Source: the documentation of NetworkPolicy (concepts/services-networking/network-policies), staging api types.go.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network

from lastcall.kube.proxy.policies.policy import (
    ALL_PODS,
    Block,
    Peer,
    PodPeer,
    Policy,
    PolicyPod,
    PolicyPort,
    PolicyRule,
)
from lastcall.world.dataclass import dataclass

Endpoint = tuple[str, str, int]
"""(address, protocol, port)."""
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports from `first` to `last`; 0 to 0 is every port of the protocol."""

    protocol: str
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Named:
    """The port of this name of the Pod to which a connection goes."""

    protocol: str
    name: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """Connections that are allowed: with `peer` (None: with everybody), to `ports` (None: to every port)."""

    peer: Peer | None
    ports: Ports | Named | None


@dataclass(frozen=True, slots=True)
class PodRules:
    """What is allowed in each direction, None where the Pod is not isolated. `…_policies` are the names of those that
    isolate it."""

    ingress: tuple[Allowed, ...] | None = None
    egress: tuple[Allowed, ...] | None = None
    ingress_policies: tuple[str, ...] = ()
    egress_policies: tuple[str, ...] = ()


MOST_ALLOWED = 10_000
"""What one Pod may be allowed in one direction: each peer of a rule with each of its ports is one. The kernel tries
them one after the other, and a policy of a megabyte can ask for hundreds of millions."""


class TooManyRulesError(Exception):
    """The policies about a Pod ask for more than `MOST_ALLOWED`."""


def rules_of(pod: PolicyPod, policies: Iterable[Policy]) -> PodRules:
    """Return what a Pod may do, in the order of the policies, without repetitions. Raises TooManyRulesError."""
    selecting = [policy for policy in policies if policy.selects(pod)]
    ingress = [policy for policy in selecting if policy.ingress is not None]
    egress = [policy for policy in selecting if policy.egress is not None]
    received = (allowed for policy in ingress for rule in policy.ingress or () for allowed in _received(rule, pod))
    sent = (allowed for policy in egress for rule in policy.egress or () for allowed in _sent(rule))
    return PodRules(
        _distinct(received, "ingress") if ingress else None,
        _distinct(sent, "egress") if egress else None,
        tuple(policy.name for policy in ingress),
        tuple(policy.name for policy in egress),
    )


def closed_rules(pod: PolicyPod, policies: Iterable[Policy]) -> PodRules:
    """Return what isolates a Pod in the same directions as `rules_of` and allows nothing."""
    selecting = [policy for policy in policies if policy.selects(pod)]
    ingress = tuple(policy.name for policy in selecting if policy.ingress is not None)
    egress = tuple(policy.name for policy in selecting if policy.egress is not None)
    return PodRules(() if ingress else None, () if egress else None, ingress, egress)


def _distinct(found: Iterable[Allowed], direction: str) -> tuple[Allowed, ...]:
    distinct: dict[Allowed, None] = {}
    for number, allowed in enumerate(found):
        if number == MOST_ALLOWED:
            raise TooManyRulesError(
                f"its policies have more than {MOST_ALLOWED} pairs of a peer and a port for {direction}"
            )
        distinct[allowed] = None
    return tuple(distinct)


def _received(rule: PolicyRule, pod: PolicyPod) -> Iterable[Allowed]:
    """A name of a port is that of the receiving Pod's; where it has none, nothing is allowed by it."""
    ports: list[Ports | None] = []
    for each in rule.ports if rule.ports is not None else ():
        if isinstance(each.port, str):
            named = (each.port, each.protocol)
            ports += [Ports(p, number, number) for name, p, number in pod.ports if (name, p) == named]
        else:
            ports.append(_numbers(each))
    for peer in rule.peers if rule.peers is not None else (None,):
        for port in ports if rule.ports is not None else (None,):
            yield Allowed(peer, port)


def _sent(rule: PolicyRule) -> Iterable[Allowed]:
    """A name of a port is that of a Pod which receives: an address outside of the cluster has none."""
    for peer in rule.peers if rule.peers is not None else (None,):
        for each in rule.ports if rule.ports is not None else (None,):
            if each is None:
                yield Allowed(peer, None)
            elif not isinstance(each.port, str):
                yield Allowed(peer, _numbers(each))
            elif not isinstance(peer, Block):
                yield Allowed(peer or ALL_PODS, Named(each.protocol, each.port))


def _numbers(port: PolicyPort) -> Ports:
    if not isinstance(port.port, int):
        return Ports(port.protocol)
    return Ports(port.protocol, port.port, port.end or port.port)


def allows(allowed: Iterable[Allowed], address: str, protocol: str, port: int) -> bool:
    """Return True if a connection to or from an address that no Pod has is allowed."""
    return any(_is_of(each.peer, address) and _is_by(each.ports, protocol, port) for each in allowed)


def _is_of(peer: Peer | None, address: str) -> bool:
    if not isinstance(peer, Block):
        return peer is None
    its = IPv4Address(address)
    return its in IPv4Network(peer.network) and not any(its in IPv4Network(each) for each in peer.excepts)


def _is_by(ports: Ports | Named | None, protocol: str, port: int) -> bool:
    if not isinstance(ports, Ports):
        return ports is None
    return ports.protocol == protocol and (not ports.first or ports.first <= port <= ports.last)


def ranges(block: Block) -> list[str]:
    """Return the addresses of a block without its excepts, as `first-last` in their order; no two ranges touch."""
    network = IPv4Network(block.network)
    start, end = int(network.network_address), int(network.broadcast_address)
    found = []
    for each in sorted(map(IPv4Network, block.excepts)):
        first, last = int(each.network_address), int(each.broadcast_address)
        if first > end:
            break
        if first > start:
            found.append((start, first - 1))
        start = max(start, last + 1)
    if start <= end:
        found.append((start, end))
    return [f"{IPv4Address(first)}-{IPv4Address(last)}" for first, last in found]


def members(peer: PodPeer, pods: Iterable[PolicyPod], namespaces: Mapping[str, Labels]) -> list[PolicyPod]:
    """Return the Pods that a peer means. A namespace that is not known has no labels."""
    if peer.namespaces is None:
        return [pod for pod in pods if pod.namespace == peer.namespace and peer.pods.matches(pod.labels)]
    chosen = {name for name, labels in namespaces.items() if peer.namespaces.matches(labels)}
    return [pod for pod in pods if pod.namespace in chosen and peer.pods.matches(pod.labels)]


def endpoints(
    peer: PodPeer, named: Named, pods: Iterable[PolicyPod], namespaces: Mapping[str, Labels]
) -> list[Endpoint]:
    """Return the ports of that name which the Pods of a peer have."""
    return [
        (pod.address, protocol, number)
        for pod in members(peer, pods, namespaces)
        for name, protocol, number in pod.ports
        if (name, protocol) == (named.name, named.protocol)
    ]
