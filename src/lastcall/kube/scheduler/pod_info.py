"""A Pod as the scheduler sees it: read once, shared by all Pods that ask for the same.

Source: pkg/scheduler/framework/types.go:PodInfo.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import orjson

from lastcall.kube.api.meta import is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import is_restartable_init
from lastcall.kube.api.scheduling import required_node_terms
from lastcall.kube.scheduler.pod_resources import CPU, DEFAULT_REQUESTS, MEMORY, counts, held_spec, pod_requests
from lastcall.kube.scheduler.terms import NO_TERMS, PodTerms, SpreadConstraint, pod_terms, spread_constraints
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod, PodSpec
    from lastcall.kube.api.types.scheduling import NodeSelectorTerm, PreferredSchedulingTerm, Toleration
    from lastcall.kube.scheduler.volume_binding import PodVolumes

MAX_REQUIREMENTS = 4096
SPREAD_OWNERS = ("ReplicaSet", "ReplicationController", "StatefulSet")
"""The owners whose Pods are spread by default (plugins/helper/spread.go:DefaultSelector)."""

HostPort = tuple[str, str, int]
"""(address or "0.0.0.0", protocol, port)."""
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (a value compared with, nothing listens)


@dataclass(slots=True, eq=False)
class Requirements:
    """What the filters and scores look at. One object for all Pods that ask for the same: it can be a key."""

    spec: PodSpec
    priority: int
    preempts: bool
    requests: dict[str, int]
    """Only what is more than zero."""
    scored_cpu: int
    scored_memory: int
    ports: tuple[HostPort, ...]
    tolerations: tuple[Toleration, ...]
    preferred_nodes: tuple[PreferredSchedulingTerm, ...]
    node_names: tuple[str, ...] | None
    """The only nodes that can match by name; None when the affinity names none (NodeAffinity's PreFilter)."""
    terms: PodTerms
    hard_spread: tuple[SpreadConstraint, ...]
    soft_spread: tuple[SpreadConstraint, ...]

    @property
    def stands_alone(self) -> bool:
        """Return True when a node's answer depends on that node alone."""
        return self.node_names is None and not (
            self.terms or self.hard_spread or self.soft_spread or self.preferred_nodes
        )


@dataclass(slots=True, eq=False)
class PodInfo:
    """`owner` is the uid of the controlling owner whose Pods are spread by default, "" without one.

    `preempted`: its deletion was asked for here, and need not have come back yet.
    """

    pod: Pod
    uid: str
    namespace: str
    name: str
    labels: dict[str, str]
    requirements: Requirements
    owner: str
    terminating: bool
    preempted: bool = False
    has_claims: bool = False
    volumes: PodVolumes | None = None
    """What the last look found out about its claims; None without claims."""

    @property
    def priority(self) -> int:
        return self.requirements.priority


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the ports of the node that the Pod takes; sidecars' too (`util.GetHostPorts`)."""
    sidecars = [each for each in spec.get("initContainers") or () if is_restartable_init(each)]
    return tuple(
        (port.get("hostIP") or _ANY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"])
        for container in [*sidecars, *(spec.get("containers") or ())]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )


def _node_names(terms: list[NodeSelectorTerm] | None) -> tuple[str, ...] | None:
    """Terms are alternatives, so each must name nodes; within one, all of its fields must agree."""
    names: dict[str, None] = {}
    for term in terms or ():
        named: list[str] | None = None
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and field["operator"] == "In":
                values = field.get("values") or []
                named = values if named is None else [value for value in named if value in values]
        if named is None:
            return None
        names |= dict.fromkeys(named)
    return tuple(names) if terms else None


class PodInfos:
    """Makes `PodInfo`s; remembers the last `MAX_REQUIREMENTS` different requirements."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Requirements] = OrderedDict()

    def of(self, pod: Pod, known: PodInfo | None = None) -> PodInfo:
        """Read what the scheduler needs of the Pod. If the spec is that of `known`, it need not be read again."""
        namespace, labels = namespace_of(pod), labels_of(pod)
        spec = held_spec(pod)
        if known is not None and held_spec(known.pod) is spec and known.labels == labels:
            requirements = known.requirements
        else:
            requirements = self.requirements(spec, namespace, labels)
        return PodInfo(
            pod,
            uid_of(pod),
            namespace,
            name_of(pod),
            labels,
            requirements,
            _spread_owner(pod),
            is_terminating(pod),
            has_claims=_has_claims(pod),
        )

    def requirements(self, spec: PodSpec, namespace: str, labels: dict[str, str]) -> Requirements:
        key = _key(spec, namespace, labels)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _read(spec, namespace, labels)
            if len(self._known) > MAX_REQUIREMENTS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known


def _has_claims(pod: Pod) -> bool:
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume or "ephemeral" in volume:
            return True
    return False


def _spread_owner(pod: Pod) -> str:
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") in SPREAD_OWNERS:
            return str(reference["uid"])
    return ""


_COMPARED = (
    "priority", "preemptionPolicy", "overhead", "resources", "nodeSelector", "affinity", "tolerations",
    "topologySpreadConstraints",
)  # fmt: skip


def _key(spec: PodSpec, namespace: str, labels: dict[str, str]) -> bytes:
    """Equal for Pods that ask for the same. The node a Pod runs on is not a wish, so it is left out."""
    content: list[object] = [
        [each.get("resources"), each.get("restartPolicy"), each.get("ports")]
        for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    ]
    content.append(len(spec.get("initContainers") or ()))
    content += [spec.get(field) for field in _COMPARED]
    affinity = spec.get("affinity") or {}
    if affinity.get("podAffinity") or affinity.get("podAntiAffinity") or spec.get("topologySpreadConstraints"):
        content += [namespace, labels]
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


def _read(spec: PodSpec, namespace: str, labels: dict[str, str]) -> Requirements:
    requests = {name: value for name, value in pod_requests(spec).items() if value > 0 and counts(name)}
    scored = pod_requests(spec, DEFAULT_REQUESTS)
    affinity = spec.get("affinity") or {}
    preferred = (affinity.get("nodeAffinity") or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    related = affinity.get("podAffinity") or affinity.get("podAntiAffinity")
    wishes: PodSpec = {}
    if "nodeSelector" in spec:
        wishes["nodeSelector"] = spec["nodeSelector"]
    if "affinity" in spec:
        wishes["affinity"] = spec["affinity"]
    return Requirements(
        spec=wishes,
        priority=spec.get("priority") or 0,
        preempts=spec.get("preemptionPolicy") != "Never",
        requests=requests,
        scored_cpu=scored.get(CPU, 0),
        scored_memory=scored.get(MEMORY, 0),
        ports=host_ports(spec),
        tolerations=tuple(spec.get("tolerations") or ()),
        preferred_nodes=tuple(preferred),
        node_names=_node_names(required_node_terms(spec)),
        terms=pod_terms(spec, namespace, labels) if related else NO_TERMS,
        hard_spread=spread_constraints(spec, namespace, labels, "DoNotSchedule"),
        soft_spread=spread_constraints(spec, namespace, labels, "ScheduleAnyway"),
    )
