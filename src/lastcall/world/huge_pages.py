"""Memory in huge pages for a process that has become large.

A control plane of many thousand Pods touches objects all over its memory, and with pages of 4 KiB it is the way
through the page tables that takes the time, above all in a virtual machine. Small processes are left alone: there
huge pages would only be memory that nobody uses.
"""

import re
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from lastcall.world import memory
from lastcall.world.world import World

LOOK_SECONDS = 2.0
FROM_BYTES = 256 << 20
"""Resident bytes from which on a process is large."""
GROWTH_BYTES = 64 << 20
"""After so much more it is looked at again."""

LEAST_PART = 0.75
"""Of a huge page, that is in memory already: the rest becomes memory, too (buffers that nobody has written to)."""

_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
_HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0\s*(\[heap\])?$")


async def keep_in_huge_pages(world: World) -> None:
    """Move this process's memory into huge pages until cancelled; return if the kernel or its owner offers none."""
    huge = huge_page_bytes()
    largest = FROM_BYTES - GROWTH_BYTES
    while huge:
        await world.clock.sleep(LOOK_SECONDS)
        resident = resident_bytes()
        if resident < largest + GROWTH_BYTES:
            continue
        largest = resident
        for page in own_pages(huge):
            with suppress(OSError):  # none is free, or the memory went meanwhile
                if memory.resident_part(page, huge) < LEAST_PART:
                    continue
                memory.madvise_huge_pages(page, huge)
                memory.madvise_collapse(page, huge)
            await world.clock.sleep(0)  # others' turn: a page takes some milliseconds


def huge_page_bytes() -> int:
    """Return the size of a huge page; 0 if the kernel offers no huge pages."""
    try:
        allowed = "[never]" not in (_SETTINGS / "enabled").read_text()
        return int((_SETTINGS / "hpage_pmd_size").read_text()) if allowed else 0
    except (OSError, ValueError):
        return 0


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def own_pages(huge: int) -> list[int]:
    """Return the addresses of this process's memory that could be huge pages."""
    areas = private_areas(Path("/proc/self/maps").read_text().splitlines(), huge)
    return [page for start, end in areas for page in range(start, end, huge)]


def private_areas(maps: Iterable[str], huge: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end), in whole pages of `huge` bytes, of memory that belongs to no file, from /proc/PID/maps."""
    for line in maps:
        head = _HEAD.match(line)
        if head is not None:
            start = -(-int(head[1], 16) // huge) * huge
            end = int(head[2], 16) // huge * huge
            if start < end:
                yield start, end
