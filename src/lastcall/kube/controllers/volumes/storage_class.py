"""The StorageClass that a new cluster has, and where its volumes are."""

from typing import Protocol

from lastcall.kube.api.meta import Object

PROVISIONER = "rancher.io/local-path"

STANDARD_CLASS: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
}
"""The default class of a new cluster, as kind has it."""


class Directories(Protocol):
    """Where the volumes are. `root` is the directory of all of them, as nodes see it."""

    @property
    def root(self) -> str: ...

    async def make(self, name: str) -> None:
        """Make a directory that everybody may write to; it may exist already. Raises OSError."""

    async def remove(self, name: str) -> None:
        """Remove a directory with all that is in it; it may be gone already. Raises OSError."""


class SimulatedDirectories:
    """Directories of the virtual world: names, in the order in which they were made."""

    root = "/lastcall/durable/local-path-provisioner"

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    async def make(self, name: str) -> None:
        self.names[name] = None

    async def remove(self, name: str) -> None:
        self.names.pop(name, None)
