"""The room that the store keeps back, so that a full one can still be emptied.

Growth ends first, then what merely goes on, deletions last: etcd with its NOSPACE alarm takes deletions too, but no
write besides, not even the mark of a graceful deletion. Two limits may be reached. The store's own is in pages of its
file, and part of them is for later stages only. The other is the file system's, which others fill as well: there a
file of blocks that are ours already (`reserve`) is cut shorter from stage to stage. `Log` performs it, in its thread.
"""

import errno
import os
from contextlib import suppress

RESERVE_BYTES = 32 << 20
"""More than a checkpoint of the largest write-ahead log may add to the file (`log.py`: 16 MB and a group)."""
LEAST_BYTES = 1 << 20
"""How much more must be free before a full store takes everything again."""

CREATION = 1 << 62
"""The growth of a new object, whatever its size; that of a deletion is `DELETION`."""
DELETION = -1
MOST_GROWTH = (CREATION, 4096, 512, DELETION)
"""By stage, by how many bytes a write may make an object larger. At 0 there is room. At 1 a status can be written and a
Lease renewed, at 2 a deletion marked, at 3 objects can be removed, and finalizers (what they leave is smaller)."""
LAST_STAGE = len(MOST_GROWTH) - 1
_KEPT = (4, 2, 1, 0)
"""By stage, quarters of the reserve that are not to be used yet."""


def may_write(growth: int, stage: int) -> bool:
    """Return whether a write that makes an object larger by `growth` bytes is accepted at `stage`."""
    return growth <= MOST_GROWTH[stage]


def most_pages(pages: int, page_size: int, stage: int) -> int:
    """Return how many of the `pages` that the file may have at all it may have at `stage`."""
    reserve = min(RESERVE_BYTES // page_size, pages // 4)
    return pages - reserve * _KEPT[stage] // 4


class Ballast:
    """The file `path`, whose blocks are given back step by step; without a path there is none.

    Its size goes with that of the file system: what is free at the moment says nothing about the next time.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def keep(self, stage: int) -> bool:
        """Resize the reserve for `stage`. Return False if the file system lacks room (at 0: with a little to spare)."""
        if not self._path:
            return True
        with suppress(OSError):
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                size, own, free = self._sizes(fd)
                kept = size * _KEPT[stage] // 4
                if own + free < kept + (0 if stage else min(LEAST_BYTES, size)):
                    return False
                os.ftruncate(fd, min(kept, os.fstat(fd).st_size))
                if kept:
                    os.posix_fallocate(fd, 0, kept)
                return True
            finally:
                os.close(fd)
        return False

    def grow(self, stage: int, most: int) -> None:
        """Take up to `most` bytes more, until there is what is to be had at `stage`. Nothing is given back."""
        if not self._path:
            return
        with suppress(OSError):
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                size, own, free = self._sizes(fd)
                wanted = min(size * _KEPT[stage] // 4, own + min(most, free))
                if wanted > own:
                    os.posix_fallocate(fd, 0, wanted)
            finally:
                os.close(fd)

    def give_back(self) -> None:
        """Leave all of it to the file system."""
        if self._path:
            with suppress(OSError):
                os.truncate(self._path, 0)

    @staticmethod
    def _sizes(fd: int) -> tuple[int, int, int]:
        """(bytes of the whole, those that are ours now, those that are free)"""
        room = os.fstatvfs(fd)
        whole = min(RESERVE_BYTES, room.f_blocks * room.f_frsize // 8)
        return whole, os.fstat(fd).st_blocks * 512, room.f_bavail * room.f_frsize

    def lacks_blocks(self) -> bool:
        """Return whether the file system has none for us: SQLite reports a used-up quota as an error of the disk."""
        if not self._path:
            return False
        try:
            fd = os.open(f"{self._path}.try", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.posix_fallocate(fd, 0, 1 << 16)
            finally:
                os.close(fd)
        except OSError as error:
            return error.errno in (errno.ENOSPC, errno.EDQUOT)
        finally:
            with suppress(OSError):
                os.unlink(f"{self._path}.try")
        return False
