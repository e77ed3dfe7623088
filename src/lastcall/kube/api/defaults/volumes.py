"""Defaults of the sources of volumes, of Pods and of PersistentVolumes. Source: pkg/apis/core/v1/defaults.go."""

from lastcall.kube.api.meta import Object

_DEFAULTS: dict[str, dict[str, object]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_WHERE_EMPTY = frozenset({"iscsi", "rbd", "scaleIO"})
"""Sources whose fields are strings in Go: an empty one is one that is not there."""


def source_defaults(spec: Object) -> None:
    """Set the defaults of the sources that `spec` holds by name: a Pod's volume, the spec of a PersistentVolume."""
    for kind, defaults in _DEFAULTS.items():
        source = spec.get(kind)
        if source is None:
            continue
        for key, value in defaults.items():
            if source.get(key) is None or (kind in _WHERE_EMPTY and not source[key]):
                source[key] = value
