"""What a gRPC error of etcd means: whether the request may have been carried out, whether another member may be asked,
and which error the user sees.

As etcd's own client has it, a write is sent again only where it is known never to have reached a member; for any other
failure kube-apiserver answers an error, and so do we. Sources: etcd client/v3/retry_interceptor.go, client/v3/retry.go
(isSafeRetry, nonRepeatable), api/v3rpc/rpctypes/error.go.
"""

from typing import Literal, NamedTuple

from lastcall.kube.store.api import StoreError, StoreFull, StoreUnsure

Meaning = Literal["not sent", "refused", "unsure", "token", "compacted", "future", "lease"]
"""not sent: no member has seen it · refused: a member will not do it · unsure: nobody knows · token: to log in again ·
compacted, future: of the asked revision · lease: not found."""


class Failure(NamedTuple):
    meaning: Meaning
    text: str
    full: bool = False


_NEVER_CONNECTED = (
    "failed to connect to all addresses",
    "connections to all backends failing",
    "dns resolution failed",
    "name resolution",
    "ssl handshake failed",
    "tls handshake failed",
    "channel is closed",
)
_TOKEN = ("invalid auth token", "revision of auth store is old", "user name is empty")


def failure(code: str, details: str) -> Failure:
    """Judge a failed request: `code` is gRPC's name of the status, `details` its text."""
    lower = details.lower()
    if "database space exceeded" in lower:
        return Failure("refused", details, full=True)
    if code == "OUT_OF_RANGE" and "compacted" in lower:
        return Failure("compacted", details)
    if code == "OUT_OF_RANGE" and "future revision" in lower:
        return Failure("future", details)
    if "requested lease not found" in lower:
        return Failure("lease", details)
    if any(text in lower for text in _TOKEN):
        return Failure("token", details)
    if code == "UNAVAILABLE" and any(text in lower for text in _NEVER_CONNECTED):
        return Failure("not sent", details)
    if code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "UNKNOWN", "CANCELLED", "INTERNAL"):
        return Failure("unsure", details or code)
    return Failure("refused", details or code)


_FIXES = (
    ("wrong_version_number", "it does not speak TLS", "write http:// in --etcd-servers"),
    ("certificate_verify_failed", "its certificate is not trusted", "give the CA that signed it in --etcd-cafile"),
    ("hostname", "its certificate is for another name", "write a name of the certificate in --etcd-servers"),
    ("certificate_required", "it wants a certificate", "give --etcd-certfile and --etcd-keyfile"),
    ("bad_certificate", "it refuses our certificate", "give --etcd-certfile and --etcd-keyfile that its CA signed"),
    (
        "tsi_data_corrupted",
        "it wants a certificate, or refuses ours",
        "give --etcd-certfile and --etcd-keyfile that its CA signed",
    ),
    ("unknown_ca", "it refuses our certificate", "give --etcd-certfile and --etcd-keyfile that its CA signed"),
    ("connection refused", "connection refused", "start it, or name another address in --etcd-servers"),
    ("authentication failed", "wrong user or password", "correct --etcd-user"),
    ("user name is empty", "it wants a user", "give --etcd-user NAME:PASSWORD"),
    (
        "permission denied",
        "permission denied",
        "grant the user a role with read and write of the prefix (etcdctl role grant-permission --prefix)",
    ),
    ("authentication is not enabled", "it has no users", "leave --etcd-user out"),
    ("no leader", "the cluster has no leader", "start members until most of them run"),
    ("request is too large", "the request is too large", "make the object smaller, or raise --max-request-bytes there"),
)
"""(part of gRPC's text, what it means, the fix)."""


def as_store_error(server: str, failed: Failure) -> StoreError:
    """Return the error of a request that `server` was asked last."""
    lower = failed.text.lower()
    if failed.full:
        return StoreFull(
            f"etcd {server}: database space exceeded; fix: compact and defragment it, then `etcdctl alarm disarm`, or "
            "start it with a larger --quota-backend-bytes; deletions go on"
        )
    what = failed.text
    for part, meaning, fix in _FIXES:
        if part in lower:
            what = f"{meaning}; fix: {fix}"
            break
    else:
        if "socket closed" in lower or "connection reset" in lower:
            other = "http" if server.startswith("https:") else "https"
            what = (
                f"it closes the connection; fix: write {other}:// in --etcd-servers if it speaks that, or read its log"
            )
    if failed.meaning == "unsure":
        return StoreUnsure(f"etcd {server}: {what}")
    return StoreError(f"etcd {server}: {what}")
