"""Whether an etcd can be reached, looked at before a cluster starts that would only die of it."""

import os
import socket
import ssl
from urllib.parse import urlsplit

from lastcall.errors import UserError, WorldError
from lastcall.kube.store.etcd.options import EtcdOptions

SECONDS = 5.0


def check_etcd(options: EtcdOptions) -> None:
    """Check that a member takes a connection. Raises UserError if what gRPC needs is not installed, else WorldError."""
    # late: only to look whether it is there
    from importlib.util import find_spec

    if find_spec("grpc") is None or find_spec("google.protobuf") is None:
        raise UserError("--etcd-servers: grpcio is not installed; fix: pip install 'lastcall[etcd]'")
    failures = []
    for server in options.servers:
        try:
            _connect(options, server)
            return
        except (OSError, ValueError) as error:
            failures.append(f"etcd {server}: {_why(error)}")
    raise WorldError("\n".join(failures))


def _connect(options: EtcdOptions, server: str) -> None:
    # late: only with an etcd
    from lastcall.kube.apiserver.auth.tls import with_certificate

    parts = urlsplit(server)
    with socket.create_connection((parts.hostname or "", parts.port or 0), SECONDS) as sock:
        if not options.tls:
            return
        context = ssl.create_default_context(cadata=options.ca.decode() or None)
        if options.certificate:
            with_certificate(context, options.certificate, options.key)
        with context.wrap_socket(sock, server_hostname=parts.hostname):
            return


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message}; fix: pass the CA that signed its certificate with --etcd-cafile"
    if isinstance(error, ssl.SSLError):
        return f"{error.reason or error}; fix: use http:// if it does not speak TLS, otherwise pass --etcd-certfile"
    if isinstance(error, TimeoutError):
        return "does not answer; fix: use another address in --etcd-servers"
    if isinstance(error, socket.gaierror):
        return "no such host; fix: use another address in --etcd-servers"
    if isinstance(error, OSError) and error.errno:
        return f"{os.strerror(error.errno).lower()}; fix: start it, or use another address in --etcd-servers"
    return str(error)
