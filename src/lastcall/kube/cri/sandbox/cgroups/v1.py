"""Version 1: a tree for each controller (kernel Documentation/admin-guide/cgroup-v1)."""

from __future__ import annotations

import os

from lastcall.kube.cri.sandbox.cgroups import files
from lastcall.kube.cri.sandbox.cgroups.api import LARGEST_CHARGE, LEAF, Entrance, Usage, pids_limit
from lastcall.kube.cri.sandbox.cgroups.others import hierarchy_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.kube.cri.sandbox.cgroups.others import OtherHierarchies

CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")


class CgroupsV1:
    """Groups below `directories`: controller → the cluster's directory in its tree.

    Controllers may share a tree (cpu,cpuacct).
    """

    mode = "v1"

    def __init__(self, directories: dict[str, str], others: OtherHierarchies) -> None:
        self._directories = directories
        self._trees = list(dict.fromkeys(directories.values()))
        self._others = others

    def create(self, path: str, resources: dict[str, Any]) -> None:
        fresh = [_make(f"{tree}/{path}") for tree in self._trees]
        # A group begins without limits.
        self._set(path, [each for each in limits(resources) if not all(fresh) or each[2] not in ("-1", "max")])

    def create_container(self, path: str, resources: dict[str, Any]) -> None:
        self.create(path, resources)
        for tree in self._trees:
            _make(f"{tree}/{path}/{LEAF}")
        self._others.create(os.path.basename(path))

    def update(self, path: str, resources: dict[str, Any]) -> None:
        self._set(path, limits(resources))

    def update_container(self, path: str, resources: dict[str, Any]) -> None:
        self._set(path, limits(resources))

    def view(self, path: str, *, privileged: bool) -> list[tuple[str, str]]:
        own = f"{path}/{LEAF}" if privileged else path
        groups = [(tree, f"{tree}/{own}") for tree in self._trees]
        return [(hierarchy_name(tree), group) for tree, group in groups] + self._others.view(os.path.basename(path))

    def _set(self, path: str, wanted: list[tuple[str, str, str]]) -> None:
        failed = []
        for controller, name, text in wanted:
            here = self._at(controller, path)
            if not here or not os.path.exists(f"{here}/{name}"):
                continue
            try:
                files.write(f"{here}/{name}", text)
            except OSError:
                # memory+swap may never be below memory: the one that goes up has to be written first.
                failed.append((f"{here}/{name}", text))
        for path_, text in failed:
            quota = path_.endswith("/cpu.cfs_quota_us")
            # The kernel refuses more than a group above has, and takes no quota for the one above. Version 2 does both.
            files.write(path_, "-1" if quota and self._is_less_above(path, int(text)) else text)

    def _is_less_above(self, path: str, quota: int) -> bool:
        """Return whether a group above this one has less CPU time than `quota` in this one's period."""
        period = self._number("cpu", path, "cpu.cfs_period_us") or 0
        while "/" in path:
            path = path.rpartition("/")[0]
            most = self._number("cpu", path, "cpu.cfs_quota_us") or -1
            if most > 0:
                return quota * (self._number("cpu", path, "cpu.cfs_period_us") or 0) > most * period
        return False

    def entrance(self, path: str) -> Entrance:
        more = self._others.entrance(os.path.basename(path))
        return Entrance([*(f"{tree}/{path}/{LEAF}/tasks" for tree in self._trees), *more.files], more.directory)

    def oom_kills(self, path: str) -> int | None:
        # Counted where the process lived alone, whose limit it ever was. Linux 4.13.
        here = self._at("memory", path)
        return files.number(f"{here}/{LEAF}/memory.oom_control", "oom_kill") if here else None

    def group_kills(self, path: str) -> int | None:
        return None

    def limit_reached(self, path: str) -> bool | None:
        limit, peak = self._number("memory", path, "memory.limit_in_bytes"), self._peak(path)
        if limit is None or peak is None:
            return None
        # A Pod whose containers all have limits has their sum, and is full first by what it is charged for itself, such
        # as the rest of a container before this one.
        pod = path.rpartition("/")[0]
        most, used = self._number("memory", pod, "memory.limit_in_bytes"), self._peak(pod)
        full = most is not None and used is not None and used >= most - LARGEST_CHARGE
        residue = files.not_below(self._at("memory", pod), "memory.usage_in_bytes") if full else 0
        return peak >= limit - residue - LARGEST_CHARGE

    def _peak(self, path: str) -> int | None:
        """Return the most memory, in bytes, that a group ever had.

        `memory.failcnt` stays 0 in nested groups (Linux 6.18). With swap accounting memory+swap is charged first, and
        has the same limit.
        """
        names = ("memory.max_usage_in_bytes", "memory.memsw.max_usage_in_bytes")
        return max((peak for name in names if (peak := self._number("memory", path, name)) is not None), default=None)

    def shared_memory(self, path: str) -> int | None:
        here = self._at("memory", path)
        return files.number(f"{here}/memory.stat", "total_shmem") if here else None

    def usage(self, path: str) -> Usage | None:
        memory = self._number("memory", path, "memory.usage_in_bytes")
        cpu = self._number("cpuacct", path, "cpuacct.usage")
        if memory is None and cpu is None:
            return None
        here = self._at("memory", path)
        inactive = files.number(f"{here}/memory.stat", "total_inactive_file") or 0 if here else 0
        pids = self._number("pids", path, "pids.current") or 0
        return Usage(memory or 0, max(0, (memory or 0) - inactive), cpu or 0, pids)

    def kill(self, path: str) -> None:
        files.kill(f"{self._trees[0]}/{path}", lambda: self.thaw(path))

    def thaw(self, path: str) -> None:
        self._others.thaw(os.path.basename(path))

    def remove(self, path: str) -> bool:
        gone = [files.remove(f"{tree}/{path}") for tree in self._trees]  # each is tried
        return all(gone)

    def remove_container(self, path: str) -> bool:
        gone = [files.remove(f"{tree}/{path}/{LEAF}") for tree in self._trees]  # the way that needs no look
        gone += [self.remove(path), self._others.remove(os.path.basename(path))]
        return all(gone)

    def _number(self, controller: str, path: str, name: str) -> int | None:
        here = self._at(controller, path)
        return files.number(f"{here}/{name}") if here else None

    def _at(self, controller: str, path: str) -> str:
        tree = self._directories.get(controller)
        return f"{tree}/{path}" if tree else ""


def _make(directory: str) -> bool:
    """Make a group, and what is missing above it; whether it is new."""
    try:
        os.mkdir(directory, 0o755)
    except FileExistsError:
        return False
    except FileNotFoundError:
        os.makedirs(directory, 0o755, exist_ok=True)
    return True


def limits(resources: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (controller, file, text) of everything to set. Pure."""
    quota, memory = resources.get("cpu_quota") or 0, resources.get("memory_limit_in_bytes") or 0
    wanted = []
    if period := resources.get("cpu_period") or 0:
        wanted.append(("cpu", "cpu.cfs_period_us", str(period)))
    wanted.append(("cpu", "cpu.cfs_quota_us", str(quota if quota > 0 else -1)))
    if shares := resources.get("cpu_shares") or 0:
        wanted.append(("cpu", "cpu.shares", str(max(shares, 2))))
    text = str(memory or -1)
    wanted.append(("memory", "memory.limit_in_bytes", text))
    wanted.append(("memory", "memory.memsw.limit_in_bytes", text))
    wanted.append(("pids", "pids.max", str(pids_limit(resources) or "max")))
    return wanted
