"""The cluster's certificate authority: EC P-256 in PEM; keys live in memory only. TLS contexts: `tls.py`."""

# check: allow datetime.datetime.now because certificates are valid by the machine's own clock

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = timedelta(days=365)
AUTHORITY_VALID_FOR = timedelta(days=3650)
"""As kubeadm has it: a kept authority outlives the certificates that it issues anew for every start."""
CLOCK_SKEW = timedelta(minutes=5)
"""Certificates begin this much in the past, so that a machine whose clock is set back a little still accepts them."""

_EXTENDED_USAGES = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
}
"""By the usages of a CertificateSigningRequest."""
_PLAIN_USAGES = frozenset(
    {
        "signing", "digital signature", "content commitment", "key encipherment", "data encipherment", "key agreement",
        "cert sign", "crl sign",
    }
)  # fmt: skip


class ClusterCA:
    """An authority that signs the cluster's server and client certificates. Make one with `create` or `load`."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, common_name: str = "lastcall") -> Self:
        """Create a new self-signed authority."""
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
        """Load an authority made earlier. Raises ValueError for anything but an EC key with its certificate."""
        key = load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key must be an elliptic curve key")
        return cls(x509.load_pem_x509_certificate(certificate_pem), key)

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    def issue_server(self, sans: Sequence[str]) -> tuple[bytes, bytes]:
        """Issue (certificate, key) of a server that is reached by these host names and IP addresses."""
        names = x509.SubjectAlternativeName([_general_name(san) for san in sans])
        return self._issue(_name(sans[0], ()), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def issue_client(self, cn: str, orgs: Sequence[str] = ()) -> tuple[bytes, bytes]:
        """Issue (certificate, key) of the user `cn` in the groups `orgs` (x509 CN and O, as Kubernetes reads them)."""
        return self._issue(_name(cn, orgs), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def sign_request(self, request_pem: bytes, usages: Sequence[str], valid_for: timedelta) -> bytes:
        """Sign the certificate that a PKCS#10 request asks for, valid for the usages of a CertificateSigningRequest.

        Source: pkg/controller/certificates/authority/{authority,policies}.go. Raises ValueError.
        """
        request = x509.load_pem_x509_csr(request_pem)
        now = datetime.now(UTC)
        until = min(now + valid_for - CLOCK_SKEW, self._certificate.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if set(usages) & _PLAIN_USAGES:
            builder = builder.add_extension(_requested_key_usage(usages), critical=True)
        extended = [_EXTENDED_USAGES[usage] for usage in usages if usage in _EXTENDED_USAGES]
        if extended:
            builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
        for extension in request.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=False)
        return _sign(builder, self._key).public_bytes(Encoding.PEM)

    def new_key_pem(self) -> bytes:
        """Make a fresh private key that no certificate belongs to, for signing ServiceAccount tokens."""
        return new_key_pem()

    def _issue(
        self, name: x509.Name, usage: x509.ObjectIdentifier, sans: x509.SubjectAlternativeName | None
    ) -> tuple[bytes, bytes]:
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
    """Return a fresh EC P-256 private key, PKCS#8 PEM."""
    return _key_pem(_new_key())


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, org) for org in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid_for: timedelta = VALID_FOR
) -> x509.CertificateBuilder:
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


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
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


def _requested_key_usage(usages: Sequence[str]) -> x509.KeyUsage:
    agreement = "key agreement" in usages
    return x509.KeyUsage(
        digital_signature=bool({"signing", "digital signature"} & set(usages)),
        content_commitment="content commitment" in usages,
        key_encipherment="key encipherment" in usages,
        data_encipherment="data encipherment" in usages,
        key_agreement=agreement,
        key_cert_sign="cert sign" in usages,
        crl_sign="crl sign" in usages,
        encipher_only=agreement and "encipher only" in usages,
        decipher_only=agreement and "decipher only" in usages,
    )


def _general_name(san: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(san))
    except ValueError:
        return x509.DNSName(san)
