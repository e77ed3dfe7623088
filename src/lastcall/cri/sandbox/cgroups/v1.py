"""Version 1: a tree for each controller (kernel Documentation/admin-guide/cgroup-v1)."""

from __future__ import annotations

import os

from lastcall.cri.sandbox.cgroups import files
from lastcall.cri.sandbox.cgroups.api import Usage, pids_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")


class CgroupsV1:
    """Groups below `directories`: controller → the cluster's directory in its tree.

    Controllers may share a tree (cpu,cpuacct).
    """

    mode = "v1"

    def __init__(self, directories: dict[str, str]) -> None:
        self._directories = directories
        self._trees = list(dict.fromkeys(directories.values()))

    def create(self, path: str, resources: dict[str, Any]) -> None:
        fresh = not os.path.isdir(f"{self._trees[0]}/{path}")
        for tree in self._trees:
            os.makedirs(f"{tree}/{path}", 0o755, exist_ok=True)
        # A group begins without limits.
        self._set(path, [each for each in limits(resources) if not fresh or each[2] not in ("-1", "max")])

    def update(self, path: str, resources: dict[str, Any]) -> None:
        self._set(path, limits(resources))

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
            files.write(path_, text)

    def member_files(self, path: str) -> list[str]:
        return [f"{tree}/{path}/cgroup.procs" for tree in self._trees]

    def oom_kills(self, path: str) -> int | None:
        here = self._at("memory", path)
        return files.number(f"{here}/memory.oom_control", "oom_kill") if here else None  # Linux 4.13

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
        files.kill(f"{self._trees[0]}/{path}")

    def remove(self, path: str) -> bool:
        gone = [files.remove(f"{tree}/{path}") for tree in self._trees]  # each is tried
        return all(gone)

    def _number(self, controller: str, path: str, name: str) -> int | None:
        here = self._at(controller, path)
        return files.number(f"{here}/{name}") if here else None

    def _at(self, controller: str, path: str) -> str:
        tree = self._directories.get(controller)
        return f"{tree}/{path}" if tree else ""


def limits(resources: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(controller, file, text) of everything to set. Pure."""
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
