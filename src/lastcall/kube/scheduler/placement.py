"""One look at the cluster for one Pod: the node it goes to, or why there is none. Pure.

Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, evaluateNominatedNode) and
pkg/scheduler/framework/runtime/framework.go:RunFilterPluginsWithNominatedPods.
"""

# check: pure

from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.filters import CycleState, Diagnosis, Refusal, nodes_to_look_at, refusal
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.ranking import Rankings, is_ranked
from lastcall.kube.scheduler.scores import best_node


def place(pod: PodInfo, cache: Cache, rankings: Rankings | None = None) -> NodeInfo | Diagnosis:
    """Return the best node for the Pod. `rankings` are remembered answers, which make the common case cheap."""
    if rankings is not None and is_ranked(pod, cache):
        found = rankings.best(pod, cache)
        if found is not None:
            return found
    return look(pod, cache)


def look(pod: PodInfo, cache: Cache) -> NodeInfo | Diagnosis:
    """Find the best node as `place` does, by looking at every node."""
    nodes, absent, conflict = nodes_to_look_at(pod, cache)
    if pod.volumes is not None and pod.volumes.conflict:
        return Diagnosis(len(cache.nodes), {}, conflict=pod.volumes.conflict, conflict_plugin="VolumeBinding")
    if conflict:
        return Diagnosis(len(cache.nodes), {}, conflict=conflict)
    state = CycleState(pod, cache)
    nominated = cache.nodes.get(cache.nominated_node(pod.uid))
    if nominated is not None and refusal_with_nominated(state, nominated) is None:
        return nominated
    fitting: list[NodeInfo] = []
    refusals: dict[str, Refusal] = {}
    for node in nodes:
        found = refusal_with_nominated(state, node)
        if found is None:
            fitting.append(node)
        else:
            refusals[node.name] = found
    return best_node(pod, fitting, cache) if fitting else Diagnosis(len(cache.nodes), refusals, absent)


def refusal_with_nominated(state: CycleState, node: NodeInfo) -> Refusal | None:
    """Return what `refusal` does, but count the nominated Pods of the node that come before this one.

    The Pod must fit with them, and without them too: they might end up elsewhere.
    """
    coming = [
        other
        for other in state.cache.nominated.get(node.name, {}).values()
        if other.uid != state.pod.uid and other.priority >= state.pod.priority and other.uid not in node.pods
    ]
    if coming:
        with_them, fuller = state.copy(), node.copy()
        for other in coming:
            fuller.add(other)
            with_them.change(other, fuller, 1)
        found = refusal(with_them, fuller)
        if found is not None:
            return found
    return refusal(state, node)
