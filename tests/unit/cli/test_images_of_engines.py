"""`lastcall image load` with engines that are shell scripts: what they save, and how they fail.

podman 4.3.1 was tried by hand; the archives here have the shape and the names of its own.
"""

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lastcall.cli.commands import cli
from lastcall.errors import WorldError

pytestmark = pytest.mark.loopback

Engine = Callable[[str, str], None]


def archive(*tags: str) -> bytes:
    """As `docker save` and `podman save` write them."""
    layer = _tar({"hello": b"x" * 100_000})
    config = json.dumps(
        {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]}}
    ).encode()
    name = f"{_digest(config)[7:]}.json"
    manifest = [{"Config": name, "RepoTags": list(tags), "Layers": ["l/layer.tar"]}]
    return _tar({"l/layer.tar": layer, name: config, "manifest.json": json.dumps(manifest).encode()})


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """`engine("docker", SCRIPT)` installs one; there is no other. It finds the archive as $ARCHIVE."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in ("cat", "head", "sh", "kill"):
        found = shutil.which(tool)
        if found:
            (programs / tool).symlink_to(found)
    (tmp_path / "saved.tar").write_bytes(archive("localhost/app:v1"))
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("ARCHIVE", str(tmp_path / "saved.tar"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def install(name: str, script: str) -> None:
        (programs / name).write_text(f"#!{shutil.which('sh', path='/bin:/usr/bin')}\n{script}\n")
        (programs / name).chmod(0o755)

    return install


def load(*words: str) -> Result:
    return CliRunner().invoke(cli, ["image", "load", *words])


def names() -> set[str]:
    text = CliRunner().invoke(cli, ["image", "ls", "-o", "json"]).output
    return {name for one in json.loads(text)["images"] for name in one["repoTags"]}


def test_an_image_has_its_names_there_and_the_one_it_was_asked_by(engine: Engine) -> None:
    engine("podman", '[ "$*" = "save app:v1" ] && cat "$ARCHIVE"')
    result = load("app:v1")
    assert result.exit_code == 0, result.exception
    assert names() == {"localhost/app:v1", "docker.io/library/app:v1"}
    assert [line.split()[0] for line in result.output.splitlines()] == ["localhost/app:v1", "docker.io/library/app:v1"]
    assert all(line.endswith("loaded from podman") for line in result.output.splitlines())


def test_an_id_is_no_name(engine: Engine) -> None:
    engine("podman", 'cat "$ARCHIVE"')
    assert load("0f45e13a61d0").exit_code == 0
    assert names() == {"localhost/app:v1"}


def test_an_image_without_a_name_is_asked_to_get_one(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "saved.tar").write_bytes(archive())
    engine("podman", 'cat "$ARCHIVE"')
    result = load("0f45e13a61d0")
    assert result.exit_code == 2 and "fix: podman tag 0f45e13a61d0 NAME:TAG" in result.output


def test_the_engine_that_has_the_image_gives_it(engine: Engine) -> None:
    engine("docker", "echo Cannot connect to the Docker daemon at unix:///var/run/docker.sock. >&2; exit 1")
    engine("podman", 'cat "$ARCHIVE"')
    assert load("localhost/app:v1").output.endswith("loaded from podman\n")
    failed = load("localhost/app:v1", "--engine", "docker")
    assert isinstance(failed.exception, WorldError)
    assert str(failed.exception).startswith(
        "docker save localhost/app:v1: Cannot connect to the Docker daemon at unix:"
    )


def test_what_each_engine_says_is_told_when_none_has_the_image(engine: Engine) -> None:
    engine("docker", "echo 'Error response from daemon: No such image: nosuch:1' >&2; exit 1")
    engine("podman", "echo 'Error: nosuch:1: image not known' >&2; exit 125")
    said = str(load("nosuch:1").exception).splitlines()
    assert said == [
        "docker save nosuch:1: Error response from daemon: No such image: nosuch:1",
        "podman save nosuch:1: Error: nosuch:1: image not known",
    ]
    assert names() == set()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ('head -c 60000 "$ARCHIVE"; echo "unexpected EOF" >&2; exit 1', "docker save app:v1: unexpected EOF"),
        ('head -c 60000 "$ARCHIVE"; kill -9 $$', "docker save app:v1: signal 9 ended it"),
        ('head -c 60000 "$ARCHIVE"; exit 3', "docker save app:v1: it ended with exit status 3"),
        ('head -c 60000 "$ARCHIVE"', "docker.tar"),
        ("exit 0", "docker.tar"),
    ],
)
def test_a_daemon_that_dies_in_the_middle_leaves_no_image(script: str, told: str, engine: Engine) -> None:
    engine("docker", script)
    result = load("app:v1")
    assert result.exit_code == 1
    said = str(result.exception) if isinstance(result.exception, WorldError) else result.output
    assert told in said and "internal error" not in said
    assert names() == set()


def test_a_name_is_no_option_and_must_be_one(engine: Engine) -> None:
    engine("docker", 'cat "$ARCHIVE"')
    assert load("--", "--output=/tmp/x").exit_code == 2
    assert load("UPPER:x").exit_code == 2
    assert names() == set()


def test_without_an_engine_the_way_by_an_archive_is_told(engine: Engine) -> None:
    assert "none of docker, podman, nerdctl is installed here" in str(load("app:v1").exception)
    assert "podman is not installed here" in str(load("app:v1", "--engine", "podman").exception)


def test_kind_s_word_does_the_same(engine: Engine) -> None:
    engine("docker", 'cat "$ARCHIVE"')
    result = CliRunner().invoke(cli, ["load", "docker-image", "app:v1", "--name", "any"])
    assert result.exit_code == 0 and "docker.io/library/app:v1" in names()
