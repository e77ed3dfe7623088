"""Files of a cluster's directories that are cut off after any byte, or have a changed one: clear words."""

import json
import os
from pathlib import Path

import pytest
from damage import changed, cut

from lastcall.kube.client.kubeconfig import KubeconfigError, load_kubeconfig, render_kubeconfig
from lastcall.kube.cluster.errors import ClusterUsageError, NewerVersion
from lastcall.kube.cluster.staying.credentials import Identity
from lastcall.kube.cluster.staying.state import StateDirectory

IDENTITY = Identity(b"-----BEGIN CERTIFICATE-----\nMIIB\n", b"ca key", b"account key", "token-1")


def test_a_damaged_version_is_refused_by_its_name(tmp_path: Path) -> None:
    StateDirectory.open(str(tmp_path)).close()
    file = tmp_path / "version.json"
    whole = file.read_bytes()
    for data in (*cut(whole.rstrip()), *changed(whole)):
        file.write_bytes(data)
        refused = ""
        try:
            StateDirectory.open(str(tmp_path)).close()
        except (ClusterUsageError, NewerVersion) as error:
            refused = str(error)
        if refused:
            assert str(file) in refused and "--state" in refused
        else:
            assert json.loads(data.decode(errors="replace"))["version"] == 1, data
        # A migration that a changed number asks for would have written it.
        file.write_bytes(whole)


def test_damaged_credentials_are_refused_and_never_taken_for_others(tmp_path: Path) -> None:
    state = StateDirectory.open(str(tmp_path))
    state.keep_credentials(IDENTITY, 4711)
    file = tmp_path / "credentials.json"
    whole = file.read_bytes()
    refused = 0
    for data in (*cut(whole.rstrip()), *changed(whole)):
        file.write_bytes(data)
        text = ""
        try:
            found = state.credentials()
        except ClusterUsageError as error:
            text = str(error)
        if text:
            assert text.startswith(f"{file} cannot be understood") and "restore it from a copy" in text
            refused += 1
        else:
            assert found == (IDENTITY, 4711) or b'"checksum"' not in data, data
    assert refused > 1.9 * len(whole)
    file.write_bytes(whole)
    assert state.credentials() == (IDENTITY, 4711)
    state.close()


def test_credentials_of_before_there_were_checksums_are_read(tmp_path: Path) -> None:
    state = StateDirectory.open(str(tmp_path))
    state.keep_credentials(IDENTITY, 4711)
    file = tmp_path / "credentials.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    file.write_text(json.dumps(content))
    assert state.credentials() == (IDENTITY, 4711)
    state.close()


def test_the_facts_of_a_front_that_were_cut_off_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lastcall.kube.cluster.control.socket import what_is_left
    from lastcall.kube.cluster.directory import ClusterDirectory

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    os.makedirs(tmp_path / "lastcall/one", 0o700)
    os.chmod(tmp_path / "lastcall", 0o700)
    directory = ClusterDirectory.find("one")
    assert directory is not None
    with directory:
        directory.write("front.log", "a line\n")
        whole = json.dumps({"pid": 7, "server": "https://127.0.0.1:1", "protocol": 1}).encode()
        for data in (*cut(whole), *changed(whole)):
            (tmp_path / "lastcall/one/front.json").write_bytes(data)
            assert isinstance(directory.facts(), dict)
            what_is_left(directory)
        (tmp_path / "lastcall/one/front.json").write_bytes(whole)
        assert directory.facts()["pid"] == 7


def test_a_damaged_kubeconfig_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    whole = render_kubeconfig("test", "https://127.0.0.1:6443", b"-----BEGIN CERTIFICATE-----\n", token="t").encode()
    for data in (*cut(whole), *changed(whole)):
        file.write_bytes(data)
        text = ""
        try:
            load_kubeconfig(str(file))
        except KubeconfigError as error:
            text = str(error)
        assert not text or str(file) in text or "server" in text
