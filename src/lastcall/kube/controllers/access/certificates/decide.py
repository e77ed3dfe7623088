"""What the approving, signing and cleaning controllers do with a CertificateSigningRequest. Pure.

Sources: pkg/controller/certificates/{approver/sarapprove.go,signer/signer.go,cleaner/cleaner.go},
pkg/apis/certificates/v1/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.certificates import CertificateSigningRequest

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY = "kubernetes.io/legacy-unknown"
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY)

LONGEST = timedelta(days=365)
"""--cluster-signing-duration."""
SHORTEST = timedelta(minutes=10)

_SIGNATURE, _ENCIPHERMENT = "digital signature", "key encipherment"
_CLIENT_AUTH, _SERVER_AUTH = "client auth", "server auth"

PENDING_FOR = timedelta(hours=24)
DECIDED_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Requested:
    """What the PKCS#10 request says. `names` are its subject alternative names by kind: dns, ip, email, uri."""

    common_name: str
    organizations: Sequence[str]
    names: Mapping[str, Sequence[str]]


def has_condition(request: CertificateSigningRequest, kind: str) -> bool:
    return any(each.get("type") == kind for each in (request.get("status") or {}).get("conditions") or ())


def is_decided(request: CertificateSigningRequest) -> bool:
    return has_condition(request, "Approved") or has_condition(request, "Denied")


def is_to_be_signed(request: CertificateSigningRequest) -> bool:
    """Return whether this is an approved request for a built-in signer that has no certificate and did not fail."""
    status, spec = request.get("status") or {}, request.get("spec") or {}
    open_ = not status.get("certificate") and not has_condition(request, "Failed")
    return open_ and spec.get("signerName") in SIGNERS and has_condition(request, "Approved")


def problem_of(signer: str, requested: Requested, usages: Sequence[str]) -> str:
    """Return why the signer will not sign; "" when it will."""
    if signer == CLIENT:
        return _client_problem(usages)
    if signer == KUBELET_CLIENT:
        return _kubelet_problem(requested, usages, _CLIENT_AUTH)
    if signer == KUBELET_SERVING:
        return _kubelet_problem(requested, usages, _SERVER_AUTH)
    return ""


def _client_problem(usages: Sequence[str]) -> str:
    for usage in usages:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, _CLIENT_AUTH):
            return f"invalid usage for client certificate: {usage}"
    return "" if _CLIENT_AUTH in usages else f"missing required usage for client certificate: {_CLIENT_AUTH}"


def _kubelet_problem(requested: Requested, usages: Sequence[str], use: str) -> str:
    """(`ValidateKubeletClientCSR`, `ValidateKubeletServingCSR`)"""
    if list(requested.organizations) != ["system:nodes"]:
        return "subject organization is not system:nodes"
    names = requested.names
    forbidden = ("dns", "ip", "email", "uri") if use == _CLIENT_AUTH else ("email", "uri")
    if use == _SERVER_AUTH and not names.get("dns") and not names.get("ip"):
        return "DNS or IP subjectAltName is required"
    shown = {"dns": "DNS", "ip": "IP", "email": "Email", "uri": "URI"}
    for kind in forbidden:
        if names.get(kind):
            return f"{shown[kind]} subjectAltNames are not allowed"
    if not requested.common_name.startswith("system:node:"):
        return "subject common name does not begin with system:node:"
    if set(usages) not in ({_SIGNATURE, _ENCIPHERMENT, use}, {_SIGNATURE, use}):
        wanted = " ".join(sorted({use, _SIGNATURE, _ENCIPHERMENT}))
        return f"usages did not match [{wanted}]"
    return ""


def lifetime(request: CertificateSigningRequest) -> timedelta:
    """Return how long the certificate is valid. (`duration`)"""
    seconds = (request.get("spec") or {}).get("expirationSeconds")
    return LONGEST if seconds is None else max(SHORTEST, min(LONGEST, timedelta(seconds=seconds)))


def is_self_request(request: CertificateSigningRequest, requested: Requested) -> bool:
    """Return whether a node asks for its own client certificate."""
    return bool(requested.common_name == (request.get("spec") or {}).get("username"))


def gone_at(request: CertificateSigningRequest) -> datetime:
    """Return when the cleaner deletes it: an hour after it was decided, issued or failed, a day after it came."""
    created = parse_rfc3339(request["metadata"]["creationTimestamp"])
    moments = [created + PENDING_FOR]
    for condition in (request.get("status") or {}).get("conditions") or ():
        changed = condition.get("lastUpdateTime") or condition.get("lastTransitionTime")
        moments += [parse_rfc3339(changed) + DECIDED_FOR] if changed else []
    return min(moments)
