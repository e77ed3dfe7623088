"""Whether a certificate and a key are a pair, in the words of Go's crypto/tls.

Source: Go crypto/tls/tls.go:X509KeyPair.
"""

import base64
import binascii
import re
from collections.abc import Callable

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

_BLOCK = re.compile(rb"-----BEGIN ([^-\n]+)-----\r?\n.*?-----END \1-----", re.DOTALL)


def why_no_pair(certificate: str, key: str) -> str:
    """Return why a certificate and a key are no pair, "" for a pair. Both are PEM in base64, as Secrets have them.

    What cannot be read of a certificate or a key that is PEM is not reported.
    """
    certificates = _blocks(certificate)
    if why := _missing(certificates, "certificate", _CERTIFICATE.__eq__):
        return why
    keys = _blocks(key)
    if why := _missing(keys, "key", _is_key):
        return why
    first = next(text for name, text in certificates if name == _CERTIFICATE)
    private = next(text for name, text in keys if _is_key(name))
    try:
        ours = load_pem_private_key(private, None).public_key()
        theirs = x509.load_pem_x509_certificate(first).public_key()
    except Exception:  # whatever the library says: its words are not Go's
        return ""
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "" if ours.public_bytes(*form) == theirs.public_bytes(*form) else _NO_MATCH


_NO_MATCH = "tls: private key does not match public key"
_SWITCHED = (
    "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have "
    "been switched"
)
_CERTIFICATE = b"CERTIFICATE"


def _blocks(text: str) -> list[tuple[bytes, bytes]]:
    try:
        pem = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return []
    return [(found[1], found[0]) for found in _BLOCK.finditer(pem)]


def _is_key(name: bytes) -> bool:
    return name == b"PRIVATE KEY" or name.endswith(b" PRIVATE KEY")


def _missing(blocks: list[tuple[bytes, bytes]], what: str, fits: Callable[[bytes], bool]) -> str:
    """Why no block fits, "" when one does."""
    if any(fits(name) for name, _ in blocks):
        return ""
    if not blocks:
        return f"tls: failed to find any PEM data in {what} input"
    names = [name for name, _ in blocks]
    if what == "certificate" and len(names) == 1 and _is_key(names[0]):
        return _SWITCHED
    if what == "key" and len(names) == 1 and names[0] == _CERTIFICATE:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    seen = " ".join(name.decode("utf-8", "replace") for name in names)
    block = '"CERTIFICATE" PEM block' if what == "certificate" else 'PEM block with type ending in "PRIVATE KEY"'
    return f"tls: failed to find {block} in {what} input after skipping PEM blocks of the following types: [{seen}]"
