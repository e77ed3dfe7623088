"""The control groups of Pods, and those above them, whose CPU shares follow from the Pods that are there."""

from __future__ import annotations

import contextlib
import os

from lastcall.kube.cri.cpu_shares import BEST_EFFORT, BURSTABLE, KUBEPODS, level_shares

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.kube.cri.sandbox.cgroups.api import Cgroups


class PodGroups:
    """Makes, changes and removes the groups of Pods. `cpus` are those that Pods may use together.

    The kubelet does this itself (pkg/kubelet/cm: UpdateCgroups, when a Pod starts and after its end, and every minute).
    """

    def __init__(self, cgroups: Cgroups, cpus: int) -> None:
        self._cgroups = cgroups
        self._cpus = cpus
        self._pods: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def start(self, parent: str, resources: dict[str, Any]) -> None:
        """Make a Pod's group and those above it. Raises OSError."""
        path = parent.lstrip("/")
        if not path:
            return
        self._pods[path] = resources.get("cpu_shares") or 0
        try:
            self._set_levels(path)
            self._cgroups.create(path, resources)
        except OSError:
            del self._pods[path]
            raise

    def update(self, parent: str, resources: dict[str, Any]) -> None:
        """Give a Pod's group other limits. Raises OSError."""
        path = parent.lstrip("/")
        if path:
            self._cgroups.update(path, resources)
            self._pods[path] = resources.get("cpu_shares") or 0
            self._set_levels(path)

    def remove(self, parent: str) -> None:
        """Take a Pod's group away; idempotent."""
        path = parent.lstrip("/")
        if path:
            with contextlib.suppress(OSError):
                self._cgroups.remove(path)
            if self._pods.pop(path, None) is not None:
                with contextlib.suppress(OSError):
                    self._set_levels(path)

    def _set_levels(self, path: str) -> None:
        """Write the shares that have changed of the groups above `path`."""
        wanted = level_shares(self._cpus, self._pods)
        for level in (KUBEPODS, BURSTABLE, BEST_EFFORT):
            if path.startswith(f"{level}/") and self._written.get(level) != wanted[level]:
                self._cgroups.create(level, {"cpu_shares": wanted[level]})
                self._written[level] = wanted[level]


def allocatable_cpus() -> int:
    """Return how many CPUs the node has: nothing is reserved for others."""
    return len(os.sched_getaffinity(0))
