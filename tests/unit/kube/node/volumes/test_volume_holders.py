"""Who keeps a volume's mount busy."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.node.volumes.holders import Holder, holders_of, mounts_under
from lastcall.kube.node.volumes.manager import HostVolumeManager
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


@pytest.mark.loopback
def test_a_process_with_an_open_file_or_its_working_directory_there_is_named(tmp_path: Path) -> None:
    place = tmp_path / "volume"
    place.mkdir()
    (place / "log").write_text("")
    script = "import sys; file = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", script, str(place / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (holder,) = holders_of(str(place))
        assert (holder.pid, holder.how, holder.path) == (process.pid, "open file", str(place / "log"))
        assert holder.name
    before = Path.cwd()
    try:
        os.chdir(place)
        assert [(each.pid, each.how) for each in holders_of(str(place))] == [(os.getpid(), "working directory")]
    finally:
        os.chdir(before)
    assert holders_of(str(place)) == []


def test_mounts_under_it_are_found_whatever_their_names_look_like() -> None:
    text = (
        "30 1 0:1 / /pods/u/v rw - tmpfs x rw\n"
        "31 30 0:2 / /pods/u/v/with\\040space rw - tmpfs x rw\n"
        "32 1 0:3 / /pods/u/v2 rw - tmpfs x rw\n"
        "short\n"
    )
    assert mounts_under("/pods/u/v", text) == ["/pods/u/v/with space"]
    assert mounts_under("/elsewhere", text) == []


def test_a_process_of_another_mount_namespace_does_not_count(tmp_path: Path) -> None:
    for pid, namespace in (("self", "mnt:[1]"), ("7", "mnt:[1]"), ("8", "mnt:[2]")):
        (tmp_path / pid / "ns").mkdir(parents=True)
        (tmp_path / pid / "ns/mnt").symlink_to(namespace)
        (tmp_path / pid / "cwd").symlink_to("/v/sub")
        (tmp_path / pid / "comm").write_text("tail\n")
    assert holders_of("/v", tmp_path) == [Holder(7, "tail", "working directory", "/v/sub")]


class Records:
    def __init__(self) -> None:
        self.found: list[tuple[str, dict[str, Any]]] = []

    def record(self, kind: str, *, facts: dict[str, Any] | None = None, **more: Any) -> str:
        self.found.append((kind, facts or {}))
        return ""


async def test_a_busy_volume_is_told_with_who_holds_it_and_the_pod_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = tmp_path / "pods/u1/volumes/kubernetes.io~empty-dir/cache"
    volume.mkdir(parents=True)
    records, busy = Records(), [True]

    def umount2(target: str, flags: int = 0) -> None:
        if busy:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr("lastcall.kube.node.volumes.manager.linux.umount2", umount2)
    monkeypatch.setattr(Path, "is_mount", lambda self: self == volume)
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u1"}, "spec": {"containers": []}}
    async with Tasks() as tasks:
        manager = HostVolumeManager(
            world=World(),
            tasks=tasks,
            client=None,  # type: ignore[arg-type]
            events=None,  # type: ignore[arg-type]
            recorder=records,  # type: ignore[arg-type]
            root=tmp_path,
            node_name="node-1",
        )
        with (volume / "log").open("w"), pytest.raises(OSError, match="busy"):
            await manager.wait_for_unmount(pod)
        ((kind, facts),) = records.found
        assert (kind, facts["volume"], facts["more"]) == ("VolumeBusy", "cache", 0)
        (holder,) = facts["holders"]
        assert (holder["pid"], holder["how"], holder["path"]) == (os.getpid(), "open file", str(volume / "log"))
        busy.clear()
        monkeypatch.setattr(Path, "is_mount", lambda self: False)
        await manager.wait_for_unmount(pod)
        assert not volume.exists()
        tasks.cancel()
