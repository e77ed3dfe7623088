"""The files that the kubelet writes for a Pod, the directories that it mounts, and the text of a Pod's fields."""

import os
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cri.api import DNSConfig
from lastcall.kube.node.interfaces import VolumeError
from lastcall.kube.node.volumes.atomic_writer import FileProjection, validate_path, write_payload
from lastcall.kube.node.volumes.claims import path_of
from lastcall.kube.node.volumes.downward import field_value, resource_value
from lastcall.kube.node.volumes.host_volumes import bytes_of, check_host_path, set_up_empty_dir
from lastcall.kube.node.volumes.pod_files import (
    ClusterDNS,
    dns_config_of,
    domain_of,
    hostname_of,
    hosts_file,
    parse_resolv_conf,
    resolv_conf,
)
from lastcall.kube.node.volumes.subpath import bind_sub_path, open_in_volume


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": "u"}, "spec": spec}


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("the_pod", "expected"),
    [
        (pod(), "p"),
        (pod(hostname="own"), "own"),
        (pod("x" * 63 + "y"), "x" * 63),
        (pod("x" * 62 + "-y"), "x" * 62),
        (pod("x" * 60 + ".-." + "y"), "x" * 60),
        (pod(hostname="own", hostNetwork=True), "node-1"),
        (pod(subdomain="sub"), "p"),
        (pod(setHostnameAsFQDN=True), "p"),
        (pod(setHostnameAsFQDN=True, subdomain="sub"), "p.sub.n.svc.cluster.local"),
    ],
)
def test_the_host_name_of_a_pod_is_a_label_of_dns_or_the_node_s(the_pod: dict[str, Any], expected: str) -> None:
    """kubelet_pods.go:GeneratePodHostNameAndDomain, truncatePodHostnameIfNeeded."""
    assert hostname_of(the_pod, "node-1") == expected


def test_a_domain_comes_with_a_subdomain_only() -> None:
    assert domain_of(pod(), "c.l") == ""
    assert domain_of(pod(subdomain="sub"), "c.l") == "sub.n.svc.c.l"


@pytest.mark.parametrize(
    ("spec", "ips", "lines"),
    [
        ({}, (), []),
        ({}, ("10.0.0.9", "fd00::9"), ["10.0.0.9\tp", "fd00::9\tp"]),
        ({"subdomain": "sub"}, ("10.0.0.9",), ["10.0.0.9\tp.sub.n.svc.c.l\tp"]),
        ({"subdomain": "sub", "setHostnameAsFQDN": True}, ("10.0.0.9",), ["10.0.0.9\tp.sub.n.svc.c.l\tp"]),
        ({"hostAliases": [{"ip": "1.2.3.4"}]}, (), ["", "# Entries added by HostAliases.", "1.2.3.4"]),
    ],
)
def test_the_hosts_file_names_each_address_of_the_pod(
    spec: dict[str, Any], ips: tuple[str, ...], lines: list[str]
) -> None:
    text = hosts_file(pod(**spec), ips, "node's\n", "c.l")
    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert text.endswith("\n") and text.splitlines()[7:] == lines


def test_host_aliases_follow_the_node_s_hosts_file_too() -> None:
    text = hosts_file(pod(hostNetwork=True, hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}]), (), "127.0.0.1 l\n")
    assert text.splitlines()[1:] == ["127.0.0.1 l", "", "# Entries added by HostAliases.", "1.2.3.4\ta"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", DNSConfig()),
        ("nameserver\nsearch\noptions\n", DNSConfig()),
        ("nameserver 1.1.1.1 # first\nnameserver 2.2.2.2;second\n", DNSConfig(("1.1.1.1", "2.2.2.2"))),
        ("# nameserver 1.1.1.1\n; nameserver 2.2.2.2\n", DNSConfig()),
        ("search a.b. c\nsearch d. .\n", DNSConfig((), ("d", "."))),
        ("options ndots:2 rotate\noptions edns0\n", DNSConfig((), (), ("ndots:2", "rotate", "edns0"))),
        ("domain x\nsortlist 1.1.1.1\n", DNSConfig()),
    ],
)
def test_resolv_conf_is_read_as_the_resolver_reads_it(text: str, expected: DNSConfig) -> None:
    """resolv.conf(5)."""
    assert parse_resolv_conf(text) == expected


CLUSTER = ClusterDNS(("10.96.0.10",), "c.l", "search node.x svc.c.l\nnameserver 1.1.1.1\noptions rotate\n")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {},
            DNSConfig(("10.96.0.10",), ("n.svc.c.l", "svc.c.l", "c.l", "node.x"), ("ndots:5",)),
        ),
        (
            {"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True},
            DNSConfig(("10.96.0.10",), ("n.svc.c.l", "svc.c.l", "c.l", "node.x"), ("ndots:5",)),
        ),
        ({"hostNetwork": True}, DNSConfig(("1.1.1.1",), ("node.x", "svc.c.l"), ("rotate",))),
        ({"dnsPolicy": "None"}, DNSConfig()),
        (
            {
                "dnsPolicy": "Default",
                "dnsConfig": {
                    "nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"],
                    "searches": ["own", "node.x"],
                    "options": [{"name": "rotate"}, {"name": "ndots", "value": "1"}, {"name": "edns0", "value": ""}],
                },
            },
            DNSConfig(("1.1.1.1", "2.2.2.2", "3.3.3.3"), ("node.x", "svc.c.l", "own"), ("rotate", "ndots:1", "edns0:")),
        ),
    ],
)
def test_dns_follows_the_policy_then_adds_what_the_pod_wants(spec: dict[str, Any], expected: DNSConfig) -> None:
    """network/dns/dns.go:GetPodDNS, appendDNSConfig: at most three name servers, an option replaces its namesake."""
    assert dns_config_of(pod(**spec), CLUSTER) == expected


def test_at_most_32_search_domains_are_kept() -> None:
    wanted = {"dnsPolicy": "None", "dnsConfig": {"searches": [f"d{number}" for number in range(33)]}}
    assert dns_config_of(pod(**wanted), CLUSTER).searches == tuple(f"d{number}" for number in range(32))


def test_resolv_conf_has_a_line_for_what_there_is() -> None:
    assert resolv_conf(DNSConfig()) == ""
    whole = DNSConfig(("1.1.1.1", "2.2.2.2"), ("a", "b"), ("ndots:5", "rotate"))
    assert resolv_conf(whole) == "search a b\nnameserver 1.1.1.1\nnameserver 2.2.2.2\noptions ndots:5 rotate\n"


# -- a Pod's own fields -----------------------------------------------------------------------------------------------

WHOLE = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "labels": {"app": "x", "a": "1"},
        "annotations": {"why": 'b"c'},
    },
    "spec": {"nodeName": "node-1", "serviceAccountName": "robot"},
    "status": {
        "hostIP": "1.1.1.1",
        "podIP": "10.0.0.9",
        "hostIPs": [{"ip": "1.1.1.1"}, {"ip": "fd00::1"}],
        "podIPs": [{"ip": "10.0.0.9"}, {"ip": "fd00::9"}],
    },
}


@pytest.mark.parametrize(
    ("path", "text", "without"),
    [
        ("metadata.name", "p", "q"),
        ("metadata.namespace", "n", ""),
        ("metadata.uid", "u", ""),
        ("metadata.labels", 'a="1"\napp="x"', ""),
        ("metadata.annotations", 'why="b\\"c"', ""),
        ("metadata.labels['app']", "x", ""),
        ("metadata.labels['none']", "", ""),
        ("metadata.annotations['why']", 'b"c', ""),
        ("metadata.annotations['app']", "", ""),
        ("spec.nodeName", "node-1", ""),
        ("spec.serviceAccountName", "robot", ""),
        ("status.hostIP", "1.1.1.1", ""),
        ("status.podIP", "10.0.0.9", ""),
        ("status.hostIPs", "1.1.1.1,fd00::1", ""),
        ("status.podIPs", "10.0.0.9,fd00::9", ""),
    ],
)
def test_a_field_of_the_pod_is_text_and_an_absent_one_is_empty(path: str, text: str, without: str) -> None:
    """pkg/fieldpath/fieldpath.go:ExtractFieldPathAsString."""
    assert field_value(WHOLE, path) == text
    assert field_value({"metadata": {"name": "q"}, "spec": {}}, path) == without


RESOURCES = {"limits": {"cpu": "1500m", "memory": "100Mi"}, "requests": {"cpu": "250m", "memory": "64Mi"}}


@pytest.mark.parametrize(
    ("resource", "divisor", "text"),
    [
        ("limits.cpu", "", "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.memory", "1", "104857600"),
        ("limits.memory", "1Mi", "100"),
        ("limits.memory", "3Mi", "34"),
        ("requests.cpu", "0", "1"),
        ("requests.memory", "1Ki", "65536"),
        ("limits.ephemeral-storage", "1Gi", "8"),
        ("requests.ephemeral-storage", "1", "0"),
        ("limits.hugepages-2Mi", "1", "0"),
    ],
)
def test_a_resource_is_divided_and_rounded_up_and_a_missing_limit_is_the_node_s(
    resource: str, divisor: str, text: str
) -> None:
    """pkg/api/v1/resource/helpers.go:ExtractContainerResourceValue, MergeContainerResourceLimits."""
    the_pod = pod(containers=[{"name": "app", "resources": RESOURCES}])
    reference = {"containerName": "app", "resource": resource, "divisor": divisor}
    assert resource_value(the_pod, reference, {"ephemeral-storage": "8Gi"}) == text


@pytest.mark.parametrize(
    ("container", "resource", "why"),
    [
        ("other", "limits.cpu", "container other not found"),
        ("app", "limits", "unsupported container resource : limits"),
        ("app", "usage.cpu", "unsupported container resource : usage.cpu"),
    ],
)
def test_a_resource_that_cannot_be_is_named(container: str, resource: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        resource_value(pod(containers=[{"name": "app"}]), {"containerName": container, "resource": resource}, {})


# -- directories of the node ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantity", "size"), [(None, 0), ("", 0), ("64Mi", 64 << 20), (100, 100), ("-5", 0), ("much", 0)]
)
def test_a_size_that_cannot_be_read_is_no_limit(quantity: object, size: int) -> None:
    assert bytes_of(quantity) == size


@pytest.mark.parametrize(("group", "mode"), [(None, 0o777), (os.getgid(), 0o2777)])
def test_an_empty_dir_is_everybody_s_and_its_files_the_group_s(tmp_path: Path, group: int | None, mode: int) -> None:
    directory = tmp_path / "deep/er"
    for _ in range(2):  # a second time changes nothing
        set_up_empty_dir(directory, {"medium": "Memory"}, group, may_mount=False)
        assert directory.stat().st_mode & 0o7777 == mode


HOST_PATHS = ["Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"]


@pytest.mark.parametrize(
    ("place", "fits"),
    [("directory", HOST_PATHS[:2]), ("file", HOST_PATHS[2:4]), ("/dev/null", ["CharDevice"])],
)
def test_a_host_path_is_what_its_type_says(tmp_path: Path, place: str, fits: list[str]) -> None:
    """pkg/volume/hostpath/host_path.go:checkTypeInternal."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    path = tmp_path / place
    assert check_host_path({"path": str(path)}) == path
    for kind in HOST_PATHS:
        if kind in fits:
            assert check_host_path({"path": str(path), "type": kind}) == path
        else:
            with pytest.raises(VolumeError, match=f"^hostPath type check failed: {path} is not a "):
                check_host_path({"path": str(path), "type": kind})


def test_a_host_path_is_made_only_where_its_type_says_so(tmp_path: Path) -> None:
    for kind, what in (("Directory", "a directory"), ("File", "a file"), ("Socket", "a socket file")):
        with pytest.raises(VolumeError, match=f"^hostPath type check failed: {tmp_path}/no is not {what}$"):
            check_host_path({"path": f"{tmp_path}/no", "type": kind})
    assert not (tmp_path / "no").exists()
    assert check_host_path({"path": f"{tmp_path}/no"}) == tmp_path / "no", "an untyped one is not looked at"
    assert check_host_path({"path": f"{tmp_path}/a/b", "type": "DirectoryOrCreate"}).is_dir()
    assert check_host_path({"path": f"{tmp_path}/c", "type": "FileOrCreate"}).is_file()
    with pytest.raises(VolumeError, match="no such file or directory"):
        check_host_path({"path": f"{tmp_path}/x/y", "type": "FileOrCreate"})
    assert check_host_path({}) == Path("/")


@pytest.mark.parametrize(
    ("source", "path"),
    [({"local": {"path": "HERE"}}, "HERE"), ({"hostPath": {"path": "HERE"}}, "HERE"), ({"local": {}}, "/")],
)
def test_a_claim_s_directory_is_its_volume_s(tmp_path: Path, source: dict[str, Any], path: str) -> None:
    spec = {key: {name: str(tmp_path) for name in value} for key, value in source.items()}
    assert str(path_of({"metadata": {"name": "v"}, "spec": spec})) == path.replace("HERE", str(tmp_path))


# -- contents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["a", "a/b", "a..b", ".hidden", "a/..b"])
def test_paths_within_the_volume_are_taken(path: str) -> None:
    validate_path(path)


def shown(directory: Path) -> dict[str, tuple[bytes, int]]:
    """What a container sees: contents and modes by path."""
    found = {}
    for name in sorted(os.listdir(directory)):
        if not name.startswith(".."):
            below = directory / name
            for path in [below] if below.is_file() else sorted(each for each in below.rglob("*") if each.is_file()):
                found[str(path.relative_to(directory))] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


def test_contents_change_with_bytes_modes_and_names_and_only_then(tmp_path: Path) -> None:
    """pkg/volume/util/atomic_writer.go:shouldWritePayload."""
    one = {"a": FileProjection(b"1", 0o644), "d/e/f": FileProjection(b"2", 0o600)}
    assert write_payload(tmp_path / "v", one, 1)
    assert shown(tmp_path / "v") == {"a": (b"1", 0o644), "d/e/f": (b"2", 0o600)}
    for number, changed in enumerate(
        (
            {**one, "a": FileProjection(b"other", 0o644)},
            {**one, "a": FileProjection(b"other", 0o400)},
            {"d/e/f": one["d/e/f"]},
            {"d/e/g": one["d/e/f"]},
            {"d/e/g": one["d/e/f"], "b": FileProjection(b"", 0o644)},
            {},
        ),
        2,
    ):
        assert write_payload(tmp_path / "v", changed, number * 10**9)
        assert not write_payload(tmp_path / "v", changed, number * 10**9 + 1)
        assert shown(tmp_path / "v") == {path: (file.data, file.mode) for path, file in changed.items()}
    generations = [name for name in os.listdir(tmp_path / "v") if name.startswith("..") and name != "..data"]
    assert generations == [os.readlink(tmp_path / "v/..data")], "older generations are removed"
    assert (tmp_path / "v" / generations[0]).stat().st_mode & 0o777 == 0o755


def test_a_payload_with_one_hostile_path_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid path"):
        write_payload(tmp_path / "v", {"a": FileProjection(b"", 0o644), "../b": FileProjection(b"", 0o644)}, 1)
    assert not (tmp_path / "v").exists()


def test_a_link_that_a_dead_kubelet_left_half_made_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "..data_tmp").symlink_to("nowhere")
    assert write_payload(tmp_path, {"a": FileProjection(b"1", 0o644)}, 1)
    assert sorted(name for name in os.listdir(tmp_path) if not name.startswith("..1970")) == ["..data", "a"]


def test_data_that_leads_out_of_the_volume_is_not_taken_for_a_generation(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").touch()
    (tmp_path / "v").mkdir()
    (tmp_path / "v/..data").symlink_to("../outside")
    assert write_payload(tmp_path / "v", {"a": FileProjection(b"1", 0o644)}, 1)
    assert (tmp_path / "outside/kept").exists()


@pytest.mark.parametrize("sub_path", ["/a", "..", "a/../../b"])
def test_a_sub_path_is_relative_and_has_no_dots(tmp_path: Path, sub_path: str) -> None:
    with pytest.raises(VolumeError, match=r"must be relative and must not contain '\.\.'"):
        open_in_volume(tmp_path, sub_path)


def test_a_sub_path_is_made_with_the_kubelet_s_mode_or_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "v/there").mkdir(parents=True)
    (tmp_path / "v/there/file").write_text("x")
    (tmp_path / "v/link").symlink_to("there")
    for sub_path, place in (("new/er", "new/er"), ("there/file", "there/file"), ("link/in", "there/in"), ("", "")):
        found = bind_sub_path(tmp_path / "v", sub_path, tmp_path / "target", may_mount=False)
        assert found == tmp_path / "v" / place
    assert [(tmp_path / "v" / each).stat().st_mode & 0o777 for each in ("new", "new/er")] == [0o750, 0o750]
    assert not (tmp_path / "target").exists(), "nothing is bound where nothing may be"


def test_a_file_in_the_way_of_a_sub_path_is_an_error_of_the_volume(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(VolumeError, match=r"^failed to prepare subPath 'file/x': .*Not a directory"):
        open_in_volume(tmp_path, "file/x")
