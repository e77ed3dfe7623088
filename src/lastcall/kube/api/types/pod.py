"""Pods and templates of Pods. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.container import (
    AppArmorProfile,
    Container,
    EphemeralContainer,
    ResourceRequirements,
    SeccompProfile,
    SELinuxOptions,
    WindowsSecurityContextOptions,
)
from lastcall.kube.api.types.meta import LocalObjectReference, ObjectMeta
from lastcall.kube.api.types.pod_status import PodStatus
from lastcall.kube.api.types.scalars import Quantity
from lastcall.kube.api.types.scheduling import Affinity, Toleration, TopologySpreadConstraint
from lastcall.kube.api.types.volumes import Volume


class Pod(TypedDict, total=False):
    """io.k8s.api.core.v1.Pod"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus


class PodSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.PodSpec"""

    activeDeadlineSeconds: int
    affinity: Affinity
    automountServiceAccountToken: bool
    containers: list[Container]
    dnsConfig: PodDNSConfig
    dnsPolicy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
    enableServiceLinks: bool
    ephemeralContainers: list[EphemeralContainer]
    hostAliases: list[HostAlias]
    hostIPC: bool
    hostNetwork: bool
    hostPID: bool
    hostUsers: bool
    hostname: str
    hostnameOverride: str
    imagePullSecrets: list[LocalObjectReference]
    initContainers: list[Container]
    nodeName: str
    nodeSelector: dict[str, str]
    os: PodOS
    overhead: dict[str, Quantity]
    preemptionPolicy: Literal["Never", "PreemptLowerPriority"]
    priority: int
    priorityClassName: str
    readinessGates: list[PodReadinessGate]
    resourceClaims: list[PodResourceClaim]
    resources: ResourceRequirements
    restartPolicy: Literal["Always", "Never", "OnFailure"]
    runtimeClassName: str
    schedulerName: str
    schedulingGates: list[PodSchedulingGate]
    schedulingGroup: PodSchedulingGroup
    securityContext: PodSecurityContext
    serviceAccount: str
    serviceAccountName: str
    setHostnameAsFQDN: bool
    shareProcessNamespace: bool
    subdomain: str
    terminationGracePeriodSeconds: int
    tolerations: list[Toleration]
    topologySpreadConstraints: list[TopologySpreadConstraint]
    volumes: list[Volume]


class PodDNSConfig(TypedDict, total=False):
    """io.k8s.api.core.v1.PodDNSConfig"""

    nameservers: list[str]
    options: list[PodDNSConfigOption]
    searches: list[str]


class PodDNSConfigOption(TypedDict, total=False):
    """io.k8s.api.core.v1.PodDNSConfigOption"""

    name: str
    value: str


class HostAlias(TypedDict, total=False):
    """io.k8s.api.core.v1.HostAlias"""

    hostnames: list[str]
    ip: str


class PodOS(TypedDict, total=False):
    """io.k8s.api.core.v1.PodOS"""

    name: str


class PodReadinessGate(TypedDict, total=False):
    """io.k8s.api.core.v1.PodReadinessGate"""

    conditionType: str


class PodResourceClaim(TypedDict, total=False):
    """io.k8s.api.core.v1.PodResourceClaim"""

    name: str
    resourceClaimName: str
    resourceClaimTemplateName: str


class PodSchedulingGate(TypedDict, total=False):
    """io.k8s.api.core.v1.PodSchedulingGate"""

    name: str


class PodSchedulingGroup(TypedDict, total=False):
    """io.k8s.api.core.v1.PodSchedulingGroup"""

    podGroupName: str


class PodSecurityContext(TypedDict, total=False):
    """io.k8s.api.core.v1.PodSecurityContext"""

    appArmorProfile: AppArmorProfile
    fsGroup: int
    fsGroupChangePolicy: Literal["Always", "OnRootMismatch"]
    runAsGroup: int
    runAsNonRoot: bool
    runAsUser: int
    seLinuxChangePolicy: str
    seLinuxOptions: SELinuxOptions
    seccompProfile: SeccompProfile
    supplementalGroups: list[int]
    supplementalGroupsPolicy: Literal["Merge", "Strict"]
    sysctls: list[Sysctl]
    windowsOptions: WindowsSecurityContextOptions


class Sysctl(TypedDict, total=False):
    """io.k8s.api.core.v1.Sysctl"""

    name: str
    value: str


class PodTemplateSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.PodTemplateSpec"""

    metadata: ObjectMeta
    spec: PodSpec
