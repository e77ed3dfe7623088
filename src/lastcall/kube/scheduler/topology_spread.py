"""Topology spread: how evenly Pods that match lie over the values of a node label. Pure.

Sources: plugins/podtopologyspread/{filtering,scoring,common}.go.
"""

# check: pure

import math
from collections.abc import Iterable, Mapping, Sequence

from lastcall.kube.api.scheduling import matches_node, untolerated
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.terms import HOSTNAME, ZONE, SpreadConstraint

NOT_MATCHING = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{NOT_MATCHING} (missing required label)"

DEFAULT_SKEWS: Mapping[str, int] = {HOSTNAME: 3, ZONE: 5}
"""`systemDefaultConstraints`: soft, for Pods of a ReplicaSet, a StatefulSet or a Service."""
MAX_SCORE = 100


def is_eligible(constraint: SpreadConstraint, pod: PodInfo, node: NodeInfo) -> bool:
    """Return whether the node's Pods and its domain count for the constraint (`matchNodeInclusionPolicies`)."""
    if constraint.honor_affinity and node.node is not None and not matches_node(pod.requirements.spec, node.node):
        return False
    return not constraint.honor_taints or untolerated(node.taints, pod.requirements.tolerations) is None


class SpreadState:
    """The hard constraints of one Pod: matching Pods in each domain."""

    def __init__(self, pod: PodInfo, cache: Cache) -> None:
        self._pod = pod
        self._constraints = pod.requirements.hard_spread
        self._domains: list[dict[str, int]] = [{} for _ in self._constraints]
        counted = [cache.counts(each.pods, living=True) for each in self._constraints]
        for node in cache.nodes.values():
            if not self._has_all_keys(node):
                continue
            for constraint, domains, counts in zip(self._constraints, self._domains, counted, strict=True):
                if is_eligible(constraint, pod, node):
                    value = node.labels[constraint.topology_key]
                    domains[value] = domains.get(value, 0) + counts.get(node.name, 0)

    def copy(self) -> "SpreadState":
        made = object.__new__(SpreadState)
        made._pod, made._constraints = self._pod, self._constraints
        made._domains = [dict(each) for each in self._domains]
        return made

    def change(self, other: PodInfo, node: NodeInfo, by: int, cache: Cache) -> None:
        """Count `other` as if it came to the node (`by` 1) or left it (-1)."""
        if not self._has_all_keys(node):
            return
        for constraint, domains in zip(self._constraints, self._domains, strict=True):
            if constraint.pods.matches(other.namespace, other.labels, cache.namespace_labels) and is_eligible(
                constraint, self._pod, node
            ):
                value = node.labels[constraint.topology_key]
                domains[value] = domains.get(value, 0) + by

    def _has_all_keys(self, node: NodeInfo) -> bool:
        return all(each.topology_key in node.labels for each in self._constraints)

    def refusal(self, node: NodeInfo) -> tuple[str, bool] | None:
        """Return (reason, whether no preemption can help), None when the node is as good as the constraints want it."""
        for constraint, domains in zip(self._constraints, self._domains, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL, True
            fewest = min(domains.values(), default=0) if len(domains) >= constraint.min_domains else 0
            own = constraint.pods.selector.matches(self._pod.labels)
            if domains.get(value, 0) + own - fewest > constraint.max_skew:
                return NOT_MATCHING, False
        return None


def spread_scores(pod: PodInfo, nodes: Sequence[NodeInfo], cache: Cache) -> list[int] | None:
    """Return 0 to 100 for each node, None when nothing is to be spread."""
    soft = pod.requirements.soft_spread
    if soft:
        raw = _explicit(pod, soft, nodes, cache)
    elif not pod.requirements.hard_spread and (counts := default_counts(pod, cache)) is not None:
        raw = _by_default(counts, nodes, cache)
    else:
        return None
    return normalise(raw)


def default_counts(pod: PodInfo, cache: Cache) -> Mapping[str, int] | None:
    """Return node → living Pods of the same owner; None for a Pod that is not spread by default.

    The original selects by the labels that the owner selects by, here the owner itself is what they have in common.
    """
    return cache.owned.get(pod.owner, {}) if pod.owner else None


def _by_default(counts: Mapping[str, int], nodes: Sequence[NodeInfo], cache: Cache) -> list[int | None]:
    weight = topology_weight(len(nodes))
    in_zone: dict[str, int] = {}
    if cache.zoned:
        in_zone = {node.labels[ZONE]: 0 for node in nodes if ZONE in node.labels}
        for name, count in counts.items():
            zone = cache.nodes[name].labels.get(ZONE) if name in cache.nodes else None
            if zone in in_zone:
                in_zone[zone] += count
    zone_weight = topology_weight(len(in_zone) + any(ZONE not in node.labels for node in nodes))
    scores: list[int | None] = []
    for node in nodes:
        score = 0.0
        if HOSTNAME in node.labels:
            score += domain_score(counts.get(node.name, 0), DEFAULT_SKEWS[HOSTNAME], weight)
        if ZONE in node.labels:
            score += domain_score(in_zone[node.labels[ZONE]], DEFAULT_SKEWS[ZONE], zone_weight)
        scores.append(rounded(score))
    return scores


def _explicit(
    pod: PodInfo, constraints: tuple[SpreadConstraint, ...], nodes: Sequence[NodeInfo], cache: Cache
) -> list[int | None]:
    """Return the points; None is a node that lacks one of the labels: it gets 0 points."""
    scored = [node for node in nodes if _has(node, constraints)]
    counted = [cache.counts(each.pods, living=True) for each in constraints]
    domains: list[dict[str, int]] = [{node.labels[each.topology_key]: 0 for node in scored} for each in constraints]
    for constraint, counts, of_domain in zip(constraints, counted, domains, strict=True):
        for name, count in counts.items():
            node_info = cache.nodes.get(name)
            if node_info is None or not _has(node_info, constraints):
                continue
            value = node_info.labels[constraint.topology_key]
            if value in of_domain and is_eligible(constraint, pod, node_info):
                of_domain[value] += count
    weights = [
        topology_weight(len(scored) if each.topology_key == HOSTNAME else len(of_domain))
        for each, of_domain in zip(constraints, domains, strict=True)
    ]
    scores: list[int | None] = []
    for node in nodes:
        if not _has(node, constraints):
            scores.append(None)
            continue
        score = 0.0
        for each, counts, of_domain, weight in zip(constraints, counted, domains, weights, strict=True):
            by_node = each.topology_key == HOSTNAME
            count = counts.get(node.name, 0) if by_node else of_domain[node.labels[each.topology_key]]
            score += domain_score(count, each.max_skew, weight)
        scores.append(rounded(score))
    return scores


def _has(node: NodeInfo, constraints: Iterable[SpreadConstraint]) -> bool:
    return all(each.topology_key in node.labels for each in constraints)


def topology_weight(domains: int) -> float:
    """Return `topologyNormalizingWeight`: many domains make a Pod more in one of them count more."""
    return math.log(domains + 2)


def domain_score(count: int, max_skew: int, weight: float) -> float:
    """Return `scoreForCount`; less is better."""
    return count * weight + (max_skew - 1)


def rounded(score: float) -> int:
    return math.floor(score + 0.5)


def normalise(raw: Sequence[int | None]) -> list[int]:
    """Convert to 0 to 100: the emptiest domain gets the most points (`NormalizeScore`)."""
    present = [score for score in raw if score is not None]
    if not present:
        return [0] * len(raw)
    least, most = min(present), max(present)
    return [
        0 if score is None else MAX_SCORE if not most else MAX_SCORE * (most + least - score) // most for score in raw
    ]
