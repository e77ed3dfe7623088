"""What the node and its Pods use of the machine, as evictions see it."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.kube.cri.api import (
    ContainerMetadata,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    RuntimeServiceError,
)
from lastcall.kube.node.eviction import host_stats
from lastcall.kube.node.eviction.decide import FileUsage, Observation
from lastcall.kube.node.eviction.host_stats import DiskRoom, HostStats, scarcer, tree_usage
from lastcall.world.world import World

RUNNING, EXITED = ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED
BLOCK = 4096


class Runtime:
    """Containers of the Pods by uid, the newest first; each uses as much memory as its id says."""

    def __init__(self, **containers: list[ContainerStatus]) -> None:
        self.containers = containers

    async def list_containers(self, pod_uid: str) -> list[ContainerStatus]:
        if pod_uid == "gone":
            raise RuntimeServiceError("not found")
        return self.containers.get(pod_uid, [])

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        return None if container_id == "lost" else ContainerStats(0, 0, int(container_id), 7)


def container(container_id: str, name: str = "app", state: ContainerState = RUNNING) -> ContainerStatus:
    return ContainerStatus(container_id, ContainerMetadata(name), "s", state, "i", "r", 1)


def pod(uid: str, *volumes: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "n", "uid": uid}, "spec": {"volumes": list(volumes)}}


def write(path: Path, blocks: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * blocks * BLOCK)


@pytest.fixture
def stats(tmp_path: Path) -> Callable[..., HostStats]:
    def made(runtime: Runtime, **more: Any) -> HostStats:
        return HostStats(
            world=World(),
            runtime=runtime,  # type: ignore[arg-type]
            state_dir=str(tmp_path),
            volumes=tmp_path / "pods",
            containers=tmp_path / "containers",
            logs=str(tmp_path / "logs"),
            **more,
        )

    return made


async def test_a_pod_uses_memory_files_logs_and_volumes(tmp_path: Path, stats: Callable[[Runtime], HostStats]) -> None:
    """Of each container the newest instance counts; a volume in memory is memory already."""
    write(tmp_path / "containers/100/upper/file")
    write(tmp_path / "containers/90/upper/file", 9)
    write(tmp_path / "logs/n_p_u/app/0.log", 2)
    disk = tmp_path / "pods/u/volumes/kubernetes.io~empty-dir"
    write(disk / "disk/file", 3)
    write(disk / "memory/file", 3)
    asks = pod(
        "u",
        {"name": "disk", "emptyDir": None},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "other", "configMap": {"name": "x"}},
    )
    runtime = Runtime(u=[container("100"), container("90", state=EXITED), container("5", "ended", EXITED)])
    usage = (await stats(runtime).pod_usage([asks]))["u"]
    app = usage.containers["app"]
    assert (app.memory, app.processes) == (100, 7)
    assert (app.rootfs.inodes, app.logs.inodes) == (1, 1)
    assert app.rootfs.bytes == BLOCK and app.logs.bytes == 2 * BLOCK
    ended = usage.containers["ended"]
    assert (ended.memory, ended.processes, ended.rootfs) == (None, 0, FileUsage())
    assert {name: used.bytes for name, used in usage.volumes.items()} == {"disk": 3 * BLOCK}


async def test_what_nobody_knows_the_memory_of_is_not_said_to_use_none(stats: Callable[[Runtime], HostStats]) -> None:
    usage = await stats(Runtime(u=[container("lost")])).pod_usage([pod("gone"), pod("u")])
    assert list(usage) == ["u"], "a Pod that goes just now hides no other"
    assert (usage["u"].containers["app"].memory, usage["u"].containers["app"].processes) == (None, 0)


@pytest.mark.parametrize("files", [0, 50])
async def test_a_node_has_memory_disk_and_inodes_where_its_file_system_counts_them(
    monkeypatch: pytest.MonkeyPatch, stats: Callable[[Runtime], HostStats], files: int
) -> None:
    made = stats(Runtime())
    monkeypatch.setattr(host_stats, "read_meminfo", lambda: {"MemAvailable": 30, "MemTotal": 100})
    disk = SimpleNamespace(f_bavail=3, f_blocks=10, f_frsize=4, f_files=files, f_favail=20)
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    seen = await made.observe()
    assert {signal: (each.available, each.capacity) for signal, each in seen.items()} == {
        "memory.available": (30, 100),
        "nodefs.available": (12, 40),
        "imagefs.available": (12, 40),
        **({"nodefs.inodesFree": (20, 50), "imagefs.inodesFree": (20, 50)} if files else {}),
    }
    assert all(isinstance(each, Observation) and each.at > 0 for each in seen.values())


@pytest.mark.parametrize("words", [{"MemTotal": 100}, None])
async def test_memory_that_cannot_be_read_is_left_out(
    monkeypatch: pytest.MonkeyPatch, stats: Callable[[Runtime], HostStats], words: dict[str, int] | None
) -> None:
    def read() -> dict[str, int]:
        if words is None:
            raise FileNotFoundError
        return words

    monkeypatch.setattr(host_stats, "read_meminfo", read)
    assert "memory.available" not in await stats(Runtime()).observe()


def test_a_tree_is_counted_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/b/c", "a/d", "e"):
        write(tmp_path / name)
    assert tree_usage(tmp_path).inodes == 5
    monkeypatch.setattr(host_stats, "MAX_ENTRIES", 2)
    assert 2 <= tree_usage(tmp_path).inodes < 5


class Group:
    """Counts a node of 256Mi, or only its processors."""

    def __init__(self, working_set: int | None) -> None:
        self._working_set = working_set

    def memory(self) -> tuple[int, int, int] | None:
        return None if self._working_set is None else (256 << 20, 250 << 20, self._working_set)

    def cpu_ns(self) -> int | None:
        return 1


@pytest.mark.parametrize(("working_set", "available"), [(0, 256 << 20), (200 << 20, 56 << 20), (300 << 20, 0)])
async def test_a_node_with_memory_of_its_own_sees_none_of_the_machine_s(
    stats: Callable[..., HostStats], working_set: int, available: int
) -> None:
    seen = (await stats(Runtime(), node=Group(working_set)).observe())["memory.available"]
    assert (seen.available, seen.capacity) == (available, 256 << 20)


async def test_a_node_whose_memory_is_the_machine_s_sees_the_machine_s(stats: Callable[..., HostStats]) -> None:
    seen = (await stats(Runtime(), node=Group(None)).observe())["memory.available"]
    assert seen.capacity == (await stats(Runtime()).observe())["memory.available"].capacity > 256 << 20


async def test_a_node_with_storage_of_its_own_counts_what_its_pods_images_and_logs_have(
    tmp_path: Path, stats: Callable[..., HostStats], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = SimpleNamespace(f_bavail=1000, f_blocks=1000, f_frsize=BLOCK, f_files=0, f_favail=0)
    monkeypatch.setattr(host_stats.os, "statvfs", lambda path: empty)
    write(tmp_path / "containers/100/upper/file", 2)
    write(tmp_path / "pods/u/volumes/kubernetes.io~empty-dir/v/file", 3)
    write(tmp_path / "logs/n_p_u/app/0.log", 1)
    write(tmp_path / "images/layer/file", 4)
    write(tmp_path / "node-2/pods/u/volumes/kubernetes.io~empty-dir/v/file", 50)
    trees = sum(tree_usage(tmp_path / each).bytes for each in ("containers", "pods", "logs", "images"))
    seen = await stats(Runtime(), storage=100 * BLOCK).observe()
    assert trees >= 10 * BLOCK
    assert (seen["nodefs.available"].available, seen["nodefs.available"].capacity) == (100 * BLOCK - trees, 100 * BLOCK)
    full = await stats(Runtime(), storage=5 * BLOCK).observe()
    assert (full["imagefs.available"].available, full["imagefs.available"].capacity) == (0, 5 * BLOCK)


@pytest.mark.parametrize(
    ("files", "declared", "scarce"),
    [((10, 100), (50, 60), (10, 100)), ((90, 100), (5, 60), (5, 60)), ((90, 100), (0, 0), (0, 0))],
)
def test_what_a_larger_share_is_used_of_counts(
    files: tuple[int, int], declared: tuple[int, int], scarce: tuple[int, int]
) -> None:
    assert scarcer(files, declared) == scarce


def files(blocks: int, free: int, inodes: int = 0, all_inodes: int = 0) -> SimpleNamespace:
    return SimpleNamespace(f_bavail=free, f_blocks=blocks, f_frsize=BLOCK, f_favail=inodes, f_files=all_inodes)


@pytest.mark.parametrize(
    ("written", "memory", "disk", "available"),
    [
        (2, files(10, 10), files(1000, 500), (6, 8)),  # of the 8 that Pods may have on the disk they wrote 2
        (9, files(10, 10), files(1000, 500), (0, 8)),
        (2, files(10, 1), files(1000, 500), (1, 10)),  # what is in memory is short
        (2, files(10, 10), files(1000, 5), (5, 20)),  # other programs filled the disk, of which 20 were free
    ],
)
async def test_files_on_disk_may_have_their_size_and_what_was_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stats: Callable[..., HostStats], written: int,
    memory: SimpleNamespace, disk: SimpleNamespace, available: tuple[int, int],
) -> None:  # fmt: skip
    where = tmp_path / "disk"
    write(where / "node-1/containers/c/upper/file", written)
    monkeypatch.setattr(os, "statvfs", lambda path: disk if path == str(where) else memory)
    own = sum(each.lstat().st_blocks * 512 for each in where.rglob("*")) - written * BLOCK
    room = DiskRoom(str(where), 8 * BLOCK + own, 20 * BLOCK, 0)
    seen = (await stats(Runtime(), disk=room).observe())["nodefs.available"]
    capacity = seen.capacity - own if seen.capacity == room.bytes else seen.capacity
    assert (seen.available // BLOCK, capacity // BLOCK) == available


async def test_inodes_of_a_disk_are_those_that_were_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stats: Callable[..., HostStats]
) -> None:
    (tmp_path / "disk").mkdir()
    disk, memory = files(1000, 500, inodes=3, all_inodes=100), files(10, 10, inodes=40, all_inodes=50)
    monkeypatch.setattr(os, "statvfs", lambda path: disk if path == str(tmp_path / "disk") else memory)
    room = DiskRoom(str(tmp_path / "disk"), 8 * BLOCK, 20 * BLOCK, 30)
    seen = (await stats(Runtime(), disk=room).observe())["nodefs.inodesFree"]
    assert (seen.available, seen.capacity) == (3, 30)


async def test_an_empty_dir_on_disk_is_counted_where_it_is(tmp_path: Path, stats: Callable[..., HostStats]) -> None:
    write(tmp_path / "empty-dirs/u/data/file", 3)
    asks = pod("u", {"name": "data", "emptyDir": {}})
    usage = (await stats(Runtime(), empty_dirs=tmp_path / "empty-dirs").pod_usage([asks]))["u"]
    assert usage.volumes["data"].bytes == 3 * BLOCK
