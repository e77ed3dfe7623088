"""What all kinds share: metadata, references, selectors. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Any, TypedDict

from lastcall.kube.api.types.scalars import Time


class ObjectMeta(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"""

    annotations: dict[str, str]
    creationTimestamp: Time | None
    deletionGracePeriodSeconds: int
    deletionTimestamp: Time
    finalizers: list[str]
    generateName: str
    generation: int
    labels: dict[str, str]
    managedFields: list[ManagedFieldsEntry]
    name: str
    namespace: str
    ownerReferences: list[OwnerReference]
    resourceVersion: str
    selfLink: str
    uid: str


class ManagedFieldsEntry(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry"""

    apiVersion: str
    fieldsType: str
    fieldsV1: dict[str, Any]
    manager: str
    operation: str
    subresource: str
    time: Time


class OwnerReference(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"""

    apiVersion: str
    blockOwnerDeletion: bool
    controller: bool
    kind: str
    name: str
    uid: str


class LabelSelector(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"""

    matchExpressions: list[LabelSelectorRequirement]
    matchLabels: dict[str, str]


class LabelSelectorRequirement(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement"""

    key: str
    operator: str
    values: list[str]


class Condition(TypedDict, total=False):
    """io.k8s.apimachinery.pkg.apis.meta.v1.Condition"""

    lastTransitionTime: Time | None
    message: str
    observedGeneration: int
    reason: str
    status: str
    type: str


class ObjectReference(TypedDict, total=False):
    """io.k8s.api.core.v1.ObjectReference"""

    apiVersion: str
    fieldPath: str
    kind: str
    name: str
    namespace: str
    resourceVersion: str
    uid: str


class LocalObjectReference(TypedDict, total=False):
    """io.k8s.api.core.v1.LocalObjectReference"""

    name: str


class TypedLocalObjectReference(TypedDict, total=False):
    """io.k8s.api.core.v1.TypedLocalObjectReference"""

    apiGroup: str
    kind: str
    name: str
