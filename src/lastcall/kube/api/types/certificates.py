"""Requests for certificates. Made by tools/make_types.py."""

from __future__ import annotations

from typing import TypedDict

from lastcall.kube.api.types.meta import ObjectMeta
from lastcall.kube.api.types.scalars import Time


class CertificateSigningRequest(TypedDict, total=False):
    """io.k8s.api.certificates.v1.CertificateSigningRequest"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: CertificateSigningRequestSpec
    status: CertificateSigningRequestStatus


class CertificateSigningRequestSpec(TypedDict, total=False):
    """io.k8s.api.certificates.v1.CertificateSigningRequestSpec"""

    expirationSeconds: int
    extra: dict[str, list[str]]
    groups: list[str]
    request: str
    signerName: str
    uid: str
    usages: list[str]
    username: str


class CertificateSigningRequestStatus(TypedDict, total=False):
    """io.k8s.api.certificates.v1.CertificateSigningRequestStatus"""

    certificate: str
    conditions: list[CertificateSigningRequestCondition]


class CertificateSigningRequestCondition(TypedDict, total=False):
    """io.k8s.api.certificates.v1.CertificateSigningRequestCondition"""

    lastTransitionTime: Time | None
    lastUpdateTime: Time | None
    message: str
    reason: str
    status: str
    type: str
