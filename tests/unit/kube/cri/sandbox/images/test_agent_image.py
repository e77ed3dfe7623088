"""`lastcall image build-agent`: lastcall and what it needs on a base image with Python."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from oci_registry import digest_of, gzipped, tar_of

from lastcall._version import __version__
from lastcall.cli.image.command import image
from lastcall.kube.cri.sandbox.images import ImageStore
from lastcall.kube.cri.sandbox.images.from_files import import_images
from lastcall.kube.cri.sandbox.images.from_packages import HOME, python_here
from lastcall.kube.cri.sandbox.images.platform import this_machine

NAME = f"localhost/lastcall-agent:{__version__}"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return CliRunner()


def keep_base(tmp_path: Path, files: dict[str, bytes], env: tuple[str, ...] = ()) -> str:
    """A base image in the store, out of an archive as `docker save` writes it, its layer compressed."""
    layer = tar_of(files)
    config = {
        "os": "linux",
        "architecture": this_machine().architecture,
        "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin", *env], "Entrypoint": ["old"], "Labels": {"a": "b"}},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]},
        "history": [{"created_by": "the base"}],
    }
    manifest = [{"Config": "config.json", "RepoTags": ["base:1"], "Layers": ["layer.tar"]}]
    parts = {"config.json": json.dumps(config).encode(), "layer.tar": gzipped(layer)}
    path = tmp_path / "base.tar"
    path.write_bytes(tar_of({**parts, "manifest.json": json.dumps(manifest).encode()}))
    import_images(ImageStore().layout, str(path))
    return "base:1"


def python_files() -> dict[str, bytes]:
    return {f"usr/bin/python{python_here()}": b"a Python", "etc/hostname": b"base"}


def small_wheel(tmp_path: Path) -> str:
    """A wheel of lastcall with next to nothing in it."""
    wheel = tmp_path / "lastcall-9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("lastcall/__init__.py", "__version__ = '9'\n")
        archive.writestr("lastcall-9.dist-info/METADATA", "Name: lastcall\nVersion: 9\nRequires-Dist: h11>=0.14\n")
    return str(wheel)


@pytest.mark.loopback
def test_the_image_has_the_base_below_lastcall_and_what_it_needs(cli: CliRunner, tmp_path: Path) -> None:
    base = keep_base(tmp_path, python_files())
    made = cli.invoke(image, ["build-agent", "--base", base])
    assert made.exit_code == 0, made.output
    assert made.output.startswith(f"{NAME} ")
    root = ImageStore(unpacked=tmp_path / "unpacked").rootfs(NAME)
    assert root.config.entrypoint == ("python3", "-m", "lastcall.cli.main")
    assert f"PYTHONPATH=/{HOME}" in root.config.env
    assert root.config.user == "65534:65534"
    top, bottom = (Path(directory) for directory in root.lowerdirs)
    assert (bottom / "etc/hostname").read_bytes() == b"base"
    for package in ("lastcall", "aiohttp", "orjson", "h11", "wsproto"):
        assert (top / HOME / package).is_dir(), package
    assert not list(top.rglob("__pycache__"))
    # Nothing else of this machine is needed: the program runs with only these files in its path.
    said = subprocess.run(
        [sys.executable, "-S", "-c", "import lastcall, aiohttp; print(lastcall.__file__, aiohttp.__file__)"],
        env={"PYTHONPATH": str(top / HOME), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert all(path.startswith(str(top)) for path in said)


def test_the_archive_is_one_that_docker_and_containerd_take(cli: CliRunner, tmp_path: Path) -> None:
    base, file = keep_base(tmp_path, python_files()), tmp_path / "agent.tar"
    name = "registry.example.com/a/agent:7"
    asked = ["build-agent", "--base", base, "--wheel", small_wheel(tmp_path), "--name", name, "-o", str(file)]
    made = cli.invoke(image, asked)
    assert made.exit_code == 0, made.output
    assert str(file) in made.output
    with tarfile.open(file) as tar:
        names = tar.getnames()
        index = json.load(tar.extractfile("index.json"))  # type: ignore[arg-type]
        (docker,) = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        manifest = json.load(tar.extractfile(f"blobs/sha256/{index['manifests'][0]['digest'][7:]}"))  # type: ignore[arg-type]
        config = json.load(tar.extractfile(docker["Config"]))  # type: ignore[arg-type]
    assert names[:3] == ["oci-layout", "index.json", "manifest.json"]
    assert docker["RepoTags"] == ["registry.example.com/a/agent:7"]
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == "registry.example.com/a/agent:7"
    assert all(name in names for name in docker["Layers"])
    assert len(manifest["layers"]) == len(config["rootfs"]["diff_ids"]) == len(config["history"]) == 2
    assert config["config"]["Labels"] == {"a": "b"}
    # The other way round, into another store.
    os.environ["XDG_DATA_HOME"] = str(tmp_path / "other")
    taken = cli.invoke(image, ["import", str(file)])
    assert taken.output.startswith("registry.example.com/a/agent:7 "), taken.output


def test_the_same_files_make_the_same_image(cli: CliRunner, tmp_path: Path) -> None:
    base, wheel = keep_base(tmp_path, python_files()), small_wheel(tmp_path)
    first, second = (cli.invoke(image, ["build-agent", "--base", base, "--wheel", wheel]).output for _ in range(2))
    assert first == second


def test_lastcall_is_taken_from_a_wheel_when_one_is_given(cli: CliRunner, tmp_path: Path) -> None:
    base = keep_base(tmp_path, python_files())
    made = cli.invoke(image, ["build-agent", "--base", base, "--wheel", small_wheel(tmp_path)])
    assert made.exit_code == 0, made.output
    top = Path(ImageStore(unpacked=tmp_path / "unpacked").rootfs(NAME).lowerdirs[0]) / HOME
    assert (top / "lastcall/__init__.py").read_text() == "__version__ = '9'\n"
    assert (top / "h11").is_dir()
    assert not (top / "aiohttp").exists()


@pytest.mark.parametrize(
    ("files", "env", "said"),
    [
        ({"etc/hostname": b""}, (), "has no Python"),
        ({"usr/bin/python3.4": b""}, (), "has Python 3.4, and what lastcall needs is installed here for"),
        ({"usr/local/bin/python3.9": b""}, ("PYTHON_VERSION=3.9.18",), "has Python 3.9"),
        ({**python_files(), "lib/ld-musl-x86_64.so.1": b""}, (), "has the C library musl"),
    ],
)
def test_a_base_on_which_it_cannot_run_is_refused_with_the_fix(
    cli: CliRunner, tmp_path: Path, files: dict[str, bytes], env: tuple[str, ...], said: str
) -> None:
    refused = cli.invoke(image, ["build-agent", "--base", keep_base(tmp_path, files, env)])
    assert refused.exit_code == 1
    assert said in refused.output
    assert "fix: --base python:" in refused.output


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot read the wheel"), ({"other/__init__.py": ""}, "is not a wheel of lastcall")]
)
def test_what_is_no_wheel_of_lastcall_is_refused(
    cli: CliRunner, tmp_path: Path, content: dict[str, str] | None, said: str
) -> None:
    base, wheel = keep_base(tmp_path, python_files()), tmp_path / "a.whl"
    wheel.write_bytes(b"not a zip")
    if content is not None:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, text in content.items():
                archive.writestr(name, text)
    refused = cli.invoke(image, ["build-agent", "--base", base, "--wheel", str(wheel)])
    assert refused.exit_code == 1
    assert said in refused.output


def test_an_archive_that_cannot_be_written_leaves_nothing(cli: CliRunner, tmp_path: Path) -> None:
    base = keep_base(tmp_path, python_files())
    asked = ["--base", base, "--wheel", small_wheel(tmp_path), "-o", str(tmp_path / "no/such/agent.tar")]
    refused = cli.invoke(image, ["build-agent", *asked])
    assert refused.exit_code == 1
    assert "cannot write" in refused.output
    assert "No such file or directory" in refused.output
