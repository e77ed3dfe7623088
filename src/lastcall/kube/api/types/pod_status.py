"""What is known of a Pod: conditions, containers, addresses. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.container import ResourceRequirements
from lastcall.kube.api.types.scalars import Quantity, Time


class PodStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.PodStatus"""

    allocatedResources: dict[str, Quantity]
    conditions: list[PodCondition]
    containerStatuses: list[ContainerStatus]
    ephemeralContainerStatuses: list[ContainerStatus]
    extendedResourceClaimStatus: PodExtendedResourceClaimStatus
    hostIP: str
    hostIPs: list[HostIP]
    initContainerStatuses: list[ContainerStatus]
    message: str
    nodeAllocatableResourceClaimStatuses: list[NodeAllocatableResourceClaimStatus]
    nominatedNodeName: str
    observedGeneration: int
    phase: Literal["Failed", "Pending", "Running", "Succeeded", "Unknown"]
    podIP: str
    podIPs: list[PodIP]
    qosClass: Literal["BestEffort", "Burstable", "Guaranteed"]
    reason: str
    resize: str
    resourceClaimStatuses: list[PodResourceClaimStatus]
    resources: ResourceRequirements
    startTime: Time


class PodCondition(TypedDict, total=False):
    """io.k8s.api.core.v1.PodCondition"""

    lastProbeTime: Time | None
    lastTransitionTime: Time | None
    message: str
    observedGeneration: int
    reason: str
    status: str
    type: str


class ContainerStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerStatus"""

    allocatedResources: dict[str, Quantity]
    allocatedResourcesStatus: list[ResourceStatus]
    containerID: str
    image: str
    imageID: str
    lastState: ContainerState
    name: str
    ready: bool
    resources: ResourceRequirements
    restartCount: int
    started: bool
    state: ContainerState
    stopSignal: str
    user: ContainerUser
    volumeMounts: list[VolumeMountStatus]


class ResourceStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.ResourceStatus"""

    name: str
    resources: list[ResourceHealth]


class ResourceHealth(TypedDict, total=False):
    """io.k8s.api.core.v1.ResourceHealth"""

    health: str
    message: str
    resourceID: str


class ContainerState(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerState"""

    running: ContainerStateRunning
    terminated: ContainerStateTerminated
    waiting: ContainerStateWaiting


class ContainerStateRunning(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerStateRunning"""

    startedAt: Time | None


class ContainerStateTerminated(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerStateTerminated"""

    containerID: str
    exitCode: int
    finishedAt: Time | None
    message: str
    reason: str
    signal: int
    startedAt: Time | None


class ContainerStateWaiting(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerStateWaiting"""

    message: str
    reason: str


class ContainerUser(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerUser"""

    linux: LinuxContainerUser


class LinuxContainerUser(TypedDict, total=False):
    """io.k8s.api.core.v1.LinuxContainerUser"""

    gid: int
    supplementalGroups: list[int]
    uid: int


class VolumeMountStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.VolumeMountStatus"""

    mountPath: str
    name: str
    readOnly: bool
    recursiveReadOnly: str
    volumeStatus: VolumeStatus


class VolumeStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.VolumeStatus"""

    image: ImageVolumeStatus


class ImageVolumeStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.ImageVolumeStatus"""

    imageRef: str


class PodExtendedResourceClaimStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.PodExtendedResourceClaimStatus"""

    requestMappings: list[ContainerExtendedResourceRequest]
    resourceClaimName: str


class ContainerExtendedResourceRequest(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerExtendedResourceRequest"""

    containerName: str
    requestName: str
    resourceName: str


class HostIP(TypedDict, total=False):
    """io.k8s.api.core.v1.HostIP"""

    ip: str


class NodeAllocatableResourceClaimStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus"""

    containers: list[str]
    resourceClaimName: str
    resources: dict[str, Quantity]


class PodIP(TypedDict, total=False):
    """io.k8s.api.core.v1.PodIP"""

    ip: str


class PodResourceClaimStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.PodResourceClaimStatus"""

    name: str
    resourceClaimName: str
