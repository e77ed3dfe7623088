"""Controllers of Pods that are to stay: Deployment, ReplicaSet, StatefulSet, DaemonSet. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from lastcall.kube.api.types.meta import LabelSelector, ObjectMeta
from lastcall.kube.api.types.pod import PodTemplateSpec
from lastcall.kube.api.types.scalars import IntOrString, Time
from lastcall.kube.api.types.storage import PersistentVolumeClaim


class Deployment(TypedDict, total=False):
    """io.k8s.api.apps.v1.Deployment"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: DeploymentSpec
    status: DeploymentStatus


class DeploymentSpec(TypedDict, total=False):
    """io.k8s.api.apps.v1.DeploymentSpec"""

    minReadySeconds: int
    paused: bool
    progressDeadlineSeconds: int
    replicas: int
    revisionHistoryLimit: int
    selector: LabelSelector
    strategy: DeploymentStrategy
    template: PodTemplateSpec


class DeploymentStrategy(TypedDict, total=False):
    """io.k8s.api.apps.v1.DeploymentStrategy"""

    rollingUpdate: RollingUpdateDeployment
    type: Literal["Recreate", "RollingUpdate"]


class RollingUpdateDeployment(TypedDict, total=False):
    """io.k8s.api.apps.v1.RollingUpdateDeployment"""

    maxSurge: IntOrString
    maxUnavailable: IntOrString


class DeploymentStatus(TypedDict, total=False):
    """io.k8s.api.apps.v1.DeploymentStatus"""

    availableReplicas: int
    collisionCount: int
    conditions: list[DeploymentCondition]
    observedGeneration: int
    readyReplicas: int
    replicas: int
    terminatingReplicas: int
    unavailableReplicas: int
    updatedReplicas: int


class DeploymentCondition(TypedDict, total=False):
    """io.k8s.api.apps.v1.DeploymentCondition"""

    lastTransitionTime: Time | None
    lastUpdateTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class ReplicaSet(TypedDict, total=False):
    """io.k8s.api.apps.v1.ReplicaSet"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: ReplicaSetSpec
    status: ReplicaSetStatus


class ReplicaSetSpec(TypedDict, total=False):
    """io.k8s.api.apps.v1.ReplicaSetSpec"""

    minReadySeconds: int
    replicas: int
    selector: LabelSelector
    template: PodTemplateSpec


class ReplicaSetStatus(TypedDict, total=False):
    """io.k8s.api.apps.v1.ReplicaSetStatus"""

    availableReplicas: int
    conditions: list[ReplicaSetCondition]
    fullyLabeledReplicas: int
    observedGeneration: int
    readyReplicas: int
    replicas: int
    terminatingReplicas: int


class ReplicaSetCondition(TypedDict, total=False):
    """io.k8s.api.apps.v1.ReplicaSetCondition"""

    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class StatefulSet(TypedDict, total=False):
    """io.k8s.api.apps.v1.StatefulSet"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: StatefulSetSpec
    status: StatefulSetStatus


class StatefulSetSpec(TypedDict, total=False):
    """io.k8s.api.apps.v1.StatefulSetSpec"""

    minReadySeconds: int
    ordinals: StatefulSetOrdinals
    persistentVolumeClaimRetentionPolicy: StatefulSetPersistentVolumeClaimRetentionPolicy
    podManagementPolicy: Literal["OrderedReady", "Parallel"]
    replicas: int
    revisionHistoryLimit: int
    selector: LabelSelector
    serviceName: str
    template: PodTemplateSpec
    updateStrategy: StatefulSetUpdateStrategy
    volumeClaimTemplates: list[PersistentVolumeClaim]


class StatefulSetOrdinals(TypedDict, total=False):
    """io.k8s.api.apps.v1.StatefulSetOrdinals"""

    start: int


class StatefulSetPersistentVolumeClaimRetentionPolicy(TypedDict, total=False):
    """io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy"""

    whenDeleted: str
    whenScaled: str


class StatefulSetUpdateStrategy(TypedDict, total=False):
    """io.k8s.api.apps.v1.StatefulSetUpdateStrategy"""

    rollingUpdate: RollingUpdateStatefulSetStrategy
    type: Literal["OnDelete", "RollingUpdate"]


class RollingUpdateStatefulSetStrategy(TypedDict, total=False):
    """io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy"""

    maxUnavailable: IntOrString
    partition: int


class StatefulSetStatus(TypedDict, total=False):
    """io.k8s.api.apps.v1.StatefulSetStatus"""

    availableReplicas: int
    collisionCount: int
    conditions: list[StatefulSetCondition]
    currentReplicas: int
    currentRevision: str
    observedGeneration: int
    readyReplicas: int
    replicas: int
    updateRevision: str
    updatedReplicas: int


class StatefulSetCondition(TypedDict, total=False):
    """io.k8s.api.apps.v1.StatefulSetCondition"""

    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class DaemonSet(TypedDict, total=False):
    """io.k8s.api.apps.v1.DaemonSet"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: DaemonSetSpec
    status: DaemonSetStatus


class DaemonSetSpec(TypedDict, total=False):
    """io.k8s.api.apps.v1.DaemonSetSpec"""

    minReadySeconds: int
    revisionHistoryLimit: int
    selector: LabelSelector
    template: PodTemplateSpec
    updateStrategy: DaemonSetUpdateStrategy


class DaemonSetUpdateStrategy(TypedDict, total=False):
    """io.k8s.api.apps.v1.DaemonSetUpdateStrategy"""

    rollingUpdate: RollingUpdateDaemonSet
    type: Literal["OnDelete", "RollingUpdate"]


class RollingUpdateDaemonSet(TypedDict, total=False):
    """io.k8s.api.apps.v1.RollingUpdateDaemonSet"""

    maxSurge: IntOrString
    maxUnavailable: IntOrString


class DaemonSetStatus(TypedDict, total=False):
    """io.k8s.api.apps.v1.DaemonSetStatus"""

    collisionCount: int
    conditions: list[DaemonSetCondition]
    currentNumberScheduled: int
    desiredNumberScheduled: int
    numberAvailable: int
    numberMisscheduled: int
    numberReady: int
    numberUnavailable: int
    observedGeneration: int
    updatedNumberScheduled: int


class DaemonSetCondition(TypedDict, total=False):
    """io.k8s.api.apps.v1.DaemonSetCondition"""

    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class ControllerRevision(TypedDict, total=False):
    """io.k8s.api.apps.v1.ControllerRevision"""

    apiVersion: str
    data: dict[str, Any]
    kind: str
    metadata: ObjectMeta
    revision: int


class ReplicationController(TypedDict, total=False):
    """io.k8s.api.core.v1.ReplicationController"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: ReplicationControllerSpec
    status: ReplicationControllerStatus


class ReplicationControllerSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.ReplicationControllerSpec"""

    minReadySeconds: int
    replicas: int
    selector: dict[str, str]
    template: PodTemplateSpec


class ReplicationControllerStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.ReplicationControllerStatus"""

    availableReplicas: int
    conditions: list[ReplicationControllerCondition]
    fullyLabeledReplicas: int
    observedGeneration: int
    readyReplicas: int
    replicas: int


class ReplicationControllerCondition(TypedDict, total=False):
    """io.k8s.api.core.v1.ReplicationControllerCondition"""

    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str
