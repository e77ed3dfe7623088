"""The logs of a staying cluster, bounded: front's own in a file, a role's in memory."""

import os
from contextlib import suppress

from lastcall.kube.cluster.directory import LOG, ClusterDirectory
from lastcall.world import linux
from lastcall.world.clock import RealClock, now, rfc3339

FILE_BYTES = 1 << 20
"""A file that becomes longer keeps its second half."""
KEPT_BYTES = 1 << 20
"""How much of what a role prints stays in memory."""


class FrontLog:
    """`front.log`. Writing never raises: a full disk must not end a cluster."""

    def __init__(self, directory: ClusterDirectory, limit: int = FILE_BYTES) -> None:
        """Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self.fd = os.open(LOG, flags, 0o600, dir_fd=directory.fd)
        os.fchmod(self.fd, 0o600)
        self._limit = limit
        self._clock = RealClock()

    def write(self, text: str) -> None:
        """Write one entry, with the time before it."""
        stamp = rfc3339(now(self._clock))
        lines = "".join(f"{stamp} {line}\n" for line in text.splitlines() or [""])
        with suppress(OSError):
            os.write(self.fd, lines.encode("utf-8", "replace"))
        self.bound()

    def bound(self) -> None:
        """Drop the older half of a file that has become too long (others may print to the descriptor)."""
        with suppress(OSError):
            size = os.fstat(self.fd).st_size
            if size > self._limit:
                kept = os.pread(self.fd, self._limit // 2, size - self._limit // 2)
                os.ftruncate(self.fd, 0)
                os.write(self.fd, kept.partition(b"\n")[2])

    def close(self) -> None:
        os.close(self.fd)


def forget_all_but_the_end(fd: int, kept: int = KEPT_BYTES) -> None:
    """Free the memory of a memfd's beginning. Positions stay: writers and readers notice nothing."""
    with suppress(OSError):
        end = (os.fstat(fd).st_size - kept) // 4096 * 4096
        if end > 0:
            linux.punch_hole(fd, 0, end)


class LogTail:
    """Reads the end of a log that grows, in whole lines."""

    def __init__(self, fd: int, kept: int = KEPT_BYTES) -> None:
        self._fd = fd
        self._position = max(0, os.fstat(fd).st_size - kept)
        self._skip = self._position > 0
        self._part = b""

    def read(self) -> list[str]:
        """Return the lines that are complete since the last call."""
        size = os.fstat(self._fd).st_size
        if size < self._position:  # it was cut
            self._position, self._part = 0, b""
        data = self._part
        while self._position < size and (piece := os.pread(self._fd, 1 << 16, self._position)):
            self._position += len(piece)
            data += piece
        *lines, self._part = data.replace(b"\0", b"").split(b"\n")
        if self._skip and lines:
            self._skip = False
            del lines[0]
        return [line.decode(errors="replace") for line in lines]

    def rest(self) -> list[str]:
        """Return the text without an end of line."""
        return [self._part.decode(errors="replace")] if self._part else []
