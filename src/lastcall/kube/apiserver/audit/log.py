"""The file that audit events are appended to: bounded on disk and in memory, written off the event loop.

What cannot be written is dropped and counted: an API server whose disk is full goes on.
"""

import asyncio
import errno
import logging
import os
from collections import deque
from contextlib import suppress

from lastcall.kube.apiserver.audit.policy import AUDIT_EVERYTHING, Policy
from lastcall.world.dataclass import dataclass
from lastcall.world.files import append_all, irregular

MOST_WAITING_BYTES = 8 << 20
"""Events that wait for the file; above that new ones are dropped."""
BATCH_BYTES = 1 << 20

_log = logging.getLogger("lastcall.kube.apiserver.audit")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """`path` is absolute. A file that would have more than `max_bytes` becomes `path`.1; `backups` of them stay."""

    path: str
    policy: Policy = AUDIT_EVERYTHING
    max_bytes: int = 100 << 20
    backups: int = 3


def open_log(path: str) -> int:
    """Open a log to append to it, for its owner alone. Raises OSError, also for what is not a regular file."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    try:
        status = os.fstat(fd)
        if what := irregular(status.st_mode):
            raise OSError(errno.EINVAL, f"it is {what}, not a file", path)
        if status.st_mode & 0o077:
            os.fchmod(fd, 0o600)
    except OSError:
        os.close(fd)
        raise
    return fd


class AuditLog:
    """`write` never waits; `run` appends what was written, until cancelled."""

    def __init__(self, options: AuditOptions) -> None:
        self._options = options
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self._fd = -1
        self.dropped = 0
        """Events that were not written."""
        self._is_failing = False

    def write(self, line: bytes) -> None:
        """Take one line, or drop it."""
        if self._bytes + len(line) > MOST_WAITING_BYTES:
            self.dropped += 1
            return
        self._waiting.append(line)
        self._bytes += len(line)
        self._more.set()

    async def run(self) -> None:
        """Append until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                await self._in_thread(self._take())

    async def _in_thread(self, lines: list[bytes]) -> None:
        """Append lines in a thread; who is cancelled meanwhile waits for it, so that `close` comes after it."""
        writing = asyncio.get_running_loop().run_in_executor(None, self._append, lines)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            await writing
            raise

    def close(self) -> None:
        """Append what waits, and close the file."""
        while self._waiting:
            self._append(self._take())
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self) -> list[bytes]:
        lines, size = [], 0
        while self._waiting and size < BATCH_BYTES:
            lines.append(self._waiting.popleft())
            size += len(lines[-1])
        self._bytes -= size
        return lines

    def _append(self, lines: list[bytes]) -> None:
        try:
            self._open_right_file(sum(map(len, lines)))
            append_all(self._fd, b"".join(lines))
        except OSError as error:
            self.dropped += len(lines)
            if not self._is_failing:
                _log.warning("%s cannot be written: %s. Audit events are dropped", self._options.path, error.strerror)
            self._is_failing = True
        else:
            if self._is_failing:
                _log.warning("%s is written again; %d audit events were dropped", self._options.path, self.dropped)
            self._is_failing = False

    def _open_right_file(self, more: int) -> None:
        """Open the file if it is not the open one, and rotate it if it would become too long. Raises OSError."""
        path = self._options.path
        if self._fd >= 0 and not _is_file(self._fd, path):
            os.close(self._fd)
            self._fd = -1
        if self._fd < 0:
            self._fd = open_log(path)
        size = os.fstat(self._fd).st_size
        if size and size + more > self._options.max_bytes:
            self._rotate()
            os.close(self._fd)
            self._fd = -1
            self._fd = open_log(path)

    def _rotate(self) -> None:
        path, backups = self._options.path, self._options.backups
        if not backups:
            os.unlink(path)
            return
        for number in range(backups - 1, 0, -1):
            with suppress(FileNotFoundError):
                os.replace(f"{path}.{number}", f"{path}.{number + 1}")
        os.replace(path, f"{path}.1")


def _is_file(fd: int, path: str) -> bool:
    """Whether `path` still names the open file: logs are moved away by others, too."""
    try:
        named = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    opened = os.fstat(fd)
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
