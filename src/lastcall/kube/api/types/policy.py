"""What limits evictions. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import Condition, LabelSelector, ObjectMeta
from lastcall.kube.api.types.scalars import IntOrString, Time


class PodDisruptionBudget(TypedDict, total=False):
    """io.k8s.api.policy.v1.PodDisruptionBudget"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec
    status: PodDisruptionBudgetStatus


class PodDisruptionBudgetSpec(TypedDict, total=False):
    """io.k8s.api.policy.v1.PodDisruptionBudgetSpec"""

    maxUnavailable: IntOrString
    minAvailable: IntOrString
    selector: LabelSelector
    unhealthyPodEvictionPolicy: Literal["AlwaysAllow", "IfHealthyBudget"]


class PodDisruptionBudgetStatus(TypedDict, total=False):
    """io.k8s.api.policy.v1.PodDisruptionBudgetStatus"""

    conditions: list[Condition]
    currentHealthy: int
    desiredHealthy: int
    disruptedPods: dict[str, Time]
    disruptionsAllowed: int
    expectedPods: int
    observedGeneration: int


class Eviction(TypedDict, total=False):
    """io.k8s.api.policy.v1.Eviction"""

    apiVersion: str
    deleteOptions: DeleteOptions
    kind: str
    metadata: ObjectMeta


class DeleteOptions(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"""

    apiVersion: str
    dryRun: list[str]
    gracePeriodSeconds: int
    ignoreStoreReadErrorWithClusterBreakingPotential: bool
    kind: str
    orphanDependents: bool
    preconditions: Preconditions
    propagationPolicy: str


class Preconditions(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions"""

    resourceVersion: str
    uid: str
