"""Affinity and anti-affinity between Pods. Pure.

Sources: plugins/interpodaffinity/{filtering,scoring}.go.
"""

# check: pure

from collections.abc import Mapping, Sequence

from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_counts import TermCounts
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.terms import AffinityTerm, selections_of

NO_AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

HARD_AFFINITY_WEIGHT = 1
"""What a required affinity of a Pod that is there counts for a Pod that it wants beside it."""
MAX_SCORE = 100

Domain = tuple[str, str]
"""(topology key, value of that label)."""
Domains = dict[Domain, int]


def _add(domains: Domains, key: str, counts: Mapping[str, int], cache: Cache, factor: int = 1) -> None:
    """Sum the counts of nodes up to those of the domains they are in."""
    for name, count in counts.items():
        node = cache.nodes.get(name)
        value = node.labels.get(key) if node is not None else None
        if value is not None:
            domains[key, value] = domains.get((key, value), 0) + count * factor


class AffinityState:
    """Where the Pods are that a Pod wants beside it, or that do not go together with it."""

    def __init__(self, pod: PodInfo, cache: Cache) -> None:
        self._pod = pod
        self._terms = pod.requirements.terms
        self._wanted: Domains = {}
        self._unwanted: Domains = {}
        self._keeps_away: Domains = {}
        if self._terms.affinity:
            # A Pod counts when it matches all the terms.
            counts = cache.counts(*selections_of(self._terms.affinity))
            for term in self._terms.affinity:
                _add(self._wanted, term.topology_key, counts, cache)
        for term in self._terms.anti_affinity:
            _add(self._unwanted, term.topology_key, cache.counts(term.pods), cache)
        for term, counts in cache.anti_affinity.matching(pod, cache.namespace_labels):
            _add(self._keeps_away, term.topology_key, counts, cache)

    def copy(self) -> "AffinityState":
        made = object.__new__(AffinityState)
        made._pod, made._terms = self._pod, self._terms
        made._wanted, made._unwanted = dict(self._wanted), dict(self._unwanted)
        made._keeps_away = dict(self._keeps_away)
        return made

    @property
    def matters(self) -> bool:
        return bool(self._terms.affinity or self._terms.anti_affinity or self._keeps_away)

    def change(self, other: PodInfo, node: NodeInfo, by: int, cache: Cache) -> None:
        """Count `other` as if it came to the node (`by` 1) or left it (-1)."""

        def matches(term: AffinityTerm, pod: PodInfo) -> bool:
            return term.pods.matches(pod.namespace, pod.labels, cache.namespace_labels)

        here = {node.name: by}
        if self._terms.affinity and all(matches(term, other) for term in self._terms.affinity):
            for term in self._terms.affinity:
                _add(self._wanted, term.topology_key, here, cache)
        for term in self._terms.anti_affinity:
            if matches(term, other):
                _add(self._unwanted, term.topology_key, here, cache)
        for term in other.requirements.terms.anti_affinity:
            if matches(term, self._pod):
                _add(self._keeps_away, term.topology_key, here, cache)

    def refusal(self, node: NodeInfo, cache: Cache) -> tuple[str, bool] | None:
        """Return (reason, whether no preemption can help), None when the Pod may be here."""
        if not self._is_wanted(node, cache):
            return NO_AFFINITY, True
        for term in self._terms.anti_affinity:
            value = node.labels.get(term.topology_key)
            if value is not None and self._unwanted.get((term.topology_key, value), 0) > 0:
                return ANTI_AFFINITY, False
        if self._keeps_away and any(self._keeps_away.get(pair, 0) > 0 for pair in node.labels.items()):
            return EXISTING_ANTI_AFFINITY, False
        return None

    def _is_wanted(self, node: NodeInfo, cache: Cache) -> bool:
        """The first Pod of a group whose members want one another may go anywhere."""
        found = True
        for term in self._terms.affinity:
            value = node.labels.get(term.topology_key)
            if value is None:
                return False
            found = found and self._wanted.get((term.topology_key, value), 0) > 0
        if found:
            return True
        pod = self._pod
        return not any(self._wanted.values()) and all(
            term.pods.matches(pod.namespace, pod.labels, cache.namespace_labels) for term in self._terms.affinity
        )


def affinity_scores(pod: PodInfo, nodes: Sequence[NodeInfo], cache: Cache) -> list[int] | None:
    """Return 0 to 100 for each node, None when no preference touches the Pod."""
    domains = preferences(pod, cache)
    if not domains:
        return None
    raw = [sum(domains.get(pair, 0) for pair in node.labels.items()) for node in nodes]
    least, most = min(0, *raw), max(0, *raw)
    if most == least:
        return [0] * len(nodes)
    return [int(MAX_SCORE * ((score - least) / (most - least))) for score in raw]


def preferences(pod: PodInfo, cache: Cache) -> Domains:
    """Return domain → weight, of the Pod's own preferences and of those that Pods on nodes have for it."""
    domains: Domains = {}
    terms = pod.requirements.terms
    for term in terms.preferred:
        _add(domains, term.topology_key, cache.counts(term.pods), cache, term.weight)
    for term in terms.preferred_anti:
        _add(domains, term.topology_key, cache.counts(term.pods), cache, -term.weight)

    def existing(counted: TermCounts, sign: int) -> None:
        for term, counts in counted.matching(pod, cache.namespace_labels):
            _add(domains, term.topology_key, counts, cache, sign * (term.weight or HARD_AFFINITY_WEIGHT))

    existing(cache.affinity, 1)
    existing(cache.preferred, 1)
    existing(cache.preferred_anti, -1)
    return domains
