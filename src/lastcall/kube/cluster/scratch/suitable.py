"""Which directories can hold what containers write. Pure, but for `look`, which asks the kernel."""

import os

from lastcall.world import linux
from lastcall.world.dataclass import dataclass

_MIB = 1 << 20
LEAST_BYTES = 2 << 30
"""Of free space, unless the cluster's files may have less. With less, DiskPressure would come with the first image."""

DISKS = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0xF2F52010: "f2fs",
    0xCA451A4E: "bcachefs",
    0x2FC12FC1: "zfs",
}
"""Magic numbers (statfs(2)) of file systems that are no memory and can be the upper layer of an overlay."""
_OTHERS = {
    0x01021994: "a tmpfs, which is memory",
    0x858458F6: "a ramfs, which is memory",
    0x794C7630: "an overlay: this program runs in a container",
    0x6969: "NFS",
    0x65735546: "FUSE",
}


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of a directory: `kind` as statfs(2) has it, `free` bytes and `inodes` (0: not counted)."""

    kind: int
    free: int
    inodes: int
    executable: bool = True


def look(fd: int) -> Disk:
    """Return the file system that a directory is on. Raises OSError."""
    found = os.fstatvfs(fd)
    executable = not found.f_flag & os.ST_NOEXEC
    inodes = found.f_favail if found.f_files else 0
    return Disk(linux.file_system_type(fd), found.f_bavail * found.f_frsize, inodes, executable)


def why_not(disk: Disk, size: int) -> str:
    """Return why the files of a cluster, at most `size` bytes, cannot be on this file system; "" if they can."""
    if disk.kind not in DISKS:
        other = _OTHERS.get(disk.kind, f"of a type that is not known to work (0x{disk.kind:x})")
        return f"its file system is {other}"
    if not disk.executable:
        return "its file system is mounted noexec"
    least = min(size, LEAST_BYTES)
    if disk.free < least:
        return f"its file system has {disk.free // _MIB} MiB left, fewer than {least // _MIB}"
    return ""
