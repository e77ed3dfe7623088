"""What happened in the cluster → the cache, and the waiting Pods that it may help.

Source: pkg/scheduler/eventhandlers.go, and `EventsToRegister` of the plugins. Handlers only note; they never wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, labels_of, name_of, uid_of
from lastcall.kube.client.informer import Informer
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.filters import FILTERS, OF_VOLUMES, CycleState
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.pod_resources import held_spec
from lastcall.kube.scheduler.queue import SchedulingQueue
from lastcall.kube.scheduler.terms import AffinityTerm, SpreadConstraint

if TYPE_CHECKING:
    from lastcall.kube.api.types.cluster import Namespace
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod

SCHEDULER_NAME = "default-scheduler"

OF_PODS = ("PodTopologySpread", "InterPodAffinity")
"""The plugins whose answer follows from Pods that are there."""
OF_ROOM = ("NodeResourcesFit", "NodePorts")
"""The plugins whose answer follows from what Pods take."""


class EventHandlers:
    """Registers itself with the informers."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        namespaces: Informer[Namespace],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._assumed: dict[str, None] = {}
        nodes.add_handler(self._node_added, self._node_updated, self._node_deleted)
        namespaces.add_handler(self._namespace, lambda _, new: self._namespace(new), self._namespace_deleted)
        pods.add_handler(self._pod_added, self._pod_updated, self._pod_deleted)

    # -- nodes

    def _node_added(self, node: Node) -> None:
        self._helped_by(self._cache.set_node(node), tuple(FILTERS))

    def _node_updated(self, old: Node, new: Node) -> None:
        changed = changes_of(old, new)
        if changed:
            self._helped_by(self._cache.set_node(new), changed)

    def _node_deleted(self, node: Node) -> None:
        self._cache.remove_node(name_of(node))
        self._queue.move(("PodTopologySpread",))

    def _helped_by(self, node: NodeInfo, plugins: tuple[str, ...]) -> None:
        """Wakes those whom a plugin refused that has nothing against this node now."""

        def helps(plugin: str, pod: PodInfo) -> bool:
            if plugin in OF_PODS or plugin in OF_VOLUMES:
                return True
            if plugin == "NodeResourcesFit":
                return all(node.allocatable.get(name, 0) >= n for name, n in pod.requirements.requests.items())
            return FILTERS[plugin](CycleState(pod, self._cache), node) is None

        self._queue.move(plugins, helps)

    # -- namespaces

    def _namespace(self, namespace: Namespace) -> None:
        if self._cache.set_namespace(namespace):
            self._queue.move(("InterPodAffinity",))

    def _namespace_deleted(self, namespace: Namespace) -> None:
        self._cache.remove_namespace(name_of(namespace))

    # -- Pods

    def assume(self, pod: PodInfo, node: str) -> None:
        """Assume the Pod on `node` before its binding has come back."""
        self._assumed[pod.uid] = None
        self._cache.nominate(pod, "")
        self._cache.put_pod(pod, node)

    def forget(self, uid: str) -> None:
        """Remove an assumed Pod because its binding failed, unless the Pod was seen with a node meanwhile."""
        if uid in self._assumed:
            del self._assumed[uid]
            self._pod_left(uid)

    def _pod_added(self, pod: Pod) -> None:
        node = node_of(pod)
        if node:
            self._has_node(pod, node)
        elif is_ours(pod):
            info = self._cache.infos.of(pod)
            self._cache.nominate(info, nominated_of(pod))
            self._queue.add(info, gated=is_gated(pod))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        uid, node = uid_of(new), node_of(new)
        if node:
            known = self._cache.pod(uid)
            same = is_same_wish(old, new) and (holds_what_it_asks_for(old) and holds_what_it_asks_for(new))
            if known is not None and self._cache.node_of(uid) == node and same:
                known.pod = new
                self._assumed.pop(uid, None)
                self._queue.delete(uid)
            else:
                self._has_node(new, node)
            return
        entry = self._queue.get(uid)
        if not is_ours(new):
            if entry is not None:
                self._queue.delete(uid)
        elif entry is None:
            self._pod_added(new)
        elif is_same_wish(old, new) and is_gated(old) == is_gated(new):
            entry.pod.pod = new
            self._cache.nominate(entry.pod, nominated_of(new))
        else:
            info = self._cache.infos.of(new)
            nominated = nominated_of(new)
            self._cache.nominate(entry.pod, "")
            self._cache.nominate(info, nominated)
            # No plugin is helped by a Pod that begins to end (framework.PodSchedulingPropertiesChange).
            self._queue.update(info, gated=is_gated(new), matters=is_terminating(old) == is_terminating(new))

    def _has_node(self, pod: Pod, node: str) -> None:
        before = self._cache.pod(uid_of(pod))
        info = self._cache.infos.of(pod, before)
        self._assumed.pop(info.uid, None)
        self._queue.delete(info.uid)
        self._cache.nominate(info, "")
        self._cache.put_pod(info, node)
        self._queue.move(OF_PODS, lambda plugin, waiting: self._pod_helps(plugin, waiting, info, came=True))
        if before is not None and before.requirements.requests != info.requirements.requests:
            self._queue.move(OF_ROOM)  # it was resized in place (AssignedPodUpdate)
        if before is not None:  # with other labels, or ending now: as if it had left
            self._queue.move(OF_PODS, lambda plugin, waiting: self._pod_helps(plugin, waiting, before, came=False))

    def _pod_deleted(self, pod: Pod) -> None:
        """Gone or ended; the scheduler sees no terminal Pods."""
        uid = uid_of(pod)
        self._assumed.pop(uid, None)
        entry = self._queue.get(uid)
        if entry is not None:
            self._cache.nominate(entry.pod, "")
            self._queue.delete(uid)
        self._pod_left(uid)

    def _pod_left(self, uid: str) -> None:
        left = self._cache.remove_pod(uid)
        if left is not None:
            self._queue.move(OF_ROOM)
            if left.has_claims:
                self._queue.move(("VolumeRestrictions",))
            self._queue.move(OF_PODS, lambda plugin, waiting: self._pod_helps(plugin, waiting, left, came=False))

    def _pod_helps(self, plugin: str, waiting: PodInfo, other: PodInfo, *, came: bool) -> bool:
        """Whether `other` on a node, or gone from one, may change the plugin's answer for a Pod that waits."""
        labels = self._cache.namespace_labels
        if plugin == "PodTopologySpread":
            terms: tuple[SpreadConstraint | AffinityTerm, ...] = waiting.requirements.hard_spread
        elif came:
            terms = waiting.requirements.terms.affinity
        else:
            terms = waiting.requirements.terms.anti_affinity
            keeps_away = other.requirements.terms.anti_affinity
            if any(term.pods.matches(waiting.namespace, waiting.labels, labels) for term in keeps_away):
                return True
        return any(term.pods.matches(other.namespace, other.labels, labels) for term in terms)


def node_of(pod: Pod) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def nominated_of(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")


def is_ours(pod: Pod) -> bool:
    return bool((pod.get("spec") or {}).get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME)


def is_gated(pod: Pod) -> bool:
    return bool((pod.get("spec") or {}).get("schedulingGates"))


def is_same_wish(old: Pod, new: Pod) -> bool:
    """Return True when only the status has changed, of all that the scheduler reads.

    The server counts changes of a Pod's spec in `metadata.generation`; older ones do not.
    """
    before, after = old["metadata"], new["metadata"]
    if before.get("generation") != after.get("generation") or is_terminating(old) != is_terminating(new):
        return False
    if labels_of(old) != labels_of(new) or before.get("ownerReferences") != after.get("ownerReferences"):
        return False
    return bool(after.get("generation")) or old.get("spec") == new.get("spec")


def holds_what_it_asks_for(pod: Pod) -> bool:
    """Return whether no resize of the Pod is under way that the scheduler has to consider."""
    return held_spec(pod) is pod["spec"]


def changes_of(old: Node, new: Node) -> tuple[str, ...]:
    """Return the plugins whose answer for the node may have changed (`nodeSchedulingPropertiesChange`)."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    found: dict[str, None] = {}
    if before.get("taints") != after.get("taints"):
        found |= dict.fromkeys(("NodeUnschedulable", "TaintToleration", "PodTopologySpread"))
    if bool(before.get("unschedulable")) != bool(after.get("unschedulable")):
        found |= dict.fromkeys(("NodeUnschedulable", "TaintToleration"))
    if labels_of(old) != labels_of(new):
        found |= dict.fromkeys(("NodeAffinity", "VolumeBinding", "PodTopologySpread", "InterPodAffinity"))
    if (old.get("status") or {}).get("allocatable") != (new.get("status") or {}).get("allocatable"):
        found["NodeResourcesFit"] = None
    return tuple(found)
