"""TLS contexts from certificates in PEM.

`ssl` wants files, so a chain is handed over through a memfd (`/proc/self/fd/N`) that is closed again before the context
is returned.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


def server_context(certificate: bytes, key: bytes, *, client_ca: bytes = b"") -> ssl.SSLContext:
    """Return a context of TLS 1.2 or later with HTTP/1.1. With `client_ca` it requests an optional client certificate
    and verifies it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load_chain(context, certificate, key)
    if client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_ca.decode())
    return context


def client_context(ca: bytes, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """Make a context that trusts `ca` only and presents the certificate if one is given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=ca.decode())
    if certificate:
        _load_chain(context, certificate, key)
    return context


def with_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Make the context present this certificate from now on."""
    _load_chain(context, certificate, key)


def _load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    with _in_memory(certificate.rstrip() + b"\n" + key) as path:
        context.load_cert_chain(path)


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    fd = os.memfd_create("lastcall-tls", os.MFD_CLOEXEC)
    try:
        os.fchmod(fd, 0o600)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(content)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
