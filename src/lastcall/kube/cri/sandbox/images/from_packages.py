"""lastcall and what it needs, as files of an image: out of a wheel of it, or as it is installed here.

What lastcall needs is copied as it is installed, compiled modules too: so the image's Python has to be of the same
minor version, and its C library the same, as those of the Python that runs this.
"""

import importlib.metadata
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from email import message_from_bytes
from pathlib import Path, PurePosixPath

from lastcall import _version
from lastcall.kube.cri.sandbox.images.layout import ImageError

HOME = "opt/lastcall"
"""Where the files are in the image; PYTHONPATH has it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PYTHON = re.compile(r"usr/(?:local/)?bin/python(3\.\d+)")
_MUSL = re.compile(r"(?:usr/)?lib/ld-musl-[^/]*")

PackageFiles = dict[str, tuple[bytes | str | Path, int]]
_Named = tuple[str, tuple[bytes | str | Path, int]]


def python_here() -> str:
    """Return the minor version of the Python that runs this: `3.13`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def check_python(name: str, env: dict[str, str], paths: Iterable[str]) -> None:
    """Check that what is installed here runs on an image's Python: `env` are its variables, `paths` its files.

    Raises ImageError, which names the fix.
    """
    found, musl = set[str](), False
    for path in paths:
        if (match := _PYTHON.fullmatch(path)) is not None:
            found.add(match[1])
        musl = musl or _MUSL.fullmatch(path) is not None
    said = env.get("PYTHON_VERSION", "")
    if said:  # the official images', whose python3 comes first in PATH
        found = {".".join(said.split(".")[:2])}
    here = python_here()
    if not found:
        raise ImageError(f"image {name} has no Python (usr/bin/python3.x); fix: --base python:{here}-slim")
    if here not in found:
        versions = ", ".join(sorted(found))
        raise ImageError(
            f"image {name} has Python {versions}, and what lastcall needs is installed here for {here}; "
            f"fix: --base python:{here}-slim, or run lastcall with Python {versions}"
        )
    if musl != ("musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")):
        theirs, ours = ("musl", "glibc") if musl else ("glibc", "musl")
        raise ImageError(
            f"image {name} has the C library {theirs}, and what lastcall needs is installed here for {ours}; "
            f"fix: --base python:{here}-{'slim' if musl else 'alpine'}"
        )


def package_files(wheel: Path | None = None) -> PackageFiles:
    """Return the files of lastcall and of its dependencies, by their path in the image.

    lastcall's own are those of `wheel`, or without one those of the installed package. Raises ImageError for a file
    that is not a wheel of lastcall, and if lastcall or a dependency is not installed.
    """
    if wheel is None:
        found = dict(_directory(Path(_version.__file__).parent))
        needed = _requirements(_installed_requirements())
    else:
        found, texts = _wheel(wheel)
        needed = _requirements(texts)
    for distribution in _closure(needed):
        found.update(_distribution(distribution))
    return {f"{HOME}/{path}": content for path, content in found.items()}


def _installed_requirements() -> list[str]:
    try:
        return importlib.metadata.requires("lastcall") or []
    except importlib.metadata.PackageNotFoundError as error:
        text = "lastcall is not installed here, so what it needs is not known; fix: --wheel FILE.whl"
        raise ImageError(text) from error


def _directory(root: Path) -> Iterator[_Named]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{root.name}/{path.relative_to(root).as_posix()}", (path, 0o644)


def _wheel(path: Path) -> tuple[PackageFiles, list[str]]:
    """The files of a wheel of lastcall, and its requirements."""
    found: PackageFiles = {}
    requirements: list[str] | None = None
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                name = PurePosixPath(entry.filename)
                if entry.is_dir():
                    continue
                if name.is_absolute() or ".." in name.parts:
                    raise ImageError(f"{path}: {entry.filename!r} points outside of the wheel")
                data = archive.read(entry)
                if name.name == "METADATA" and name.parent.name.startswith("lastcall-"):
                    requirements = message_from_bytes(data).get_all("Requires-Dist") or []
                found[str(name)] = (data, 0o644)
    except (OSError, zipfile.BadZipFile) as error:
        raise ImageError(f"cannot read the wheel {path}: {error}") from error
    if requirements is None or "lastcall/__init__.py" not in found:
        raise ImageError(f"{path} is not a wheel of lastcall")
    return found, requirements


def _requirements(texts: Iterable[str]) -> list[tuple[str, bool]]:
    """(name, whether it is needed everywhere) of every requirement but those of extras."""
    found = []
    for text in texts:
        requirement, _, marker = text.partition(";")
        match = _NAME.match(requirement.strip())
        if match is not None and "extra" not in marker:
            found.append((match[0], not marker.strip()))
    return found


def _closure(wanted: list[tuple[str, bool]]) -> list[importlib.metadata.Distribution]:
    """What is needed, and what that needs. What only some machines need may be absent."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(wanted)
    while waiting:
        name, everywhere = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            found[key] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError as error:
            if everywhere:
                text = f"{name}, which lastcall needs, is not installed here; fix: pip install {name}"
                raise ImageError(text) from error
            continue
        waiting += _requirements(found[key].requires or [])
    return [found[key] for key in sorted(found)]


def _distribution(distribution: importlib.metadata.Distribution) -> Iterator[_Named]:
    name = distribution.metadata["Name"]
    files = distribution.files
    if files is None:
        raise ImageError(f"which files {name} has is not recorded here; fix: install lastcall with pip, in a venv")
    for file in files:
        if ".." in file.parts or file.is_absolute() or "__pycache__" in file.parts:
            continue  # programs and man pages beside the packages
        path = Path(str(file.locate()))
        if path.is_file():
            yield file.as_posix(), (path, 0o755 if path.suffix == ".so" else 0o644)
