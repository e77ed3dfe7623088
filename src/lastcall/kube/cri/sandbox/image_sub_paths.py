"""What an image that is a volume holds, before anything of it is mounted.

Source: containerd internal/cri/server/container_image_mount.go:ensureImageSubPath, which CreateContainer calls.
"""

import os
import stat
from collections.abc import Sequence

from lastcall.kube.cri.api import Mount, RuntimeServiceError

_MOST_LINKS = 40


def check_sub_path(mount: Mount, layers: Sequence[str]) -> None:
    """Raise RuntimeServiceError if the image of `mount` does not have its `image_sub_path`."""
    if mount.image_sub_path and not has_path(layers, mount.image_sub_path):
        what = f"image {mount.image!r}: its path {mount.image_sub_path!r} does not exist"
        raise RuntimeServiceError(f"failed to create container: {what}")


def has_path(layers: Sequence[str], path: str) -> bool:
    """Return whether a path exists in `layers`, the uppermost first, as overlayfs will show them.

    Links lead to somewhere else in the image. The layers do not change while they are looked at.
    """
    waiting = path.split("/")[::-1]
    here = [list(layers)]  # of the root and each directory on the way: what overlayfs merges
    links = 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            here = here[:-1] or here
        elif name not in ("", "."):
            found = _look_up(here[-1], name)
            if found is None:
                return False
            if isinstance(found, list):
                here.append(found)
            elif found == "":
                return not waiting
            else:
                links += 1
                if links > _MOST_LINKS:
                    return False
                if found.startswith("/"):
                    del here[1:]
                waiting += found.split("/")[::-1]
    return True


def _look_up(directories: list[str], name: str) -> list[str] | str | None:
    """The directories of a directory, the target of a link, "" of anything else, None for nothing."""
    merged: list[str] = []
    for directory in directories:
        path = os.path.join(directory, name)
        try:
            status = os.lstat(path)
        except (OSError, ValueError):  # a name that no file system takes is not there either
            continue
        if stat.S_ISDIR(status.st_mode):
            merged.append(path)
            continue
        if merged:
            break  # it, and what is below it, is hidden by the directory
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            return None  # a whiteout
        return os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    return merged or None
