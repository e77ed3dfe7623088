"""`lastcall image` and `lastcall doctor`, as typed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lastcall.cli.doctor import doctor, render_json, summary
from lastcall.cli.image import image
from lastcall.world import needs
from lastcall.world.needs import Need

OK = Need("overlayfs", "ok", "can be mounted")
LESS = Need("cgroups", "degraded", "cgroup v1 only", "no limits", "boot differently")
GONE = Need("user namespaces", "missing", "forbidden [by a rule]", fix="sudo sysctl -w user.max_user_namespaces=15000")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return CliRunner()


def test_an_image_from_the_host_is_made_shown_and_removed(cli: CliRunner, tmp_path: Path) -> None:
    made = cli.invoke(image, ["from-host", "--directories", "busybox:1.36"])
    assert made.exit_code == 0, made.output
    assert made.output.startswith("docker.io/library/busybox:1.36 ")
    assert "bound read-only" in made.output
    shown = cli.invoke(image, ["ls"])
    assert "docker.io/library/busybox:1.36" in shown.output
    (entry,) = json.loads(cli.invoke(image, ["ls", "--output", "json"]).output)["images"]
    assert entry["repoTags"] == ["docker.io/library/busybox:1.36"]
    removed = cli.invoke(image, ["rm", "busybox:1.36"])
    assert (removed.exit_code, removed.output) == (0, "removed busybox:1.36\n")
    assert "busybox" not in cli.invoke(image, ["ls"]).output
    assert list((tmp_path / "lastcall/images/blobs/sha256").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "text", "code"),
    [
        (["from-host", "Bad Name"], "couldn't parse image name", 2),
        (["from-host", "a@sha256:" + "0" * 64], "must not have a digest", 2),
        (["rm", "Bad Name"], "couldn't parse image name", 2),
        (["rm", "nothing"], "no such image: nothing", 2),
        (["rm"], "NAME", 2),
    ],
)
def test_bad_input_is_told_with_exit_status_2(cli: CliRunner, arguments: list[str], text: str, code: int) -> None:
    done = cli.invoke(image, arguments)
    assert text in done.output
    assert done.exit_code == code
    assert "Traceback" not in done.output


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
    monkeypatch.setattr(needs, "check", lambda: found)
    done = CliRunner().invoke(doctor, ["--output", output])
    assert done.exit_code == code
    for need in found:
        assert all(text in done.output for text in (need.name, need.found, need.lose, need.fix))


def test_the_doctor_s_json_has_every_field() -> None:
    answer = json.loads(render_json([LESS, GONE]))
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
    assert summary([OK, LESS]) == "A cluster can start here, with less: cgroups."
    assert summary([LESS, GONE]) == "A cluster cannot start here: user namespaces must be fixed first."
