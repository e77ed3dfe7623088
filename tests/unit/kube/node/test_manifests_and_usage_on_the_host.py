"""What the node reads of the host's file system for static Pods and evictions: hostile directories."""

import asyncio
import os
from pathlib import Path

import pytest

from lastcall.kube.node.eviction.decide import FileUsage, parse_thresholds
from lastcall.kube.node.eviction.host_stats import tree_usage
from lastcall.kube.node.static_pods import directory as manifest_directory
from lastcall.kube.node.static_pods.decide import MAX_BYTES, ManifestError
from lastcall.kube.node.static_pods.directory import HostManifestDirectory
from lastcall.kube.node.static_pods.manifest import read_manifest


def read(directory: HostManifestDirectory) -> dict[str, bytes | str]:
    return asyncio.run(directory.read())


def test_only_regular_files_of_the_directory_itself_are_read(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_bytes(b"a")
    (tmp_path / ".hidden.yaml").write_bytes(b"b")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pod.yaml")
    no = "it is not a regular file"
    assert read(HostManifestDirectory(str(tmp_path))) == {
        "directory": no, "link": no, "pipe": no, "pod.yaml": b"a",
    }  # fmt: skip


def test_a_changed_file_is_read_again_and_a_directory_that_is_gone_is_empty(tmp_path: Path) -> None:
    directory = HostManifestDirectory(str(tmp_path / "d"))
    assert read(directory) == {}
    (tmp_path / "d").mkdir()
    file = tmp_path / "d/pod.yaml"
    file.write_bytes(b"one")
    assert read(directory) == read(directory) == {"pod.yaml": b"one"}
    file.write_bytes(b"two")
    assert read(directory) == {"pod.yaml": b"two"}
    file.unlink()
    assert read(directory) == {}


def test_too_many_and_too_big_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_directory, "MAX_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * (MAX_BYTES + 100))
    found = read(HostManifestDirectory(str(tmp_path)))
    assert found["c"] == "a node reads 2 files" and len(found["a"]) == MAX_BYTES + 1
    assert isinstance(found["a"], bytes)
    with pytest.raises(ManifestError, match="more than"):
        read_manifest(found["a"], path="a", node_name="n", seen="")


def test_usage_counts_blocks_once_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/file").write_bytes(b"x" * 8192)
    os.link(tmp_path / "d/file", tmp_path / "again")
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "up").symlink_to("/")
    usage = tree_usage(tmp_path)
    assert usage.inodes == 4 and 8192 <= usage.bytes < 1 << 20
    assert tree_usage(tmp_path / "nothing") == FileUsage()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (({"memory.free": "1Mi"},), "unknown eviction signal 'memory.free'"),
        (({"memory.available": "110%"},), "at most 100%"),
        (({"memory.available": "-1Mi"},), "must be positive"),
        (({}, {"memory.available": "1Mi"}), "grace period must be specified"),
    ],
)
def test_bad_thresholds_are_named(arguments: tuple, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        parse_thresholds(*arguments)
