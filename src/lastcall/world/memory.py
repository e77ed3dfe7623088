"""A process's memory, and the heap of its libc. Thin functions over libc, as `linux.py`."""

import ctypes
import os

from lastcall.world.linux import failure, libc

_MADV_DONTNEED = 4
_MADV_HUGEPAGE = 14
_MADV_COLLAPSE = 25
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def madvise_huge_pages(address: int, length: int) -> None:
    """Ask the kernel for huge pages where this range is touched for the first time. Raises OSError."""
    if libc.madvise(address, length, _MADV_HUGEPAGE) != 0:
        raise failure("madvise")


def madvise_collapse(address: int, length: int) -> None:
    """Put what is there already into huge pages now. Raises OSError (EINVAL before Linux 6.1)."""
    if libc.madvise(address, length, _MADV_COLLAPSE) != 0:
        raise failure("madvise")


libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def resident_part(address: int, length: int) -> float:
    """Return which part of a range of whole pages is in memory, from 0 to 1. Raises OSError."""
    pages = length // os.sysconf("SC_PAGE_SIZE")
    states = ctypes.create_string_buffer(pages)
    if libc.mincore(address, length, states) != 0:
        raise failure("mincore")
    return sum(state & 1 for state in states.raw[:pages]) / pages


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
        )
    )  # fmt: skip


def free_heap_bytes() -> int | None:
    """Return the bytes that malloc keeps for later; None where libc does not say (musl, glibc before 2.33)."""
    try:
        mallinfo2 = libc.mallinfo2
    except AttributeError:
        return None
    mallinfo2.restype = _Mallinfo2
    return int(mallinfo2().fordblks)


_M_MMAP_THRESHOLD = -3


def keep_large_blocks_apart(size: int) -> None:
    """Make malloc map blocks of `size` bytes or more by themselves: they go back when they are freed, and pages of a
    new one that nobody writes cost nothing (mallopt(3)). Do nothing where libc has no such call (musl).

    By itself glibc raises that limit to the largest block that was freed, up to 32 MiB.
    """
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, size)


def malloc_trim() -> None:
    """Return the memory that malloc keeps for later to the kernel; do nothing where libc has no such call (musl)."""
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def madvise_dontneed(address: int, length: int) -> None:
    """Drop pages; those of a file are read again when they are needed, private ones are lost. Raises OSError."""
    if libc.madvise(address, length, _MADV_DONTNEED) != 0:
        raise failure("madvise")
