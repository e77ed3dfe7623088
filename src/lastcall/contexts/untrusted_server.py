"""A look at a server that could not be trusted: its certificate and its clock, without showing it any credentials.

What it says is not proved; it only helps to say what is wrong.
"""

import asyncio
import ssl
from contextlib import suppress
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import orjson

from lastcall.contexts.clocks import Sample
from lastcall.kube.client import Certificate
from lastcall.records.text import printable
from lastcall.world.blocking import wall
from lastcall.world.dataclass import dataclass

SECONDS = 5.0
MOST_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Seen:
    """`clock` is None when the answer had no Date."""

    certificate: Certificate | None = None
    clock: Sample | None = None


async def look_at(server: str, tls_server_name: str = "") -> Seen:
    """Return one request without credentials, on a connection of its own. Never raises for what the server does."""
    parts = urlsplit(server)
    host, secure = parts.hostname or "", parts.scheme == "https"
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    certificate: Certificate | None = None
    with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(
                host,
                parts.port or (443 if secure else 80),
                ssl=tls if secure else None,
                server_hostname=(tls_server_name or host) if secure else None,
                limit=MOST_BYTES,
            )
            try:
                inside = writer.get_extra_info("ssl_object")
                if inside is not None:
                    certificate = read_certificate(inside.getpeercert(binary_form=True) or b"")
                sent = wall()
                writer.write(f"HEAD /version HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
                return Seen(certificate, clock_sample(_date(head), sent, wall()))
            finally:
                writer.close()
    return Seen(certificate)


def clock_sample(date: str, sent: float, received: float) -> Sample | None:
    """Return a sample of the header `Date`, None if that is not a time."""
    try:
        return Sample(sent, parsedate_to_datetime(date).timestamp(), received, resolution=1.0)
    except (ValueError, OverflowError, TypeError):
        return None


def read_certificate(data: bytes) -> Certificate | None:
    """Read a certificate in PEM or DER; None if it is neither."""
    # late: 60 ms, for an error
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(data) if b"-----BEGIN" in data else x509.load_der_x509_certificate(data)
        names: list[str] = []
        with suppress(x509.ExtensionNotFound):
            extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names = [printable(str(each.value), 200) for each in extension]
        subject, issuer = (printable(each.rfc4514_string(), 200) for each in (found.subject, found.issuer))
        return Certificate(subject, issuer, found.not_valid_before_utc, found.not_valid_after_utc, tuple(names))
    except (ValueError, x509.DuplicateExtension):
        return None


def version_of(body: bytes) -> str:
    """Return the version in an answer of /version, "" if it has none."""
    try:
        said = orjson.loads(body).get("gitVersion")
    except (orjson.JSONDecodeError, AttributeError):
        return ""
    return said if isinstance(said, str) and said.isprintable() else ""


def _date(head: bytes) -> str:
    for line in head.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon and name.lower() == "date":
            return value.strip()
    return ""
