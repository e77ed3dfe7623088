"""emptyDir and hostPath: directories of the node. Sources: pkg/volume/emptydir, pkg/volume/hostpath."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.kube.api.quantity import QuantityError, parse_quantity
from lastcall.kube.node.interfaces import VolumeError
from lastcall.world import linux

if TYPE_CHECKING:
    from lastcall.kube.api.types.storage import HostPathVolumeSource
    from lastcall.kube.api.types.volumes import EmptyDirVolumeSource


def set_up_empty_dir(
    directory: Path, source: EmptyDirVolumeSource, fs_group: int | None, *, may_mount: bool = True
) -> None:
    """Make the directory (mode 0777); medium Memory is a tmpfs where that is permitted, and `may_mount`. Idempotent."""
    directory.mkdir(parents=True, exist_ok=True)
    if source.get("medium") == "Memory" and may_mount and not directory.is_mount():
        options = "mode=0777"
        if size := bytes_of(source.get("sizeLimit")):
            options += f",size={size}"
        with contextlib.suppress(PermissionError):
            linux.mount("tmpfs", str(directory), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
    directory.chmod(0o777)
    if fs_group is not None:
        try:
            os.chown(directory, -1, fs_group)
        except OSError:
            return  # the group is not mapped in this user namespace; 0777 lets everyone in
        directory.chmod(0o2777)


def bytes_of(quantity: object) -> int:
    """Return the bytes of a memory quantity, 0 for none or anything unreadable."""
    try:
        return max(0, parse_quantity(str(quantity or "")).whole)
    except QuantityError:
        return 0


def check_host_path(source: HostPathVolumeSource) -> Path:
    """Return the path after its type check, made where the type says so. Raises VolumeError.

    Source: pkg/volume/hostpath/host_path.go:checkType.
    """
    path = Path(source.get("path") or "/")
    kind = source.get("type") or ""
    mode = 0
    try:
        if kind == "DirectoryOrCreate" and not path.exists():
            path.mkdir(mode=0o755, parents=True)
        elif kind == "FileOrCreate" and not path.exists():
            path.touch(mode=0o644)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # what is not there is of no type
            mode = path.stat().st_mode if kind else 0
    except OSError as error:
        raise VolumeError(f"hostPath type check failed: {path}: {(error.strerror or str(error)).lower()}") from None
    tests = {
        "Directory": (stat.S_ISDIR, "a directory"),
        "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
        "File": (stat.S_ISREG, "a file"),
        "FileOrCreate": (stat.S_ISREG, "a file"),
        "Socket": (stat.S_ISSOCK, "a socket file"),
        "CharDevice": (stat.S_ISCHR, "a character device"),
        "BlockDevice": (stat.S_ISBLK, "a block device"),
    }
    if kind in tests and not tests[kind][0](mode):
        raise VolumeError(f"hostPath type check failed: {path} is not {tests[kind][1]}")
    return path
