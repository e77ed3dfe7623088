"""Endpoints, the older form of endpoint slices. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import ObjectMeta, ObjectReference


class Endpoints(TypedDict, total=False):
    """io.k8s.api.core.v1.Endpoints"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    subsets: list[EndpointSubset]


class EndpointSubset(TypedDict, total=False):
    """io.k8s.api.core.v1.EndpointSubset"""

    addresses: list[EndpointAddress]
    notReadyAddresses: list[EndpointAddress]
    ports: list[EndpointPort]


class EndpointAddress(TypedDict, total=False):
    """io.k8s.api.core.v1.EndpointAddress"""

    hostname: str
    ip: str
    nodeName: str
    targetRef: ObjectReference


class EndpointPort(TypedDict, total=False):
    """io.k8s.api.core.v1.EndpointPort"""

    appProtocol: str
    name: str
    port: int
    protocol: Literal["SCTP", "TCP", "UDP"]
