"""How good each node that fits is, with the weights of the default profile. Pure.

Sources: plugins/noderesources/{least_allocated,balanced_allocation}.go, plugins/tainttoleration, plugins/nodeaffinity,
pkg/scheduler/apis/config/v1/default_plugins.go (weights). Images on nodes are not scored. Of nodes with equal points
the original takes any; here it is the one with the fewest Pods, then the first by name.
"""

# check: pure

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.scheduling import PREFER_NO_SCHEDULE, matches_term, tolerates
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_affinity import affinity_scores
from lastcall.kube.scheduler.pod_info import PodInfo, Requirements
from lastcall.kube.scheduler.pod_resources import CPU, MEMORY
from lastcall.kube.scheduler.topology_spread import spread_scores

if TYPE_CHECKING:
    from lastcall.kube.api.types.scheduling import NodeSelectorTerm

MAX_SCORE = 100

Scores = Callable[[PodInfo, Sequence[NodeInfo], Cache], list[int] | None]
"""(Pod, nodes that fit, cache) → 0 to 100 for each node, None when the plugin has nothing to say."""


def resource_score(asked: Requirements, node: NodeInfo) -> int:
    """Return NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation: the part that is one node's own."""
    return least_allocated(asked, node) + (balanced(asked, node) if asked.requests else 0)


def least_allocated(asked: Requirements, node: NodeInfo) -> int:
    """Return the mean of what stays free, in percent; containers that ask for nothing count as small ones."""
    total = weight = 0
    for name, wanted in (
        (CPU, node.scored_cpu + asked.scored_cpu),
        (MEMORY, node.scored_memory + asked.scored_memory),
    ):
        there = node.allocatable.get(name, 0)
        if there:
            weight += 1
            if wanted <= there:
                total += (there - wanted) * MAX_SCORE // there
    return total // weight if weight else 0


def balanced(asked: Requirements, node: NodeInfo) -> int:
    """Return 100 when cpu and memory are used to the same part."""
    parts = [
        min(1.0, (node.requested.get(name, 0) + asked.requests.get(name, 0)) / there)
        for name in (CPU, MEMORY)
        if (there := node.allocatable.get(name, 0))
    ]
    deviation = abs(parts[0] - parts[1]) / 2 if len(parts) == 2 else 0.0
    return int((1 - deviation) * MAX_SCORE)


def _resources(pod: PodInfo, nodes: Sequence[NodeInfo], cache: Cache) -> list[int] | None:
    return [resource_score(pod.requirements, node) for node in nodes]


def _taints(pod: PodInfo, nodes: Sequence[NodeInfo], cache: Cache) -> list[int] | None:
    """PreferNoSchedule taints that the Pod does not tolerate, fewer is better."""
    if not cache.prefer_no_schedule:
        return None
    tolerations = [t for t in pod.requirements.tolerations if t.get("effect") in (None, "", PREFER_NO_SCHEDULE)]
    counted = [
        sum(
            1
            for taint in node.taints
            if taint.get("effect") == PREFER_NO_SCHEDULE and not any(tolerates(each, taint) for each in tolerations)
        )
        for node in nodes
    ]
    most = max(counted)
    return [MAX_SCORE - MAX_SCORE * count // most for count in counted] if most else None


def _preferred_nodes(pod: PodInfo, nodes: Sequence[NodeInfo], cache: Cache) -> list[int] | None:
    """The weights of the preferred node affinities that match."""
    preferred = pod.requirements.preferred_nodes
    if not preferred:
        return None
    counted = [
        sum(each["weight"] for each in preferred if _matches_preference(each["preference"], node)) for node in nodes
    ]
    most = max(counted)
    return [MAX_SCORE * count // most for count in counted] if most else None


def _matches_preference(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    """A preference without requirements matches every node, other than a required term."""
    if not term.get("matchExpressions") and not term.get("matchFields"):
        return True
    return matches_term(term, node.labels, node.name)


SCORES: tuple[tuple[str, int, Scores], ...] = (
    ("NodeResourcesFit and NodeResourcesBalancedAllocation", 1, _resources),
    ("TaintToleration", 3, _taints),
    ("NodeAffinity", 2, _preferred_nodes),
    ("PodTopologySpread", 2, spread_scores),
    ("InterPodAffinity", 2, affinity_scores),
)
"""Plugin, weight, rule. What says None gives every node the same."""

SPREAD_WEIGHT = 2


def best_node(pod: PodInfo, nodes: Sequence[NodeInfo], cache: Cache) -> NodeInfo:
    """Return the node with the most points; ties go to the fewest Pods, then by name."""
    if len(nodes) == 1:
        return nodes[0]
    totals = [0] * len(nodes)
    for _, weight, rule in SCORES:
        scores = rule(pod, nodes, cache)
        if scores is not None:
            totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    best = min(range(len(nodes)), key=lambda index: (-totals[index], len(nodes[index].pods), nodes[index].name))
    return nodes[best]
