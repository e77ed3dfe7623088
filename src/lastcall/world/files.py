"""Files that are there as a whole or not at all. Standard library only: the shim uses it too."""

# check: standard library

import os
from contextlib import suppress


def write_all(fd: int, data: bytes) -> None:
    """write(2) may take less than it is given: on a disk that fills up, or by a signal. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


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
        os.unlink(temporary, dir_fd=dir_fd)  # what a killed process left, or a link that somebody put there
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
    """Which names it has outlives the machine's power. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
