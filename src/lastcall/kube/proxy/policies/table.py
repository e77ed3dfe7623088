"""Define the table `lastcall-policies`: what is always in it, and what the rules of one Pod add. Pure.

One chain sees every packet that comes to the node from a Pod or a link, behind the service proxy's translation: the
destination is the Pod that was chosen, the source the Pod that sends. What the node itself sends does not pass there,
so it reaches its Pods always, probes among it. Answers pass, and connections that stand when a policy comes.

An isolated Pod leads, by its address, to a chain for each direction that returns for what is allowed and drops the
rest. Pods with equal rules share it; the Pods that a peer means are a set, so that one that comes changes an element.
So are the addresses of a block with excepts, of which a policy may have thousands.
"""

# check: pure

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from lastcall.kube.nftables import statements as nft
from lastcall.kube.nftables.objects import Chain, Hook, NftSet, SetKey
from lastcall.kube.nftables.state import Fragment
from lastcall.kube.nftables.statements import Rule
from lastcall.kube.proxy.policies.decide import Allowed, Labels, Named, PodRules, allows, endpoints, members, ranges
from lastcall.kube.proxy.policies.policy import Block, Peer, PodPeer, PolicyPod
from lastcall.world.dataclass import dataclass

JUDGED = NftSet("judged-here", "addresses")
"""Addresses that the node answers for others: the API server's, the cluster DNS server's."""
ITSELF = NftSet("itself", "address pairs")
INGRESS = NftSet("isolated-ingress", "address verdicts")
EGRESS = NftSet("isolated-egress", "address verdicts")
_AFTER_TRANSLATION = -92
"""Translations run at -100, whatever the priority of their chains."""


@dataclass(frozen=True, slots=True)
class Alias:
    """`service` is another name of `endpoint`, both (address, TCP port): a connection to the first is judged as one to
    the second, as it would be where the service proxy translates it. The API server answers on both itself."""

    service: tuple[str, int]
    endpoint: tuple[str, int]


def skeleton(judged: Iterable[str]) -> Fragment:
    """Return the content of the table when no Pod is isolated."""
    arriving: tuple[Rule, ...] = (
        (nft.known_connection(), nft.verdict("return")),
        (nft.daddr_in(JUDGED.name), nft.verdict("goto connections")),
        (nft.daddr_local(), nft.verdict("return")),
        (nft.verdict("goto connections"),),
    )
    connections: tuple[Rule, ...] = (
        (nft.both_addresses_in(ITSELF.name), nft.verdict("return")),
        (nft.saddr_verdict(EGRESS.name),),
        (nft.daddr_verdict(INGRESS.name),),
    )
    fragment: Fragment = dict.fromkeys((JUDGED, ITSELF, INGRESS, EGRESS))
    fragment[Chain("connections", connections)] = None
    fragment[Chain("arriving", arriving, Hook("filter", "prerouting", _AFTER_TRANSLATION))] = None
    fragment |= {(JUDGED.name, (address,)): None for address in judged}
    return fragment


@dataclass(frozen=True, slots=True)
class Meant:
    """What the elements of a set are: the addresses of `peer`, or its endpoints with a port of the name `named`."""

    set: NftSet
    peer: Peer
    named: Named | None = None


@dataclass(frozen=True, slots=True)
class Chains:
    """The chains of Pods with equal rules, None for a direction in which they are not isolated; what they name."""

    ingress: Chain | None
    egress: Chain | None
    sets: tuple[Meant, ...]


def chains_of(rules: PodRules, api_server: Alias) -> Chains:
    """Return the chains of rules, named by their contents."""
    meant: dict[tuple[int, Named | None], Meant] = {}

    def set_of(peer: Peer, named: Named | None) -> str:
        key = id(peer), named  # one that many ports are combined with is read once; `rules` keeps it
        if key not in meant:
            meant[key] = Meant(_set_of(peer, named), peer, named)
        return meant[key].set.name

    ingress = _chain(rules.ingress, api_server, set_of, is_ingress=True) if rules.ingress is not None else None
    egress = _chain(rules.egress, api_server, set_of, is_ingress=False) if rules.egress is not None else None
    return Chains(ingress, egress, tuple(meant.values()))


def fragment_of(pod: PolicyPod, chains: Chains) -> Fragment:
    """Return what the chains put into the table for a Pod of this node, without the sets that they name."""
    fragment: Fragment = {}
    for isolated, chain in ((INGRESS, chains.ingress), (EGRESS, chains.egress)):
        if chain is not None:
            fragment[chain] = None
            fragment[isolated.name, (pod.address,)] = f"jump {chain.name}"
            fragment[ITSELF.name, (pod.address, pod.address)] = None
    return fragment


SetNames = Callable[[Peer, Named | None], str]


def _chain(allowed: tuple[Allowed, ...], api_server: Alias, set_of: SetNames, *, is_ingress: bool) -> Chain:
    rules: tuple[Rule, ...] = () if is_ingress else (_to_api_server(allowed, api_server),)
    rules += tuple(
        (*statements, nft.verdict("return")) for each in allowed for statements in _rules(each, set_of, is_ingress)
    )
    text = "\n".join(map(nft.text_of, rules))
    return Chain(f"{'ingress' if is_ingress else 'egress'}-{_hash(text)}", (*rules, (nft.verdict("drop"),)))


def _to_api_server(allowed: tuple[Allowed, ...], api_server: Alias) -> Rule:
    address, port = api_server.service
    verdict = nft.verdict(
        "return" if allows(allowed, api_server.endpoint[0], "TCP", api_server.endpoint[1]) else "drop"
    )
    return nft.daddr_within(f"{address}/32"), nft.to_port("TCP", port), verdict


def _rules(allowed: Allowed, set_of: SetNames, is_ingress: bool) -> Iterator[Rule]:
    peer, ports = allowed.peer, allowed.ports
    if isinstance(ports, Named):
        if isinstance(peer, PodPeer):
            yield (nft.service_in(set_of(peer, ports)),)
        return
    rule: list[nft.Statement] = []
    if isinstance(peer, Block) and not peer.excepts:
        rule.append((nft.saddr_within if is_ingress else nft.daddr_within)(peer.network))
    elif peer is not None:
        rule.append((nft.saddr_in if is_ingress else nft.daddr_in)(set_of(peer, None)))
    if ports is not None:
        if not ports.first:
            rule.append(nft.of_protocol(ports.protocol))
        elif ports.first == ports.last:
            rule.append(nft.to_port(ports.protocol, ports.first))
        else:
            rule.append(nft.to_ports(ports.protocol, ports.first, ports.last))
    yield tuple(rule)


def _set_of(peer: Peer, named: Named | None) -> NftSet:
    text = repr(peer)
    if isinstance(peer, Block):
        return NftSet(f"block-{_hash(text)}", "address ranges")
    if named is None:
        return NftSet(f"pods-{_hash(text)}", "addresses")
    return NftSet(f"ports-{_hash(text, named.protocol, named.name)}", "services")


def set_fragment(meant: Meant, pods: list[PolicyPod], namespaces: Mapping[str, Labels]) -> Fragment:
    """Return a set with its elements."""
    fragment: Fragment = {meant.set: None}
    fragment |= {(meant.set.name, key): None for key in _elements(meant.peer, meant.named, pods, namespaces)}
    return fragment


def _elements(
    peer: Peer, named: Named | None, pods: list[PolicyPod], namespaces: Mapping[str, Labels]
) -> Iterable[SetKey]:
    if isinstance(peer, Block):
        return ((each,) for each in ranges(peer))
    if named is None:
        return ((pod.address,) for pod in members(peer, pods, namespaces))
    return endpoints(peer, named, pods, namespaces)


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
