"""Directories of containers are placed far from each other where the file system has a flag for it."""

import fcntl
import os
import struct
from pathlib import Path

import pytest

from lastcall.kube.cri.sandbox.spread import spread

NO_ACCESS_TIMES, TOP = 0x80, 0x20000  # FS_NOATIME_FL, FS_TOPDIR_FL


def flags_of(directory: Path) -> int | None:
    """None where the file system has none."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, 0x80086601, bytes(4)))[0])
    except OSError:
        return None
    finally:
        os.close(fd)


def test_a_directory_becomes_the_top_of_hierarchies_and_keeps_its_other_flags(tmp_path: Path) -> None:
    before = flags_of(tmp_path)
    if before is not None:
        fd = os.open(tmp_path, os.O_RDONLY)
        fcntl.ioctl(fd, 0x40086602, struct.pack("i", before | NO_ACCESS_TIMES))
        os.close(fd)
    spread(str(tmp_path))
    spread(str(tmp_path))
    assert flags_of(tmp_path) == (None if before is None else before | NO_ACCESS_TIMES | TOP)


def test_a_file_system_without_the_flag_is_left_as_it_is() -> None:
    spread("/proc/self/fd")
    with pytest.raises(NotADirectoryError):
        spread("/proc/self/status")
