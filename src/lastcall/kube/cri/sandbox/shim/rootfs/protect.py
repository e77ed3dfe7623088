"""What a container may not write to, and what it may not see."""

from __future__ import annotations

import os
import stat

from lastcall.kube.cri.sandbox.shim.rootfs.confined import Root
from lastcall.kube.cri.sandbox.shim.rootfs.trees import attach, clone_tree, set_readonly, unescaped
from lastcall.world import linux

_EMPTY = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC


def make_readonly(root: Root, path: str) -> None:
    """Bind a path onto itself, read-only. A missing one needs no protection."""
    try:
        place = root.open(path)
    except OSError:
        return
    flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | linux.AT_RECURSIVE | linux.AT_EMPTY_PATH
    attach_readonly(root, path, linux.open_tree(place, "", flags), place)


def attach_readonly(root: Root, path: str, tree: int, place: int) -> None:
    """Move a detached tree onto `place`, which is `path`, and forbid writes to it; close both. Raises OSError."""
    is_readonly = set_readonly(tree)
    attach(tree, place)
    if not is_readonly:
        _remount_readonly_below(root, path)


def mask(root: Root, path: str) -> None:
    """Hide a path: /dev/null over a file, an empty read-only tmpfs over a directory."""
    try:
        place = root.open(path)
    except OSError:
        return
    if stat.S_ISDIR(os.stat(place).st_mode):
        linux.mount("tmpfs", f"/proc/self/fd/{place}", "tmpfs", _EMPTY, "size=0k,nr_inodes=2")
        os.close(place)
    else:
        attach(clone_tree("/dev/null", recursive=False), place)


def _remount_readonly_below(root: Root, target: str) -> None:
    """Remount every mount at or below `target`."""
    fd = root.open(target)
    try:
        top = os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [unescaped(line.split(" ")[4]) for line in file]
    for point in points:
        if point == top or point.startswith(f"{top}/"):
            remount_readonly(point)


def remount_readonly(path: str) -> None:
    """Remount one mount read-only. In a user namespace the flags it was mounted with may not be dropped."""
    have = os.statvfs(path).f_flag
    keep = have & (linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)  # ST_* and MS_* agree on these
    keep |= linux.MS_NOATIME if have & os.ST_NOATIME else 0
    keep |= linux.MS_RELATIME if have & os.ST_RELATIME else 0
    linux.mount("none", path, None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | keep)
