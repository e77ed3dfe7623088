"""A container's control group: made before its first process, counted and taken away after its last."""

from __future__ import annotations

import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.kube.cri.sandbox.cgroups.api import Cgroups, Entrance, Usage


class Limits:
    """One container's. `start` before the clone, `ended` with the wait status, `remove` when nothing lives any more."""

    def __init__(self, cgroups: Cgroups, spec: dict[str, Any]) -> None:
        self._cgroups = cgroups
        self._path = f"{spec.get('cgroupParent') or ''}/{spec['id']}".lstrip("/")
        self._resources = spec.get("resources") or {}
        self._oom_kills: int | None = None
        self._group_kills: int | None = None

    def start(self) -> None:
        """Make the groups. Raises OSError."""
        self._cgroups.create_container(self._path, self._resources)
        self._oom_kills = self._cgroups.oom_kills(self._path)
        self._group_kills = self._cgroups.group_kills(self._path)

    def update(self, resources: dict[str, Any]) -> None:
        """Set other limits from now on. Raises OSError: on version 1, for a memory limit below what cannot be freed."""
        self._cgroups.update_container(self._path, resources)
        self._resources = resources

    def view(self, *, privileged: bool) -> list[tuple[str, str]]:
        """Return what the container should see in /sys/fs/cgroup: (name, directory)."""
        return self._cgroups.view(self._path, privileged=privileged)

    def entrance(self) -> Entrance:
        """Return how the container's first process, or one more, gets in."""
        return self._cgroups.entrance(self._path)

    @property
    def memory(self) -> int | None:
        """Return the limit in bytes; None without one."""
        return self._resources.get("memory_limit_in_bytes") or None

    def oom_kills(self) -> int | None:
        """Count processes that the kernel killed in here for lack of memory since the start; None: nobody counts."""
        now = self._cgroups.oom_kills(self._path)
        return None if now is None or self._oom_kills is None else now - self._oom_kills

    def ended_together(self) -> bool | None:
        """Return whether the kernel ended all processes here at once for lack of memory; None: it does not say."""
        now = self._cgroups.group_kills(self._path)
        return None if now is None or self._group_kills is None else now > self._group_kills

    def reached(self) -> bool | None:
        """Return whether the container's own memory limit was reached; False: it was that of its Pod or its node."""
        return self._cgroups.limit_reached(self._path)

    def files(self) -> int | None:
        """Return the bytes of files in memory that count for it, when its processes have ended; None: nobody counts."""
        return self._cgroups.shared_memory(self._path)

    def usage(self) -> Usage | None:
        return self._cgroups.usage(self._path)

    def kill(self) -> None:
        """Kill what is left, such as processes in a PID namespace that is not the container's own."""
        self._cgroups.kill(self._path)

    def thaw(self) -> None:
        """Let what was killed end, also where the container has frozen itself."""
        self._cgroups.thaw(self._path)

    def remove(self) -> None:
        """Remove the groups. What is busy stays, for the Pod's end or the cluster's."""
        self._cgroups.remove_container(self._path)


class MachineKills:
    """How many processes the machine has killed for lack of memory: all there is to go by without control groups."""

    def __init__(self, path: str = "/proc/vmstat") -> None:
        self._path = path
        self._seen = self._read()

    def since_last(self) -> int:
        """Return how many more there are than at the last look."""
        before, self._seen = self._seen, self._read()
        return max(0, self._seen - before)

    def _read(self) -> int:
        with contextlib.suppress(OSError, ValueError), open(self._path) as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0


def join(files: list[str]) -> None:
    """Join the groups. Called by the child, before anything else and without threads. Raises OSError."""
    for path in files:
        with open(path, "w") as file:
            file.write("0")
