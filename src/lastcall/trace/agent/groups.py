"""The control groups of Pods, as the node's /sys/fs/cgroup shows them: read only."""

# check: reaches inside because the node agent reads /proc as the shim does

from __future__ import annotations

import contextlib
import os

from lastcall.kube.cri.sandbox.cgroups import memory
from lastcall.kube.cri.sandbox.cgroups.v2 import limit_reached_in
from lastcall.kube.cri.sandbox.shim.procfs import read
from lastcall.trace.agent.cgroup_tree import container_of, may_lead_to_pods, pod_of

_HIERARCHIES = ("memory", "pids", "systemd", "cpu,cpuacct", "cpu")
"""Of version 1: any that the runtime puts containers into; memory has the counters as well."""
_MOST_GROUPS = 20_000
_MOST_BELOW = 3
"""Levels below a container's group: some runtimes put processes into a leaf."""


class Groups:
    """`root` is the node's /sys/fs/cgroup, of version 2, of version 1, or of both beside each other."""

    def __init__(self, root: str) -> None:
        self.version = 2 if os.path.exists(f"{root}/cgroup.controllers") else 1
        found = [f"{root}/{name}" for name in _HIERARCHIES if os.path.isdir(f"{root}/{name}")]
        self._tree = root if self.version == 2 else next(iter(found), "")
        self._pods: dict[str, str] = {}

    @property
    def usable(self) -> bool:
        """Return whether there is a hierarchy at all."""
        return bool(self._tree)

    def containers(self, uid: str) -> dict[str, str]:
        """Map each container id to its group, of a Pod that runs here; empty for any other one."""
        path = self._pods.get(uid)
        if path is None or not os.path.isdir(path):
            self._pods.pop(uid, None)
            return {}
        return {found: f"{path}/{name}" for name in _directories(path) if (found := container_of(name))}

    def look_for_pods(self, wanted: set[str]) -> None:
        """Find the groups of these Pods. Those of other Pods are passed by, other groups looked into where they may
        have Pods below them."""
        missing = {uid for uid in wanted if uid not in self._pods}
        ahead, seen = [(self._tree, 0)], 0
        while ahead and missing and seen < _MOST_GROUPS:
            path, level = ahead.pop()
            for name in _directories(path):
                seen += 1
                uid = pod_of(name)
                if uid:
                    if uid in missing:
                        self._pods[uid] = f"{path}/{name}"
                        missing.discard(uid)
                elif may_lead_to_pods(name, level):
                    ahead.append((f"{path}/{name}", level + 1))

    def forget(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def processes(self, group: str, level: int = 0) -> list[int]:
        """Return every process of a group and of those below.

        They are numbers of this process's PID namespace; 0 is one that is not in it.
        """
        found = [int(word) for word in read(f"{group}/cgroup.procs").split() if word.isdecimal()]
        if level < _MOST_BELOW:
            for name in _directories(group):
                found += self.processes(f"{group}/{name}", level + 1)
        return found

    def oom_kills(self, group: str) -> int | None:
        """Return how many processes of a container the kernel killed for lack of memory; None where nobody counts."""
        return memory.oom_kills(read(f"{group}/{'memory.events' if self.version == 2 else 'memory.oom_control'}"))

    def memory_limit(self, group: str) -> int | None:
        """Return the memory limit in bytes; None without one."""
        return memory.limit(read(f"{group}/{'memory.max' if self.version == 2 else 'memory.limit_in_bytes'}"))

    def limit_reached(self, group: str) -> bool | None:
        """Return whether a container needed more memory than its own limit; None where that is not known."""
        return limit_reached_in(group) if self.version == 2 else None


def _directories(path: str) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []
