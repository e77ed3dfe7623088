"""An error of the operating system in one line, with the fix for the usual causes."""

import errno
import os

_HINTS = {
    errno.ENOSPC: "free some space, or set TMPDIR to a place that has some",
    errno.EDQUOT: "your quota is used up: free some space, or set TMPDIR to a place that has some",
    errno.EROFS: "the file system is read-only: set TMPDIR or XDG_DATA_HOME to a place that can be written",
    errno.EACCES: "check the permissions of that path",
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096",
    errno.ENFILE: "the machine has no file descriptors left: see fs.file-max",
    errno.ENOMEM: "the machine has no memory left",
    errno.EAGAIN: "the machine or your user has no processes left: see ulimit -u",
}

_HINTS_OF_PATHS = {
    errno.ENOSPC: "free some space on its file system",
    errno.EDQUOT: "your quota there is used up: free some space",
    errno.EROFS: "its file system is read-only: make it writable, or use another directory",
}
"""Where the path is known and is not in the directory of temporary files, which a variable can move."""


def describe_os_error(error: OSError) -> str:
    """Return one line: what, where and, for the usual causes, the fix."""
    what = error.strerror or str(error) or type(error).__name__
    where = f"{error.filename}: " if error.filename else ""
    hint = _HINTS.get(error.errno or 0)
    temporary = os.path.join(os.environ.get("TMPDIR") or "/tmp", "")  # noqa: S108 (only compared with)
    if isinstance(error.filename, str) and os.path.isabs(error.filename) and not error.filename.startswith(temporary):
        hint = _HINTS_OF_PATHS.get(error.errno or 0, hint)
    return f"{where}{what}" + (f" ({hint})" if hint else "")
