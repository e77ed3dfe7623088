"""Detached mounts: copies of what is mounted, which are moved onto opened places; nothing is looked up twice."""

from __future__ import annotations

import contextlib
import errno
import os
import re

from lastcall.world import linux

_OCTAL = re.compile(r"\\([0-7]{3})")  # how mountinfo writes a blank


def clone_tree(source: str, *, readonly: bool = False, recursive: bool = True) -> int:
    """Make a detached bind mount of `source`. Without mount_setattr (Linux < 5.12) `readonly` is left to the caller."""
    flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | (linux.AT_RECURSIVE if recursive else 0)
    tree = linux.open_tree(linux.AT_FDCWD, source, flags)
    if readonly:
        with contextlib.suppress(NotImplementedError):
            set_readonly(tree)
    return tree


def set_readonly(tree: int) -> None:
    try:
        linux.mount_setattr(tree, "", linux.AT_EMPTY_PATH | linux.AT_RECURSIVE, linux.MOUNT_ATTR_RDONLY)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise NotImplementedError from error
        raise


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
