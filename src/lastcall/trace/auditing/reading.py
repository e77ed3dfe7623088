"""An audit log that is read as it grows: a file, which may be rotated, or a pipe."""

# check: allow asyncio.to_thread because a file of the host may block

import asyncio
import errno
import os
import stat
import sys
from dataclasses import field

from lastcall.errors import UserError
from lastcall.trace.auditing.lines import AuditInput
from lastcall.world.dataclass import dataclass
from lastcall.world.files import irregular
from lastcall.world.world import World

STDIN = "-"
LOOK_SECONDS = 0.25
MOST_PAST_BYTES = 16 << 20
"""Of what a file had before the trace: enough for Pods that are being deleted already."""
_PIECE = 1 << 20


@dataclass(slots=True)
class AuditFile:
    """`run` follows `path` until cancelled; stdin to its end."""

    path: str
    world: World
    into: AuditInput
    _fd: int = -1
    _at: int = 0
    is_read: asyncio.Event = field(default_factory=asyncio.Event)
    """What was there at the start has been read."""

    def check(self) -> None:
        """Raise UserError if the file cannot be read."""
        if self.path == STDIN:
            if sys.stdin is None or sys.stdin.isatty():
                raise UserError("--audit-log -: stdin is a terminal; fix: pipe the log into it")
            return
        try:
            self._open(past=True)
        except OSError as error:
            raise UserError(f"--audit-log {self.path}: {error.strerror}; fix: name a file that you may read") from None

    async def run(self) -> None:
        if self.path == STDIN and not stat.S_ISREG(os.fstat(0).st_mode):
            await self._run_pipe()
            return
        if self.path == STDIN:
            self._fd = os.dup(0)
        while True:
            data = await asyncio.to_thread(self._more)
            if data:
                self.into.feed(data)
                continue
            self.is_read.set()
            if self._is_other():
                self.into.begin_again()
                self._reopen()
            await self.world.clock.sleep(LOOK_SECONDS)

    async def _run_pipe(self) -> None:
        reader = asyncio.StreamReader(limit=_PIECE)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0)))
        try:
            self.is_read.set()
            while data := await reader.read(_PIECE):
                self.into.feed(data)
            self.into.end()
        finally:
            transport.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self, *, past: bool) -> None:
        """Open the file; of one with a long past only the end is read. Raises OSError."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(fd)
        if what := irregular(status.st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, f"it is {what}, not a file", self.path)
        self.close()
        self._fd, self._at, size = fd, 0, status.st_size
        if past and size > MOST_PAST_BYTES:
            self._at = size - MOST_PAST_BYTES
            while (piece := os.pread(fd, _PIECE, self._at)) and b"\n" not in piece:
                self._at += len(piece)
            self._at += piece.find(b"\n") + 1

    def _more(self) -> bytes:
        data = os.pread(self._fd, _PIECE, self._at)
        self._at += len(data)
        return data

    def _is_other(self) -> bool:
        """Whether the path names another file now, or this one was emptied."""
        if self.path == STDIN:
            return False
        opened = os.fstat(self._fd)
        if opened.st_size < self._at:
            return True
        try:
            named = os.stat(self.path)
        except OSError:
            return False  # between a rename and the next file
        return (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino)

    def _reopen(self) -> None:
        try:
            self._open(past=False)
        except OSError:
            return  # it is looked for again
