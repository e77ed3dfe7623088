"""A directory whose files change all at once. Source: pkg/volume/util/atomic_writer.go.

volume/..2030_01_01_00_00_00.123456789/key     the files
volume/..data -> ..2030_01_01_00_00_00.123456789
volume/key -> ..data/key                       what a container opens
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from lastcall.world.dataclass import dataclass
from lastcall.world.files import write_all

_DATA = "..data"
_NEW_DATA = "..data_tmp"
_GROUP_READS = 0o440


@dataclass(frozen=True, slots=True)
class FileProjection:
    """One file: content and permission bits."""

    data: bytes
    mode: int


Payload = Mapping[str, FileProjection]
"""Relative paths -> files."""


def validate_path(path: str) -> None:
    """Raise ValueError for a path that is empty, absolute or leaves the volume."""
    parts = PurePosixPath(path).parts
    if not path or path.startswith("/") or ".." in parts:
        raise ValueError(f"invalid path {path!r}: must be relative and must not contain '..'")
    if parts and parts[0].startswith(".."):
        raise ValueError(f"invalid path {path!r}: must not start with '..'")


def write_payload(target: Path, payload: Payload, wall_ns: int, gid: int | None = None) -> bool:
    """Make the directory `target` show exactly `payload`; return False if it did already.

    `wall_ns` names the new generation. `gid` (fsGroup) becomes the group of all that is in it where the kernel lets us,
    and may read it: pkg/volume/volume_linux.go:changeFilePermission, as of a volume that is read-only.
    Raises ValueError for a hostile path and OSError.
    """
    for path in payload:
        validate_path(path)
    target.mkdir(parents=True, exist_ok=True)
    if gid is not None:
        payload = {path: replace(file, mode=file.mode | _GROUP_READS) for path, file in payload.items()}
    old = _current(target)
    if old is not None and _shows(target / old, payload):
        return False
    stamp = datetime.fromtimestamp(wall_ns // 1_000_000_000, UTC).strftime("..%Y_%m_%d_%H_%M_%S")
    generation = f"{stamp}.{wall_ns % 1_000_000_000:09d}"
    directory = target / generation
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    for path, file in payload.items():
        place = directory / path
        if "/" in path:
            place.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            write_all(descriptor, file.data)
            if gid is not None:
                _try_chown(descriptor, gid)
            os.fchmod(descriptor, file.mode)
        finally:
            os.close(descriptor)
    new_link = target / _NEW_DATA
    new_link.unlink(missing_ok=True)
    new_link.symlink_to(generation)
    new_link.rename(target / _DATA)
    wanted = dict.fromkeys(path.partition("/")[0] for path in payload)
    for name in wanted:
        link = target / name
        if not link.is_symlink():
            link.symlink_to(f"{_DATA}/{name}")
    for link in list(target.iterdir()):
        if link.is_symlink() and link.name != _DATA and link.name not in wanted:
            link.unlink()
    if old is not None:
        shutil.rmtree(target / old, ignore_errors=True)
    return True


def _try_chown(descriptor: int, gid: int) -> None:
    try:
        os.fchown(descriptor, -1, gid)
    except OSError:
        return  # the group is not mapped in this user namespace


def _current(target: Path) -> str | None:
    try:
        name = os.readlink(target / _DATA)
    except OSError:
        return None
    return name if "/" not in name else None


def _shows(directory: Path, payload: Payload) -> bool:
    found = {str(p.relative_to(directory)): p for p in directory.rglob("*") if p.is_file()}
    if set(found) != {str(PurePosixPath(path)) for path in payload}:
        return False
    return all(
        found[str(PurePosixPath(path))].read_bytes() == file.data
        and found[str(PurePosixPath(path))].stat().st_mode & 0o777 == file.mode & 0o777
        for path, file in payload.items()
    )
