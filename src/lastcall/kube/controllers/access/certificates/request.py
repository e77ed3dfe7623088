"""What a PKCS#10 request says."""

from cryptography import x509
from cryptography.x509.oid import NameOID

from lastcall.kube.controllers.access.certificates.decide import Requested


def read_request(pem: bytes) -> Requested:
    """Read a certificate request. Raises ValueError."""
    request = x509.load_pem_x509_csr(pem)
    names: dict[str, list[str]] = {}
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        found = x509.SubjectAlternativeName([])
    for kind, which in (
        ("dns", x509.DNSName),
        ("email", x509.RFC822Name),
        ("uri", x509.UniformResourceIdentifier),
        ("ip", x509.IPAddress),
    ):
        names[kind] = [str(each) for each in found.get_values_for_type(which)]
    common = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return Requested(str(common[-1].value) if common else "", [str(each.value) for each in organizations], names)
