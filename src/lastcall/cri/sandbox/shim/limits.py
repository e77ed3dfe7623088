"""A container's control group: made before its first process, counted and taken away after its last."""

from __future__ import annotations

import contextlib
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.cri.sandbox.cgroups.api import Cgroups, Entrance, Usage

_BEST_EFFORT = "kubepods/besteffort"


class Limits:
    """One container's. `start` before the clone, `ended` with the wait status, `remove` when nothing lives any more."""

    def __init__(self, cgroups: Cgroups, spec: dict[str, Any]) -> None:
        self._cgroups = cgroups
        self.path = f"{spec.get('cgroupParent') or ''}/{spec['id']}".lstrip("/")
        self._resources = spec.get("resources") or {}
        self._oom_kills: int | None = None

    def start(self) -> None:
        """Make the groups. Raises OSError."""
        self._cgroups.create_container(self.path, self._resources)
        self._oom_kills = self._cgroups.oom_kills(self.path)

    def update(self, resources: dict[str, Any]) -> None:
        """Other limits from now on. Raises OSError: on version 1, of a memory limit below what cannot be freed."""
        self._cgroups.update_container(self.path, resources)
        self._resources = resources

    def view(self, *, privileged: bool) -> list[tuple[str, str]]:
        """What the container is to see in /sys/fs/cgroup: (name, directory)."""
        return self._cgroups.view(self.path, privileged=privileged)

    def entrance(self) -> Entrance:
        """How the container's first process, or one more, gets in."""
        return self._cgroups.entrance(self.path)

    @property
    def memory(self) -> int | None:
        """The limit in bytes; None without one."""
        return self._resources.get("memory_limit_in_bytes") or None

    def oom_kills(self) -> int | None:
        """How many processes the kernel has killed in here for lack of memory since the start; None: nobody counts."""
        now = self._cgroups.oom_kills(self.path)
        return None if now is None or self._oom_kills is None else now - self._oom_kills

    def usage(self) -> Usage | None:
        return self._cgroups.usage(self.path)

    def restrict_devices(self, devices: list[dict[str, Any]]) -> None:
        """Nothing but what every container has, and these (`host_path`, `permissions`). Raises OSError."""
        rules = []
        for device in devices:
            found = os.stat(device["host_path"])
            kind, number = ("b" if stat.S_ISBLK(found.st_mode) else "c"), found.st_rdev
            rules.append(f"{kind} {os.major(number)}:{os.minor(number)} {device['permissions']}")
        self._cgroups.restrict_devices(self.path, rules)

    def counters(self) -> dict[str, int]:
        """Everything that is counted: see `cgroups/counters.py`; `oom_kills` with it."""
        found, kills = self._cgroups.counters(self.path), self.oom_kills()
        return found if kills is None else found | {"oom_kills": kills}

    def members(self) -> list[int]:
        """The processes in it."""
        return self._cgroups.members(self.path)

    def kill(self) -> None:
        """End what is left, such as processes in a PID namespace that is not the container's own."""
        self._cgroups.kill(self.path)

    def thaw(self) -> None:
        """Let what was killed end, also where the container has frozen itself."""
        self._cgroups.thaw(self.path)

    def remove(self) -> None:
        """What is busy stays, for the Pod's end or the cluster's."""
        self._cgroups.remove_container(self.path)


class MachineKills:
    """How many processes the machine has killed for lack of memory: all there is to go by without control groups."""

    def __init__(self, path: str = "/proc/vmstat") -> None:
        self.path = path
        self._seen = self._read()

    def since_last(self) -> int:
        """How many more than at the last look."""
        before, self._seen = self._seen, self._read()
        return max(0, self._seen - before)

    def _read(self) -> int:
        with contextlib.suppress(OSError, ValueError), open(self.path) as file:
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


def update_pod(cgroups: Cgroups, parent: str, resources: dict[str, Any]) -> None:
    """Give a Pod's group other limits. Raises OSError."""
    if parent:
        cgroups.update(parent.lstrip("/"), resources)


def remove_pod(cgroups: Cgroups, parent: str) -> None:
    """Take a Pod's group away; idempotent."""
    if parent:
        with contextlib.suppress(OSError):
            cgroups.remove(parent.lstrip("/"))


def join(files: list[str]) -> None:
    """Become a member. Called by the child, before anything else and without threads. Raises OSError."""
    for path in files:
        with open(path, "w") as file:
            file.write("0")
