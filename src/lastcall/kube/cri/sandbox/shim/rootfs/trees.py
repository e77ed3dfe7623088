"""Detached mounts: copies of what is mounted, which are moved onto opened places; nothing is looked up twice."""

from __future__ import annotations

import errno
import os
import re

from lastcall.world import linux

_OCTAL = re.compile(r"\\([0-7]{3})")  # how mountinfo writes a blank


def clone_tree(source: str, *, recursive: bool = True) -> int:
    """Make a detached bind mount of `source`. Raises OSError."""
    flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | (linux.AT_RECURSIVE if recursive else 0)
    return linux.open_tree(linux.AT_FDCWD, source, flags)


def set_readonly(tree: int) -> bool:
    """Make a detached tree read-only; return False where the kernel cannot (Linux before 5.12). Raises OSError."""
    try:
        linux.mount_setattr(tree, "", linux.AT_EMPTY_PATH | linux.AT_RECURSIVE, linux.MOUNT_ATTR_RDONLY)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True


def attach(tree: int, target: int) -> None:
    """Move a detached mount onto an opened place; close both."""
    try:
        linux.move_mount(tree, target)
    finally:
        os.close(tree)
        os.close(target)


def unescaped(point: str) -> str:
    """Decode a mount point as mountinfo writes it."""
    return _OCTAL.sub(lambda code: chr(int(code[1], 8)), point)
