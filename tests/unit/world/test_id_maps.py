"""Which ids a new user namespace gets, with programs that do not do what they should."""

import os
from pathlib import Path

import pytest

from lastcall.world import id_maps
from lastcall.world.id_maps import _map_range, subordinate_range


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("other:1:2\n4711:100000:65536\n", (100000, 65536)),
        ("4711:x:5\n4711:7:0\n", None),
        ("", None),
        ("4711\n4711:\n:1:2\n4711:5:6:7\n4711:8:9\n", (8, 9)),
    ],
)
def test_subordinate_ranges_are_read_and_nonsense_is_skipped(tmp_path, text, expected):
    path = tmp_path / "subuid"
    path.write_text(text)
    assert subordinate_range(str(path), 4711) == expected
    assert subordinate_range(str(tmp_path / "absent"), 4711) is None


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what the test puts there, and a range for everybody."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(id_maps, "subordinate_range", lambda path, uid: (100_000, 65_536))
    return tmp_path


def program(directory: Path, text: str) -> None:
    path = directory / "newuidmap"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.loopback
def test_a_missing_program_is_named(programs: Path) -> None:
    assert _map_range(1, "uid", 1000, 1000) == "newuidmap is not installed"


def test_a_user_without_a_range_is_told_which_file_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_maps, "subordinate_range", lambda path, uid: None)
    assert _map_range(1, "gid", 1000, 1000) == "/etc/subgid gives this user no range"


@pytest.mark.loopback
def test_what_the_program_says_is_handed_on_in_one_line(programs: Path) -> None:
    program(programs, "echo 'newuidmap: uid range [1-65537) -> [100000-165536)' >&2; echo 'not allowed' >&2; exit 1")
    expected = "newuidmap failed: newuidmap: uid range [1-65537) -> [100000-165536) not allowed"
    assert _map_range(1, "uid", 1000, 1000) == expected


@pytest.mark.loopback
def test_a_program_that_fails_silently_is_still_told_of(programs: Path) -> None:
    program(programs, "exit 3")
    assert _map_range(1, "uid", 1000, 1000) == "newuidmap failed: exit status 3"


@pytest.mark.loopback
def test_a_program_that_hangs_is_given_up(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_maps, "SECONDS", 0.2)
    program(programs, f"exec {_sleep()} 60")
    assert _map_range(1, "uid", 1000, 1000) == "newuidmap did not answer within 0.2 s"


@pytest.mark.loopback
def test_the_own_id_becomes_root_and_the_range_follows(programs: Path) -> None:
    program(programs, f'echo "$@" > {programs}/arguments')
    assert _map_range(77, "uid", 1000, 1000) == ""
    assert (programs / "arguments").read_text() == "77 0 1000 1 1 100000 65536\n"


def _sleep() -> str:
    return next(path for path in ("/bin/sleep", "/usr/bin/sleep") if os.path.exists(path))
