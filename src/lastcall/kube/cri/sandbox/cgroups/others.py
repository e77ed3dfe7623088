"""The hierarchies that limit nothing here: version 1's freezer, devices, name=systemd …, and version 2's beside them.

A container has a group of its own in each, right below the cluster's: else it would live in the machine's, and who may
mount a hierarchy (in a user namespace everybody) could write what is root's in that one. Standard library only.
"""

from __future__ import annotations

import contextlib
import os

from lastcall.kube.cri.sandbox.cgroups import files
from lastcall.kube.cri.sandbox.cgroups.api import Entrance, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OtherHierarchies:
    """`directories`: hierarchy (its first controller, or `name=…`; "" is version 2) → the cluster's directory."""

    def __init__(self, directories: dict[str, str]) -> None:
        self._unified = directories.get("", "")
        self._separate = [tree for hierarchy, tree in directories.items() if hierarchy]
        self._freezer = directories.get("freezer", "")

    def create(self, container: str) -> None:
        """Make a container's groups; `container` is its id. Raises OSError."""
        for group in self._groups(container):
            with contextlib.suppress(FileExistsError):
                os.mkdir(group, 0o755)

    def entrance(self, container: str) -> Entrance:
        files_ = [f"{tree}/{container}/tasks" for tree in self._separate]
        return Entrance(files_, f"{self._unified}/{container}" if self._unified else "")

    def view(self, container: str) -> list[tuple[str, str]]:
        """Return what a container sees of version 1's: (the hierarchy's name, the container's group)."""
        return [(hierarchy_name(tree), f"{tree}/{container}") for tree in self._separate]

    def thaw(self, container: str) -> None:
        if self._freezer:
            files.thaw(f"{self._freezer}/{container}")

    def remove(self, container: str) -> bool:
        gone = [files.remove(group) for group in self._groups(container)]  # each is tried
        return all(gone)

    def _groups(self, container: str) -> list[str]:
        trees = [*self._separate, self._unified] if self._unified else self._separate
        return [f"{tree}/{container}" for tree in trees]


def hierarchy_name(directory: str) -> str:
    """Return the name below /sys/fs/cgroup of a directory's hierarchy: `memory`, `cpu,cpuacct`, `systemd`."""
    name = _names.get(directory)
    if name is None:
        here = directory
        while not os.path.ismount(here) and here not in ("", "/"):
            here = os.path.dirname(here)
        name = _names[directory] = os.path.basename(here)
    return name


_names: dict[str, str] = {}


class NoCgroups:
    """Nothing is limited and nobody counts. `why` is for a person."""

    mode = "none"

    def __init__(self, why: str, others: OtherHierarchies) -> None:
        self.why = why
        self._others = others

    def create(self, path: str, resources: dict[str, Any]) -> None:
        return

    def create_container(self, path: str, resources: dict[str, Any]) -> None:
        self._others.create(os.path.basename(path))

    def update(self, path: str, resources: dict[str, Any]) -> None:
        return

    def update_container(self, path: str, resources: dict[str, Any]) -> None:
        return

    def view(self, path: str, *, privileged: bool) -> list[tuple[str, str]]:
        return []

    def entrance(self, path: str) -> Entrance:
        return self._others.entrance(os.path.basename(path))

    def oom_kills(self, path: str) -> int | None:
        return None

    def group_kills(self, path: str) -> int | None:
        return None

    def limit_reached(self, path: str) -> bool | None:
        return None

    def shared_memory(self, path: str) -> int | None:
        return None

    def usage(self, path: str) -> Usage | None:
        return None

    def kill(self, path: str) -> None:
        return

    def thaw(self, path: str) -> None:
        self._others.thaw(os.path.basename(path))

    def remove(self, path: str) -> bool:
        return True

    def remove_container(self, path: str) -> bool:
        return self._others.remove(os.path.basename(path))
