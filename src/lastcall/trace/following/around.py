"""Objects related to Pods: owners, autoscalers, namespaces, nodes and budgets go into the cluster's state, a lost node
into the timelines of its Pods."""

from collections.abc import Callable, Iterable

from lastcall.kube.api import (
    DAEMONSETS,
    DEPLOYMENTS,
    HORIZONTALPODAUTOSCALERS,
    JOBS,
    NAMESPACES,
    NODES,
    PODDISRUPTIONBUDGETS,
    REPLICASETS,
    STATEFULSETS,
    Object,
    Resource,
    name_of,
)
from lastcall.records import kinds
from lastcall.trace.following.state import SharedState
from lastcall.trace.pod_timeline import Moment, PodTimeline

OnEvent = Callable[[str, Object], None]
OnList = Callable[[Iterable[Object]], None]

OWNERS = (REPLICASETS, DEPLOYMENTS, STATEFULSETS, DAEMONSETS, JOBS)
WATCHED = (*OWNERS, HORIZONTALPODAUTOSCALERS, NAMESPACES, NODES, PODDISRUPTIONBUDGETS)


class RelatedObjects:
    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._cluster = shared.cluster

    def handlers(self, resource: Resource) -> tuple[OnEvent, OnList]:
        """Return who hears of the events of a watch, and of a list."""
        if resource in OWNERS:
            return self._owner(resource.kind)
        if resource is HORIZONTALPODAUTOSCALERS:
            return self._autoscaler, lambda items: self._cluster.autoscalers.listed(items, self._shared.now())
        one = {NAMESPACES: self._namespace, NODES: self._node, PODDISRUPTIONBUDGETS: self._budget}[resource]

        def each(items: Iterable[Object]) -> None:
            for obj in items:
                one("MODIFIED", obj)

        return one, each

    def begin(self, timeline: PodTimeline, now: Moment) -> None:
        """Report the state of the Pod's node, if that is worth a word: its end has begun."""
        state = self._cluster.node_state(timeline.node)
        if state is None:
            return
        seen = state.facts_as(kinds.NODE_STATE_SEEN)
        if seen["ready"] is not True or seen["gone"] or seen.get("lifecycle"):
            timeline.write(state, now)

    def _owner(self, kind: str) -> tuple[OnEvent, OnList]:
        return (
            lambda type_, obj: self._cluster.owner(kind, type_, obj, self._shared.now()),
            lambda items: self._cluster.owners_listed(kind, items, self._shared.now()),
        )

    def _namespace(self, type_: str, obj: Object) -> None:
        self._cluster.namespace(obj, self._shared.now(), gone=type_ == "DELETED")

    def _autoscaler(self, type_: str, obj: Object) -> None:
        self._cluster.autoscalers.seen(obj, self._shared.now(), gone=type_ == "DELETED")

    def _budget(self, type_: str, obj: Object) -> None:
        self._cluster.budget(obj)

    def _node(self, type_: str, obj: Object) -> None:
        now, name = self._shared.now(), name_of(obj)
        if self._cluster.node(obj, now, gone=type_ == "DELETED"):
            for timeline in self._shared.timelines.values():
                if timeline.node == name:
                    self.begin(timeline, now)
