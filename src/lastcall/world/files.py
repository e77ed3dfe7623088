"""Files that are there as a whole or not at all. Standard library only: the shim uses it too."""

# check: standard library

import errno
import os
import stat
from contextlib import suppress


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`: write(2) may take less, on a full disk or at a signal. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_regular(path: str, most: int) -> bytes:
    """Return the content of a regular file.

    Raises OSError, also for a pipe or a device, and for more than `most` bytes. Opening does not wait: a pipe may have
    no writer, a device no end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if what := irregular(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, f"it is {what}, not a file", path)
        with open(fd, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(fd)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most >> 10} KiB", path)
    return content


def irregular(mode: int) -> str:
    """Return what is not a regular file, by its mode; "" for one that is."""
    kinds = (
        (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"), (stat.S_ISDIR, "a directory"),
    )  # fmt: skip
    return next((name for is_kind, name in kinds if is_kind(mode)), "")


def append_all(fd: int, data: bytes) -> None:
    """Append all of it, or nothing and raise OSError. `fd` is open with O_APPEND, and nobody else writes meanwhile."""
    size = os.fstat(fd).st_size
    try:
        write_all(fd, data)
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise


def replace_file(
    name: str, data: bytes, *, temporary: str, mode: int = 0o600, durable: bool = False, dir_fd: int | None = None
) -> None:
    """Put `data` in the place of a file, by way of the file `temporary` of the same directory. Raises OSError.

    What was there stays until all of the new is. With `durable` it outlives the machine's power when this returns.
    `dir_fd` is what a relative `name` is relative to.
    """
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=dir_fd)  # what a killed process left, or a link that an attacker put there
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, mode, dir_fd=dir_fd)
    try:
        try:
            os.fchmod(fd, mode)
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=dir_fd)
        raise
    if durable:
        sync_directory(os.path.dirname(name) or ".", dir_fd=dir_fd)


def sync_directory(path: str, *, dir_fd: int | None = None) -> None:
    """Write the names in the directory to disk, so that they survive a power failure. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
