"""Which lastcall.yaml is read, and its text if it may be read."""

import os
import stat
from typing import NamedTuple

from lastcall.errors import UserError
from lastcall.world.os_errors import describe_os_error

NAME = "lastcall.yaml"
MAX_BYTES = 1024 * 1024

_NOT_WAITING: int = getattr(os, "O_NONBLOCK", 0)
"""For a pipe that nobody writes to. Windows has none of these."""

_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


class Found(NamedTuple):
    """A file, and whether the user named it: one that is merely found may set less (`keys.PROJECT`)."""

    path: str
    named: bool

    def __str__(self) -> str:
        """Return the path as the user would write it."""
        try:
            return self.path if self.named else os.path.relpath(self.path)
        except OSError:
            return self.path


def find(named: str | None) -> Found | None:
    """Return the file that was named ("" or /dev/null: none), else the nearest one.

    Looked for in the current directory and those above it, up to the first with a .git, or to $HOME. A directory above
    that another user owns, or that everybody may write to (/tmp), is not looked into, nor what is above it.
    """
    if named is not None:
        return Found(named, True) if named and named != os.devnull else None
    try:
        directory = os.getcwd()
    except OSError:
        return None  # it was removed
    home = os.path.realpath(os.environ.get("HOME") or "/")
    above = False
    while not above or _is_ours(directory):
        path = os.path.join(directory, NAME)
        if os.path.lexists(path):
            return Found(path, False)
        parent = os.path.dirname(directory)
        if directory in (home, parent) or os.path.lexists(os.path.join(directory, ".git")):
            return None
        directory, above = parent, True
    return None


def users() -> set[int]:
    """Return whose files are read without being named: the user's, root's, and under sudo those of who called it."""
    user = os.geteuid() if hasattr(os, "geteuid") else 0  # Windows has none, and calls everybody 0
    caller = os.environ.get("SUDO_UID", "")
    return {user, 0, int(caller)} if user == 0 and caller.isascii() and caller.isdecimal() else {user, 0}


def _is_ours(directory: str) -> bool:
    try:
        status = os.stat(directory)
    except OSError:
        return False
    return status.st_uid in users() and not status.st_mode & stat.S_IWOTH


def content(found: Found) -> str:
    """Return the text of a file. Raises UserError."""
    try:
        fd = os.open(found.path, os.O_RDONLY | _NOT_WAITING | (0 if found.named else _NO_LINK))
    except OSError as error:
        if not found.named and os.path.islink(found.path):
            raise UserError(f"{found}: is a symbolic link; fix: --config {found}") from error
        raise UserError(describe_os_error(error)) from error
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise UserError(f"{found}: is not a regular file")
    with open(fd, "rb") as file:
        if not found.named and status.st_uid not in users():
            raise UserError(
                f"{found}: belongs to user {status.st_uid}, not to you, and was not read; "
                f"fix: --config {found} reads it anyway, --config {os.devnull} reads none"
            )
        try:
            data = file.read(MAX_BYTES + 1)
            text = data.decode("utf-8-sig")
        except OSError as error:
            raise UserError(describe_os_error(error)) from error
        except UnicodeDecodeError as error:
            raise UserError(f"{found}: not UTF-8 text: {error.reason}") from error
    if len(data) > MAX_BYTES:
        raise UserError(f"{found}: is larger than {MAX_BYTES >> 20} MiB")
    return text
