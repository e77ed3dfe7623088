"""Directories whose entries are placed far from each other on the disk."""

import fcntl
import os
import struct
from contextlib import suppress

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
"""FS_IOC_GETFLAGS and FS_IOC_SETFLAGS of <linux/fs.h>."""
_TOP_OF_HIERARCHIES = 0x00020000
"""FS_TOPDIR_FL: `T` of chattr(1)."""


def spread(directory: str) -> None:
    """Ask the file system to place each directory that is made in this one far from the others.

    ext4 does not use an inode again within a minute of its deletion, and looks at each of those of a group of blocks
    before it finds a free one (fs/ext4/ialloc.c:recently_deleted). With their files in one group, 20 containers that
    follow 20 others start a third slower. File systems without such a flag are left as they are. Raises OSError where
    the directory cannot be opened.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            (flags,) = struct.unpack("i", fcntl.ioctl(fd, _GET_FLAGS, bytes(4)))
            fcntl.ioctl(fd, _SET_FLAGS, struct.pack("i", flags | _TOP_OF_HIERARCHIES))
    finally:
        os.close(fd)
