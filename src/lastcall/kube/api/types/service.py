"""Services and the slices of their endpoints. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import Condition, ObjectMeta, ObjectReference
from lastcall.kube.api.types.scalars import IntOrString


class Service(TypedDict, total=False):
    """io.k8s.api.core.v1.Service"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: ServiceSpec
    status: ServiceStatus


class ServiceSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.ServiceSpec"""

    allocateLoadBalancerNodePorts: bool
    clusterIP: str
    clusterIPs: list[str]
    externalIPs: list[str]
    externalName: str
    externalTrafficPolicy: Literal["Cluster", "Local"]
    healthCheckNodePort: int
    internalTrafficPolicy: Literal["Cluster", "Local"]
    ipFamilies: list[Literal["", "IPv4", "IPv6"]]
    ipFamilyPolicy: Literal["PreferDualStack", "RequireDualStack", "SingleStack"]
    loadBalancerClass: str
    loadBalancerIP: str
    loadBalancerSourceRanges: list[str]
    ports: list[ServicePort]
    publishNotReadyAddresses: bool
    selector: dict[str, str]
    sessionAffinity: Literal["ClientIP", "None"]
    sessionAffinityConfig: SessionAffinityConfig
    trafficDistribution: str
    type: Literal["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]


class ServicePort(TypedDict, total=False):
    """io.k8s.api.core.v1.ServicePort"""

    appProtocol: str
    name: str
    nodePort: int
    port: int
    protocol: Literal["SCTP", "TCP", "UDP"]
    targetPort: IntOrString


class SessionAffinityConfig(TypedDict, total=False):
    """io.k8s.api.core.v1.SessionAffinityConfig"""

    clientIP: ClientIPConfig


class ClientIPConfig(TypedDict, total=False):
    """io.k8s.api.core.v1.ClientIPConfig"""

    timeoutSeconds: int


class ServiceStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.ServiceStatus"""

    conditions: list[Condition]
    loadBalancer: LoadBalancerStatus


class LoadBalancerStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.LoadBalancerStatus"""

    ingress: list[LoadBalancerIngress]


class LoadBalancerIngress(TypedDict, total=False):
    """io.k8s.api.core.v1.LoadBalancerIngress"""

    hostname: str
    ip: str
    ipMode: str
    ports: list[PortStatus]


class PortStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.PortStatus"""

    error: str
    port: int
    protocol: Literal["SCTP", "TCP", "UDP"]


class EndpointSlice(TypedDict, total=False):
    """io.k8s.api.discovery.v1.EndpointSlice"""

    addressType: Literal["FQDN", "IPv4", "IPv6"]
    apiVersion: str
    endpoints: list[Endpoint] | None
    kind: str
    metadata: ObjectMeta
    ports: list[EndpointPort] | None


class Endpoint(TypedDict, total=False):
    """io.k8s.api.discovery.v1.Endpoint"""

    addresses: list[str]
    conditions: EndpointConditions
    deprecatedTopology: dict[str, str]
    hints: EndpointHints
    hostname: str
    nodeName: str
    targetRef: ObjectReference
    zone: str


class EndpointConditions(TypedDict, total=False):
    """io.k8s.api.discovery.v1.EndpointConditions"""

    ready: bool
    serving: bool
    terminating: bool


class EndpointHints(TypedDict, total=False):
    """io.k8s.api.discovery.v1.EndpointHints"""

    forNodes: list[ForNode]
    forZones: list[ForZone]


class ForNode(TypedDict, total=False):
    """io.k8s.api.discovery.v1.ForNode"""

    name: str


class ForZone(TypedDict, total=False):
    """io.k8s.api.discovery.v1.ForZone"""

    name: str


class EndpointPort(TypedDict, total=False):
    """io.k8s.api.discovery.v1.EndpointPort"""

    appProtocol: str
    name: str
    port: int
    protocol: Literal["SCTP", "TCP", "UDP"]
