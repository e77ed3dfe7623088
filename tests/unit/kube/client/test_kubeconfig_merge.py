"""A cluster's entries in the user's own kubeconfig."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from lastcall.kube.client import kubeconfig_merge
from lastcall.kube.client.kubeconfig import KubeconfigError, load_kubeconfig, render_kubeconfig
from lastcall.kube.client.kubeconfig_merge import merge, unmerge, users_kubeconfig

OTHER = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "other", "cluster": {"server": "https://other:6443"}}],
    "users": [{"name": "me", "user": {"exec": {"command": "login"}}}],
    "contexts": [{"name": "other", "context": {"cluster": "other", "user": "me", "namespace": "shop"}}],
    "current-context": "other",
}


def own(port: int = 1) -> dict[str, Any]:
    text = render_kubeconfig("web", f"https://127.0.0.1:{port}", b"ca", token="secret")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(OTHER))
    return path


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def test_what_others_wrote_stays_when_a_cluster_comes_and_goes(file: Path) -> None:
    merge(file, "web", own())
    assert read(file)["current-context"] == "lastcall-web"
    assert unmerge(file, "web")
    assert read(file) == {**OTHER, "current-context": ""}
    assert not unmerge(file, "web")
    assert list(file.parent.iterdir()) == [file]


def test_clients_find_the_cluster_under_its_context(file: Path) -> None:
    merge(file, "web", own(7))
    assert load_kubeconfig(str(file)).server == "https://127.0.0.1:7"
    assert load_kubeconfig(str(file), "lastcall-web").token == "secret"


def test_a_new_start_replaces_what_the_last_one_left(file: Path) -> None:
    merge(file, "web", own(1))
    merge(file, "web", own(2))
    assert [each["name"] for each in read(file)["contexts"]] == ["other", "lastcall-web"]
    assert load_kubeconfig(str(file)).server == "https://127.0.0.1:2"


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "kube" / "config"
    assert not unmerge(path, "web")
    merge(path, "web", own())
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_kubeconfig(str(path)).token == "secret"


def test_a_link_stays_a_link(file: Path) -> None:
    link = file.parent / "link"
    link.symlink_to(file)
    merge(link, "web", own())
    assert link.is_symlink() and len(read(file)["contexts"]) == 2


@pytest.mark.parametrize("text", ["[", "- a list", "clusters: {}\ncontexts: 3", "clusters: [1]"])
def test_a_file_that_is_no_kubeconfig_is_left_alone(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(KubeconfigError, match=str(file)):
        merge(file, "web", own())
    assert file.read_text() == text
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.loopback
def test_many_at_once_lose_nothing(file: Path) -> None:
    threads = [threading.Thread(target=merge, args=(file, f"c{number}", own(number))) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {each["name"] for each in read(file)["contexts"]} == {"other", *(f"lastcall-c{n}" for n in range(8))}


@pytest.mark.loopback
def test_kubectl_s_lock_is_waited_for_and_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig_merge, "LOCK_SECONDS", 0.1)
    lock = file.with_name("config.lock")
    lock.touch()
    with pytest.raises(KubeconfigError, match=r"config\.lock is there for more than 0\.1 s"):
        merge(file, "web", own())
    os.utime(lock, (1, 1))  # of a process that was killed
    merge(file, "web", own())
    assert not lock.exists()


def test_the_first_file_that_exists_is_the_user_s(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{file.parent / 'nothing'}:{file}:{file.parent / 'more'}")
    assert users_kubeconfig() == file
    assert users_kubeconfig("/elsewhere") == Path("/elsewhere")
