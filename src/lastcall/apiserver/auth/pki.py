"""The cluster's certificate authority and the TLS contexts built from it; keys live in memory only.

Everything is EC P-256 in PEM. `ssl` wants files, so a chain is handed over through a memfd (`/proc/self/fd/N`) that is
closed again before the context is returned.
"""

import ipaddress
import os
import ssl
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

VALID_FOR = timedelta(days=365)
AUTHORITY_VALID_FOR = timedelta(days=3650)
"""As kubeadm has it: a kept authority outlives the certificates that it issues anew for every start."""
CLOCK_SKEW = timedelta(minutes=5)
"""Certificates begin this much in the past, so that a machine whose clock is set back a little still accepts them."""


class ClusterCA:
    """An authority that signs the cluster's server and client certificates. Make one with `create` or `load`."""

    def __init__(self, certificate: "x509.Certificate", key: "ec.EllipticCurvePrivateKey") -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, common_name: str = "lastcall") -> Self:
        """A new self-signed authority."""
        from cryptography import x509

        key = _new_key()
        name = _name(common_name, ())
        builder = (
            _builder(name, name, key, AUTHORITY_VALID_FOR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(sign_certificates=True), critical=True)
        )
        return cls(_sign(builder, key), key)

    @classmethod
    def load(cls, certificate_pem: bytes, key_pem: bytes) -> Self:
        """An authority made earlier. Raises ValueError for anything but an EC key with its certificate."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key must be an elliptic curve key")
        return cls(x509.load_pem_x509_certificate(certificate_pem), key)

    @property
    def certificate_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    def issue_server(self, sans: Sequence[str]) -> tuple[bytes, bytes]:
        """(certificate, key) of a server that is reached by these host names and IP addresses."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        names = x509.SubjectAlternativeName([_general_name(san) for san in sans])
        return self._issue(_name(sans[0], ()), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def issue_client(self, cn: str, orgs: Sequence[str] = ()) -> tuple[bytes, bytes]:
        """(certificate, key) of the user `cn` in the groups `orgs` (x509 CN and O, as Kubernetes reads them)."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        return self._issue(_name(cn, orgs), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def new_key_pem(self) -> bytes:
        """A fresh private key that no certificate belongs to, for signing ServiceAccount tokens."""
        return new_key_pem()

    def _issue(
        self, name: "x509.Name", usage: "x509.ObjectIdentifier", sans: "x509.SubjectAlternativeName | None"
    ) -> tuple[bytes, bytes]:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding

        key = _new_key()
        builder = (
            _builder(name, self._certificate.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(sign_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if sans is not None:
            builder = builder.add_extension(sans, critical=False)
        return _sign(builder, self._key).public_bytes(Encoding.PEM), _key_pem(key)


def new_key_pem() -> bytes:
    """A fresh EC P-256 private key, PKCS#8 PEM."""
    return _key_pem(_new_key())


def server_context(certificate: bytes, key: bytes, *, client_ca: bytes = b"") -> ssl.SSLContext:
    """TLS 1.2 or later with HTTP/1.1. With `client_ca` a client certificate is asked for, verified, and optional."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load_chain(context, certificate, key)
    if client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_ca.decode())
    return context


def client_context(ca: bytes, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """Trusts `ca` only; presents the certificate if one is given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=ca.decode())
    if certificate:
        _load_chain(context, certificate, key)
    return context


def _load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    with _in_memory(certificate.rstrip() + b"\n" + key) as path:
        context.load_cert_chain(path)


@contextmanager
def _in_memory(content: bytes) -> "Iterator[str]":
    fd = os.memfd_create("lastcall-tls", os.MFD_CLOEXEC)
    try:
        os.fchmod(fd, 0o600)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(content)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def _new_key() -> "ec.EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: "ec.EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _name(common_name: str, organizations: Sequence[str]) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, org) for org in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: "x509.Name", issuer: "x509.Name", key: "ec.EllipticCurvePrivateKey", valid_for: timedelta = VALID_FOR
) -> "x509.CertificateBuilder":
    from cryptography import x509

    # Certificates are judged by the machine's own clock on every side, so this is real time in every world.
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + valid_for)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _sign(builder: "x509.CertificateBuilder", key: "ec.EllipticCurvePrivateKey") -> "x509.Certificate":
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _key_usage(*, sign_certificates: bool) -> "x509.KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(san: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(san))
    except ValueError:
        return x509.DNSName(san)
