"""node-semantics 4.6, kubelet_volumes.go: directories of Pods that nobody knows, with what is mounted there."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastcall.kube.node.volumes.orphans import mounts_below, orphaned, take_down, tell, unmount_below
from lastcall.world import linux

MOUNTINFO = rb"""1 0 0:1 / / rw - ext4 /dev/vda rw
2 1 0:2 / /pods/a rw - tmpfs t rw
3 2 0:3 / /pods/a/volumes/x rw - tmpfs t rw
4 1 0:4 / /pods/ab rw - tmpfs t rw
5 2 0:5 / /pods/a/with\040space\134\303\244 rw - tmpfs t rw
"""

in_a_mount_namespace = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


def test_mounts_of_one_directory_the_last_one_first() -> None:
    assert mounts_below("/pods/a", MOUNTINFO) == ["/pods/a/with space\\ä", "/pods/a/volumes/x", "/pods/a"]
    assert mounts_below("/pods/c", MOUNTINFO) == []


@pytest.fixture
def mounted() -> Iterator[None]:
    """In a mount namespace of its own (this thread's): other tests look at the machine's mounts meanwhile."""
    machine, directory = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY), os.getcwd()
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    yield
    linux.setns(machine, linux.CLONE_NEWNS)
    os.close(machine)
    os.chdir(directory)


def bind(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    linux.mount(str(source), str(target), None, linux.MS_BIND)


@pytest.mark.real_kernel
@in_a_mount_namespace
@pytest.mark.usefixtures("mounted")
def test_an_orphan_goes_with_its_mounts_and_nothing_of_what_was_mounted_there(tmp_path: Path) -> None:
    pods, host = tmp_path / "pods", tmp_path / "host"
    (host / "deep").mkdir(parents=True)
    (host / "deep" / "precious").touch()
    orphan = pods / "u1"
    memory = orphan / "volumes" / "kubernetes.io~empty-dir" / "cache"
    memory.mkdir(parents=True)
    linux.mount("tmpfs", str(memory), "tmpfs")
    (memory / "file").touch()
    bind(host, orphan / "volume-subpaths" / "v" / "app" / "0")
    bind(host / "deep", orphan / "volume-subpaths" / "v ä" / "app" / "1")
    (orphan / "link").symlink_to(host)
    (pods / "u2").mkdir()
    assert orphaned(str(pods), {"u2"}) == ["u1"]
    assert take_down(str(pods), "u1") == ""
    assert os.listdir(pods) == ["u2"]
    assert (host / "deep" / "precious").exists()
    assert mounts_below(str(tmp_path)) == []


@pytest.mark.real_kernel
@in_a_mount_namespace
@pytest.mark.usefixtures("mounted")
def test_what_stays_mounted_is_never_emptied_and_told_in_the_kubelet_s_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = tmp_path / "host"
    host.mkdir()
    (host / "precious").touch()
    bind(host, tmp_path / "pods" / "u1" / "volume-subpaths" / "v" / "app" / "0")
    with monkeypatch.context() as patched:
        patched.setattr("lastcall.kube.node.volumes.orphans.unmount_below", lambda path: None)
        error = take_down(str(tmp_path / "pods"), "u1")
    assert error.startswith('orphaned pod "u1" found, but failed to rmdir() volume at path ')
    assert (host / "precious").exists()
    assert take_down(str(tmp_path / "pods"), "u1") == ""
    assert (host / "precious").exists()


def test_a_link_in_the_place_of_a_pod_is_removed_itself(tmp_path: Path) -> None:
    pods, host = tmp_path / "pods", tmp_path / "host"
    pods.mkdir()
    host.mkdir()
    (host / "precious").touch()
    (pods / "u1").symlink_to(host)
    assert take_down(str(pods), "u1") == ""
    assert (os.listdir(pods), os.listdir(host)) == ([], ["precious"])


def test_a_mount_that_does_not_go_is_an_error_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(point: str, flags: int) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr("lastcall.kube.node.volumes.orphans.mounts_below", lambda directory: ["/pods/u1/volumes/x"])
    monkeypatch.setattr(linux, "umount2", refuse)
    with pytest.raises(OSError, match="/pods/u1/volumes/x"):
        unmount_below("/pods/u1")
    assert take_down("/pods", "u1") == (
        'orphaned pod "u1" found, but failed to rmdir() volume at path /pods/u1/volumes/x: device or resource busy'
    )


def test_many_errors_are_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        tell(["one", "two"])
        tell([])
    assert caplog.messages == ["one. There were a total of 2 errors similar to this. Turn up verbosity to see them."]
