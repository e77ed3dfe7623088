"""A container's control group: made before its first process, counted and taken away after its last."""

from __future__ import annotations

import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.cri.sandbox.cgroups.api import Cgroups, Usage

_BEST_EFFORT = "kubepods/besteffort"


class Limits:
    """One container's. `start` before the clone, `ended` with the wait status, `remove` when nothing lives any more."""

    def __init__(self, cgroups: Cgroups, spec: dict[str, Any]) -> None:
        self._cgroups = cgroups
        self._path = f"{spec['cgroupParent']}/{spec['id']}".lstrip("/") if spec.get("cgroupParent") else ""
        self._resources = spec.get("resources") or {}
        self._oom_kills: int | None = None

    def start(self) -> list[str]:
        """Make the group; answers the files by which the child becomes a member. Raises OSError."""
        if not self._path:
            return []
        self._cgroups.create(self._path, self._resources)
        self._oom_kills = self._cgroups.oom_kills(self._path)
        return self._cgroups.member_files(self._path)

    def member_files(self) -> list[str]:
        """The same for one more process of the container."""
        return self._cgroups.member_files(self._path) if self._path else []

    @property
    def memory(self) -> int | None:
        """The limit in bytes; None without one."""
        return self._resources.get("memory_limit_in_bytes") or None

    def oom_kills(self) -> int | None:
        """How many processes the kernel has killed in here for lack of memory since the start; None: nobody counts."""
        now = self._cgroups.oom_kills(self._path) if self._path else None
        return None if now is None or self._oom_kills is None else now - self._oom_kills

    def usage(self) -> Usage | None:
        return self._cgroups.usage(self._path) if self._path else None

    def kill(self) -> None:
        """End what is left, such as processes in a PID namespace that is not the container's own."""
        if self._path:
            self._cgroups.kill(self._path)

    def remove(self) -> None:
        """What is busy stays, for the Pod's end or the cluster's."""
        if self._path:
            self._cgroups.remove(self._path)


class MachineKills:
    """How many processes the machine has killed for lack of memory: all there is to go by without control groups."""

    def __init__(self, path: str = "/proc/vmstat") -> None:
        self._path = path
        self._seen = self._read()

    def since_last(self) -> int:
        """How many more than at the last look."""
        before, self._seen = self._seen, self._read()
        return max(0, self._seen - before)

    def _read(self) -> int:
        with contextlib.suppress(OSError, ValueError), open(self._path) as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0


def start_pod(cgroups: Cgroups, parent: str, resources: dict[str, Any]) -> None:
    """Make a Pod's group and those above it. Raises OSError."""
    if not parent:
        return
    path = parent.lstrip("/")
    if path.startswith(f"{_BEST_EFFORT}/"):
        # Kubernetes pkg/kubelet/cm/qos_container_manager_linux.go:setCPUCgroupConfig
        cgroups.create(_BEST_EFFORT, {"cpu_shares": 2})
    cgroups.create(path, resources)


def remove_pod(cgroups: Cgroups, parent: str) -> None:
    """Take a Pod's group away; idempotent."""
    if parent:
        with contextlib.suppress(OSError):
            cgroups.remove(parent.lstrip("/"))


def join(member_files: list[str]) -> None:
    """Become a member. Called by the child, before anything else. Raises OSError."""
    for path in member_files:
        with open(path, "w") as file:
            file.write("0")
