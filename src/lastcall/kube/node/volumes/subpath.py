"""subPath mounts: a place inside a volume, whatever symbolic links a container has put there.

Source of the rule: pkg/volume/util/subpath/subpath_linux.go. Kubernetes walks the path by hand; Linux ≥ 5.6 resolves
it in the kernel as if the volume were the root (openat2, RESOLVE_IN_ROOT).
"""

import contextlib
import os
from pathlib import Path, PurePosixPath

from lastcall.kube.node.interfaces import VolumeError
from lastcall.world import linux

_RESOLVE = linux.RESOLVE_IN_ROOT | linux.RESOLVE_NO_MAGICLINKS


def open_in_volume(volume: Path, sub_path: str) -> int:
    """Open `sub_path` inside `volume` as an O_PATH descriptor; make missing directories (0750). Raises VolumeError."""
    parts = PurePosixPath(sub_path).parts
    if sub_path.startswith("/") or ".." in parts:
        raise VolumeError(f"subPath {sub_path!r} must be relative and must not contain '..'")
    root = os.open(volume, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        current = ""
        for part in parts:
            parent, current = current or ".", f"{current}/{part}" if current else part
            with contextlib.suppress(FileNotFoundError):
                os.close(linux.openat2(root, current, os.O_PATH | os.O_CLOEXEC, _RESOLVE))
                continue
            inside = linux.openat2(root, parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, _RESOLVE)
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o750, dir_fd=inside)
            finally:
                os.close(inside)
        return linux.openat2(root, sub_path or ".", os.O_PATH | os.O_CLOEXEC, _RESOLVE)
    except OSError as error:
        raise VolumeError(f"failed to prepare subPath {sub_path!r}: {error.strerror or error}") from None
    finally:
        os.close(root)


def bind_sub_path(volume: Path, sub_path: str, target: Path, *, may_mount: bool = True) -> Path:
    """Bind `sub_path` of `volume` at `target` and return the path to mount into the container.

    The bind keeps the very file that was resolved, so that a container cannot swap it afterwards. If mounting is not
    permitted, or with `may_mount` False, return the resolved path itself.
    """
    descriptor = open_in_volume(volume, sub_path)
    try:
        resolved = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not may_mount:
            return resolved
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_mount():
            linux.umount2(str(target), linux.MNT_DETACH)
        if resolved.is_dir():
            target.mkdir(exist_ok=True)
        else:
            target.touch(exist_ok=True)
        try:
            linux.mount(f"/proc/self/fd/{descriptor}", str(target), None, linux.MS_BIND)
        except PermissionError:
            return resolved
        return target
    finally:
        os.close(descriptor)
