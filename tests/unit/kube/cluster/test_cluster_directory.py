"""The directory of a staying cluster: where it is, whose it is, and who holds it."""

import os
import stat
from pathlib import Path

import pytest

from lastcall.kube.cluster import directory as module
from lastcall.kube.cluster.directory import ClusterDirectory, check_name, names, places
from lastcall.kube.cluster.errors import ClusterUsageError, DirectoryError


@pytest.fixture
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("name", ["a", "lastcall", "a-1", "0", "x" * 63])
def test_a_name_is_a_dns_label(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a/b", "..", "a b", "ä", "x" * 64, "a\n"])
def test_other_names_are_refused_with_what_a_name_may_be(name: str) -> None:
    with pytest.raises(ClusterUsageError, match="at most 63 lower-case letters"):
        check_name(name)


def test_the_place_is_xdg_state_home_and_nothing_else_when_it_is_set() -> None:
    env = {"XDG_STATE_HOME": "/var/state", "HOME": "/root", "XDG_RUNTIME_DIR": "/run/user/0"}
    assert places(env) == ["/var/state/lastcall"]


def test_a_relative_xdg_path_is_ignored_as_the_specification_has_it() -> None:
    env = {"XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run", "HOME": "/"}
    assert places(env) == ["//.local/state/lastcall", f"/tmp/lastcall-{os.geteuid()}"]


def test_without_home_the_user_database_names_one() -> None:
    first, last = places({})[0], places({})[-1]
    assert first.endswith("/.local/state/lastcall") and last == f"/tmp/lastcall-{os.geteuid()}"


def test_under_sudo_root_does_not_write_into_the_user_s_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(module.os, "stat", lambda path: os.stat_result((0o40700, 1, 1, 2, 1000, 1000, 0, 0, 0, 0)))
    assert str(tmp_path) not in places({"HOME": str(tmp_path)})[0]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_are_0700_and_0600_whatever_the_umask(state_home: Path, umask: int) -> None:
    state_home.mkdir()
    old = os.umask(umask)
    try:
        with ClusterDirectory.make("one") as made:
            assert made.lock()
            made.write("kubeconfig", "secret")
    finally:
        os.umask(old)
    assert mode(state_home / "lastcall") == mode(state_home / "lastcall/one") == 0o700
    assert mode(state_home / "lastcall/one/kubeconfig") == mode(state_home / "lastcall/one/lock") == 0o600


def test_a_directory_that_others_could_read_is_closed_to_them(state_home: Path) -> None:
    (state_home / "lastcall/one").mkdir(parents=True)
    for path in (state_home / "lastcall", state_home / "lastcall/one"):
        path.chmod(0o755)
    ClusterDirectory.make("one").close()
    assert mode(state_home / "lastcall") == mode(state_home / "lastcall/one") == 0o700


@pytest.mark.parametrize("where", ["lastcall", "lastcall/one"])
def test_a_symbolic_link_in_place_of_a_directory_is_refused(state_home: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (state_home / where).parent.mkdir(parents=True)
    (state_home / where).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DirectoryError, match="symbolic link: remove it, or set XDG_STATE_HOME"):
        ClusterDirectory.make("one")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["kubeconfig", "front.json"])
def test_a_symbolic_link_in_place_of_a_file_is_replaced_and_never_written_through(
    state_home: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "target"
    target.write_text("untouched")
    with ClusterDirectory.make("one") as made:
        (state_home / "lastcall/one" / name).symlink_to(target)
        made.write(name, "new")
        assert made.read(name) == "new"
    assert target.read_text() == "untouched"


def test_a_lock_that_is_a_symbolic_link_is_not_followed(state_home: Path, tmp_path: Path) -> None:
    with ClusterDirectory.make("one") as made:
        (state_home / "lastcall/one/lock").symlink_to(tmp_path / "made")
        with pytest.raises(OSError, match="symbolic"):
            made.lock()
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of somebody else")
def test_a_directory_of_another_user_is_refused_by_name_and_uid(state_home: Path) -> None:
    (state_home / "lastcall").mkdir(parents=True)
    os.chown(state_home / "lastcall", 1234, 1234)
    with pytest.raises(DirectoryError, match="belongs to uid 1234 and this is uid 0"):
        ClusterDirectory.make("one")


def test_a_place_below_a_file_is_said_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert ClusterDirectory.find("one") is None and names() == []
    with pytest.raises(DirectoryError, match=f"{tmp_path}/file/lastcall.*set XDG_STATE_HOME to a directory"):
        ClusterDirectory.make("one")


def test_one_lock_at_a_time_and_it_comes_back_with_the_last_descriptor(state_home: Path) -> None:
    with ClusterDirectory.make("one") as first, ClusterDirectory.make("one") as second:
        assert first.lock() and not second.lock()
        first.close()
        assert second.lock()


@pytest.mark.loopback
def test_a_fork_holds_the_lock_too(state_home: Path) -> None:
    read, write = os.pipe()
    first = ClusterDirectory.make("one")
    assert first.lock()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    first.close()
    with ClusterDirectory.make("one") as second:
        assert not second.lock(), "a role of the cluster still lives"
        os.close(write)
        os.waitpid(pid, 0)
        assert second.lock()
    os.close(read)


def test_who_waited_for_the_lock_of_a_removed_directory_does_not_get_it(state_home: Path) -> None:
    first, second = ClusterDirectory.make("one"), ClusterDirectory.make("one")
    assert first.lock()
    first.remove()
    first.close()
    assert not second.lock(), "a lock in a directory that nobody finds is none"
    second.close()
    with ClusterDirectory.make("one") as third:
        assert third.lock()


def test_looking_makes_nothing(state_home: Path) -> None:
    assert ClusterDirectory.find("one") is None and names() == []
    assert not state_home.exists()
    with ClusterDirectory.make("one") as made:
        assert not made.lock(make=False)
        assert names() == ["one"] and list((state_home / "lastcall/one").iterdir()) == []


def test_removing_leaves_nothing_but_the_others(state_home: Path) -> None:
    with ClusterDirectory.make("one") as one, ClusterDirectory.make("two") as two:
        assert one.lock() and two.lock()
        one.write("kubeconfig", "x")
        one.remove()
        assert names() == ["two"]
        two.remove()
    assert list(state_home.iterdir()) == []


def test_facts_of_a_torn_or_foreign_file_are_none(state_home: Path) -> None:
    with ClusterDirectory.make("one") as made:
        assert made.facts() == {}
        for text in ("{", "[1]", "\x00"):
            made.write("front.json", text)
            assert made.facts() == {}
        made.write("front.json", '{"pid": 7}')
        assert made.facts() == {"pid": 7}
