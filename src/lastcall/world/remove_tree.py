"""Remove a directory tree that an attacker has filled.

No link is followed, no mount is entered, however deep the tree is neither the stack nor the descriptors run out, and
directories that their owner made unreadable are not an obstacle. What lies deeper than a few levels is moved up to the
top first.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

from lastcall.world import linux

_MOVED = ".removing-{}"
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | _DIRECTORY
_LEVELS = 12
"""So many directories are open at once; a container's own tree is less deep. A move takes a lock of the whole file
system, for which mounts of other containers wait."""


def remove_tree(path: str) -> None:
    """Remove what is at `path`, be it a file, a link or a tree; nothing being there is no error.

    Raises OSError: EBUSY for a tree in which something is mounted (a part of it may be gone then), and ENOENT when
    another process removes it at the same time.
    """
    parent, name = os.path.split(path)
    try:
        above = os.open(parent or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not _unlink(name, above):
            with _opened(name, above, path) as top:
                _empty(top, path)
            os.rmdir(name, dir_fd=above)
    finally:
        os.close(above)


def _empty(top: int, path: str) -> None:
    waiting = _remove_files(top)
    taken = frozenset(waiting)  # a removal that was cut off may have left such names
    names = (name for name in map(_MOVED.format, count()) if name not in taken)

    def sink(name: str, above: int, levels: int) -> None:
        with _opened(name, above, path) as directory:
            for child in _remove_files(directory):
                if levels:
                    sink(child, directory, levels - 1)
                else:
                    waiting.append(next(names))
                    _move(child, directory, waiting[-1], top, path)
        os.rmdir(name, dir_fd=above)

    while waiting:
        sink(waiting.pop(), top, _LEVELS)


def _move(name: str, directory: int, target: str, top: int, path: str) -> None:
    try:
        try:
            os.rename(name, target, src_dir_fd=directory, dst_dir_fd=top)
        except PermissionError:  # it has to be written itself: its `..` changes
            _make_accessible(name, directory)
            os.rename(name, target, src_dir_fd=directory, dst_dir_fd=top)
    except OSError as error:  # EBUSY: something is mounted on it
        raise OSError(error.errno, error.strerror, path) from error


def _remove_files(directory: int) -> list[str]:
    """Remove what is not a directory; answer the names of those."""
    with os.scandir(directory) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    return [name for name, is_directory in names if is_directory or not _unlink(name, directory)]


def _unlink(name: str, directory: int) -> bool:
    """False for a directory."""
    try:
        os.unlink(name, dir_fd=directory)
    except IsADirectoryError:
        return False
    except FileNotFoundError:
        return True
    return True


@contextmanager
def _opened(name: str, above: int, path: str) -> Iterator[int]:
    """A directory, made accessible, if nothing is mounted on it."""
    directory = _open(name, above, path)
    try:
        if os.fstat(directory).st_mode & 0o700 != 0o700:
            with suppress(PermissionError):  # another user's: root needs no mode
                os.fchmod(directory, 0o700)
        yield directory
    finally:
        os.close(directory)


def _open(name: str, above: int, path: str) -> int:
    try:
        return linux.openat2(above, name, _READ, linux.RESOLVE_NO_XDEV)
    except PermissionError:
        _make_accessible(name, above)
        return linux.openat2(above, name, _READ, linux.RESOLVE_NO_XDEV)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise OSError(errno.EBUSY, "something is mounted in it", path) from error
        raise


def _make_accessible(name: str, above: int) -> None:
    place = linux.openat2(above, name, os.O_PATH | _DIRECTORY, linux.RESOLVE_NO_XDEV)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
    finally:
        os.close(place)
