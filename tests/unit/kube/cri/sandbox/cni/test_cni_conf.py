"""Which network a directory configures, and what is said of one that configures none."""

import json
from pathlib import Path

import pytest

from lastcall.kube.cri.sandbox.cni.conf import CNIConfigError, load, parse
from lastcall.kube.cri.sandbox.cni.network import check, conf_dir_of
from lastcall.kube.cri.sandbox.cni.versions import choose

LIST = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}


def write(directory: Path, name: str, value: object) -> None:
    (directory / name).write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.rule("node-semantics 22.2/cni")
def test_the_first_file_in_lexical_order_counts_whatever_its_kind(tmp_path: Path):
    write(tmp_path, "20-b.conflist", {**LIST, "name": "second"})
    write(tmp_path, "10-a.conf", {"cniVersion": "0.4.0", "name": "first", "type": "ptp"})
    write(tmp_path, "00-notes.txt", "not a configuration")
    found = load(str(tmp_path))
    assert (found.name, found.versions, found.plugins) == ("first", ("0.4.0",), ({
        "cniVersion": "0.4.0", "name": "first", "type": "ptp"},))  # fmt: skip


def test_a_first_file_that_is_wrong_is_not_passed_over(tmp_path: Path):
    write(tmp_path, "10-a.conflist", "{")
    write(tmp_path, "20-b.conflist", LIST)
    with pytest.raises(CNIConfigError, match=r"10-a\.conflist is not JSON"):
        load(str(tmp_path))


def test_an_empty_directory_says_what_has_to_be_there(tmp_path: Path):
    with pytest.raises(CNIConfigError, match=r"no network config found in .*: cni plugin not initialized; a file \*"):
        load(str(tmp_path))
    with pytest.raises(CNIConfigError, match="cannot be read: No such file"):
        load(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("a.conflist", [], "a JSON object was expected, not a list"),
        ("a.conflist", {**LIST, "name": ""}, 'name: "" is not letters'),
        ("a.conflist", {**LIST, "name": "../up"}, 'name: "../up" is not letters'),
        ("a.conflist", {**LIST, "plugins": []}, r"plugins: a list with at least one plugin was expected, not \[\]"),
        ("a.conflist", {**LIST, "plugins": [{"type": "bridge"}, {}]}, r"plugins\[1\].type: nothing is not the name"),
        ("a.conflist", {**LIST, "plugins": [{"type": "/bin/sh"}]}, r'plugins\[0\].type: "/bin/sh" is not the name'),
        ("a.conflist", {**LIST, "plugins": [7]}, r"plugins\[0\]: a JSON object was expected, not a number"),
        ("a.conflist", {**LIST, "cniVersion": "9.9.9"}, r'cniVersion: "9.9.9" is none of 0.1.0, .*1\.1\.0'),
        ("a.conflist", {**LIST, "cniVersion": 1}, "cniVersion: a version in quotes was expected, not 1"),
        ("a.conflist", {**LIST, "cniVersions": "1.0.0"}, "cniVersions: a list of versions was expected"),
        ("a.conflist", {**LIST, "disableGC": 3}, "disableGC: true or false was expected, not 3"),
        ("a.conf", LIST, r"type: is missing; a list of plugins belongs in a file named \*.conflist"),
        ("a.json", {"name": "n", "type": "x", "capabilities": {"mac": 1}}, "capabilities: names with true or false"),
    ],
)
def test_what_is_wrong_names_file_and_field(name: str, value: object, said: str):
    with pytest.raises(CNIConfigError, match=f"/etc/cni/{name}:? ?.*{said}"):
        parse(json.dumps(value).encode(), f"/etc/cni/{name}")


def test_a_list_may_offer_several_versions():
    found = parse(json.dumps({**LIST, "cniVersions": ["0.4.0", "1.1.0", "7.0.0"]}).encode(), "a.conflist")
    assert found.versions == ("1.1.0", "1.0.0", "0.4.0")
    assert parse(b'{"name":"n","plugins":[{"type":"x"}]}', "a.conflist").versions == ("0.1.0",)


def test_the_newest_version_that_all_plugins_support_is_spoken():
    assert choose(("0.4.0", "1.0.0", "1.1.0"), [["0.4.0", "1.0.0"], ["1.0.0", "1.1.0"]]) == "1.0.0"
    assert choose(("1.1.0", "1.0.0"), [["0.3.1"]]) == "1.1.0", "the plugin says what it supports"


def test_a_node_has_its_own_directory_where_there_is_one(tmp_path: Path):
    (tmp_path / "node-2").mkdir()
    assert conf_dir_of(str(tmp_path), "node-1") == str(tmp_path)
    assert conf_dir_of(str(tmp_path), "node-2") == str(tmp_path / "node-2")


def test_a_plugin_that_is_not_there_is_told_before_anything_starts(tmp_path: Path):
    with_ipam = {"type": "bridge", "ipam": {"type": "host-local"}}
    write(tmp_path, "a.conflist", LIST)
    (tmp_path / "bridge").write_text("#!/bin/sh\n")
    (tmp_path / "bridge").chmod(0o755)
    with pytest.raises(CNIConfigError, match=r'a\.conflist: failed to find plugin "portmap" in path \[.*\]'):
        check(str(tmp_path), (str(tmp_path),))
    write(tmp_path, "a.conflist", {**LIST, "plugins": [with_ipam]})
    with pytest.raises(CNIConfigError, match=r'a\.conflist: failed to find plugin "host-local" in path'):
        check(str(tmp_path), (str(tmp_path),))
    write(tmp_path, "a.conflist", {**LIST, "plugins": [{"type": "bridge", "ipam": {}}]})
    assert check(str(tmp_path), (str(tmp_path),)).name == "net"
