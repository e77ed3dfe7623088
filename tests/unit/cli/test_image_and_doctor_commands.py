"""`lastcall image` and `lastcall doctor`, as typed."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from oci_registry import Fault, Registry, digest_of, tar_of
from published_schema import documented

from lastcall.cli.doctor import doctor, render_json, summary
from lastcall.cli.image.command import image
from lastcall.world import needs
from lastcall.world.need import Need
from lastcall.world.probes import Probe

OK = Need("overlayfs", "ok", "can be mounted")
LESS = Need("cgroups", "degraded", "cgroup v1 only", "no limits", "boot differently")
GONE = Need("user namespaces", "missing", "forbidden [by a rule]", fix="sudo sysctl -w user.max_user_namespaces=15000")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return CliRunner()


def test_an_image_from_the_host_is_made_shown_and_removed(cli: CliRunner, tmp_path: Path) -> None:
    made = cli.invoke(image, ["from-host", "--directories", "busybox:1.36"])
    assert made.exit_code == 0, made.output
    assert made.output.startswith("docker.io/library/busybox:1.36 ")
    assert "bound read-only" in made.output
    shown = cli.invoke(image, ["ls"])
    assert "docker.io/library/busybox:1.36" in shown.output
    (entry,) = documented(json.loads(cli.invoke(image, ["ls", "--output", "json"]).output))["images"]
    assert entry["repoTags"] == ["docker.io/library/busybox:1.36"]
    removed = cli.invoke(image, ["rm", "busybox:1.36"])
    assert (removed.exit_code, removed.output) == (0, "removed busybox:1.36\n")
    assert "busybox" not in cli.invoke(image, ["ls"]).output
    assert list((tmp_path / "lastcall/images/blobs/sha256").iterdir()) == []


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("arguments", "text", "code"),
    [
        (["from-host", "Bad Name"], "couldn't parse image name", 2),
        (["from-host", "a@sha256:" + "0" * 64], "must not have a digest", 2),
        (["rm", "Bad Name"], "couldn't parse image name", 2),
        (["rm", "nothing"], "no such image: nothing", 2),
        (["rm"], "NAME", 2),
        (["pull"], "NAME", 2),
        (["pull", "Bad Name"], "couldn't parse image name", 2),
        (["pull", "--platform", "windows/amd64", "x"], "only images for linux", 2),
        (["import", "/no/such/file"], "cannot read /no/such/file: No such file or directory", 1),
        (["import", "/dev/null"], "/dev/null is not an archive of images", 1),
        (["import", "--name", "a", "b", "c"], "--name works with a single FILE only", 2),
        (["prune", "--older-than", "soon"], "write 12h, 30d or 4w", 2),
    ],
)
def test_bad_input_is_told_with_exit_status_2(cli: CliRunner, arguments: list[str], text: str, code: int) -> None:
    done = cli.invoke(image, arguments)
    assert text in done.output
    assert done.exit_code == code
    assert "Traceback" not in done.output


def saved(tmp_path: Path, name: str, content: bytes) -> str:
    """A `docker save` archive with one image."""
    layer = tar_of({"file": content})
    config = json.dumps({"rootfs": {"diff_ids": [digest_of(layer)]}}).encode()
    manifest = json.dumps([{"Config": "c", "RepoTags": [name], "Layers": ["l"]}]).encode()
    path = tmp_path / "saved.tar"
    path.write_bytes(tar_of({"manifest.json": manifest, "c": config, "l": layer}))
    return str(path)


def test_an_archive_is_imported_from_a_file_and_from_stdin(cli: CliRunner, tmp_path: Path) -> None:
    path = saved(tmp_path, "app:v1", b"one")
    done = cli.invoke(image, ["import", path])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("docker.io/library/app:v1 ")
    other = Path(saved(tmp_path, "app:v1", b"two")).read_bytes()
    done = cli.invoke(image, ["import", "-", "--name", "other:v2"], input=other)
    assert done.output.startswith("docker.io/library/other:v2 "), done.output
    shown = cli.invoke(image, ["ls"]).output
    assert "an archive, saved.tar" in shown
    assert "docker.io/library/other:v2" in shown
    digest = json.loads(cli.invoke(image, ["ls", "-o", "json"]).output)["images"][0]["digest"]
    assert cli.invoke(image, ["rm", digest[7:19]]).output == f"removed {digest[7:19]}\n"
    assert "app" not in cli.invoke(image, ["ls"]).output


def test_prune_frees_what_nothing_needs_and_keeps_what_was_imported(cli: CliRunner, tmp_path: Path) -> None:
    assert "freed nothing" in cli.invoke(image, ["prune"]).output
    cli.invoke(image, ["import", saved(tmp_path, "app:v1", b"one" * 10_000)])
    cli.invoke(image, ["import", saved(tmp_path, "app:v1", b"two")])  # the name moves: the first image has none now
    (tmp_path / "lastcall/images/downloads").mkdir()
    (tmp_path / "lastcall/images/downloads" / ("0" * 64)).write_bytes(b"x" * 1000)
    done = cli.invoke(image, ["prune", "--all"])
    assert done.output.startswith("freed 4"), done.output
    assert "app:v1" in cli.invoke(image, ["ls"]).output
    assert not list((tmp_path / "lastcall/images/downloads").iterdir())


@pytest.mark.loopback
def test_prune_removes_pulled_images_by_age_or_all(cli: CliRunner, tmp_path: Path) -> None:
    with Registry() as registry:
        for name in ("old:v1", "new:v1"):
            registry.add(name, {"file": name.encode()})
            done = cli.invoke(image, ["pull", "-q", f"{registry.host}/{name}"])
            assert done.exit_code == 0, done.output
        images = json.loads(cli.invoke(image, ["ls", "-o", "json"]).output)["images"]
        old = next(each for each in images if "/old:" in each["repoTags"][0])
        os.utime(tmp_path / "lastcall/images/blobs/sha256" / old["digest"][7:], (1, 1))
        done = cli.invoke(image, ["prune", "--older-than", "30d"])
        assert f"removed {registry.host}/old:v1\nfreed" in done.output
        assert f"{registry.host}/new:v1" in cli.invoke(image, ["ls"]).output
        assert f"removed {registry.host}/new:v1" in cli.invoke(image, ["prune", "--all"]).output
        assert list((tmp_path / "lastcall/images/blobs/sha256").iterdir()) == []


@pytest.mark.loopback
def test_a_pull_says_what_it_does_line_by_line_when_piped(cli: CliRunner) -> None:
    with Registry() as registry:
        digest = registry.add("app:v1", {"file": b"x" * 5000})
        name = f"{registry.host}/app:v1"
        lines = cli.invoke(image, ["pull", name]).output.splitlines()
        assert lines[0] == f"{name}: pulling"
        assert {line.partition(":")[0] for line in lines[1:3]} == {blob[7:19] for blob in registry.blobs}
        assert lines[3].startswith(f"{name} {digest} pulled, ")
        assert cli.invoke(image, ["pull", name]).output.splitlines()[-1] == f"{name} {digest} is up to date"


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, ["401 Unauthorized", "docker login 127.0.0.1:"]),
        (403, ["403 Forbidden", "docker login 127.0.0.1:"]),
        (404, ["app:v1: not found", "check the name"]),
        (418, ["unexpected status from HEAD request to http://127.0.0.1:"]),
    ],
)
def test_a_pull_that_fails_names_image_registry_status_and_way_out(
    cli: CliRunner, status: int, words: list[str]
) -> None:
    with Registry() as registry:
        registry.faults.append(Fault("manifests", times=9, status=status))
        done = cli.invoke(image, ["pull", f"{registry.host}/app:v1"])
    assert done.exit_code == 1
    assert f'failed to pull and unpack image "{registry.host}/app:v1"' in done.output
    for word in words:
        assert word in done.output


def test_a_store_that_cannot_be_written_is_told_with_exit_status_1(cli: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "lastcall").write_text("not a directory")
    done = cli.invoke(image, ["from-host", "--directories", "x"])
    assert "cannot write to the image store" in done.output
    assert done.exit_code == 1


@pytest.mark.parametrize(("found", "code"), [([OK], 0), ([OK, LESS], 0), ([OK, LESS, GONE], 1)])
@pytest.mark.parametrize("output", ["text", "json"])
def test_the_doctor_fails_only_when_something_is_missing(
    monkeypatch: pytest.MonkeyPatch, found: list[Need], code: int, output: str
) -> None:
    monkeypatch.setattr("lastcall.cli.doctor._try_cgroups", dict)
    monkeypatch.setattr("lastcall.cli.doctor._try_disk", Probe)
    monkeypatch.setattr(needs, "check", lambda cgroups: found)
    done = CliRunner().invoke(doctor, ["--output", output])
    assert done.exit_code == code
    for need in found:
        assert all(text in done.output for text in (need.name, need.found, need.lose, need.fix))


def test_the_doctor_s_json_has_every_field() -> None:
    answer = json.loads(render_json([LESS, GONE]))
    documented(answer)
    assert (answer["schema"], answer["ready"]) == ("lastcall/doctor/v1", False)
    assert answer["needs"][0] == {
        "name": "cgroups",
        "status": "degraded",
        "found": "cgroup v1 only",
        "lose": "no limits",
        "fix": "boot differently",
    }


def test_the_last_line_says_what_it_comes_to() -> None:
    assert summary([OK]) == "A cluster can start here, nothing is missing."
    assert summary([OK, LESS]) == "A cluster can start here, with limits: cgroups."
    assert summary([LESS, GONE]) == "A cluster cannot start here: user namespaces must be fixed first."
