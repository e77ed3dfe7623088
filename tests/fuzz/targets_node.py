"""What a node reads: answers of CNI plugins and of the kernel, its own records and journals, archives of images."""

import base64
import hashlib
import io
import json
import os
import struct
import tarfile
import tempfile
from pathlib import Path
from random import Random

import orjson
from harness import Target, changed_bytes, json_change, texts

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerMetadata,
    PodSandboxConfig,
    PodSandboxMetadata,
    RuntimeServiceError,
)
from lastcall.kube.cri.docker_config import DockerConfigError, credentials_for, parse_docker_config, parse_dockercfg
from lastcall.kube.cri.sandbox.cni import conf, rules
from lastcall.kube.cri.sandbox.images.from_files import import_images
from lastcall.kube.cri.sandbox.images.layout import ImageLayout
from lastcall.kube.cri.sandbox.object_records import ObjectRecords
from lastcall.kube.cri.sandbox.shim.past import read_journals
from lastcall.world import netlink

# -- CNI -----------------------------------------------------------------------------------------------------------------

_RESULT = {
    "cniVersion": "1.0.0",
    "interfaces": [{"name": "veth1", "mac": "aa:bb:cc:dd:ee:ff"}, {"name": "eth0", "sandbox": "/run/netns/x"}],
    "ips": [
        {"address": "10.1.0.5/16", "gateway": "10.1.0.1", "interface": 1},
        {"address": "fd00::5/64", "interface": 1},
    ],
    "routes": [{"dst": "0.0.0.0/0"}],
    "dns": {"nameservers": ["10.1.0.1"]},
    "supportedVersions": ["0.4.0", "1.0.0"],
    "code": 7,
    "msg": "no",
    "details": "because",
}


def _cni_result(data: bytes) -> bool:
    passed = False
    for read in (rules.parse_versions, lambda answer: rules.addresses(rules.parse_result(answer))):
        try:
            assert isinstance(read(data), tuple)
            passed = True
        except rules.CNIError:
            continue
    assert isinstance(rules.failure("exit status 1", data, data[:100]), rules.CNIError)
    return passed


def _make_cni_result(random: Random, seeds: list[bytes]) -> bytes:
    """Mostly with another value where the original's is not read, or an address of another form."""
    if random.random() < 0.3:
        return json_change(random, seeds)
    value = json.loads(json.dumps(_RESULT))
    value["ips"][0]["address"] = random.choice(
        ("10.1.0.5/16", "fd00::7/64", "10.1.0.5", "::ffff:10.1.0.5/96", "fe80::1%eth0/64")
    )
    value[random.choice(("routes", "dns", "msg", "details", "code", "x"))] = json.loads(json_change(random, seeds))
    return json.dumps(value).encode()


CNI_RESULTS = Target(
    "cni-results",
    lambda: texts(_RESULT, {"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.5/16"}}),
    _cni_result,
    make=_make_cni_result,
)

_CONFIGURATION = {
    "cniVersion": "1.0.0", "cniVersions": ["1.0.0", "0.4.0"], "name": "net", "disableCheck": True, "disableGC": False,
    "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.1.0.0/16"}}, {"type": "portmap", "capabilities": {"portMappings": True}}],
}  # fmt: skip


def _cni_configuration(data: bytes) -> bool:
    passed = False
    for path in ("/x/10-a.conflist", "/x/10-a.conf"):
        try:
            conf.parse(data, path)
            passed = True
        except conf.CNIConfigError:
            continue
    return passed


def _make_cni_configuration(random: Random, seeds: list[bytes]) -> bytes:
    """Mostly what is only told to plugins differs, for the rest is checked strictly."""
    value = json.loads(json.dumps(_CONFIGURATION))
    value["plugins"][0]["ipam"] = json.loads(json_change(random, texts(_RESULT)))
    return json.dumps(value).encode() if random.random() < 0.8 else json_change(random, seeds)


CNI_CONFIGURATIONS = Target(
    "cni-configurations", lambda: texts(_CONFIGURATION), _cni_configuration, (), _make_cni_configuration
)


# -- records and journals ------------------------------------------------------------------------------------------------


def _record_seeds() -> list[bytes]:
    sandbox = PodSandboxConfig(PodSandboxMetadata("pod", "uid", "default"))
    container = ContainerConfig(ContainerMetadata("main"), "image")
    return [
        orjson.dumps({"config": sandbox, "createdAt": 5, "state": 0, "ip": "10.244.0.2", "attached": True}),
        orjson.dumps({"config": container, "sandboxId": "s", "createdAt": 6, "imageRef": "sha256:1", "logPath": "/x",
                      "stopSignal": 15, "exitCode": 0, "state": 1, "startedAt": 7, "finishedAt": 8}),
    ]  # fmt: skip


def _records(data: bytes) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        good = _record_seeds()
        for name, content in (
            ("sandbox-s", good[0]), ("sandbox-x", data), ("container-y", data), ("container-c", good[1]), ("status-c", data),
        ):  # fmt: skip
            Path(directory, f"{name}.json").write_bytes(content)
        records = ObjectRecords(directory)
        sandboxes = records.load_sandboxes()
        assert "s" in sandboxes
        containers = records.load_containers(sandboxes, directory)
        for each in (*sandboxes.values(), *containers.values()):
            records_of = (each.created_at + 1, str(each))
            assert records_of
        return "x" in sandboxes or "y" in containers


def _make_record(random: Random, seeds: list[bytes]) -> bytes:
    """Mostly with other values of the same types, or unknown fields."""
    if random.random() < 0.2:
        return json_change(random, seeds)
    value = json.loads(random.choice(seeds[:2]))
    for name in random.sample(list(value), 2):
        if type(value[name]) is int and name not in ("state",):
            value[name] = random.choice((0, 1, -1, 2**63 - 1))
        elif isinstance(value[name], str) and name != "sandboxId":
            value[name] = random.choice(("", "é", "x" * 999, "../x"))
    value["x"] = value["config"]["y"] = json.loads(json_change(random, seeds))
    return json.dumps(value).encode()


RECORDS = Target("records", _record_seeds, _records, make=_make_record)


def _journals(data: bytes) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "c1").write_bytes(data)
        Path(directory, "exec-2").write_bytes(data)
        found = read_journals(directory)
        assert [each.container_id or each.exec_id for each in found] == ["c1", "2"]
        for each in found:
            each.lives()
            each.over  # noqa: B018
        return any(each.pid or each.over for each in found)


def _make_journal(random: Random, seeds: list[bytes]) -> bytes:
    first = {"pid": os.getpid(), "startTime": 5, "podUid": "u", "container": "c", "sandboxId": "s"}
    lines = [
        json.dumps(first).encode(),
        b"",
        json_change(random, texts({"exitCode": 0, "signal": "", "finishedAt": 5})),
    ]
    return b"\n".join(lines[: random.randint(1, 3)])


JOURNALS = Target(
    "journals", lambda: [_make_journal(Random(number), []) for number in range(4)], _journals, (), _make_journal
)


# -- netlink -------------------------------------------------------------------------------------------------------------


def _netlink(data: bytes) -> bool:
    answers = list(netlink._answers(data))
    fields = netlink.attributes(data, 16)
    for payload in fields.values():
        netlink.attributes(payload)
    assert len(answers) <= len(data) // 16 + 1
    return bool(answers or fields)


def _make_netlink(random: Random, seeds: list[bytes]) -> bytes:
    out = b""
    for _ in range(random.randint(1, 4)):
        body = struct.pack("=i", -random.choice((0, 1, 2, 17))) + b"".join(
            netlink.attribute(random.randrange(1, 70), random.randbytes(random.choice((0, 1, 4, 30)))) for _ in range(3)
        )
        out += struct.pack("=IHHII", 16 + len(body), random.choice((2, 3, 16)), 0, random.randrange(9), 0) + body
    return out


NETLINK = Target(
    "netlink", lambda: [_make_netlink(Random(number), []) for number in range(5)], _netlink, (), _make_netlink
)


# -- images --------------------------------------------------------------------------------------------------------------


def _blob(files: dict[str, bytes], data: bytes) -> dict:
    digest = hashlib.sha256(data).hexdigest()
    files[f"blobs/sha256/{digest}"] = data
    return {"digest": f"sha256:{digest}", "size": len(data)}


def _image(config: dict, layers: list[bytes], manifest: dict, index: dict, docker: list | None = None) -> bytes:
    files: dict[str, bytes] = {}
    kind = "application/vnd.oci.image"
    parts = [{**_blob(files, layer), "mediaType": f"{kind}.layer.v1.tar"} for layer in layers]
    first = {**_blob(files, json.dumps(config).encode()), "mediaType": f"{kind}.config.v1+json"}
    whole = {"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json", "config": first, "layers": parts, **manifest}
    entry = {**_blob(files, json.dumps(whole).encode()), "mediaType": f"{kind}.manifest.v1+json",
             "annotations": {"org.opencontainers.image.ref.name": "example.com/a:1"}}  # fmt: skip
    files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry], **index}).encode()
    if docker is not None:
        del files["oci-layout"]
        files["manifest.json"] = json.dumps(docker).encode()
        files["c.json"], files["l.tar"] = json.dumps(config).encode(), layers[0]
    return _tar(files)


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


_LAYER = _tar({"bin/x": b"#!", "etc/y": b"z"})
_CONFIG = {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/x"]},
           "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(_LAYER).hexdigest()]}}  # fmt: skip
_DOCKER = [{"Config": "c.json", "RepoTags": ["a:1"], "Layers": ["l.tar"]}]


def _make_image(random: Random, seeds: list[bytes]) -> bytes:
    config, layers, manifest, index, docker = _CONFIG, [_LAYER], {}, {}, None
    kind = random.randrange(7)
    if kind == 0:
        config = json.loads(json_change(random, texts(_CONFIG)))
    elif kind == 1:
        layers = [changed_bytes(random, _LAYER)]
        config = {
            **_CONFIG,
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layers[0]).hexdigest()]},
        }
    elif kind == 2:
        manifest = {"annotations": json.loads(json_change(random, texts({"a": "b"})))}
    elif kind == 3:
        index = {"annotations": json.loads(json_change(random, texts({"a": "b"})))}
    elif kind == 4:
        docker = json.loads(json_change(random, texts(_DOCKER)))
    else:
        docker = _DOCKER
    return _image(config, layers, manifest, index, docker if isinstance(docker, list) else None)


def _images(data: bytes) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "a.tar")
        source.write_bytes(data)
        layout = ImageLayout(f"{directory}/layout")
        found = import_images(layout, str(source))
        outside = {path.name for path in Path(directory).iterdir()} - {"a.tar", "layout"}
        assert not outside, outside
        return bool(found)


IMAGES = Target(
    "images",
    lambda: [_image(_CONFIG, [_LAYER], {}, {}), _image(_CONFIG, [_LAYER], {}, {}, _DOCKER)],
    _images,
    (RuntimeServiceError,),
    _make_image,
)


# -- credentials of registries -------------------------------------------------------------------------------------------

_AUTH = {"auth": base64.b64encode(b"user:word").decode()}
_AUTHS = {"https://index.docker.io/v1/": _AUTH, "*.example.com:5000/team": {"username": "u", "password": "p"}}


def _docker_config(data: bytes) -> bool:
    passed = False
    for read in (parse_docker_config, parse_dockercfg):
        try:
            config = read(data)
        except DockerConfigError:
            continue
        passed = True
        for image in ("docker.io/library/busybox", "r.example.com:5000/team/x"):
            credentials_for(image, [config])
            config.helper_for(image.partition("/")[0])
    return passed


def _make_docker_config(random: Random, seeds: list[bytes]) -> bytes:
    hosts = ("docker.io", "*.*.*", "[", "[!-a]*", "a" * 300, "https://", "é", "", "*" * 40 + "x", "v1/", ":", "*:*")
    auths = {random.choice(hosts): random.choice((_AUTH, {}, {"username": "u", "password": "p"})) for _ in range(4)}
    return json.dumps({"auths": auths, "credHelpers": {random.choice(hosts): "pass"}}).encode()


DOCKER_CONFIG = Target(
    "docker-config",
    lambda: texts({"auths": _AUTHS, "credsStore": "pass", "credHelpers": {"gcr.io": "gcloud"}}, _AUTHS),
    _docker_config,
    (),
    _make_docker_config,
)
