"""What the signers of kube-controller-manager make of requests, and when requests are cleared away."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.controllers.access.certificates.decide import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    Requested,
    gone_at,
    is_to_be_signed,
    lifetime,
    problem_of,
)
from lastcall.kube.controllers.access.certificates.request import read_request

NODE = Requested("system:node:n1", ("system:nodes",), {})
KUBELET = ("digital signature", "key encipherment", "client auth")


@pytest.mark.parametrize(
    ("signer", "requested", "usages", "problem"),
    [
        (CLIENT, NODE, ("client auth",), ""),
        (CLIENT, NODE, ("server auth",), "invalid usage for client certificate: server auth"),
        (CLIENT, NODE, ("digital signature",), "missing required usage for client certificate: client auth"),
        (KUBELET_CLIENT, NODE, KUBELET, ""),
        (KUBELET_CLIENT, NODE, ("digital signature", "client auth"), ""),
        (
            KUBELET_CLIENT,
            NODE,
            ("client auth",),
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (KUBELET_CLIENT, Requested("x", (), {}), KUBELET, "subject organization is not system:nodes"),
        (
            KUBELET_CLIENT,
            Requested("x", ("system:nodes",), {}),
            KUBELET,
            "subject common name does not begin with system:node:",
        ),
        (
            KUBELET_CLIENT,
            Requested("system:node:n", ("system:nodes",), {"dns": ["a"]}),
            KUBELET,
            "DNS subjectAltNames are not allowed",
        ),
        (KUBELET_SERVING, NODE, KUBELET, "DNS or IP subjectAltName is required"),
        ("kubernetes.io/legacy-unknown", Requested("x", (), {}), (), ""),
    ],
)
def test_a_signer_signs_what_its_rules_allow(signer, requested, usages, problem) -> None:
    assert problem_of(signer, requested, usages) == problem


def test_only_what_is_approved_and_has_no_certificate_is_signed() -> None:
    approved = {"spec": {"signerName": CLIENT}, "status": {"conditions": [{"type": "Approved"}]}}
    assert is_to_be_signed(approved)
    assert not is_to_be_signed({**approved, "spec": {"signerName": "example.com/mine"}})
    assert not is_to_be_signed({**approved, "status": {**approved["status"], "certificate": "x"}})
    assert not is_to_be_signed({**approved, "status": {"conditions": [{"type": "Approved"}, {"type": "Failed"}]}})


def test_a_certificate_is_good_for_what_was_asked_within_a_year() -> None:
    assert lifetime({"spec": {"expirationSeconds": 3600}}) == timedelta(hours=1)
    assert lifetime({"spec": {"expirationSeconds": 10**9}}) == lifetime({}) == timedelta(days=365)


def test_requests_go_a_day_after_they_came_and_an_hour_after_they_were_decided() -> None:
    request = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert gone_at(request) == datetime(2026, 1, 2, tzinfo=UTC)
    decided = {"conditions": [{"type": "Denied", "lastUpdateTime": "2026-01-01T02:00:00Z"}]}
    assert gone_at({**request, "status": decided}) == datetime(2026, 1, 1, 3, tzinfo=UTC)


def test_the_authority_signs_the_name_and_the_alternative_names_of_a_request() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "g"), x509.NameAttribute(NameOID.COMMON_NAME, "u")])
    names = x509.SubjectAlternativeName([x509.DNSName("a.example")])
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(name)
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    assert read_request(request) == Requested("u", ["g"], {"dns": ["a.example"], "email": [], "uri": [], "ip": []})
    authority = ClusterCA.create()
    made = x509.load_pem_x509_certificate(authority.sign_request(request, ("client auth",), timedelta(hours=1)))
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate_pem))
    assert made.subject == name
    assert made.not_valid_after_utc - made.not_valid_before_utc == timedelta(hours=1)
    assert made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value == names
    # A key usage without a bit is one that no server accepts.
    with pytest.raises(x509.ExtensionNotFound):
        made.extensions.get_extension_for_class(x509.KeyUsage)
