"""Services, their endpoints and the node → what happens to a connection. Pure.

Source: pkg/proxy/nftables/proxier.go:syncProxyRules, pkg/proxy/serviceport.go (UsesClusterEndpoints,
UsesLocalEndpoints). There are two kinds of sources: *inside* (Pods and the node itself) and *outside*. With
externalTrafficPolicy Local an inside source may go to any endpoint, an outside one to this node's only.
"""

# check: pure

from collections.abc import Mapping
from typing import Literal

from lastcall.kube.proxy.endpoints import Endpoint, PortKey
from lastcall.kube.proxy.names import API_SERVER
from lastcall.kube.proxy.services import Service, ServicePort
from lastcall.kube.proxy.topology import Categorized, Node, categorize_endpoints
from lastcall.world.dataclass import dataclass

Backend = tuple[str, int]
"""(address, port) of an endpoint."""

Refusal = Literal["", "reject", "drop"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a new connection goes: to one of `backends` (sorted, each as likely as the other), or it is refused."""

    backends: tuple[Backend, ...] = ()
    refusal: Refusal = ""


@dataclass(frozen=True, slots=True)
class Frontend:
    """An address and port that the node answers for.

    `outside` is None when outside sources are treated as inside ones. `masquerade`: the endpoint sees this node as the
    source, because the answer has to come back this way. `source_ranges`: others are dropped; () for everybody.
    """

    address: str
    protocol: str
    port: int
    inside: Target
    outside: Target | None = None
    cluster_ip: bool = False
    masquerade: bool = False
    source_ranges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PortRules:
    """All that one port of a Service asks for.

    `serving` are the addresses that may keep their UDP flows. `served_here` are addresses of the Service on which its
    endpoint listens itself: they need no rule.
    """

    name: str
    frontends: tuple[Frontend, ...]
    affinity_seconds: int = 0
    serving: tuple[str, ...] = ()
    served_here: tuple[str, ...] = ()


MOST_BACKENDS = 100_000
"""Of one Service on one node, over all its addresses and ports: each has every endpoint. A Service of a megabyte can
ask for hundreds of millions."""


class TooManyRulesError(Exception):
    """A Service asks for more than `MOST_BACKENDS`."""


def rules_of(service: Service, endpoints: Mapping[PortKey, tuple[Endpoint, ...]], node: Node) -> tuple[PortRules, ...]:
    """Return the rules of each port, in the order of the spec. Raises TooManyRulesError."""
    addresses = len(service.cluster_ips) + len(service.external_ips) + len(service.load_balancer_ips)
    backends = sum(
        (addresses + (len(node.addresses) if port.node_port else 0))
        * max(1, len(endpoints.get((port.name, port.protocol), ())))
        for port in service.ports
    )
    if backends > MOST_BACKENDS:
        raise TooManyRulesError(
            f"it has {backends} combinations of address, port and endpoint; {MOST_BACKENDS} is the most"
        )
    return tuple(
        _port_rules(service, port, endpoints.get((port.name, port.protocol), ()), node) for port in service.ports
    )


def local_ready_addresses(endpoints: Mapping[PortKey, tuple[Endpoint, ...]], node: Node) -> int:
    """Count ready endpoints here, for healthCheckNodePort. Terminating ones do not count, even if they serve."""
    return len({e.address for each in endpoints.values() for e in each if e.ready and e.node == node.name})


def _port_rules(service: Service, port: ServicePort, endpoints: tuple[Endpoint, ...], node: Node) -> PortRules:
    external = bool(port.node_port or service.external_ips or service.load_balancer_ips)
    uses_cluster = not service.internal_local or external
    uses_local = service.internal_local or (service.external_local and external)
    found = categorize_endpoints(endpoints, node, uses_cluster=uses_cluster, uses_local=uses_local)
    cluster, local = _target(found, found.cluster), _target(found, found.local)
    frontends = [
        Frontend(ip, port.protocol, port.port, inside=local if service.internal_local else cluster, cluster_ip=True)
        for ip in service.cluster_ips
    ]
    outside = local if service.external_local else None
    masquerade = not service.external_local
    frontends += [
        Frontend(ip, port.protocol, port.port, cluster, outside, masquerade=masquerade) for ip in service.external_ips
    ]
    frontends += [
        Frontend(
            ip, port.protocol, port.port, cluster, outside, masquerade=masquerade, source_ranges=service.source_ranges
        )
        for ip in service.load_balancer_ips
    ]
    if port.node_port:
        frontends += [
            Frontend(ip, port.protocol, port.node_port, cluster, outside, masquerade=masquerade)
            for ip in node.addresses
        ]
    serving = tuple(e.address for e in endpoints if e.ready or e.serving)
    here = tuple(f for f in frontends if _is_served_here(service, f))
    return PortRules(
        name=f"{service.namespace}/{service.name}:{port.name or port.port}/{port.protocol}",
        frontends=tuple(f for f in frontends if f not in here),
        affinity_seconds=service.affinity_seconds,
        serving=serving,
        served_here=tuple(f.address for f in here),
    )


def _target(found: Categorized, chosen: tuple[Endpoint, ...]) -> Target:
    if chosen:
        return Target(tuple(sorted((e.address, e.port) for e in chosen)))
    return Target(refusal="drop" if found.any else "reject")


def _is_served_here(service: Service, frontend: Frontend) -> bool:
    # A rule for the API server's address would cut the connections that were there before it.
    if (service.namespace, service.name) == API_SERVER and frontend.cluster_ip:
        return True
    return frontend.inside.backends == ((frontend.address, frontend.port),)
