"""The text of a lastcall.yaml, if it may be read."""

import os
import stat
from typing import NamedTuple

from lastcall.cli.settings.context import users
from lastcall.errors import UserError
from lastcall.world.os_errors import describe_os_error

MAX_BYTES = 1024 * 1024

_NOT_WAITING: int = getattr(os, "O_NONBLOCK", 0)
"""For a pipe that nobody writes to. Windows has none of these."""

_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


class Found(NamedTuple):
    """A file, and whether the user named it: one that is merely found may set less (`keys.PROJECT`)."""

    path: str
    named: bool


def content(found: Found) -> str:
    """The text of a file. Raises UserError."""
    where = shown(found)
    try:
        fd = os.open(found.path, os.O_RDONLY | _NOT_WAITING | (0 if found.named else _NO_LINK))
    except OSError as error:
        if not found.named and os.path.islink(found.path):
            raise UserError(f"{where}: is a link; fix: name the file: --config {where}") from error
        raise UserError(describe_os_error(error)) from error
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise UserError(f"{where}: is not a regular file")
    with open(fd, "rb") as file:
        if not found.named and status.st_uid not in users():
            raise UserError(
                f"{where}: belongs to user {status.st_uid}, not to you, and was not read; "
                f"fix: --config {where} reads it all the same, --config {os.devnull} reads none"
            )
        try:
            data = file.read(MAX_BYTES + 1)
            text = data.decode("utf-8-sig")
        except OSError as error:
            raise UserError(describe_os_error(error)) from error
        except UnicodeDecodeError as error:
            raise UserError(f"{where}: not a text in UTF-8: {error.reason}") from error
    if len(data) > MAX_BYTES:
        raise UserError(f"{where}: is larger than {MAX_BYTES >> 20} MiB")
    return text


def shown(found: Found) -> str:
    """The path as a user would write it."""
    try:
        return os.path.relpath(found.path) if not found.named else found.path
    except OSError:
        return found.path
