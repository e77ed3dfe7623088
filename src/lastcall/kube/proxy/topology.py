"""Which endpoints a node sends a Service's traffic to.

Source: pkg/proxy/topology.go:CategorizeEndpoints, topologyModeFromHints.
"""

# check: pure

from collections.abc import Sequence

from lastcall.kube.proxy.endpoints import Endpoint
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """`addresses` are those on which NodePorts answer; `zone` is "" when the Node has no such label."""

    name: str
    zone: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Categorized:
    """`cluster`: for traffic that may go to any node. `local`: for traffic that must stay on this one.

    `any`: whether there is an endpoint anywhere that would take traffic. Both lists keep the order given.
    """

    cluster: tuple[Endpoint, ...] = ()
    local: tuple[Endpoint, ...] = ()
    any: bool = False


def categorize_endpoints(
    endpoints: Sequence[Endpoint], node: Node, *, uses_cluster: bool = True, uses_local: bool = False
) -> Categorized:
    """Sort endpoints into those of the whole cluster and the local ones; a list that no policy asks for stays empty.

    Ready endpoints, narrowed by topology; if there is none, those that serve while they terminate, wherever they are.
    The local list falls back by itself: to local ones that terminate, even when others are ready elsewhere.
    """
    cluster: tuple[Endpoint, ...] = ()
    if uses_cluster:
        mode = topology_mode(endpoints, node)
        cluster = tuple(e for e in endpoints if e.ready and _available(e, mode, node))
        if not cluster:
            cluster = tuple(e for e in endpoints if e.serving and e.terminating)
    local: tuple[Endpoint, ...] = ()
    if uses_local:
        here = [e for e in endpoints if e.node == node.name]
        local = tuple(e for e in here if e.ready) or tuple(e for e in here if e.serving and e.terminating)
    any_ = any(e.ready or (e.serving and e.terminating) for e in endpoints)
    return Categorized(cluster, local, any_)


def topology_mode(endpoints: Sequence[Endpoint], node: Node) -> str:
    """Return `PreferSameNode`, `PreferSameZone` or "". Every ready endpoint must have a hint, and one must name us."""
    ready = [e for e in endpoints if e.ready]
    if all(e.node_hints for e in ready) and any(node.name in e.node_hints for e in ready):
        return "PreferSameNode"
    if node.zone and all(e.zone_hints for e in ready) and any(node.zone in e.zone_hints for e in ready):
        return "PreferSameZone"
    return ""


def _available(endpoint: Endpoint, mode: str, node: Node) -> bool:
    if mode == "PreferSameNode":
        return node.name in endpoint.node_hints
    if mode == "PreferSameZone":
        return node.zone in endpoint.zone_hints
    return True
