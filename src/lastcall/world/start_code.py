"""Giving back the code that only a start needs: half of what a process has mapped of its libraries is never run again.

The pages stay in the kernel's page cache, no longer held by this process; one that is needed after all is mapped again
by a minor fault.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from lastcall.world import memory

AFTER_SECONDS = 5.0
"""After a role has started: no Pod that came with the start should wait for it, and `run` has mostly ended by then."""

_SMALLEST = 128 * 1024
"""Bytes of a mapping that are worth a call."""

_HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+\s+(/.*)?$")


def give_back_start_code() -> None:
    """Unmap the clean pages of libraries; do nothing if the kernel does not report which those are."""
    with suppress(OSError), open("/proc/self/smaps") as file:
        for start, end in list(clean_mappings(file)):
            memory.madvise_dontneed(start, end - start)


def clean_mappings(smaps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of clean mappings of files: nobody may write them and nobody has, by /proc/PID/smaps.

    What a loader relocated and then protected is private memory (`Anonymous`), and giving that back would lose it.
    """
    where: tuple[int, int] | None = None
    resident = 0
    for line in smaps:
        head = _HEAD.match(line)
        if head is not None:
            start, end, mode, path = head.groups()
            where = (int(start, 16), int(end, 16)) if path and mode in ("r-xp", "r--p") else None
            resident = 0
        elif line.startswith("Rss:"):
            resident = int(line.split()[1]) * 1024
        elif line.startswith("Anonymous:") and where is not None:
            if int(line.split()[1]) == 0 and resident >= _SMALLEST:
                yield where
            where = None
