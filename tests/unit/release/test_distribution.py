"""What is published: the wheel and the sdist, built here as an index gets them."""

import ast
import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from types import CodeType

import pytest

import lastcall

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import release  # noqa: E402
import repack  # noqa: E402
import trim  # noqa: E402


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """sdist and wheel; that they are here says that two builds were equal."""
    sdist, wheel = release.build_twice(tmp_path_factory.mktemp("dist"))
    return sdist, wheel


@pytest.fixture
def sdist(built: tuple[Path, Path]) -> Path:
    return built[0]


@pytest.fixture
def wheel(built: tuple[Path, Path]) -> Path:
    return built[1]


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def test_wheel_and_sdist_are_the_same_bytes_when_built_again_from_the_sdist(built: tuple[Path, Path]) -> None:
    assert [path.name for path in built] == [
        f"lastcall-{lastcall.__version__}.tar.gz",
        f"lastcall-{lastcall.__version__}-py3-none-any.whl",
    ]


def test_a_difference_between_two_builds_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = iter("12")

    def other_each_time(source: Path, target: Path) -> list[Path]:
        target.mkdir()
        with tarfile.open(target / "a.tar.gz", "w:gz") as archive:
            archive.add(__file__, f"a/{next(count)}")
        return [target / "a.tar.gz"]

    monkeypatch.setattr(release, "build", other_each_time)
    with pytest.raises(release.NotReproducible, match=r"a\.tar\.gz"):
        release.build_twice(tmp_path)


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < release.MOST_WHEEL_BYTES


def test_modules_of_the_wheel_run_what_the_sources_say_line_by_line(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".py")]
        for name in modules:
            published, source = archive.read(name), (ROOT / "src" / name).read_bytes()
            if published != source:
                assert code_of(published) == code_of(source), name
            assert published == source or not name.startswith(trim.AS_THEY_ARE), name


def code_of(module: bytes) -> CodeType:
    """With the place where each part begins, and without texts that nothing reads: a block may end with one."""
    tree = ast.parse(module)
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [each for each in body if not is_text(each)] or body  # type: ignore[attr-defined]
    return compile(tree, "module.py", "exec", dont_inherit=True)


def is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def test_the_wheel_records_the_sums_of_its_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        rows = [line.split(",") for line in archive.read(record).decode().splitlines()]
        assert [name for name, _, _ in rows] == archive.namelist()
        for name, told, size in rows:
            if name == record:
                assert told == size == ""
                continue
            method, _, value = told.partition("=")
            content = archive.read(name)
            found = base64.urlsafe_b64encode(hashlib.new(method, content).digest()).decode().rstrip("=")
            assert (found, len(content)) == (value, int(size)), name


@pytest.mark.loopback
def test_the_wheel_has_the_package_its_data_and_the_licences_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = f"lastcall-{lastcall.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"lastcall", info}
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE", "lastcall/py.typed"} <= names
    package = ROOT / "src" / "lastcall"
    ours = subprocess.run(
        ["git", "ls-files", "-z", "."], cwd=package, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    if any(ours):
        tracked = {f"lastcall/{name}" for name in ours if name and (package / name).exists()}
        assert tracked <= {name for name in names if name.startswith("lastcall/")}


def test_the_sdist_has_tests_and_documents(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "LICENSE",
        "NOTICE",
        "CHANGELOG.md",
        "README.md",
        "tests/conftest.py",
        "docs/lint.md",
    } <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".ci", ".git/", ".venv"))]


def test_the_index_is_told_where_everything_is(wheel: Path) -> None:
    told = metadata(wheel)
    assert told["Version"] == lastcall.__version__
    assert told["License-Expression"] == "Apache-2.0"
    assert set(told.get_all("License-File", [])) == {"LICENSE", "NOTICE"}
    urls = dict(each.split(", ", 1) for each in told.get_all("Project-URL", []))
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())


def test_links_of_the_readme_are_absolute_where_the_index_shows_it(wheel: Path) -> None:
    told = metadata(wheel)
    page = str(told.get_payload())
    homepage = dict(each.split(", ", 1) for each in told.get_all("Project-URL", []))["Homepage"]
    links = re.findall(r"\]\(([^)\s]+)\)", page)
    assert links
    for link in links:
        assert re.match(r"https?://|#", link), link
    relative = [link for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text()) if ":" not in link]
    assert relative, "links of the README in the repository are relative"
    for link in relative:
        kind = "raw" if link.endswith((".svg", ".png")) else "blob"
        assert f"{homepage}/{kind}/main/{link}" in links
        assert (ROOT / link.partition("#")[0]).exists(), link


def test_pyproject_reads_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/lastcall/_version.py"


def test_a_wheel_that_was_compressed_again_has_the_same_files(tmp_path: Path) -> None:
    made = tmp_path / "made.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("a/é.py", b"x = 1\n" * 1000), ("empty", b""), ("short", b"x"), ("tool", b"#!/bin/sh\n")):
            about = zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6))
            about.external_attr = 0o100755 << 16
            archive.writestr(about, content)
    wheel = Path(shutil.copy(made, tmp_path / "again.whl"))
    repack.repack(wheel)
    with zipfile.ZipFile(made) as before, zipfile.ZipFile(wheel) as after:
        assert after.testzip() is None
        for one, other in zip(before.infolist(), after.infolist(), strict=True):
            assert (one.filename, one.date_time, one.external_attr) == (
                other.filename,
                other.date_time,
                other.external_attr,
            )
            assert before.read(one) == after.read(other)
