"""How many Pods of each node match a selection, kept with every change of a Pod.

Pod affinity and topology spread ask this for each Pod they place; counting all Pods each time would not do. A selection
is counted from the first question on, and changed Pods are compared only with the selections that share a label with
them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.terms import AffinityTerm, NamespaceLabels, PodSelection
from lastcall.world.dataclass import dataclass

MAX_SELECTIONS = 2048

Pair = tuple[str, str]
NodeCounts = dict[str, int]
"""Node name → how many; no zeros."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Pods that match every one of `selections`; `living` leaves out the terminating ones."""

    selections: tuple[PodSelection, ...]
    living: bool = False

    @property
    def pair(self) -> Pair | None:
        return next((each.pair for each in self.selections if each.pair is not None), None)

    def matches(self, pod: PodInfo, namespace_labels: NamespaceLabels) -> bool:
        if self.living and pod.terminating:
            return False
        return all(each.matches(pod.namespace, pod.labels, namespace_labels) for each in self.selections)


def change(counts: NodeCounts, node: str, by: int) -> None:
    left = counts.get(node, 0) + by
    if left:
        counts[node] = left
    else:
        counts.pop(node, None)


class PodCounts:
    """`pods()` answers every Pod on a node as (PodInfo, node name)."""

    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self._namespace_labels = namespace_labels
        self._counted: OrderedDict[Wanted, NodeCounts] = OrderedDict()
        self._by_pair: dict[Pair | None, dict[Wanted, None]] = {}
        self._pods_by_pair: dict[Pair, dict[str, tuple[PodInfo, str]]] | None = None

    def of(self, wanted: Wanted, pods: Iterable[tuple[PodInfo, str]]) -> NodeCounts:
        """Return the live counts: they change with the Pods. `pods` are all there are, searched when necessary."""
        counts = self._counted.get(wanted)
        if counts is not None:
            self._counted.move_to_end(wanted)
            return counts
        counts = self._counted[wanted] = {}
        pair = wanted.pair
        self._by_pair.setdefault(pair, {})[wanted] = None
        for pod, node in self._candidates(pair, pods):
            if wanted.matches(pod, self._namespace_labels):
                change(counts, node, 1)
        if len(self._counted) > MAX_SELECTIONS:
            self._drop(next(iter(self._counted)))
        return counts

    def add(self, pod: PodInfo, node: str) -> None:
        if self._pods_by_pair is not None:
            for pair in pod.labels.items():
                self._pods_by_pair.setdefault(pair, {})[pod.uid] = (pod, node)
        self._change(pod, node, 1)

    def remove(self, pod: PodInfo, node: str) -> None:
        if self._pods_by_pair is not None:
            for pair in pod.labels.items():
                self._pods_by_pair.get(pair, {}).pop(pod.uid, None)
        self._change(pod, node, -1)

    def namespace_changed(self) -> None:
        """Drop the counts that select by the labels of namespaces. They have to be counted again."""
        for wanted in [w for w in self._counted if any(s.namespace_selector is not None for s in w.selections)]:
            self._drop(wanted)

    def _change(self, pod: PodInfo, node: str, by: int) -> None:
        if not self._counted:
            return
        for wanted in _sharing(self._by_pair, pod):
            if wanted.matches(pod, self._namespace_labels):
                change(self._counted[wanted], node, by)

    def _candidates(self, pair: Pair | None, pods: Iterable[tuple[PodInfo, str]]) -> Iterable[tuple[PodInfo, str]]:
        if pair is None:
            return pods
        if self._pods_by_pair is None:
            self._pods_by_pair = {}
            for pod, node in pods:
                for each in pod.labels.items():
                    self._pods_by_pair.setdefault(each, {})[pod.uid] = (pod, node)
        return self._pods_by_pair.get(pair, {}).values()

    def _drop(self, wanted: Wanted) -> None:
        del self._counted[wanted]
        same = self._by_pair[wanted.pair]
        del same[wanted]
        if not same:
            del self._by_pair[wanted.pair]


def _sharing(by_pair: dict[Pair | None, dict[Wanted, None]], pod: PodInfo) -> Iterator[Wanted]:
    yield from by_pair.get(None, ())
    for pair in pod.labels.items():
        yield from by_pair.get(pair, ())


class TermCounts:
    """The affinity terms of one kind that Pods on nodes have, and on which nodes those Pods are."""

    def __init__(self) -> None:
        self._counts: dict[AffinityTerm, NodeCounts] = {}
        self._by_pair: dict[Pair | None, dict[AffinityTerm, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def change(self, terms: Iterable[AffinityTerm], node: str, by: int) -> None:
        for term in terms:
            counts = self._counts.get(term)
            if counts is None:
                counts = self._counts[term] = {}
                self._by_pair.setdefault(term.pods.pair, {})[term] = None
            change(counts, node, by)
            if not counts:
                del self._counts[term]
                same = self._by_pair[term.pods.pair]
                del same[term]
                if not same:
                    del self._by_pair[term.pods.pair]

    def matching(self, pod: PodInfo, namespace_labels: NamespaceLabels) -> Iterator[tuple[AffinityTerm, NodeCounts]]:
        """Yield the terms that `pod` matches, with how many Pods of each node have them."""
        if not self._counts:
            return
        for pair in (None, *pod.labels.items()):
            for term in self._by_pair.get(pair, ()):
                if term.pods.matches(pod.namespace, pod.labels, namespace_labels):
                    yield term, self._counts[term]
