"""Where a Pod may run: affinity, taints, spreading. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import LabelSelector
from lastcall.kube.api.types.scalars import Time


class Affinity(TypedDict, total=False):
    """io.k8s.api.core.v1.Affinity"""

    nodeAffinity: NodeAffinity
    podAffinity: PodAffinity
    podAntiAffinity: PodAntiAffinity


class NodeAffinity(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeAffinity"""

    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredSchedulingTerm]
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector


class PreferredSchedulingTerm(TypedDict, total=False):
    """io.k8s.api.core.v1.PreferredSchedulingTerm"""

    preference: NodeSelectorTerm
    weight: int


class NodeSelectorTerm(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeSelectorTerm"""

    matchExpressions: list[NodeSelectorRequirement]
    matchFields: list[NodeSelectorRequirement]


class NodeSelectorRequirement(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeSelectorRequirement"""

    key: str
    operator: Literal["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"]
    values: list[str]


class NodeSelector(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeSelector"""

    nodeSelectorTerms: list[NodeSelectorTerm]


class PodAffinity(TypedDict, total=False):
    """io.k8s.api.core.v1.PodAffinity"""

    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution: list[PodAffinityTerm]


class WeightedPodAffinityTerm(TypedDict, total=False):
    """io.k8s.api.core.v1.WeightedPodAffinityTerm"""

    podAffinityTerm: PodAffinityTerm
    weight: int


class PodAffinityTerm(TypedDict, total=False):
    """io.k8s.api.core.v1.PodAffinityTerm"""

    labelSelector: LabelSelector
    matchLabelKeys: list[str]
    mismatchLabelKeys: list[str]
    namespaceSelector: LabelSelector
    namespaces: list[str]
    topologyKey: str


class PodAntiAffinity(TypedDict, total=False):
    """io.k8s.api.core.v1.PodAntiAffinity"""

    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution: list[PodAffinityTerm]


class Taint(TypedDict, total=False):
    """io.k8s.api.core.v1.Taint"""

    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"]
    key: str
    timeAdded: Time
    value: str


class Toleration(TypedDict, total=False):
    """io.k8s.api.core.v1.Toleration"""

    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"]
    key: str
    operator: Literal["Equal", "Exists", "Gt", "Lt"]
    tolerationSeconds: int
    value: str


class TopologySpreadConstraint(TypedDict, total=False):
    """io.k8s.api.core.v1.TopologySpreadConstraint"""

    labelSelector: LabelSelector
    matchLabelKeys: list[str]
    maxSkew: int
    minDomains: int
    nodeAffinityPolicy: Literal["Honor", "Ignore"]
    nodeTaintsPolicy: Literal["Honor", "Ignore"]
    topologyKey: str
    whenUnsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
