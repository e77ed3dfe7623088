"""Remembered answers for Pods that ask for the same: the best node without a look at every node.

Many Pods differ in nothing that a filter looks at. For each kind of them the nodes that fit are kept in a heap by their
points, and only nodes that changed since are looked at again. That holds for Pods whose answer for a node depends on
that node alone; spreading the Pods of one owner is added on top, from the nodes where it has Pods. Whatever else there
is to weigh, `placement.look` does. (The original has the same idea: KEP-5598, opportunistic batching.)
"""

# check: pure

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.filters import OF_ONE_NODE, CycleState
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_info import PodInfo, Requirements
from lastcall.kube.scheduler.scores import SPREAD_WEIGHT, resource_score
from lastcall.kube.scheduler.terms import HOSTNAME
from lastcall.kube.scheduler.topology_spread import (
    DEFAULT_SKEWS,
    MAX_SCORE,
    default_counts,
    domain_score,
    rounded,
    topology_weight,
)

MAX_RANKINGS = 256
MAX_OWNERS = 64
"""Of how many owners with Pods on many nodes a ranking remembers where they are."""
FEW_NODES = 32
MAX_STALE = 8
"""A heap with this many entries for each node is made anew."""

Rank = tuple[int, int, str]
"""(minus the points, Pods on the node, name): the least is the best."""


def is_ranked(pod: PodInfo, cache: Cache) -> bool:
    """Return whether a remembered answer is the right one."""
    if not pod.requirements.stands_alone or cache.nominated or pod.has_claims:
        return False
    if cache.prefer_no_schedule or cache.zoned or cache.nameless:
        return False
    existing = (cache.anti_affinity, cache.affinity, cache.preferred, cache.preferred_anti)
    return not any(next(terms.matching(pod, cache.namespace_labels), None) for terms in existing)


class _Ranking:
    """The nodes that fit one kind of Pod."""

    def __init__(self) -> None:
        self._version = -1
        self.ranks: dict[str, Rank] = {}
        self._heap: list[Rank] = []
        self._owners: OrderedDict[str, _ByCount] = OrderedDict()

    def refresh(self, pod: PodInfo, cache: Cache) -> None:
        changed = cache.changed_since(self._version) if self._version >= 0 else None
        self._version = cache.version
        if changed is None or len(self._heap) > MAX_STALE * (len(cache.nodes) + MAX_STALE):
            self.ranks.clear()
            self._heap.clear()
            changed = list(cache.nodes)
        state = CycleState(pod, cache)
        for name in changed:
            self._look_at(name, cache.nodes.get(name), state)

    def _look_at(self, name: str, node: NodeInfo | None, state: CycleState) -> None:
        if node is None or any(rule(state, node) is not None for rule in OF_ONE_NODE):
            self.ranks.pop(name, None)
            return
        rank = (-resource_score(state.pod.requirements, node), len(node.pods), name)
        if self.ranks.get(name) != rank:
            self.ranks[name] = rank
            heapq.heappush(self._heap, rank)

    def best(self, without: Mapping[str, int] | None = None) -> Rank | None:
        """The best node that is not in `without`."""
        skipped: list[Rank] = []
        found: Rank | None = None
        while self._heap:
            rank = self._heap[0]
            if self.ranks.get(rank[2]) != rank:
                heapq.heappop(self._heap)  # of an earlier state of the node
            elif without and rank[2] in without:
                skipped.append(heapq.heappop(self._heap))
            else:
                found = rank
                break
        for rank in skipped:
            heapq.heappush(self._heap, rank)
        return found

    def best_spread(self, owner: str, counts: Mapping[str, int], cache: Cache) -> Rank | None:
        """The best node when the Pods of one owner are to be spread; `counts` are on how many of them each node is.

        As `topology_spread.spread_scores` with the default constraint on the host name.
        """
        best = self._groups(owner, counts, cache) if len(counts) > FEW_NODES else {}
        if not best:
            for name, count in counts.items():
                rank = self.ranks.get(name)
                if rank is not None and (count not in best or rank < best[count]):
                    best[count] = rank
            empty = self.best(without=counts)
            if empty is not None:
                best[0] = empty
        weight, skew = topology_weight(len(self.ranks)), DEFAULT_SKEWS[HOSTNAME]
        raw = {count: rounded(domain_score(count, skew, weight)) for count in best}
        least, most = min(raw.values(), default=0), max(raw.values(), default=0)
        return min((_with_points(rank, raw[count], least, most) for count, rank in best.items()), default=None)

    def _groups(self, owner: str, counts: Mapping[str, int], cache: Cache) -> dict[int, Rank]:
        """The best node for each number of the owner's Pods; {} when looking at all of its nodes costs less."""
        groups = self._owners.get(owner)
        if groups is None:
            self._owners[owner] = _ByCount(cache.version)
            if len(self._owners) > MAX_OWNERS:
                self._owners.popitem(last=False)
            return {}
        self._owners.move_to_end(owner)
        changed = cache.changed_since(groups.version)
        if changed is None or len(changed) > len(counts):
            groups.forget(cache.version)
            return {}
        return groups.best(changed, self.ranks, counts, cache.version)


class _ByCount:
    """The nodes of a ranking in one heap for each number of Pods that an owner has on them."""

    def __init__(self, version: int) -> None:
        self.forget(version)

    def forget(self, version: int) -> None:
        """Begin anew; `version` of the cache is the last one that was seen."""
        self.version = version
        self._heaps: dict[int, list[Rank]] = {}
        self._size = 0

    def best(
        self, changed: Iterable[str], ranks: Mapping[str, Rank], counts: Mapping[str, int], version: int
    ) -> dict[int, Rank]:
        """The best rank for each number of Pods, when the nodes in `changed` have been looked at again."""
        if not self._heaps or self._size > MAX_STALE * (len(ranks) + MAX_STALE):
            self.forget(version)
            changed = ranks
        self.version = version
        for name in changed:
            rank = ranks.get(name)
            if rank is not None:
                heapq.heappush(self._heaps.setdefault(counts.get(name, 0), []), rank)
                self._size += 1
        found: dict[int, Rank] = {}
        for count in list(self._heaps):
            heap = self._heaps[count]
            while heap and (ranks.get(heap[0][2]) != heap[0] or counts.get(heap[0][2], 0) != count):
                heapq.heappop(heap)
                self._size -= 1
            if heap:
                found[count] = heap[0]
            else:
                del self._heaps[count]
        return found


def _with_points(rank: Rank, score: int, least: int, most: int) -> Rank:
    points = MAX_SCORE * (most + least - score) // most if most else MAX_SCORE
    return (rank[0] - SPREAD_WEIGHT * points, rank[1], rank[2])


class Rankings:
    """The last `MAX_RANKINGS` kinds of Pods."""

    def __init__(self) -> None:
        self._rankings: OrderedDict[Requirements, _Ranking] = OrderedDict()

    def best(self, pod: PodInfo, cache: Cache) -> NodeInfo | None:
        """Return the node that `placement.look` would choose; None when no node fits. Only when `is_ranked`."""
        ranking = self._rankings.get(pod.requirements)
        if ranking is None:
            ranking = self._rankings[pod.requirements] = _Ranking()
            if len(self._rankings) > MAX_RANKINGS:
                self._rankings.popitem(last=False)
        else:
            self._rankings.move_to_end(pod.requirements)
        ranking.refresh(pod, cache)
        counts = default_counts(pod, cache)
        rank = ranking.best() if counts is None else ranking.best_spread(pod.owner, counts, cache)
        return None if rank is None else cache.nodes[rank[2]]
