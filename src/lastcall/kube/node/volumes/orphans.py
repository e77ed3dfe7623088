"""Directories of Pods that nobody knows any more, and what is mounted in them: after a crash, say.

Source: kubelet_volumes.go:{cleanupOrphanedPodDirs,removeOrphanedPodVolumeDirs}. A kubelet leaves what it cannot take
down for the next sweep and says so in its log; there is no Event about it.
"""

import logging
import os
import re

from lastcall.kube.api.text.go_notation import go_quote
from lastcall.world import linux
from lastcall.world.remove_tree import remove_tree

log = logging.getLogger(__name__)

_OCTAL = re.compile(rb"\\([0-7]{3})")


def mounts_below(directory: str, mountinfo: bytes | None = None) -> list[str]:
    """Return mount points at or below a directory, the last mounted first. `mountinfo`: this process's, by default."""
    if mountinfo is None:
        with open("/proc/self/mountinfo", "rb") as file:
            mountinfo = file.read()
    prefix = os.fsencode(directory)
    points = [_OCTAL.sub(lambda m: bytes([int(m[1], 8)]), line.split(b" ")[4]) for line in mountinfo.splitlines()]
    return [os.fsdecode(p) for p in reversed(points) if p == prefix or p.startswith(prefix + b"/")]


def unmount_below(directory: str) -> None:
    """Unmount everything below a directory. Raises OSError for what stays."""
    for point in mounts_below(directory):
        try:
            linux.umount2(point, linux.MNT_DETACH | linux.UMOUNT_NOFOLLOW)
        except OSError as error:
            if point in mounts_below(directory):
                raise OSError(error.errno, error.strerror, point) from error


def orphaned(pods: str, known_uids: set[str]) -> list[str]:
    """Return names below the directory of Pods that nobody knows."""
    try:
        return sorted(name for name in os.listdir(pods) if name not in known_uids)
    except OSError:
        return []


def take_down(pods: str, uid: str) -> str:
    """Unmount and remove one orphan's directory; return the kubelet's words for why it stays, "" if it is gone.

    May take a while: not for the event loop when there is much in it.
    """
    path = f"{os.path.realpath(pods)}/{uid}"
    try:
        if not os.path.islink(path):
            unmount_below(path)
        remove_tree(path)
    except OSError as error:
        where = error.filename or path
        why = (error.strerror or str(error)).lower()
        return f"orphaned pod {go_quote(uid)} found, but failed to rmdir() volume at path {where}: {why}"
    return ""


def tell(errors: list[str]) -> None:
    """Log one of the errors and their number: this runs every two seconds."""
    if errors:
        log.error(
            "%s. There were a total of %d errors similar to this. Turn up verbosity to see them.",
            errors[0],
            len(errors),
        )
        for error in errors:
            log.debug("orphan pod: %s", error)
