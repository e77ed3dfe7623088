"""The CertificateSigningRequests of a node: what is asked for, when it is to be renewed, what may be approved. Pure.

Sources: kubelet certificate/kubelet.go, client-go util/certificate/{certificate_manager,csr/csr}.go,
pkg/apis/certificates/v1 (names and usages of the signers).
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from lastcall.api.meta import Object
from lastcall.cluster.joined import files

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING_SIGNER = "kubernetes.io/kubelet-serving"
NODES = "system:nodes"
PROXY = "system:kube-proxy"
_CLIENT = ("digital signature", "client auth")
_SERVER = ("digital signature", "server auth")
_FIRST, _SPREAD = 0.7, 0.2
"""A certificate is renewed when between 70 and 90 % of its life have passed (nextRotationDeadline)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One certificate. `file` is where it is kept."""

    file: str
    signer: str
    usages: tuple[str, ...]
    common_name: str
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def kubelet_client(node: str) -> Wanted:
    return Wanted(files.KUBELET_CLIENT, KUBELET_CLIENT_SIGNER, _CLIENT, f"system:node:{node}", (NODES,))


def kubelet_server(node: str, address: str) -> Wanted:
    """Its names are the Node's addresses: a Hostname and an InternalIP."""
    user = f"system:node:{node}"
    return Wanted(files.KUBELET_SERVER, KUBELET_SERVING_SIGNER, _SERVER, user, (NODES,), (node,), (address,))


def kube_proxy() -> Wanted:
    return Wanted(files.KUBE_PROXY, CLIENT_SIGNER, _CLIENT, PROXY)


def new_key() -> bytes:
    """EC P-256, PKCS#8 PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def request_of(wanted: Wanted, key_pem: bytes) -> Object:
    """The object to create. Its name is made of the key and of all that is asked for: the same again is the same
    object, and whoever asks for something else with a key that was kept gets no answer to the old request.

    Raises ValueError.
    """
    key = load_pem_private_key(key_pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of an elliptic curve")
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in wanted.organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, wanted.common_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in wanted.names]
    names += [x509.IPAddress(ip_address(each)) for each in wanted.addresses]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    asked = signed.tbs_certrequest_bytes + ",".join((wanted.signer, *wanted.usages)).encode()
    digest = hashlib.sha256(asked).hexdigest()[:40]
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": f"node-csr-{digest}"},
        "spec": {
            "request": base64.b64encode(signed.public_bytes(Encoding.PEM)).decode(),
            "signerName": wanted.signer,
            "usages": list(wanted.usages),
        },
    }


def answer_of(csr: Object) -> tuple[bytes, str]:
    """(certificate, why there will be none); both empty while nobody has decided."""
    status = csr.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Denied", "Failed"):
            words = f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
            return b"", f"{condition['type'].lower()} ({words})"
    return base64.b64decode(status.get("certificate") or ""), ""


def is_approved(csr: Object) -> bool:
    """Or denied: somebody has decided."""
    return bool((csr.get("status") or {}).get("conditions"))


def may_be_approved(csr: Object, wanted: Sequence[Wanted], user: str) -> bool:
    """Whether it is one of `wanted` to the letter (subject, names, usages, signer), and `user` asks for it."""
    spec = csr.get("spec") or {}
    if spec.get("username") != user:
        return False
    try:
        request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or ""))
    except ValueError:
        return False
    return any(_asks_for(spec, request, each) for each in wanted)


def _asks_for(spec: Object, request: x509.CertificateSigningRequest, wanted: Wanted) -> bool:
    names, addresses = _names_of(request)
    return (
        spec.get("signerName") == wanted.signer
        and sorted(spec.get("usages") or ()) == sorted(wanted.usages)
        and _texts(request, NameOID.COMMON_NAME) == [wanted.common_name]
        and sorted(_texts(request, NameOID.ORGANIZATION_NAME)) == sorted(wanted.organizations)
        and names == set(wanted.names)
        and addresses == set(wanted.addresses)
    )


def _texts(request: x509.CertificateSigningRequest, kind: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in request.subject.get_attributes_for_oid(kind)]


def _names_of(request: x509.CertificateSigningRequest) -> tuple[set[str], set[str]]:
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set(), set()
    addresses = {str(each) for each in found.get_values_for_type(x509.IPAddress)}
    rest = {str(each.value) for each in found if not isinstance(each, x509.IPAddress)}
    return rest, addresses


def life_of(certificate_pem: bytes) -> tuple[datetime, datetime]:
    """(from, until). Raises ValueError."""
    found = x509.load_pem_x509_certificate(certificate_pem)
    return found.not_valid_before_utc, found.not_valid_after_utc


def renew_at(certificate_pem: bytes, chance: float) -> datetime:
    """When to ask for the next one; `chance` is from 0 to 1. Raises ValueError."""
    begin, end = life_of(certificate_pem)
    return begin + timedelta(seconds=(end - begin).total_seconds() * (_FIRST + _SPREAD * chance))


def is_good(certificate_pem: bytes, wanted: Wanted, moment: datetime) -> bool:
    """Whether a kept certificate is (still) the wanted one."""
    try:
        found = x509.load_pem_x509_certificate(certificate_pem)
    except ValueError:
        return False
    if not found.not_valid_before_utc <= moment < found.not_valid_after_utc:
        return False
    names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if [str(each.value) for each in names] != [wanted.common_name]:
        return False
    try:
        held = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return not wanted.names and not wanted.addresses
    addresses = {str(each) for each in held.get_values_for_type(x509.IPAddress)}
    return set(held.get_values_for_type(x509.DNSName)) == set(wanted.names) and addresses == set(wanted.addresses)
