"""What a node process writes down for the next one."""

import os
from pathlib import Path

import pytest

from lastcall.kube.cri import api
from lastcall.kube.cri.sandbox.records import Records, decode

CONFIG = api.ContainerConfig(
    metadata=api.ContainerMetadata("app", 3),
    image="busybox:1.36",
    mounts=(api.Mount("/data", "/lastcall/pods/u/volumes/x", True), api.Mount("/b", "/c")),
    log_path="app/3.log",
    tty=True,
    security_context=api.LinuxContainerSecurityContext(
        run_as_user=7,
        capabilities=api.Capability(("NET_ADMIN",), ("ALL",)),
        namespace_options=api.NamespaceOption("NODE", "TARGET", "POD", "abc"),
    ),
    labels={"a": "b"},
    annotations={"c": "d"},
)
SANDBOX = api.PodSandboxConfig(
    metadata=api.PodSandboxMetadata("p", "u", "default", 2),
    dns_config=api.DNSConfig(("10.96.0.10",), ("svc",), ()),
    sysctls={"net.x": "1"},
)


@pytest.mark.parametrize("config", [CONFIG, SANDBOX])
def test_a_configuration_comes_back_as_it_was(tmp_path: Path, config: object) -> None:
    records = Records(str(tmp_path / "records"))
    assert not records.any
    records.save("sandbox", "id1", {"config": config})
    ((identity, value),) = records.load("sandbox")
    assert identity == "id1" and decode(type(config), value["config"]) == config
    assert records.any
    (file,) = (tmp_path / "records").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and (tmp_path / "records").stat().st_mode & 0o777 == 0o700
    records.remove("sandbox", "id1")
    records.remove("sandbox", "id1")
    assert list(records.load("sandbox")) == []


@pytest.mark.parametrize("kind", [api.NamespaceOption, api.DNSConfig, api.LinuxContainerSecurityContext])
def test_what_is_not_said_has_its_default(kind: type) -> None:
    assert decode(kind, {}) == kind()


@pytest.mark.parametrize("value", [7, [], "x", {"metadata": 1}, {"metadata": {"attempt": 1}}, {}])
def test_what_is_no_configuration_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError, KeyError)):
        decode(api.PodSandboxConfig, value)


def test_unknown_keys_of_a_newer_version_are_passed_over() -> None:
    value = {"metadata": {"name": "p", "uid": "u", "namespace": "n", "colour": 1}, "future": []}
    assert decode(api.PodSandboxConfig, value).metadata == api.PodSandboxMetadata("p", "u", "n")


def test_half_written_and_foreign_files_are_told_apart(tmp_path: Path) -> None:
    records = Records(str(tmp_path))
    records.save("status", "good", {"a": 1})
    (tmp_path / "status-cut.json").write_text('{"a":')
    (tmp_path / "status-list.json").write_text("[]")
    (tmp_path / "status-x.json.tmp").write_text("{}")
    (tmp_path / "other").write_text("{}")
    os.mkdir(tmp_path / "status-directory.json")
    found = dict.fromkeys(("cut", "list", "directory"), None) | {"good": {"a": 1}}
    assert dict(records.load("status")) == found, "those that should be records are told of"


def test_of_a_record_that_is_written_short_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(str(tmp_path))
    records.save("status", "a", {"exitCode": 3})
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:2])))
        records.save("status", "a", {"exitCode": 4})
        records.save("status", "b", {"exitCode": 5})
    assert dict(records.load("status")) == {"a": {"exitCode": 4}, "b": {"exitCode": 5}}


@pytest.mark.parametrize("content", [b"", b'{"exitCode": 3', b"[]", b"\xff\xfe"])
def test_what_cannot_be_read_is_told_of_and_set_aside(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    records = Records(str(tmp_path))
    records.save("status", "good", {"exitCode": 3})
    (tmp_path / "status-bad.json").write_bytes(content)
    (tmp_path / "status-new.json.tmp").write_bytes(b"")
    assert dict(records.load("status")) == {"good": {"exitCode": 3}, "bad": None}
    assert f"{tmp_path}/status-bad.json cannot be read" in caplog.text
    assert (tmp_path / "status-bad.json.unreadable").read_bytes() == content
    assert dict(records.load("status")) == {"good": {"exitCode": 3}}
    records.clear_leftovers()  # by the next start
    assert os.listdir(tmp_path) == ["status-good.json"]
