"""How large an object may be: as large as etcd takes it.

Sources: etcd embed/config.go:DefaultMaxRequestBytes, server/etcdserver/v3_server.go:processInternalRaftRequestOnce
(ErrRequestTooLarge), client/v3/options.go:defaultMaxCallSendMsgSize. kube-apiserver answers both errors with a 500
(`responsewriters.ErrorToAPIStatus`).
"""

from lastcall.kube.api.errors import plain_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.store.value import Value

MOST_STORED = 1536 << 10
"""Bytes of an object as it is stored: etcd's default --max-request-bytes."""
MOST_SENT = 2 << 20
"""Bytes that kube-apiserver's client of etcd sends at most."""


def check_size(value: Value, before: Value | None) -> None:
    """Raise the 500 StatusError for an object that etcd would refuse.

    What takes the place of an object `before` that is too large itself, as older stores may have them, is taken.
    """
    if value.size <= MOST_STORED or (before is not None and before.size > MOST_STORED):
        return
    size = _stored_size(value.decoded() or value.parsed())
    if size > MOST_SENT:
        why = f"trying to send message larger than max ({size} vs. {MOST_SENT})"
        raise plain_failure(f"rpc error: code = ResourceExhausted desc = {why}")
    if size > MOST_STORED:
        raise plain_failure("etcdserver: request is too large")


def _stored_size(obj: Object) -> int:
    """Return the bytes of `obj` in etcd: protobuf for built-in kinds, which is smaller than JSON."""
    # late: for very large objects only
    from lastcall.kube.store.etcd.values import encode

    return len(encode(obj))
