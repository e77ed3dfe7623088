"""Namespaces, configuration, events. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import LocalObjectReference, ObjectMeta, ObjectReference
from lastcall.kube.api.types.scalars import Time


class Namespace(TypedDict, total=False):
    """io.k8s.api.core.v1.Namespace"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: NamespaceSpec
    status: NamespaceStatus


class NamespaceSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.NamespaceSpec"""

    finalizers: list[str]


class NamespaceStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.NamespaceStatus"""

    conditions: list[NamespaceCondition]
    phase: Literal["Active", "Terminating"]


class NamespaceCondition(TypedDict, total=False):
    """io.k8s.api.core.v1.NamespaceCondition"""

    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class ConfigMap(TypedDict, total=False):
    """io.k8s.api.core.v1.ConfigMap"""

    apiVersion: str
    binaryData: dict[str, str]
    data: dict[str, str]
    immutable: bool
    kind: str
    metadata: ObjectMeta


class Secret(TypedDict, total=False):
    """io.k8s.api.core.v1.Secret"""

    apiVersion: str
    data: dict[str, str]
    immutable: bool
    kind: str
    metadata: ObjectMeta
    stringData: dict[str, str]
    type: str


class ServiceAccount(TypedDict, total=False):
    """io.k8s.api.core.v1.ServiceAccount"""

    apiVersion: str
    automountServiceAccountToken: bool
    imagePullSecrets: list[LocalObjectReference]
    kind: str
    metadata: ObjectMeta
    secrets: list[ObjectReference]


class Event(TypedDict, total=False):
    """io.k8s.api.core.v1.Event"""

    action: str
    apiVersion: str
    count: int
    eventTime: Time
    firstTimestamp: Time | None
    involvedObject: ObjectReference
    kind: str
    lastTimestamp: Time | None
    message: str
    metadata: ObjectMeta
    reason: str
    related: ObjectReference
    reportingComponent: str
    reportingInstance: str
    series: EventSeries
    source: EventSource
    type: str


class EventSeries(TypedDict, total=False):
    """io.k8s.api.core.v1.EventSeries"""

    count: int
    lastObservedTime: Time


class EventSource(TypedDict, total=False):
    """io.k8s.api.core.v1.EventSource"""

    component: str
    host: str
