"""Define the table: what is always in it, and what the rules of one Service add.

A new connection's cost does not depend on how many Services there are, and neither does an update's. A Service port
with n endpoints has n elements in the map `endpoints-<n>`, keyed by address, protocol, port and a slot 0 … n-1, and a
chain for each n in use looks for a random slot: `dnat to ip daddr . meta l4proto . th dport . numgen random mod n map
@endpoints-n`. So every endpoint is exactly as likely as the others, and an endpoint change touches map elements with
plain data only: a verdict (as a map of chains would have) makes the kernel walk all of the table to look for loops.

Order of a connection: checks (filter, before any translation) refuse; services (nat) choose; what is to a ClusterIP
and was not translated is refused; postrouting makes the node the source where the answer would take another way.
"""

# check: pure

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from lastcall.kube.nftables import statements as nft
from lastcall.kube.nftables.objects import Chain, Hook, NftSet, SetKey
from lastcall.kube.nftables.state import Fragment
from lastcall.kube.nftables.statements import Rule
from lastcall.kube.proxy.rules import Backend, Frontend, PortRules, Target

SERVICE_ADDRESSES = NftSet("service-addresses", "addresses")
"""All addresses that a rule may be about: other packets are not looked at further."""
CLUSTER_IPS = NftSet("cluster-ips", "addresses")
NODE_SERVICES = NftSet("node-services", "addresses")
"""ClusterIPs on which a process of this node listens: reached without us."""
NO_ENDPOINTS = NftSet("no-endpoints", "services")
NO_LOCAL_ENDPOINTS = NftSet("no-local-endpoints", "services")
NO_LOCAL_ENDPOINTS_OUTSIDE = NftSet("no-local-endpoints-outside", "services")
MASQUERADED = NftSet("masqueraded", "services")
HAIRPIN = NftSet("hairpin-endpoints", "address pairs")
FIREWALL = NftSet("firewall", "service verdicts")
AFFINITY = NftSet("affinity", "service verdicts")
AFFINITY_OUTSIDE = NftSet("affinity-outside", "service verdicts")

ALWAYS_COUNTS = range(1, 9)
"""Numbers of endpoints whose map and rule always stand ready, so that scaling in small touches elements only."""

_DSTNAT, _SRCNAT, _FILTER = -100, 100, 0
_BEFORE_DSTNAT = _DSTNAT - 10


@lru_cache
def endpoints_map(count: int, *, outside: bool = False) -> NftSet:
    return NftSet(f"{'outside-' if outside else ''}endpoints-{count}", "service slots")


@lru_cache
def by_slot(slots: NftSet) -> Chain:
    """Return the chain whose rule chooses from one map of endpoints.

    In a chain of its own, so that it is written together with its map: nft 1.0.6 refuses to add a rule with a map of
    this type that exists already.
    """
    count = int(slots.name.rpartition("-")[2])
    return Chain(slots.name, ((nft.dnat_by_slot(slots.name, count),),))


def skeleton(pod_cidr: str, service_cidr: str) -> Fragment:
    """Return the content of the table of a node without Services. `pod_cidr` is that of the whole cluster."""
    outside: Rule = (nft.saddr_within(pod_cidr, outside=True), nft.saddr_not_local())
    checks: tuple[Rule, ...] = (
        (nft.service_verdict(FIREWALL.name),),
        (nft.service_in(NO_ENDPOINTS.name), nft.reject()),
        (nft.service_in(NO_LOCAL_ENDPOINTS.name), nft.verdict("drop")),
        (nft.service_in(NO_LOCAL_ENDPOINTS_OUTSIDE.name), *outside, nft.verdict("drop")),
    )
    check: tuple[Rule, ...] = (
        (nft.new_connection(), nft.daddr_in(SERVICE_ADDRESSES.name), nft.verdict("jump checks")),
    )
    unknown: tuple[Rule, ...] = (
        (nft.daddr_in(NODE_SERVICES.name), nft.verdict("return")),
        (nft.daddr_in(CLUSTER_IPS.name), nft.reject()),
        (nft.daddr_within(service_cidr), nft.verdict("drop")),
    )
    check_unknown: tuple[Rule, ...] = ((nft.new_connection(), nft.verdict("jump unknown-services")),)
    ours = nft.daddr_in(SERVICE_ADDRESSES.name)
    chains = (
        Chain("checks", checks),
        Chain("unknown-services", unknown),
        Chain("filter-prerouting", check, Hook("filter", "prerouting", _BEFORE_DSTNAT)),
        Chain("filter-output", check, Hook("filter", "output", _BEFORE_DSTNAT)),
        Chain("filter-input", check_unknown, Hook("filter", "input", _FILTER)),
        Chain("filter-forward", check_unknown, Hook("filter", "forward", _FILTER)),
        Chain("filter-output-after", check_unknown, Hook("filter", "output", _FILTER)),
        Chain(
            "nat-prerouting",
            (
                (ours, *outside, nft.verdict("jump services-outside")),
                (ours, nft.verdict("jump services")),
            ),
            Hook("nat", "prerouting", _DSTNAT),
        ),
        Chain("nat-output", ((ours, nft.verdict("jump services")),), Hook("nat", "output", _DSTNAT)),
        Chain(
            "nat-postrouting",
            (
                (nft.both_addresses_in(HAIRPIN.name), nft.masquerade()),
                (nft.marked_for_masquerade(), nft.unmark(), nft.masquerade()),
            ),
            Hook("nat", "postrouting", _SRCNAT),
        ),
    )
    always = [endpoints_map(count) for count in ALWAYS_COUNTS]
    sets = (
        SERVICE_ADDRESSES,
        CLUSTER_IPS,
        NODE_SERVICES,
        NO_ENDPOINTS,
        NO_LOCAL_ENDPOINTS,
        NO_LOCAL_ENDPOINTS_OUTSIDE,
        MASQUERADED,
        HAIRPIN,
        FIREWALL,
        AFFINITY,
        AFFINITY_OUTSIDE,
        *always,
    )
    return dict.fromkeys((*sets, *map(by_slot, always), *chains))


def service_chains(sets: Iterable[NftSet]) -> tuple[Chain, Chain]:
    """Return the chains that choose an endpoint: a rule for each map of endpoints that exists."""
    names = {each.name for each in sets}
    inside: list[Rule] = [
        (nft.service_in(MASQUERADED.name), nft.mark_for_masquerade()),
        (nft.service_verdict(AFFINITY.name),),
    ]
    outside: list[Rule] = [
        (nft.daddr_in(CLUSTER_IPS.name), nft.mark_for_masquerade()),
        (nft.service_verdict(AFFINITY_OUTSIDE.name),),
    ]
    for rules, prefix in ((inside, "endpoints-"), (outside, "outside-endpoints-")):
        counts = sorted(int(name.removeprefix(prefix)) for name in names if name.startswith(prefix))
        rules.extend((nft.verdict(f"jump {prefix}{count}"),) for count in counts)
    return Chain("services", tuple(inside)), Chain("services-outside", tuple(outside))


def answered_here(addresses: Iterable[str]) -> Fragment:
    """Return what lets packets to addresses of the Service network through to the node itself."""
    return {(NODE_SERVICES.name, (address,)): None for address in addresses}


def fragment_of(rules: Iterable[PortRules]) -> Fragment:
    """Return what the ports of one Service put into the table."""
    fragment: Fragment = {}
    for port in rules:
        for address in port.served_here:
            fragment[NODE_SERVICES.name, (address,)] = None
        for frontend in port.frontends:
            _add_frontend(fragment, port, frontend)
    return fragment


def _add_frontend(fragment: Fragment, port: PortRules, frontend: Frontend) -> None:
    key = (frontend.address, frontend.protocol, frontend.port)
    fragment[SERVICE_ADDRESSES.name, (frontend.address,)] = None
    if frontend.cluster_ip:
        fragment[CLUSTER_IPS.name, (frontend.address,)] = None
    if frontend.masquerade:
        fragment[MASQUERADED.name, key] = None
    if frontend.source_ranges:
        chain = _firewall_chain(frontend.source_ranges)
        fragment[chain] = None
        fragment[FIREWALL.name, key] = f"jump {chain.name}"
    outside = frontend.outside if frontend.outside != frontend.inside else None
    _add_target(fragment, port, key, frontend.inside, is_outside=False)
    if outside is not None:
        _add_target(fragment, port, key, outside, is_outside=True)


def _add_target(fragment: Fragment, port: PortRules, key: SetKey, target: Target, *, is_outside: bool) -> None:
    if target.refusal:
        if is_outside:
            refused = NO_LOCAL_ENDPOINTS_OUTSIDE
        else:
            refused = NO_ENDPOINTS if target.refusal == "reject" else NO_LOCAL_ENDPOINTS
        fragment[refused.name, key] = None
        return
    for address, _ in target.backends:
        fragment[HAIRPIN.name, (address, address)] = None
    if port.affinity_seconds:
        chain = _affinity_chains(fragment, port, target)
        fragment[(AFFINITY_OUTSIDE if is_outside else AFFINITY).name, key] = f"goto {chain}"
        return
    slots = endpoints_map(len(target.backends), outside=is_outside)
    fragment[slots] = None
    fragment[by_slot(slots)] = None
    for slot, backend in enumerate(target.backends):
        fragment[slots.name, (*key, slot)] = backend


@lru_cache(16)
def _firewall_chain(source_ranges: tuple[str, ...]) -> Chain:
    """Named by its contents, so that Services with equal ranges share one and a change makes another; all ports of a
    Service do."""
    rules: list[Rule] = [(nft.saddr_within(network), nft.verdict("return")) for network in source_ranges]
    return Chain(f"firewall-{_hash(*source_ranges)}", (*rules, (nft.verdict("drop"),)))


def _affinity_chains(fragment: Fragment, port: PortRules, target: Target) -> str:
    """As kube-proxy: each endpoint has a set of the clients it keeps; a client in none gets a random one.

    The work for a packet grows with the number of endpoints, of Services with sessionAffinity only.
    """
    known: list[Rule] = []
    chosen: list[Rule] = []
    for position, backend in enumerate(target.backends):
        chain, clients = _endpoint_chain(port, backend)
        fragment[clients] = None
        fragment[chain] = None
        known.append((nft.saddr_in(clients.name), nft.verdict(f"goto {chain.name}")))
        left = len(target.backends) - position
        chance = (nft.one_in(left),) if left > 1 else ()
        chosen.append((*chance, nft.verdict(f"goto {chain.name}")))
    name = f"affinity-{_hash(port.name, *(f'{a}:{p}' for a, p in target.backends), str(port.affinity_seconds))}"
    fragment[Chain(name, (*known, *chosen))] = None
    return name


def _endpoint_chain(port: PortRules, backend: Backend) -> tuple[Chain, NftSet]:
    protocol = port.name.rpartition("/")[2]
    address, number = backend
    digest = _hash(port.name, f"{address}:{number}", str(port.affinity_seconds))
    clients = NftSet(f"clients-{digest}", "sources", port.affinity_seconds)
    rules: tuple[Rule, ...] = (
        (nft.remember_source(clients.name),),
        (nft.dnat_to(protocol, address, number),),
    )
    return Chain(f"endpoint-{digest}", rules), clients


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def backends_of(rules: Iterable[PortRules]) -> Mapping[str, None]:
    """Return the addresses that get new connections by these rules."""
    found: dict[str, None] = {}
    for port in rules:
        for frontend in port.frontends:
            for target in (frontend.inside, frontend.outside):
                for address, _ in target.backends if target is not None else ():
                    found[address] = None
    return found
