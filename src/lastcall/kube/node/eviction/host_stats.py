"""What the node and its Pods use, on the real machine.

Memory and processes of Pods come from control groups and so need a cluster that may have some (root, or delegation);
what is written is counted by walking the directories.
"""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.cri.api import ContainerState, ContainerStatus, RuntimeService, RuntimeServiceError
from lastcall.kube.node.eviction.decide import ContainerUsage, FileUsage, Observation, Observations, PodUsage
from lastcall.kube.node.meminfo import read_meminfo
from lastcall.kube.node.metrics.node_usage import NodeUsage
from lastcall.kube.node.runtime.container_config import pod_log_directory
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

MAX_ENTRIES = 200_000
"""Of one tree; what is beyond them is not counted."""


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """What containers write is at `path`. It may be `bytes`; when it was made `free` bytes and inodes were (0 inodes:
    the file system does not count them). The rest of the disk is other programs'."""

    path: str
    bytes: int
    free: int
    free_inodes: int


class HostStats:
    """`state_dir` is the file system of everything but what is in `disk`; `volumes` and `containers` hold the Pods' and
    containers' own, `empty_dirs` emptyDirs by Pod that are on disk.

    A node that is smaller than its machine has `node`, and `storage` bytes for its files; None: all of the machine's.
    """

    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        state_dir: str,
        volumes: Path,
        containers: Path,
        logs: str,
        node: NodeUsage | None = None,
        storage: int | None = None,
        empty_dirs: Path | None = None,
        disk: DiskRoom | None = None,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._state_dir = state_dir
        self._volumes = volumes
        self._containers = containers
        self._logs = logs
        self._node = node
        self._storage = storage
        self._empty_dirs = empty_dirs
        self._disk = disk

    async def observe(self) -> Observations:
        at = monotonic(self._world.clock)
        seen: dict[str, Observation] = {}
        memory = self._memory()
        if memory is not None:
            seen["memory.available"] = Observation(memory[0], memory[1], at)
        disk = os.statvfs(self._state_dir)
        files = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        inodes = disk.f_favail, disk.f_files
        if self._disk is not None:
            used = (await asyncio.to_thread(tree_usage, Path(self._disk.path))).bytes
            room = os.statvfs(self._disk.path)
            left = min(room.f_bavail * room.f_frsize, self._disk.free)
            files = scarcer(files, (max(0, self._disk.bytes - used), self._disk.bytes))
            files = scarcer(files, (left, self._disk.free))
            if self._disk.free_inodes:
                inodes = scarcer(inodes, (min(room.f_favail, self._disk.free_inodes), self._disk.free_inodes))
        if self._storage is not None:
            used = await asyncio.to_thread(self._bytes_of_node)
            files = scarcer(files, (max(0, self._storage - used), self._storage))
        seen["nodefs.available"] = seen["imagefs.available"] = Observation(*files, at)
        if inodes[1]:
            seen["nodefs.inodesFree"] = seen["imagefs.inodesFree"] = Observation(*inodes, at)
        return seen

    def _memory(self) -> tuple[int, int] | None:
        """Return (available, all) bytes of the node; None if the kernel does not say."""
        own = self._node.memory() if self._node is not None else None
        if own is None:
            return _memory_of_machine()
        capacity, _, working_set = own
        return max(0, capacity - working_set), capacity

    def _bytes_of_node(self) -> int:
        """Count what all Pods of the node have on its disk, and its images."""
        trees = (self._volumes, self._containers, Path(self._logs), Path(self._state_dir) / "images", self._empty_dirs)
        return sum(tree_usage(each).bytes for each in trees if each is not None)

    async def pod_usage(self, pods: Sequence[Pod]) -> dict[str, PodUsage]:
        usages = {}
        for pod in pods:
            try:
                usages[uid_of(pod)] = await self._usage_of(pod)
            except (RuntimeServiceError, OSError):
                continue
        return usages

    async def _usage_of(self, pod: Pod) -> PodUsage:
        uid = uid_of(pod)
        newest: dict[str, ContainerStatus] = {}
        for container in await self._runtime.list_containers(uid):
            newest.setdefault(container.metadata.name, container)
        usage = {}
        log_directory = Path(pod_log_directory(self._logs, pod))
        for name, container in newest.items():
            rootfs = await asyncio.to_thread(tree_usage, self._containers / container.id / "upper")
            logs = await asyncio.to_thread(tree_usage, log_directory / name)
            counted = None
            if container.state == ContainerState.CONTAINER_RUNNING:
                counted = await self._runtime.container_stats(container.id)
            usage[name] = ContainerUsage(
                counted.memory_working_set_bytes if counted else None,
                counted.process_count if counted else 0,
                rootfs,
                logs,
            )
        volumes = {}
        for volume in pod["spec"].get("volumes") or []:
            if "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory":
                path = self._volumes / uid / "volumes" / "kubernetes.io~empty-dir" / volume["name"]
                if self._empty_dirs is not None and not path.is_dir():
                    path = self._empty_dirs / uid / volume["name"]
                volumes[volume["name"]] = await asyncio.to_thread(tree_usage, path)
        return PodUsage(usage, volumes)


def tree_usage(root: Path) -> FileUsage:
    """Measure what the files below `root` occupy, like du: without holes, links and mounts."""
    found: dict[tuple[int, int], int] = {}
    waiting = [os.fspath(root)]
    try:
        device = os.lstat(root).st_dev
    except OSError:
        return FileUsage()
    while waiting and len(found) < MAX_ENTRIES:
        path = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # removed meanwhile
                    if status.st_dev != device:
                        continue
                    found[status.st_dev, status.st_ino] = status.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return FileUsage(sum(found.values()), len(found))


def scarcer(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return that of two (available, all) of which the smaller share is available."""
    return min(one, other, key=lambda each: each[0] / each[1] if each[1] else 0.0)


def _memory_of_machine() -> tuple[int, int] | None:
    """Return (available, all) bytes of the machine; None if the kernel does not say."""
    try:
        words = read_meminfo()
        return words["MemAvailable"], words["MemTotal"]
    except (OSError, KeyError, ValueError):
        return None
