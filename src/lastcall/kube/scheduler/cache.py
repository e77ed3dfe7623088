"""What the scheduler knows of the cluster: nodes with their Pods, and the sums that its questions need.

Every change costs what it changes; nothing here looks through all Pods. Source: pkg/scheduler/backend/cache/cache.go.
"""

# check: many attributes Cache because each count is kept beside the nodes so that no filter walks over all Pods

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import labels_of, name_of
from lastcall.kube.api.scheduling import PREFER_NO_SCHEDULE
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_counts import NodeCounts, PodCounts, TermCounts, Wanted, change
from lastcall.kube.scheduler.pod_info import PodInfo, PodInfos
from lastcall.kube.scheduler.terms import HOSTNAME, ZONE, PodSelection

if TYPE_CHECKING:
    from lastcall.kube.api.types.cluster import Namespace
    from lastcall.kube.api.types.node import Node

MAX_CHANGES = 4096
"""How many changes of nodes are remembered for those who keep answers of their own."""


class Cache:
    """`nodes` are those that exist, in the order in which they came.

    `version` counts all changes; `changed_since` names the nodes that changed.
    """

    def __init__(self) -> None:
        self.infos = PodInfos()
        self.nodes: dict[str, NodeInfo] = {}
        self.version = 0
        self.prefer_no_schedule = 0
        """Nodes with a PreferNoSchedule taint."""
        self.zoned = 0
        """Nodes with a zone."""
        self.nameless = 0
        """Nodes without the label of the host name."""
        self.nominated: dict[str, dict[str, PodInfo]] = {}
        """Node → Pods without a node that a preemption made room for there."""
        self.owned: dict[str, NodeCounts] = {}
        """Uid of an owner → how many living Pods of it are on each node."""
        self.anti_affinity = TermCounts()
        self.affinity = TermCounts()
        self.preferred = TermCounts()
        self.preferred_anti = TermCounts()
        self._counts = PodCounts(self.namespace_labels)
        self._all_nodes: dict[str, NodeInfo] = {}
        self._pods: dict[str, tuple[PodInfo, str]] = {}
        self._nominated_to: dict[str, str] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._changes: deque[str] = deque(maxlen=MAX_CHANGES)

    # -- nodes

    def set_node(self, node: Node) -> NodeInfo:
        """Add or update a node."""
        name = name_of(node)
        info = self._info(name)
        self._count_node(info, -1)
        info.set_node(node)
        self._count_node(info, 1)
        self.nodes[name] = info
        self._changed(name)
        return info

    def remove_node(self, name: str) -> None:
        info = self.nodes.pop(name, None)
        if info is None:
            return
        self._count_node(info, -1)
        info.set_node(None)
        self._forget_empty(info)
        self._changed(name)

    def _count_node(self, info: NodeInfo, by: int) -> None:
        if info.node is not None:
            self.prefer_no_schedule += by * any(t.get("effect") == PREFER_NO_SCHEDULE for t in info.taints)
            self.zoned += by * (ZONE in info.labels)
            self.nameless += by * (HOSTNAME not in info.labels)

    def _info(self, name: str) -> NodeInfo:
        info = self._all_nodes.get(name)
        if info is None:
            info = self._all_nodes[name] = NodeInfo(name)
        return info

    def _forget_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            self._all_nodes.pop(info.name, None)

    def _changed(self, node: str) -> None:
        self.version += 1
        self._changes.append(node)

    def changed_since(self, version: int) -> list[str] | None:
        """Return the names of the nodes that changed after `version`, each once; None when that is too long ago."""
        count = self.version - version
        if count > len(self._changes):
            return None
        return list(dict.fromkeys(islice(reversed(self._changes), count)))[::-1]

    def sizes(self) -> dict[str, int]:
        """Return how many nodes and Pods there are."""
        return {"nodes": len(self.nodes), "pods": len(self._pods)}

    # -- Pods on nodes

    def node_of(self, uid: str) -> str:
        """Return the node that the Pod is on, or is assumed to be on; "" when it has none."""
        known = self._pods.get(uid)
        return known[1] if known is not None else ""

    def pod(self, uid: str) -> PodInfo | None:
        """Return the Pod with this uid if it has a node."""
        known = self._pods.get(uid)
        return known[0] if known is not None else None

    def put_pod(self, pod: PodInfo, node: str) -> None:
        """Put the Pod on `node`. This replaces what was known of it before."""
        known = self._pods.get(pod.uid)
        if known is not None and known[1] == node and known[0].requirements is pod.requirements:
            self._pods[pod.uid] = (pod, node)
            self._all_nodes[node].replace(pod)
            self._count_pod(known[0], node, -1)
        else:
            self.remove_pod(pod.uid)
            self._pods[pod.uid] = (pod, node)
            self._info(node).add(pod)
        self._count_pod(pod, node, 1)
        self._changed(node)

    def remove_pod(self, uid: str) -> PodInfo | None:
        known = self._pods.pop(uid, None)
        if known is None:
            return None
        pod, node = known
        info = self._all_nodes[node]
        info.remove(pod)
        self._count_pod(pod, node, -1)
        self._changed(node)
        self._forget_empty(info)
        return pod

    def _count_pod(self, pod: PodInfo, node: str, by: int) -> None:
        if by > 0:
            self._counts.add(pod, node)
        else:
            self._counts.remove(pod, node)
        if pod.owner and not pod.terminating:
            counts = self.owned.setdefault(pod.owner, {})
            change(counts, node, by)
            if not counts:
                del self.owned[pod.owner]
        terms = pod.requirements.terms
        if terms:
            self.affinity.change(terms.affinity, node, by)
            self.anti_affinity.change(terms.anti_affinity, node, by)
            self.preferred.change(terms.preferred, node, by)
            self.preferred_anti.change(terms.preferred_anti, node, by)

    def counts(self, *selections: PodSelection, living: bool = False) -> NodeCounts:
        """Return how many Pods of each node match all selections."""
        return self._counts.of(Wanted(selections, living), self._pods.values())

    def pods(self) -> Iterator[tuple[PodInfo, str]]:
        """Yield every Pod that has a node, with the node's name."""
        yield from self._pods.values()

    # -- Pods nominated to nodes

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Nominate `node` for the Pod. "" takes the nomination back."""
        before = self._nominated_to.pop(pod.uid, "")
        if before:
            of_node = self.nominated[before]
            del of_node[pod.uid]
            if not of_node:
                del self.nominated[before]
        if node:
            self._nominated_to[pod.uid] = node
            self.nominated.setdefault(node, {})[pod.uid] = pod
        if before != node:
            self.version += 1
            self._changes.append(node or before)

    def nominated_node(self, uid: str) -> str:
        return self._nominated_to.get(uid, "")

    # -- namespaces

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        return self._namespaces.get(name, {})

    def set_namespace(self, namespace: Namespace) -> bool:
        """Store the labels of a namespace. Return True when they have changed."""
        name, labels = name_of(namespace), labels_of(namespace)
        if self._namespaces.get(name) == labels:
            return False
        self._namespaces[name] = labels
        self._counts.namespace_changed()
        return True

    def remove_namespace(self, name: str) -> None:
        if self._namespaces.pop(name, None):
            self._counts.namespace_changed()
