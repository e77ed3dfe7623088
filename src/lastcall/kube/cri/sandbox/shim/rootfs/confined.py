"""Lookups inside a container's root: no path of an image or a manifest leads out of it.

Every path is opened with openat2: symbolic links resolve against the root, magic links not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os

from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONFINED = linux.RESOLVE_IN_ROOT | linux.RESOLVE_NO_MAGICLINKS
_MOST_LINKS = 40


class SetupError(Exception):
    """The container cannot be set up; the text is for the user."""


def words(error: OSError) -> str:
    """Return the kernel's reason as Go writes it."""
    return os.strerror(error.errno or 0).lower() if error.errno else str(error)


class Root:
    """A directory that is the root of every lookup made through it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def open(self, path: str, flags: int = os.O_PATH) -> int:
        """Open what exists. Raises OSError."""
        return linux.openat2(self.fd, path.lstrip("/") or ".", flags, _CONFINED)

    def directory(self, path: str, links: int = 0) -> int:
        """Open a directory and make what is missing of it. Raises OSError."""
        try:
            return self.open(path, os.O_PATH | os.O_DIRECTORY)
        except FileNotFoundError:
            link = self._make(path, links, lambda name, parent: os.mkdir(name, 0o755, dir_fd=parent))
            return self.directory(link, links + 1) if link else self.open(path, os.O_PATH | os.O_DIRECTORY)

    def file(self, path: str, links: int = 0) -> int:
        """Open a file; an empty one is made where there is nothing. Raises OSError."""
        try:
            return self.open(path)
        except FileNotFoundError:
            link = self._make(path, links, lambda name, parent: os.close(create_file(name, parent)))
            return self.file(link, links + 1) if link else self.open(path)

    def _make(self, path: str, links: int, make: Any) -> str:
        """Make the last component; where a dangling symbolic link is in its place, answer what that points to."""
        parent, name = os.path.split(path.rstrip("/"))
        if links > _MOST_LINKS or name in ("", ".", ".."):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        directory = self.directory(parent or "/", links)
        try:
            make(name, directory)
        except FileExistsError:
            with contextlib.suppress(OSError):
                return os.path.join(parent or "/", os.readlink(name, dir_fd=directory))
        finally:
            os.close(directory)
        return ""


def create_file(name: str, directory: int) -> int:
    """Create an empty file and return it opened. Raises OSError, FileExistsError for a link, too."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, 0o644, dir_fd=directory)
