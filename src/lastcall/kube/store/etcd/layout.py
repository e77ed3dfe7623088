"""Where kube-apiserver keeps an object in etcd, and what our key for that is.

Ours is `<plural>/<namespace>/<name>`, for a custom resource `<plural>.<group>/…`. In etcd it is the path
`<prefix>/<plural>/<namespace>/<name>`, with the exceptions of the table; a custom resource lies under its group.

Sources: pkg/registry/core/rest, pkg/kubeapiserver/default_storage_factory_builder.go:SpecialDefaultResourcePrefixes,
apiextensions-apiserver pkg/apiserver/customresource_handler.go.
"""

from lastcall.kube.store.api import StoreError

DEFAULT_PREFIX = "/registry"

_SPECIAL = {
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices": "apiregistration.k8s.io/apiservices",
    "endpoints": "services/endpoints",
    "services": "services/specs",
    "nodes": "minions",
    "ingresses": "ingress",
    "replicationcontrollers": "controllers",
}
_BACK = {there: here for here, there in _SPECIAL.items()}


class Layout:
    """`prefix` is kube-apiserver's --etcd-prefix, with or without a slash at its ends."""

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        self.prefix = "/" + prefix.strip("/") + "/"
        self._start = self.prefix.encode()

    @property
    def everything(self) -> tuple[bytes, bytes]:
        """Return the range of all keys."""
        return self._start, range_end(self._start)

    def path(self, key: str) -> bytes:
        """Return the key in etcd of our key, or of our prefix of keys (which has at least its kind, or is empty)."""
        kind, slash, rest = key.partition("/")
        if (special := _SPECIAL.get(kind)) is not None:
            kind = special
        elif "." in kind:
            plural, _, group = kind.partition(".")
            kind = f"{group}/{plural}"
        return f"{self.prefix}{kind}{slash}{rest}".encode()

    def key(self, path: bytes) -> str | None:
        """Return our key of a key in etcd, None for a key that is not ours."""
        if not path.startswith(self._start):
            return None
        try:
            kind, slash, rest = path[len(self._start) :].decode().partition("/")
        except UnicodeDecodeError:
            return None
        if (back := _BACK.get(kind)) is not None:
            return f"{back}{slash}{rest}"
        if "." not in kind and kind != "services":
            return f"{kind}{slash}{rest}"
        part, slash, rest = rest.partition("/")
        back = _BACK.get(f"{kind}/{part}")
        if back is None:
            if kind == "services" or not part:
                return None
            back = f"{part}.{kind}"
        return f"{back}{slash}{rest}"


def range_end(start: bytes) -> bytes:
    """Return the first key past all that begin with `start` (clientv3.GetPrefixRangeEnd)."""
    stripped = start.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b"\0"


def prefix_of(text: str) -> str:
    """Return the prefix that --etcd-prefix names. Raises StoreError for an empty one."""
    if not text.strip("/"):
        raise StoreError(f"--etcd-prefix {text!r}: is empty; fix: name a prefix, Kubernetes's is {DEFAULT_PREFIX}")
    return "/" + text.strip("/")
