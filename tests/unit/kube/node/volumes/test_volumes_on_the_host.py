"""node-semantics 16 on a real file system, without mounts where the test has no right to mount."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until

import lastcall.kube.node.volumes.manager as manager_module
from lastcall.kube.api.errors import status_failure
from lastcall.kube.cri.api import DNSConfig
from lastcall.kube.node.interfaces import VolumeError
from lastcall.kube.node.volumes.atomic_writer import FileProjection, validate_path, write_payload
from lastcall.kube.node.volumes.disk import VolumesOnDisk
from lastcall.kube.node.volumes.downward import field_value, resource_value
from lastcall.kube.node.volumes.host_volumes import check_host_path
from lastcall.kube.node.volumes.manager import HostVolumeManager
from lastcall.kube.node.volumes.pod_files import ClusterDNS, dns_config_of, hosts_file, resolv_conf
from lastcall.kube.node.volumes.simulated import SimulatedVolumeManager
from lastcall.kube.node.volumes.sources import token_requires_refresh
from lastcall.kube.node.volumes.subpath import open_in_volume
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Api:
    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.tokens: list[dict[str, Any]] = []
        self.reads: list[str] = []

    async def get(self, resource: Any, name: str, namespace: str = "") -> dict[str, Any]:
        self.reads.append(name)
        await asyncio.sleep(0)
        if (resource.plural, name) not in self.objects:
            raise status_failure(404, "NotFound", f'{resource.plural} "{name}" not found')
        return self.objects[resource.plural, name]

    async def create(self, resource: Any, obj: dict[str, Any], namespace: str = "", **more: Any) -> dict[str, Any]:
        assert (resource.plural, more) == ("serviceaccounts", {"name": "robot", "subresource": "token"})
        self.tokens.append(obj["spec"])
        return {"status": {"token": f"jwt-{len(self.tokens)}", "expirationTimestamp": "2999-01-01T00:00:00Z"}}


class Sink:
    """Events and records."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.records: list[tuple[str, dict[str, Any]]] = []

    def event(self, obj: Any, event_type: str, reason: str, message: str, **more: Any) -> None:
        self.events.append((event_type, reason, message))

    def record(self, kind: str, *, facts: dict[str, Any] | None = None, **more: Any) -> str:
        self.records.append((kind, facts or {}))
        return ""


@asynccontextmanager
async def volumes(
    root: Path, api: Api, sink: Sink, disk: VolumesOnDisk | None = None
) -> AsyncIterator[HostVolumeManager]:
    async with Tasks() as tasks:
        yield HostVolumeManager(
            world=World(),
            tasks=tasks,
            disk=disk,
            client=api,
            events=sink,
            recorder=sink,
            root=root,
            node_name="node-1",  # type: ignore[arg-type]
        )
        tasks.cancel()


def make_pod(*volumes: dict[str, Any], mounts: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    default = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u1", "labels": {"app": "x"}},
        "spec": {
            "containers": [{"name": "app", "volumeMounts": default if mounts is None else mounts}],
            "volumes": list(volumes),
            "serviceAccountName": "robot",
            **spec,
        },
    }


def of(manager: HostVolumeManager, pod: dict[str, Any], path: str) -> Path:
    found = {m.container_path: m for m in manager.mounts(pod, pod["spec"]["containers"][0], ("10.0.0.9",))}
    return Path(found[path].host_path)


PROJECTED = {
    "name": "kube-api-access",
    "projected": {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ],
    },
}


@pytest.mark.loopback
@pytest.mark.rule("node-semantics 16/token")
async def test_the_token_volume_holds_token_authority_and_namespace(tmp_path: Path) -> None:
    api, sink = Api(), Sink()
    api.objects["configmaps", "kube-root-ca.crt"] = {"data": {"ca.crt": "PEM"}}
    pod = make_pod(PROJECTED)
    async with volumes(tmp_path, api, sink) as manager:
        manager.prepare(pod)
        await until(lambda: len(api.tokens) == 1)
        await manager.wait_for_attach_and_mount(pod)
        directory = of(manager, pod, "/kube-api-access")
        assert {p.name: p.read_text() for p in directory.iterdir() if not p.name.startswith("..")} == {
            "token": "jwt-1",
            "ca.crt": "PEM",
            "namespace": "n",
        }
        assert api.tokens == [
            {
                "audiences": [],
                "expirationSeconds": 3607,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"},
            }
        ]
        await manager.wait_for_attach_and_mount(pod)
        assert len(api.tokens) == 1
        await manager.wait_for_unmount(pod)
        assert not directory.exists()
    assert [(kind, facts["volumes"]) for kind, facts in sink.records] == [
        ("VolumesMounted", ["kube-api-access"]),
        ("VolumesUnmounted", ["kube-api-access"]),
    ]


async def test_what_the_kubelet_wrote_is_mounted_read_only_with_the_mount_points_in_it(tmp_path: Path) -> None:
    api = Api()
    api.objects["configmaps", "cm"] = {"data": {"a": "1"}}
    config, scratch = {"name": "conf", "configMap": {"name": "cm"}}, {"name": "scratch", "emptyDir": {}}
    mounts = [
        {"name": "conf", "mountPath": "/etc/app"},
        {"name": "scratch", "mountPath": "/etc/app/cache"},
        {"name": "scratch", "mountPath": "/etc/app/cache/deep"},
        {"name": "scratch", "mountPath": "/etc/application"},
    ]
    pod = make_pod(config, scratch, mounts=mounts)
    async with volumes(tmp_path, api, Sink()) as manager:
        await manager.wait_for_attach_and_mount(pod)
        found = manager.mounts(pod, pod["spec"]["containers"][0], ())
        assert {m.container_path: m.readonly for m in found if m.container_path.startswith("/etc/app")} == {
            "/etc/app": True,
            "/etc/app/cache": False,
            "/etc/app/cache/deep": False,
            "/etc/application": False,
        }
        assert (of(manager, pod, "/etc/app") / "cache").is_dir()
        assert sorted(p.name for p in of(manager, pod, "/etc/app").iterdir() if not p.name.startswith("..")) == [
            "a",
            "cache",
        ]


@pytest.mark.rule("node-semantics 16/atomic")
async def test_config_maps_and_secrets_with_items_modes_and_optional_sources(tmp_path: Path) -> None:
    api, sink = Api(), Sink()
    api.objects["configmaps", "cm"] = {
        "data": {"a": "1", "b": "2"},
        "binaryData": {"c": base64.b64encode(b"\x00").decode()},
    }
    api.objects["secrets", "s"] = {"data": {"k": base64.b64encode(b"v").decode()}}
    pod = make_pod(
        {"name": "all", "configMap": {"name": "cm", "defaultMode": 0o400}},
        {"name": "one", "configMap": {"name": "cm", "items": [{"key": "b", "path": "deep/er/b", "mode": 0o600}]}},
        {"name": "sec", "secret": {"secretName": "s"}},
        {"name": "none", "configMap": {"name": "missing", "optional": True}},
    )
    async with volumes(tmp_path, api, sink) as manager:
        await manager.wait_for_attach_and_mount(pod)
        assert (of(manager, pod, "/all") / "c").read_bytes() == b"\x00"
        assert (of(manager, pod, "/all") / "a").stat().st_mode & 0o777 == 0o400
        deep = of(manager, pod, "/one") / "deep/er/b"
        assert (deep.read_text(), deep.stat().st_mode & 0o777) == ("2", 0o600)
        assert (of(manager, pod, "/sec") / "k").read_text() == "v"
        assert [p.name for p in of(manager, pod, "/none").iterdir() if not p.name.startswith("..")] == []
    assert sink.events == []


@pytest.mark.loopback
@pytest.mark.rule("node-semantics 16/refreshed")
async def test_new_contents_reach_a_running_pod_when_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager_module, "REFRESH_SECONDS", 0.0)
    api, sink = Api(), Sink()
    api.objects["configmaps", "cm"] = {"data": {"a": "old"}}
    pod = make_pod({"name": "v", "configMap": {"name": "cm"}})
    async with volumes(tmp_path, api, sink) as manager:
        await manager.wait_for_attach_and_mount(pod)
        mounted = of(manager, pod, "/v")
        api.objects["configmaps", "cm"] = {"data": {"a": "new", "b": "more"}}
        await manager.wait_for_attach_and_mount(pod)
        await until((mounted / "b").exists, "the new file")
        assert (mounted / "a").read_text() == "new" and of(manager, pod, "/v") == mounted
        del api.objects["configmaps", "cm"]
        await manager.wait_for_attach_and_mount(pod)
        await asyncio.sleep(0.05)  # a change that must not come would come now
        assert (mounted / "a").read_text() == "new", "what is gone leaves the files"


@pytest.mark.loopback
@pytest.mark.rule("node-semantics 16/missing")
async def test_a_missing_source_is_reported_for_its_volume_and_mounts_once_it_is_there(tmp_path: Path) -> None:
    api, sink = Api(), Sink()
    pod = make_pod({"name": "v", "configMap": {"name": "missing"}}, {"name": "e", "emptyDir": {}})
    async with volumes(tmp_path, api, sink) as manager, Tasks() as tasks:
        waiting = tasks.spawn(manager.wait_for_attach_and_mount(pod), name="mount")
        await until(lambda: sink.events and sink.records)
        assert sink.events == [
            ("Warning", "FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "missing" not found')
        ]
        assert sink.records == [("VolumeFailed", {"volume": "v", "error": 'configmap "missing" not found'})]
        api.objects["configmaps", "missing"] = {"data": {"a": "1"}}
        await waiting
        assert (of(manager, pod, "/v") / "a").read_text() == "1"


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "cm", "items": [{"key": "x", "path": "x"}]}}, "references non-existent config key: x"),
        ({"secret": {"secretName": "s"}}, 'secret "s" not found'),
        ({"nfs": {"server": "s", "path": "/"}}, "volume type nfs is not supported"),
        ({"configMap": {"name": "cm", "items": [{"key": "a", "path": "../../x"}]}}, "invalid path '../../x'"),
        ({"hostPath": {"path": "/nowhere/at/all", "type": "Directory"}}, "hostPath type check failed"),
        (
            {"projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "no"}}]}},
            '[secret "s" not found, configmap "no" not found]',
        ),
    ],
)
async def test_what_cannot_be_mounted_says_why(tmp_path: Path, volume: dict[str, Any], message: str) -> None:
    api, sink = Api(), Sink()
    api.objects["configmaps", "cm"] = {"data": {"a": "1"}}
    async with volumes(tmp_path, api, sink) as manager, Tasks() as tasks:
        waiting = tasks.spawn(manager.wait_for_attach_and_mount(make_pod({"name": "v", **volume})), name="mount")
        await until(lambda: sink.events)
        assert not waiting.done()
        tasks.cancel()
    assert message in sink.events[0][2]


@pytest.mark.rule("node-semantics 16/empty-dir")
async def test_an_empty_dir_survives_a_new_manager_and_is_gone_after_the_unmount(tmp_path: Path) -> None:
    pod = make_pod({"name": "e", "emptyDir": {}})
    async with volumes(tmp_path, Api(), Sink()) as manager:
        await manager.wait_for_attach_and_mount(pod)
        directory = of(manager, pod, "/e")
        assert directory.stat().st_mode & 0o777 == 0o777
        for n in range(100):
            (directory / f"f{n}").write_text("x")
        (directory / "locked").mkdir(mode=0o000)
    async with volumes(tmp_path, Api(), Sink()) as manager:
        await manager.wait_for_attach_and_mount(pod)
        assert (of(manager, pod, "/e") / "f0").exists()
        await manager.wait_for_unmount(pod)
        assert not directory.exists()
        await manager.wait_for_unmount(pod)


@pytest.mark.rule("node-semantics 16/etc-hosts, 12.5/file")
@pytest.mark.parametrize(
    ("source", "spec", "maps_owners", "on_disk"),
    [
        ({}, {}, False, True),
        ({"medium": "Memory"}, {}, False, False),
        ({}, {"hostUsers": False}, False, False),
        ({}, {"hostUsers": False}, True, True),
        ({}, {"hostUsers": True}, False, True),
    ],
)
async def test_an_empty_dir_is_on_disk_if_the_pod_can_own_its_files_there(
    tmp_path: Path, source: dict[str, Any], spec: dict[str, Any], maps_owners: bool, on_disk: bool
) -> None:
    pod = make_pod({"name": "e", "emptyDir": source}, **spec)
    disk = VolumesOnDisk(tmp_path / "disk", maps_owners)
    async with volumes(tmp_path / "root", Api(), Sink(), disk) as manager:
        await manager.wait_for_attach_and_mount(pod)
        place = tmp_path / ("disk/u1/e" if on_disk else "root/pods/u1/volumes/kubernetes.io~empty-dir/e")
        assert of(manager, pod, "/e") == place
        assert place.stat().st_mode & 0o777 == 0o777
        (place / "file").write_text("x")
    async with volumes(tmp_path / "root", Api(), Sink(), disk) as manager:
        await manager.wait_for_unmount(pod)
    assert not place.exists()
    assert not (tmp_path / "disk/u1").exists()


async def test_what_orphans_have_on_disk_is_removed_and_what_known_pods_have_is_not(tmp_path: Path) -> None:
    async with volumes(tmp_path / "root", Api(), Sink(), VolumesOnDisk(tmp_path / "disk")) as manager:
        await manager.wait_for_attach_and_mount(make_pod({"name": "e", "emptyDir": {}}))
        (tmp_path / "disk/gone/e/deep").mkdir(parents=True)
        await manager.remove_orphans(set())
    assert [each.name for each in (tmp_path / "disk").iterdir()] == ["u1"]


async def test_hosts_hostname_resolv_conf_and_a_message_file_per_attempt(tmp_path: Path) -> None:
    pod = make_pod(
        hostAliases=[{"ip": "1.2.3.4", "hostnames": ["foo", "bar"]}],
        dnsPolicy="None",
        dnsConfig={"nameservers": ["9.9.9.9"]},
    )
    async with volumes(tmp_path, Api(), Sink()) as manager:
        container = pod["spec"]["containers"][0]
        first = {m.container_path: Path(m.host_path) for m in manager.mounts(pod, container, ("10.0.0.9",))}
        second = {m.container_path: Path(m.host_path) for m in manager.mounts(pod, container, ("10.0.0.9",), attempt=1)}
        assert (
            first["/etc/hosts"]
            .read_text()
            .endswith("10.0.0.9\tp\n\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n")
        )
        assert first["/etc/hostname"].read_text() == "p\n"
        assert first["/etc/resolv.conf"].read_text() == "nameserver 9.9.9.9\n"
        assert first["/dev/termination-log"] != second["/dev/termination-log"]
        assert first["/dev/termination-log"].stat().st_mode & 0o777 == 0o666
        second["/dev/termination-log"].write_text("bye")
        assert manager.read_termination_message("u1", "app", 1) == "bye"
        own = make_pod({"name": "h", "emptyDir": {}}, mounts=[{"name": "h", "mountPath": "/etc/hosts"}])
        await manager.wait_for_attach_and_mount(own)
        assert of(manager, own, "/etc/hosts").name == "h"


@pytest.mark.rule("node-semantics 4.6/directories")
async def test_orphans_are_removed_and_known_pods_are_not(tmp_path: Path) -> None:
    async with volumes(tmp_path, Api(), Sink()) as manager:
        pod = make_pod({"name": "e", "emptyDir": {}})
        await manager.wait_for_attach_and_mount(pod)
        (tmp_path / "pods" / "dead" / "volumes").mkdir(parents=True)
        await manager.remove_orphans({"u1"})
        assert sorted(p.name for p in (tmp_path / "pods").iterdir()) == ["u1"]
        await manager.wait_for_unmount(pod)
        await manager.remove_orphans(set())
        assert list((tmp_path / "pods").iterdir()) == []


@pytest.mark.rule("node-semantics 16/sub-path")
async def test_a_sub_path_cannot_leave_its_volume(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (tmp_path / "outside").write_text("secret")
    (volume / "up").symlink_to("../outside")
    (volume / "root").symlink_to("/etc/passwd")
    for name in ("up", "root"):
        with pytest.raises(VolumeError):
            open_in_volume(volume, f"{name}/x")
    with pytest.raises(VolumeError, match="must not contain"):
        open_in_volume(volume, "../outside")
    descriptor = open_in_volume(volume, "a/b")
    assert os.readlink(f"/proc/self/fd/{descriptor}") == str(volume / "a/b")
    os.close(descriptor)


async def test_sub_paths_by_name_and_by_expression(tmp_path: Path) -> None:
    mounts = [
        {"name": "e", "mountPath": "/a", "subPath": "one/two"},
        {"name": "e", "mountPath": "/b", "subPathExpr": "$(POD)"},
    ]
    pod = make_pod({"name": "e", "emptyDir": {}}, mounts=mounts)
    pod["spec"]["containers"][0]["env"] = [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    async with volumes(tmp_path, Api(), Sink()) as manager:
        await manager.wait_for_attach_and_mount(pod)
        (of(manager, pod, "/a") / "x").write_text("1")
        empty_dir = tmp_path / "pods/u1/volumes/kubernetes.io~empty-dir/e"
        assert (empty_dir / "one/two/x").read_text() == "1"
        (of(manager, pod, "/b") / "y").write_text("2")
        assert (empty_dir / "p/y").read_text() == "2"
        await manager.wait_for_unmount(pod)
        assert not empty_dir.exists()
        assert not (tmp_path / "pods/u1/volume-subpaths").exists()


def files(**texts: str) -> dict[str, FileProjection]:
    return {name: FileProjection(text.encode(), 0o644) for name, text in texts.items()}


@pytest.mark.rule("node-semantics 16/atomic")
def test_the_atomic_writer_swaps_everything_at_once(tmp_path: Path) -> None:
    assert write_payload(tmp_path, files(a="1", b="2"), 1_000_000_001)
    assert not write_payload(tmp_path, files(a="1", b="2"), 2_000_000_001)
    before = os.readlink(tmp_path / "..data")
    assert before == "..1970_01_01_00_00_01.000000001"
    assert write_payload(tmp_path, files(a="3"), 3_000_000_001)
    assert (tmp_path / "a").read_text() == "3"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([os.readlink(tmp_path / "..data"), "..data", "a"])


@pytest.mark.parametrize("path", ["", "/etc/x", "../x", "a/../../x", "..data", "..x"])
def test_hostile_paths_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="invalid path"):
        validate_path(path)


def test_downward_fields_and_resources() -> None:
    pod = make_pod()
    pod["metadata"]["annotations"] = {"b": "x\n", "a": "1"}
    assert field_value(pod, "metadata.annotations") == 'a="1"\nb="x\\n"'
    assert field_value(pod, "metadata.labels['app']") == "x"
    with pytest.raises(ValueError, match="unsupported fieldPath"):
        field_value(pod, "spec.foo")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "250m", "memory": "64Mi"}}

    def value(resource: str, divisor: str = "0") -> str:
        return resource_value(
            pod, {"containerName": "app", "resource": resource, "divisor": divisor}, {"memory": "1Gi"}
        )

    assert [value("limits.cpu"), value("limits.cpu", "1m"), value("limits.memory", "1Mi")] == ["1", "250", "64"]
    assert value("requests.memory") == "0"


@pytest.mark.rule("node-semantics 16/host-path")
def test_host_path_types(tmp_path: Path) -> None:
    assert check_host_path({"path": str(tmp_path / "new"), "type": "DirectoryOrCreate"}).is_dir()
    assert check_host_path({"path": str(tmp_path / "file"), "type": "FileOrCreate"}).is_file()
    assert check_host_path({"path": "/dev/null", "type": "CharDevice"}) == Path("/dev/null")
    with pytest.raises(VolumeError, match="is not a directory"):
        check_host_path({"path": str(tmp_path / "file"), "type": "Directory"})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"dnsPolicy": "ClusterFirst"},
            "search n.svc.c.l svc.c.l c.l node.x\nnameserver 10.96.0.10\noptions ndots:5\n",
        ),
        ({"dnsPolicy": "Default"}, "search node.x\nnameserver 1.1.1.1\n"),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, "search node.x\nnameserver 1.1.1.1\n"),
        (
            {
                "dnsPolicy": "None",
                "dnsConfig": {"nameservers": ["9.9.9.9"], "options": [{"name": "ndots", "value": "2"}]},
            },
            "nameserver 9.9.9.9\noptions ndots:2\n",
        ),
    ],
)
def test_resolv_conf_by_policy(spec: dict[str, Any], expected: str) -> None:
    cluster = ClusterDNS(("10.96.0.10",), "c.l", "search node.x\nnameserver 1.1.1.1\n# comment\n")
    assert resolv_conf(dns_config_of(make_pod(**spec), cluster)) == expected


def test_without_a_cluster_dns_cluster_first_is_default() -> None:
    assert dns_config_of(make_pod(), ClusterDNS(node_resolv_conf="nameserver 1.1.1.1\n")) == DNSConfig(("1.1.1.1",))


@pytest.mark.rule("node-semantics 16/etc-hosts")
def test_host_network_pods_get_the_nodes_hosts_file() -> None:
    text = hosts_file(make_pod(hostNetwork=True), ("10.0.0.9",), "127.0.0.1 localhost\n")
    assert text == "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n"


@pytest.mark.rule("node-semantics 16/token")
@pytest.mark.parametrize(
    ("age", "ttl", "refresh"), [(0, 3600, False), (2879, 3600, False), (2881, 3600, True), (86401, 10**7, True)]
)
def test_a_token_is_refreshed_after_four_fifths_of_its_life_or_a_day(age: int, ttl: int, refresh: bool) -> None:
    assert token_requires_refresh(1000, 1000 + ttl, 1000 + age) is refresh


@pytest.mark.rule("node-semantics 1/volumes")
def test_simulated_volumes_fail_as_told_and_give_up_after_two_minutes() -> None:
    async def main(world: World) -> tuple[str, int]:
        sink = Sink()
        manager = SimulatedVolumeManager(
            world=world, recorder=sink, events=sink, failures={"v": 'configmap "m" not found'}
        )  # type: ignore[arg-type]
        with pytest.raises(VolumeError) as caught:
            await manager.wait_for_attach_and_mount(make_pod({"name": "v", "configMap": {"name": "m"}}))
        return str(caught.value), len(sink.events)

    text, events = run_virtual(main)
    assert text.startswith("unmounted volumes=[v], unattached volumes=[]")
    assert events == 8


# -- claims: the volume's own directory is mounted, or the Pod is told why not

CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
EPHEMERAL = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def pv_claim(phase: str = "Bound", **meta: Any) -> dict[str, Any]:
    meta = {"name": "c", "namespace": "n", "uid": "claim-uid", **meta}
    return {"metadata": meta, "spec": {"volumeName": "v"}, "status": {"phase": phase}}


def pv(uid: str = "claim-uid", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "v"}, "spec": {"claimRef": {"uid": uid}, **spec}}


def api_of(**objects: dict[str, Any]) -> Api:
    api = Api()
    api.objects = {tuple(key.split("__")): value for key, value in objects.items()}  # type: ignore[misc]
    return api


@pytest.mark.rule("node-semantics 16/claim-data")
async def test_a_claim_is_the_directory_of_its_volume_and_read_only_where_the_pod_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    api = api_of(
        persistentvolumeclaims__c=pv_claim(),
        persistentvolumes__v=pv(hostPath={"path": str(data), "type": "DirectoryOrCreate"}),
    )
    same = {"name": "same", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}}
    pod = make_pod(CLAIM, same)
    async with volumes(tmp_path / "root", api, Sink()) as manager:
        await manager.wait_for_attach_and_mount(pod)
        assert of(manager, pod, "/data") == data and data.is_dir()
        mounts = manager.mounts(pod, pod["spec"]["containers"][0], ())
        assert {m.container_path: m.readonly for m in mounts if m.host_path == str(data)} == {
            "/data": False,
            "/same": True,
        }
        (data / "kept").write_text("x")
        await manager.wait_for_unmount(pod)
        await manager.remove_orphans(set())
    assert (data / "kept").read_text() == "x", "what is in a volume is nobody's to remove here"


NOT_READY = [
    ({}, "failed to fetch PVC from API server: persistentvolumeclaims \"c\" not found"),
    ({"persistentvolumeclaims__c": pv_claim("Pending")}, "PVC is not bound"),
    ({"persistentvolumeclaims__c": pv_claim(deletionTimestamp="2030-01-01T00:00:00Z")}, "PVC is being deleted"),
    ({"persistentvolumeclaims__c": pv_claim()}, "failed to fetch PV \"v\" from API server"),
    ({"persistentvolumeclaims__c": pv_claim(), "persistentvolumes__v": pv("other")}, "does not point to claim.UID"),
    ({"persistentvolumeclaims__c": pv_claim(), "persistentvolumes__v": {"metadata": {"name": "v"}, "spec": {}}},
     "nil pv.Spec.ClaimRef"),
]  # fmt: skip


@pytest.mark.rule("node-semantics 16/claim-not-ready")
@pytest.mark.parametrize(("objects", "text"), NOT_READY)
async def test_a_claim_that_is_not_ready_fails_the_sync_at_once(
    tmp_path: Path, objects: dict[str, Any], text: str
) -> None:
    async with volumes(tmp_path, api_of(**objects), Sink()) as manager:
        with pytest.raises(VolumeError) as refused:
            await manager.wait_for_attach_and_mount(make_pod(CLAIM))
    assert str(refused.value).startswith(
        "unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: error processing PVC n/c: "
    )
    assert text in str(refused.value)


async def test_an_ephemeral_volume_is_never_somebody_elses_claim(tmp_path: Path) -> None:
    strangers = pv_claim(name="p-data")
    api = api_of(**{"persistentvolumeclaims__p-data": strangers})
    async with volumes(tmp_path, api, Sink()) as manager:
        with pytest.raises(VolumeError, match="pod is not owner"):
            await manager.wait_for_attach_and_mount(make_pod(EPHEMERAL))


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"hostPath": {"path": "/nowhere/at/all", "type": "Directory"}}, "hostPath type check failed"),
        ({"local": {"path": "/nowhere/at/all"}}, 'path "/nowhere/at/all" does not exist'),
        ({"nfs": {"server": "s", "path": "/"}}, "use hostPath or local"),
        ({"hostPath": {"path": "/"}, "volumeMode": "Block"}, "use Filesystem"),
    ],
)
async def test_what_a_volume_lacks_is_told_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any], text: str
) -> None:
    monkeypatch.setattr("lastcall.kube.node.volumes.manager.MOUNT_TIMEOUT", 0.05)
    sink = Sink()
    api = api_of(persistentvolumeclaims__c=pv_claim(), persistentvolumes__v=pv(**source))
    async with volumes(tmp_path, api, sink) as manager:
        with pytest.raises(VolumeError):
            await manager.wait_for_attach_and_mount(make_pod(CLAIM))
    assert sink.events and all(each[1] == "FailedMount" for each in sink.events)
    assert sink.events[0][2].startswith('MountVolume.SetUp failed for volume "v" : ') and text in sink.events[0][2]


def test_the_group_of_a_pod_may_read_what_its_volumes_show_whatever_their_mode(tmp_path: Path) -> None:
    """pkg/volume/volume_linux.go:changeFilePermission: 0440 is added to the mode of what is in a read-only volume."""
    payload = {"key": FileProjection(b"secret", 0o400), "a/run": FileProjection(b"#!", 0o755)}
    assert write_payload(tmp_path, payload, 1_000_000_001, os.getgid())
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("key", "a/run")] == [0o440, 0o755]
    assert not write_payload(tmp_path, payload, 2_000_000_001, os.getgid())
