"""The control groups of Pods, and those above them, whose CPU shares follow from the Pods that are there."""

from __future__ import annotations

import contextlib
import os

from lastcall.kube.cri.cpu_shares import BEST_EFFORT, BURSTABLE, KUBEPODS, level_shares

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.kube.cri.sandbox.cgroups.api import Cgroups

_CPU_PERIOD = 100_000
"""Microseconds."""


class NodeSize:
    """What the Pods of the node may use together: `milli_cpus` in thousandths of a CPU, `limits` as CRI names them.

    The kubelet gives its Pods the memory of the node (cm/node_container_manager_linux.go:getCgroupConfig). It gives no
    quota of CPU time, because a node is a machine. This one is a part of a machine.
    """

    def __init__(self, declared: dict[str, int]) -> None:
        """`declared` is less than the machine has: `cpu` in thousandths, `memory` in bytes."""
        self.milli_cpus = declared.get("cpu") or 1000 * len(os.sched_getaffinity(0))
        self.limits: dict[str, int] = {}
        if "cpu" in declared:
            self.limits = {"cpu_period": _CPU_PERIOD, "cpu_quota": declared["cpu"] * _CPU_PERIOD // 1000}
        if "memory" in declared:
            self.limits["memory_limit_in_bytes"] = declared["memory"]


class PodGroups:
    """Makes, changes and removes the groups of Pods, and those above them.

    The kubelet does this itself (pkg/kubelet/cm: UpdateCgroups, when a Pod starts and after its end, and every minute).
    """

    def __init__(self, cgroups: Cgroups, size: NodeSize) -> None:
        self._cgroups = cgroups
        self._size = size
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
        """Set other limits for a Pod's group. Raises OSError."""
        path = parent.lstrip("/")
        if path:
            self._cgroups.update(path, resources)
            self._pods[path] = resources.get("cpu_shares") or 0
            self._set_levels(path)

    def remove(self, parent: str) -> None:
        """Remove a Pod's group; idempotent."""
        path = parent.lstrip("/")
        if path:
            with contextlib.suppress(OSError):
                self._cgroups.remove(path)
            if self._pods.pop(path, None) is not None:
                with contextlib.suppress(OSError):
                    self._set_levels(path)

    def _set_levels(self, path: str) -> None:
        """Write the shares that have changed of the groups above `path`."""
        wanted = level_shares(self._size.milli_cpus, self._pods)
        for level in (KUBEPODS, BURSTABLE, BEST_EFFORT):
            if path.startswith(f"{level}/") and self._written.get(level) != wanted[level]:
                limits = self._size.limits if level == KUBEPODS else {}
                self._cgroups.create(level, {"cpu_shares": wanted[level], **limits})
                self._written[level] = wanted[level]
