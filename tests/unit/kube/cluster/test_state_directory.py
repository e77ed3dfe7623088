"""`--state DIR`: versions, credentials, who may use it."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cluster.errors import ClusterUsageError, NewerVersion
from lastcall.kube.cluster.layout import layouts
from lastcall.kube.cluster.staying import state as module
from lastcall.kube.cluster.staying.credentials import Identity, issue_credentials
from lastcall.kube.cluster.staying.state import StateDirectory
from lastcall.world import files


def version_of(path: Path) -> dict[str, Any]:
    return json.loads((path / "version.json").read_text())


def set_version(path: Path, version: Any) -> None:
    (path / "version.json").write_text(json.dumps({**version_of(path), "version": version, "lastcall": "9.9.9"}))


@pytest.fixture
def used(tmp_path: Path) -> Path:
    StateDirectory.open(str(tmp_path / "state")).close()
    return tmp_path / "state"


def test_a_new_directory_is_made_with_its_version(used: Path) -> None:
    assert version_of(used)["version"] == module.VERSION and version_of(used)["created"] > 0
    assert stat.S_IMODE(used.stat().st_mode) == stat.S_IMODE((used / "durable").stat().st_mode) == 0o700
    assert stat.S_IMODE((used / "version.json").stat().st_mode) == 0o600


def test_an_empty_directory_will_do(tmp_path: Path) -> None:
    StateDirectory.open(str(tmp_path)).close()
    assert version_of(tmp_path)["version"] == module.VERSION


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ClusterUsageError, match=r"not empty \(thesis.tex\) and has no version.json.*name an empty"):
        StateDirectory.open(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.tex"]


def test_a_first_use_that_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("")
    (tmp_path / ".version.json.77").write_text("{")
    StateDirectory.open(str(tmp_path)).close()


def test_a_newer_version_is_refused_with_file_versions_and_the_way_out(used: Path) -> None:
    set_version(used, module.VERSION + 1)
    with pytest.raises(NewerVersion) as caught:
        StateDirectory.open(str(used))
    for words in (f"{used}/version.json", f"version {module.VERSION + 1}", "lastcall 9.9.9", "use the newer lastcall"):
        assert words in str(caught.value)
    assert version_of(used)["version"] == module.VERSION + 1, "nothing was touched"
    with pytest.raises(NewerVersion):
        StateDirectory.open(str(used))  # the lock was given back


def test_an_older_version_is_migrated_step_by_step(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    def migrate(step: str) -> Any:
        def run(fd: int) -> None:
            steps.append((step, version_of(used)["version"]))
            os.close(os.open(f"from-{step}", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))

        return run

    monkeypatch.setattr(module, "VERSION", 3)
    monkeypatch.setattr(module, "MIGRATIONS", {1: migrate("1"), 2: migrate("2")})
    created = version_of(used)["created"]
    state = StateDirectory.open(str(used))
    state.close()
    assert steps == [("1", 1), ("2", 2)] and (used / "from-2").exists()
    assert version_of(used)["version"] == 3 and version_of(used)["created"] == created
    assert state.notes == [f"{used} was migrated to version 2", f"{used} was migrated to version 3"]
    StateDirectory.open(str(used)).close()
    assert len(steps) == 2


def test_a_migration_that_fails_leaves_the_version_where_it_was(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "VERSION", 2)
    monkeypatch.setattr(module, "MIGRATIONS", {1: fail})
    with pytest.raises(OSError, match="No space left"):
        StateDirectory.open(str(used))
    assert version_of(used)["version"] == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "one"}', '{"version": true}', "{}", '{"version": -1}'])
def test_a_version_that_cannot_be_understood_is_no_reason_to_begin_anew(used: Path, text: str) -> None:
    (used / "version.json").write_text(text)
    with pytest.raises(ClusterUsageError, match=r"version.json cannot be understood.*restore it"):
        StateDirectory.open(str(used))
    assert (used / "version.json").read_text() == text


def test_a_version_older_than_all_that_can_be_migrated_is_refused(used: Path) -> None:
    set_version(used, 0)
    with pytest.raises(ClusterUsageError, match=r"version 0, which lastcall .* no longer reads"):
        StateDirectory.open(str(used))


def test_two_clusters_on_one_directory_are_refused(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOCK_SECONDS", 0.0)
    first = StateDirectory.open(str(used))
    with pytest.raises(ClusterUsageError, match="is in use by another cluster"):
        StateDirectory.open(str(used))
    first.close()
    StateDirectory.open(str(used)).close()


def test_a_link_to_a_directory_means_that_directory(used: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(used)
    state = StateDirectory.open(str(tmp_path / "link"))
    assert state.path == str(used) and state.durable == f"{used}/durable"
    state.close()


@pytest.mark.parametrize(("path", "words"), [("missing/state", "No such file"), ("file/state", "Not a directory"),
                                             ("file", "Not a directory")])  # fmt: skip
def test_a_directory_that_cannot_be_made_is_said_with_the_way_out(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterUsageError, match=f"--state {tmp_path}/{path}: {words}.*name a directory"):
        StateDirectory.open(str(tmp_path / path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of somebody else")
def test_a_directory_of_another_user_is_refused(used: Path) -> None:
    os.chown(used, 1234, 1234)
    with pytest.raises(ClusterUsageError, match=r"belongs to uid 1234 and this is uid 0: name a directory of your own"):
        StateDirectory.open(str(used))


def test_credentials_are_kept_with_mode_0600_and_certificates_are_issued_from_them_anew(used: Path) -> None:
    state = StateDirectory.open(str(used))
    identity, port = state.credentials()
    assert port == 0
    state.keep_credentials(identity, 40123)
    state.close()
    assert stat.S_IMODE((used / "credentials.json").stat().st_mode) == 0o600
    state = StateDirectory.open(str(used))
    assert state.credentials() == (identity, 40123)
    state.close()
    first, second = issue_credentials(identity, layouts(1)), issue_credentials(identity, layouts(1))
    assert first.ca_certificate == second.ca_certificate and first.admin_token == second.admin_token
    assert first.service_account_key == second.service_account_key
    assert first.api_server.certificate != second.api_server.certificate


def test_secrets_are_not_in_the_text_of_an_identity() -> None:
    identity = Identity.new()
    assert identity.admin_token not in repr(identity) and "PRIVATE" not in repr(identity)


@pytest.mark.parametrize("text", ["{", "{}", '{"caCertificate": 1}', "[]"])
def test_damaged_credentials_are_said_and_not_replaced(used: Path, text: str) -> None:
    (used / "credentials.json").write_text(text)
    state = StateDirectory.open(str(used))
    with pytest.raises(ClusterUsageError, match=r"credentials.json cannot be understood.*or remove it"):
        state.credentials()
    state.close()
    assert (used / "credentials.json").read_text() == text


def test_credentials_that_are_there_are_not_written_again(used: Path) -> None:
    state, identity = StateDirectory.open(str(used)), Identity.new()
    try:
        state.keep_credentials(identity, 6443)
        before = (used / "credentials.json").stat()
        state.keep_credentials(*state.credentials())
        assert (used / "credentials.json").stat().st_ino == before.st_ino
        state.keep_credentials(identity, 6444)
        assert state.credentials()[1] == 6444
    finally:
        state.close()


@pytest.mark.parametrize("name", ["version.json", "credentials.json"])
def test_a_file_that_cannot_be_written_is_named_with_its_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "state"
    state = StateDirectory.open(str(path)) if name == "credentials.json" else None
    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(OSError, match="No space left") as caught:
        StateDirectory.open(str(path)) if state is None else state.keep_credentials(Identity.new(), 6443)
    if state is not None:
        state.close()
    assert caught.value.filename == str(path / name)
