"""Which nodes can take a Pod, and Kubernetes's words for those that cannot. Pure.

Source: pkg/scheduler/framework/plugins (one row of `FILTERS` for each plugin, in the default order; the first that
refuses a node is the one that counts) and pkg/scheduler/framework/types.go:FitError.
"""

# check: pure

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from lastcall.kube.api.scheduling import NO_SCHEDULE, UNSCHEDULABLE, matches_node, tolerates, untolerated
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.pod_affinity import AffinityState
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.kube.scheduler.topology_spread import SpreadState
from lastcall.world.dataclass import dataclass

NO_NODES = "no nodes available to schedule pods"
NO_CLAIMS = "no new claims to deallocate"
"""What the plugin before preemption always says when there are no resource claims."""
AFFINITY_CONFLICT = "pod affinity terms conflict"
NOT_BY_PLUGIN = "node(s) didn't satisfy plugin(s) [NodeAffinity]"

_UNSCHEDULABLE_TAINT = {"key": UNSCHEDULABLE, "effect": NO_SCHEDULE}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot take the Pod. `unresolvable`: no preemption there would help."""

    plugin: str
    reasons: tuple[str, ...]
    unresolvable: bool = False


class CycleState:
    """What one look at the cluster for one Pod found out about more than one node."""

    def __init__(self, pod: PodInfo, cache: Cache) -> None:
        self.pod = pod
        self.cache = cache
        self.affinity = AffinityState(pod, cache)
        self.spread = SpreadState(pod, cache) if pod.requirements.hard_spread else None

    def copy(self) -> "CycleState":
        made = object.__new__(CycleState)
        made.pod, made.cache = self.pod, self.cache
        made.affinity = self.affinity.copy()
        made.spread = self.spread.copy() if self.spread is not None else None
        return made

    def change(self, other: PodInfo, node: NodeInfo, by: int) -> None:
        """Count `other` as if it came to `node` (`by` 1) or left it (-1). The caller changes the node itself."""
        self.affinity.change(other, node, by, self.cache)
        if self.spread is not None:
            self.spread.change(other, node, by, self.cache)


Filter = Callable[[CycleState, NodeInfo], Refusal | None]


def refusal(state: CycleState, node: NodeInfo) -> Refusal | None:
    """Return why `node` cannot take the Pod, None when it can."""
    for rule in FILTERS.values():
        found = rule(state, node)
        if found is not None:
            return found
    return None


def _is_schedulable(state: CycleState, node: NodeInfo) -> Refusal | None:
    if node.unschedulable and not any(
        tolerates(each, _UNSCHEDULABLE_TAINT) for each in state.pod.requirements.tolerations
    ):
        return _UNSCHEDULABLE
    return None


def _has_the_name(state: CycleState, node: NodeInfo) -> Refusal | None:
    wanted = state.pod.pod["spec"].get("nodeName")
    return _WRONG_NAME if wanted and wanted != node.name else None


def _tolerates(state: CycleState, node: NodeInfo) -> Refusal | None:
    if node.taints and untolerated(node.taints, state.pod.requirements.tolerations) is not None:
        return _TAINTED
    return None


def _matches_affinity(state: CycleState, node: NodeInfo) -> Refusal | None:
    wishes = state.pod.requirements.spec
    return _NOT_SELECTED if wishes and node.node is not None and not matches_node(wishes, node.node) else None


def _has_free_ports(state: CycleState, node: NodeInfo) -> Refusal | None:
    return _PORTS if any(node.port_taken(port) for port in state.pod.requirements.ports) else None


def _has_resources(state: CycleState, node: NodeInfo) -> Refusal | None:
    """plugins/noderesources/fit.go:fitsRequest. More than the whole node has is more than preemption can give."""
    reasons: list[str] = []
    unresolvable = False
    if len(node.pods) + 1 > node.max_pods:
        reasons.append("Too many pods")
    allocatable, requested = node.allocatable, node.requested
    for name, wanted in state.pod.requirements.requests.items():
        there = allocatable.get(name, 0)
        if wanted > there - requested.get(name, 0):
            reasons.append(f"Insufficient {name}")
            unresolvable = unresolvable or wanted > there
    return Refusal("NodeResourcesFit", tuple(reasons), unresolvable) if reasons else None


def _is_spread(state: CycleState, node: NodeInfo) -> Refusal | None:
    found = state.spread.refusal(node) if state.spread is not None else None
    return Refusal("PodTopologySpread", (found[0],), found[1]) if found is not None else None


def _goes_together(state: CycleState, node: NodeInfo) -> Refusal | None:
    found = state.affinity.refusal(node, state.cache) if state.affinity.matters else None
    return Refusal("InterPodAffinity", (found[0],), found[1]) if found is not None else None


def _is_its_only_pod(state: CycleState, node: NodeInfo) -> Refusal | None:
    """plugins/volumerestrictions: a claim with ReadWriteOncePod that another Pod has."""
    volumes = state.pod.volumes
    if volumes is None:
        return None
    return _TAKEN if volumes.taken(other.pod for other, _ in state.cache.pods() if other.has_claims) else None


def _has_volumes(state: CycleState, node: NodeInfo) -> Refusal | None:
    """plugins/volumebinding: none of its reasons goes away with other Pods."""
    volumes = state.pod.volumes
    reasons = volumes.reasons_against(node.name, node.labels) if volumes is not None else ()
    return Refusal("VolumeBinding", reasons, True) if reasons else None


_TAKEN = Refusal(
    "VolumeRestrictions",
    ("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",),
)
_UNSCHEDULABLE = Refusal("NodeUnschedulable", ("node(s) were unschedulable",), True)
_WRONG_NAME = Refusal("NodeName", ("node(s) didn't match the requested node name",), True)
_TAINTED = Refusal("TaintToleration", ("node(s) had untolerated taint(s)",), True)
_NOT_SELECTED = Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), True)
_PORTS = Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",))

FILTERS: dict[str, Filter] = {
    "NodeUnschedulable": _is_schedulable,
    "NodeName": _has_the_name,
    "TaintToleration": _tolerates,
    "NodeAffinity": _matches_affinity,
    "NodePorts": _has_free_ports,
    "NodeResourcesFit": _has_resources,
    "VolumeRestrictions": _is_its_only_pod,
    "VolumeBinding": _has_volumes,
    "PodTopologySpread": _is_spread,
    "InterPodAffinity": _goes_together,
}

OF_VOLUMES = ("VolumeRestrictions", "VolumeBinding")
"""The filters that look at claims; a Pod that has some is never ranked."""

OF_ONE_NODE: tuple[Filter, ...] = tuple(
    rule for name, rule in FILTERS.items() if name not in ("PodTopologySpread", "InterPodAffinity", *OF_VOLUMES)
)
"""The filters that look at nothing but the node."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why no node takes the Pod. `refusals` by node; nodes that are not in it have the reason `absent`.

    `conflict` is what a plugin said before it looked at any node.
    """

    node_count: int
    refusals: Mapping[str, Refusal]
    absent: str = ""
    conflict: str = ""
    conflict_plugin: str = "NodeAffinity"

    @property
    def plugins(self) -> tuple[str, ...]:
        """Return the plugins that refused a node, in the order of `FILTERS`."""
        found = {refusal.plugin for refusal in self.refusals.values()}
        if self.absent:
            found.add("NodeAffinity")
        if self.conflict:
            found.add(self.conflict_plugin)
        return tuple(name for name in FILTERS if name in found)

    def __str__(self) -> str:
        """`FitError.Error`, without what preemption adds."""
        text = f"0/{self.node_count} nodes are available:"
        if self.conflict:
            return f"{text} {self.conflict}."
        counted = Counter(reason for refusal in self.refusals.values() for reason in refusal.reasons)
        if self.absent and self.node_count > len(self.refusals):
            counted[self.absent] += self.node_count - len(self.refusals)
        return f"{text} {listed(counted)}." if counted else text


def listed(reasons: Mapping[str, int]) -> str:
    """Return `1 Insufficient cpu, 2 node(s) were unschedulable`, sorted as text."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def failure_text(diagnosis: Diagnosis, preemption: str, minor: int) -> str:
    """Return the message of FailedScheduling of Kubernetes 1.`minor`.

    `preemption` is why preempting does not help; "" when it makes room, which only 1.37 says (kubernetes#140180). The
    plugin of resource claims is silent since then, too, as clusters of 1.37 print the Event.
    """
    if not diagnosis.node_count:
        return NO_NODES
    if not preemption:
        return str(diagnosis)
    return f"{diagnosis} {'' if minor >= 37 else f'{NO_CLAIMS}, '}preemption: {preemption}"


def nodes_to_look_at(pod: PodInfo, cache: Cache) -> tuple[Iterable[NodeInfo], str, str]:
    """Return (nodes, reason of those left out, conflict). A Pod may name the only nodes that can match."""
    names = pod.requirements.node_names
    if names is None:
        return cache.nodes.values(), "", ""
    if not names:
        return (), "", AFFINITY_CONFLICT
    return [cache.nodes[name] for name in names if name in cache.nodes], NOT_BY_PLUGIN, ""
