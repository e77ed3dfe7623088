"""TLS contexts of clients. Certificates and keys given as data never touch a disk."""

import os
import ssl

from lastcall.kube.client.access.errors import KubeconfigError


def make_ssl_context(
    *, ca_pem: bytes = b"", cert_pem: bytes = b"", key_pem: bytes = b"", insecure_skip_tls_verify: bool = False
) -> ssl.SSLContext:
    """Return a client context that trusts `ca_pem` (the system's authorities when empty). Raises KubeconfigError."""
    try:
        context = ssl.create_default_context(cadata=ca_pem.decode("ascii") if ca_pem else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise KubeconfigError(f"certificate-authority is not a PEM certificate: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert_pem:
        # The ssl module reads certificates from files only; a memfd is a file that is on no disk.
        fd = os.memfd_create("lastcall-client", os.MFD_CLOEXEC)
        try:
            with open(fd, "wb", closefd=False) as file:
                file.write(cert_pem.rstrip() + b"\n" + key_pem)
            # Without this, OpenSSL asks the terminal for the password of a key that has one.
            context.load_cert_chain(f"/proc/self/fd/{fd}", password=lambda: "")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise KubeconfigError(f"client-certificate and client-key do not fit or are not PEM: {error}") from error
        finally:
            os.close(fd)
    return context
