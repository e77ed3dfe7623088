"""Version 2: one tree, every controller in it (kernel Documentation/admin-guide/cgroup-v2.rst)."""

from __future__ import annotations

import contextlib
import os

from lastcall.kube.cri.cpu_shares import cpu_weight
from lastcall.kube.cri.sandbox.cgroups import files
from lastcall.kube.cri.sandbox.cgroups.api import LARGEST_CHARGE, LEAF, Entrance, Usage, pids_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.kube.cri.sandbox.cgroups.others import OtherHierarchies

CONTROLLERS = ("cpu", "memory", "pids")


class CgroupsV2:
    """Groups below `directory`, whose `cgroup.subtree_control` has (at least some of) the controllers already."""

    mode = "v2"

    def __init__(self, directory: str, others: OtherHierarchies) -> None:
        self._directory = directory
        self._others = others

    def create(self, path: str, resources: dict[str, Any]) -> None:
        """Make a group as in `api.Cgroups`. Every group above hands its controllers down."""
        here, fresh = self._directory, False
        for name in path.split("/"):
            enable_controllers(here)
            here = f"{here}/{name}"
            fresh = _make(here)
        self._limit(here, resources, fresh)

    def _limit(self, here: str, resources: dict[str, Any], fresh: bool) -> None:
        # A group begins without limits.
        wanted = [each for each in limits(resources) if not fresh or not each[1].startswith("max")]
        for name, text in wanted:
            # A file is missing where its controller is (swap, too, can be switched off): the others still count.
            if os.path.exists(f"{here}/{name}"):
                files.write(f"{here}/{name}", text)

    def create_container(self, path: str, resources: dict[str, Any]) -> None:
        """Make a container's groups. The leaf has the limits too, for programs that read them in /sys/fs/cgroup:
        raising those there raises nothing.
        """
        self.create(path, resources)
        here = self._at(path)
        enable_controllers(here)
        self._limit(f"{here}/{LEAF}", resources, _make(f"{here}/{LEAF}"))
        self._others.create(os.path.basename(path))

    def update(self, path: str, resources: dict[str, Any]) -> None:
        self._limit(self._at(path), resources, False)

    def update_container(self, path: str, resources: dict[str, Any]) -> None:
        self._limit(self._at(path), resources, False)
        self._limit(f"{self._at(path)}/{LEAF}", resources, False)

    def view(self, path: str, *, privileged: bool) -> list[tuple[str, str]]:
        return []

    def entrance(self, path: str) -> Entrance:
        return Entrance(self._others.entrance(os.path.basename(path)).files, f"{self._at(path)}/{LEAF}")

    def oom_kills(self, path: str) -> int | None:
        return files.number(f"{self._at(path)}/{LEAF}/memory.events", "oom_kill")

    def group_kills(self, path: str) -> int | None:
        # Counted in the group that was ended, which may be the one above the processes. Linux 5.17.
        return files.number(f"{self._at(path)}/memory.events", "oom_group_kill")

    def limit_reached(self, path: str) -> bool | None:
        return limit_reached_in(self._at(path))

    def shared_memory(self, path: str) -> int | None:
        return files.number(f"{self._at(path)}/memory.stat", "shmem")

    def usage(self, path: str) -> Usage | None:
        here = self._at(path)
        memory = files.number(f"{here}/memory.current")
        cpu = files.number(f"{here}/cpu.stat", "usage_usec")
        if memory is None and cpu is None:
            return None
        inactive = files.number(f"{here}/memory.stat", "inactive_file") or 0
        pids = files.number(f"{here}/pids.current") or 0
        return Usage(memory or 0, max(0, (memory or 0) - inactive), (cpu or 0) * 1000, pids)

    def kill(self, path: str) -> None:
        here = self._at(path)
        try:
            files.write(f"{here}/cgroup.kill", "1")  # Linux 5.14
        except OSError:
            files.kill(here)

    def thaw(self, path: str) -> None:
        self._others.thaw(os.path.basename(path))

    def remove(self, path: str) -> bool:
        return files.remove(self._at(path))

    def remove_container(self, path: str) -> bool:
        files.remove(f"{self._at(path)}/{LEAF}")  # the way that needs no look
        return self._others.remove(os.path.basename(path)) and self.remove(path)

    def _at(self, path: str) -> str:
        return f"{self._directory}/{path}"


def limit_reached_in(here: str) -> bool | None:
    """Return what `Cgroups.limit_reached` says, of the group of a container that anybody may have made."""
    # Counted in the group whose limit it was, and in those above.
    count = files.number(f"{here}/memory.events", "oom")
    limit, peak = files.number(f"{here}/memory.max"), files.number(f"{here}/memory.peak")
    if count or limit is None:
        return None if count is None else count > 0
    if count is None or peak is None:  # memory.peak: Linux 5.19
        return None
    # A Pod whose containers all have limits has their sum, and is full first: it pays for the groups below, too.
    # Files that were read fill a container as well, so that its peak says nothing where the Pod was never full.
    pod = os.path.dirname(here)
    full = bool(files.number(f"{pod}/memory.events.local", "oom"))
    return full and peak >= limit - files.not_below(pod, "memory.current") - LARGEST_CHARGE


def _make(directory: str) -> bool:
    """Make a group; whether it is new."""
    try:
        os.mkdir(directory, 0o755)
    except FileExistsError:
        return False
    return True


def make_below(directory: str, name: str) -> str:
    """Make a group that has all of its parent's controllers; without a name return the parent. Raises OSError."""
    if not name:
        return directory
    enable_controllers(directory)
    _make(f"{directory}/{name}")
    return f"{directory}/{name}"


def enable_controllers(directory: str) -> None:
    """Let the groups below have what this one has. What the kernel refuses is not there below."""
    have = files.read(f"{directory}/cgroup.controllers").split()
    enabled = files.read(f"{directory}/cgroup.subtree_control").split()
    missing = [f"+{controller}" for controller in CONTROLLERS if controller in have and controller not in enabled]
    if not missing:
        return
    file = f"{directory}/cgroup.subtree_control"
    try:
        files.write(file, " ".join(missing))
    except OSError:  # one of them: the others can be had
        for text in missing:
            with contextlib.suppress(OSError):
                files.write(file, text)


def limits(resources: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (file, text) of everything to set. Pure."""
    period, quota = resources.get("cpu_period") or 100_000, resources.get("cpu_quota") or 0
    memory, pids = resources.get("memory_limit_in_bytes") or 0, pids_limit(resources)
    wanted = [("cpu.max", f"{quota if quota > 0 else 'max'} {period}"), ("memory.max", str(memory or "max"))]
    if shares := resources.get("cpu_shares") or 0:
        wanted.append(("cpu.weight", str(cpu_weight(shares))))
    # Without swap a limit is a limit (kubelet kuberuntime_container_linux.go, NoSwap).
    wanted.append(("memory.swap.max", "0" if memory else "max"))
    wanted.append(("pids.max", str(pids or "max")))
    more = resources.get("unified") or {}
    return wanted + [(name, str(more[name])) for name in sorted(more) if name != "pids.max"]
