"""The directory on disk of one cluster: made, locked, found by the next start, removed whatever is in it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cluster.scratch import directory
from lastcall.kube.cluster.scratch.directory import Scratch, claim
from lastcall.kube.cluster.scratch.suitable import DISKS, Disk

pytestmark = pytest.mark.loopback

SIZE = 1 << 20
DISK = Disk(next(iter(DISKS)), 5 << 30, 77)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the directories are; the file system of the tests counts as a disk."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(directory, "look", lambda fd: DISK)
    yield tmp_path / "lastcall/scratch"
    assert list(tmp_path.iterdir()) == [], "nothing stays"


def claimed(name: str = "one", size: int = SIZE) -> Scratch:
    made, why = claim(name, size, mapped=False)
    assert made is not None, why
    return made


def test_it_is_its_owner_s_alone_and_gone_after_the_end(place: Path) -> None:
    made = claimed()
    assert made.path == str(place / "one")
    for path in (place, place / "one"):
        assert path.stat().st_mode & 0o777 == 0o700
    (place / "one/files/written").write_text("x")
    made.remove()
    made.remove()


def test_it_may_have_no_more_than_was_free(place: Path) -> None:
    made, larger = claimed(), claimed("two", 100 << 30)
    assert (made.bytes, made.free) == (SIZE, (5 << 30, 77))
    assert larger.bytes == 5 << 30
    made.remove()
    larger.remove()


def test_a_directory_that_is_held_stays_and_one_that_is_not_goes_with_the_next_start(place: Path) -> None:
    held = claimed("held")
    script = "from lastcall.kube.cluster.scratch import directory as d; import os\n"
    script += f"d.look = lambda fd: d.Disk({DISK.kind}, 5 << 30, 7)\n"
    script += "made, _ = d.claim('killed', 1, mapped=False)\nos.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script], check=False)
    (place / "killed/files/deep/er").mkdir(parents=True)
    (place / "half-made").mkdir()
    assert sorted(os.listdir(place)) == ["half-made", "held", "killed"]
    second = claimed("second")
    assert sorted(os.listdir(place)) == ["held", "second"]
    held.remove()
    assert os.listdir(place) == ["second"]
    second.remove()


def test_the_lock_is_held_as_long_as_a_fork_lives(place: Path) -> None:
    made = claimed()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    for fd in (made._fd, made._lock, made._place):
        os.close(fd)  # as if front had been killed
    claimed("two").remove()
    assert os.listdir(place) == ["one"]
    os.close(write)
    os.waitpid(pid, 0)
    claimed("three").remove()
    os.close(read)


def test_no_link_of_a_container_is_followed(place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    made = claimed()
    (place / "one/files/link").symlink_to(outside)
    (place / "one/files/dir").mkdir()
    (place / "one/files/dir/up").symlink_to("../../../../../outside")
    made.remove()
    assert (outside / "kept").is_dir()
    (outside / "kept").rmdir()
    outside.rmdir()


def test_a_directory_of_another_user_or_a_link_is_not_used(place: Path, tmp_path: Path) -> None:
    place.parent.mkdir()
    place.symlink_to(tmp_path)
    made, why = claim("one", SIZE, mapped=False)
    assert made is None
    assert str(place) in why
    place.unlink()
    place.parent.rmdir()


def test_where_no_disk_is_the_reason_is_named_and_nothing_is_made(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "look", lambda fd: Disk(0x6969, 5 << 30, 77))
    assert claim("one", SIZE, mapped=False) == (None, f"{place}: its file system is NFS")


def test_where_owners_cannot_be_mapped_and_pods_need_that_nothing_is_made(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "why_not_id_mapped", lambda path: "Invalid argument")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    made, why = claim("one", SIZE, mapped=True)
    assert made is None
    assert "owners of files cannot be mapped there (Invalid argument)" in why
    made, _ = claim("one", SIZE, mapped=False)
    assert made is not None
    assert not made.maps_owners
    made.remove()


def test_what_the_removed_leftovers_held_counts_as_free(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "left/files").mkdir(parents=True)
    monkeypatch.setattr(directory, "look", lambda fd: Disk(DISK.kind, 0 if (place / "left").exists() else 5 << 30, 77))
    claimed().remove()


def test_nothing_is_held_where_leftovers_cannot_be_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> list[str]:
        raise OSError(5, "Input/output error")

    before = sorted(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(directory, "_leftovers", refuse)
        made, why = claim("one", SIZE, mapped=False)
    assert (made, why) == (None, "[Errno 5] Input/output error")
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert not (place / "one").exists()


@pytest.mark.parametrize("call", ["makedirs", "mkdir", "open"])
def test_a_directory_that_another_process_removes_meanwhile_is_made_anew(
    place: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Each of the calls that make and open it returns once to a place that is gone."""
    real, left = getattr(os, call), [1]

    def removed_after(path: Any, *more: Any, **named: Any) -> Any:
        result = real(path, *more, **named)
        if left and str(path) in (str(place), str(place.parent)):
            left.clear()
            for each in (place, place.parent):
                with suppress(FileNotFoundError):
                    each.rmdir()
        return result

    monkeypatch.setattr(os, call, removed_after)
    claimed().remove()
    assert not left


def test_a_home_that_is_removed_while_it_is_found_is_made_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """os.makedirs finds it, and no directory when it looks again."""
    real, left = os.makedirs, [FileExistsError(17, "File exists")]

    def found_and_gone(*arguments: Any, **named: Any) -> None:
        if left:
            raise left.pop()
        real(*arguments, **named)

    monkeypatch.setattr(os, "makedirs", found_and_gone)
    claimed().remove()
    assert not left


def test_a_file_in_the_place_of_the_home_is_named(place: Path) -> None:
    place.parent.write_text("")
    made, why = claim("one", SIZE, mapped=False)
    assert made is None
    assert str(place.parent) in why
    place.parent.unlink()
