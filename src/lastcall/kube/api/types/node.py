"""Nodes and their leases. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import ObjectMeta
from lastcall.kube.api.types.scalars import Quantity, Time
from lastcall.kube.api.types.scheduling import Taint


class Node(TypedDict, total=False):
    """io.k8s.api.core.v1.Node"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: NodeSpec
    status: NodeStatus


class NodeSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeSpec"""

    configSource: NodeConfigSource
    externalID: str
    podCIDR: str
    podCIDRs: list[str]
    providerID: str
    taints: list[Taint]
    unschedulable: bool


class NodeConfigSource(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeConfigSource"""

    configMap: ConfigMapNodeConfigSource


class ConfigMapNodeConfigSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ConfigMapNodeConfigSource"""

    kubeletConfigKey: str
    name: str
    namespace: str
    resourceVersion: str
    uid: str


class NodeStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeStatus"""

    addresses: list[NodeAddress]
    allocatable: dict[str, Quantity]
    capacity: dict[str, Quantity]
    conditions: list[NodeCondition]
    config: NodeConfigStatus
    daemonEndpoints: NodeDaemonEndpoints
    declaredFeatures: list[str]
    features: NodeFeatures
    images: list[ContainerImage]
    nodeInfo: NodeSystemInfo
    phase: Literal["Pending", "Running", "Terminated"]
    runtimeHandlers: list[NodeRuntimeHandler]
    volumesAttached: list[AttachedVolume]
    volumesInUse: list[str]


class NodeAddress(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeAddress"""

    address: str
    type: str


class NodeCondition(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeCondition"""

    lastHeartbeatTime: Time | None
    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class NodeConfigStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeConfigStatus"""

    active: NodeConfigSource
    assigned: NodeConfigSource
    error: str
    lastKnownGood: NodeConfigSource


class NodeDaemonEndpoints(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeDaemonEndpoints"""

    kubeletEndpoint: DaemonEndpoint


class DaemonEndpoint(TypedDict, total=False):
    """io.k8s.api.core.v1.DaemonEndpoint"""

    Port: int


class NodeFeatures(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeFeatures"""

    supplementalGroupsPolicy: bool


class ContainerImage(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerImage"""

    names: list[str]
    sizeBytes: int


class NodeSystemInfo(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeSystemInfo"""

    architecture: str
    bootID: str
    containerRuntimeVersion: str
    kernelVersion: str
    kubeProxyVersion: str
    kubeletVersion: str
    machineID: str
    operatingSystem: str
    osImage: str
    swap: NodeSwapStatus
    systemUUID: str


class NodeSwapStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeSwapStatus"""

    capacity: int


class NodeRuntimeHandler(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeRuntimeHandler"""

    features: NodeRuntimeHandlerFeatures
    name: str


class NodeRuntimeHandlerFeatures(TypedDict, total=False):
    """io.k8s.api.core.v1.NodeRuntimeHandlerFeatures"""

    recursiveReadOnlyMounts: bool
    userNamespaces: bool


class AttachedVolume(TypedDict, total=False):
    """io.k8s.api.core.v1.AttachedVolume"""

    devicePath: str
    name: str


class Lease(TypedDict, total=False):
    """io.k8s.api.coordination.v1.Lease"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: LeaseSpec


class LeaseSpec(TypedDict, total=False):
    """io.k8s.api.coordination.v1.LeaseSpec"""

    acquireTime: Time
    holderIdentity: str
    leaseDurationSeconds: int
    leaseTransitions: int
    preferredHolder: str
    renewTime: Time
    strategy: str
