"""Follow the log files that a runtime writes: lines of output for the timeline.

Source of the format: kubelet kuberuntime/logs/logs.go:parseCRILog.
"""

from __future__ import annotations

import contextlib
import os
from struct import Struct

from lastcall.kube.cri.sandbox.shim.logs import Allowance
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.kube.cri.sandbox.shim.loop import Loop

    OnLine = Callable[[str, str, int], None]
    """Called with stream, text and how many lines before it were too many to tell."""

_EVENT = Struct("=iIII")
_READ_SIZE = 1 << 16
_MOST_AT_ONCE = 1 << 20
"""Bytes of one log that a turn of the loop reads."""
_REST_SECONDS = 0.02
_ROTATED_SECONDS = 0.1
_ROTATED_TRIES = 50
"""How often to look for the new file after a log was renamed."""


class Tails:
    """All logs that are followed, with one descriptor of inotify(7)."""

    def __init__(self, loop: Loop) -> None:
        """Raises OSError."""
        self.loop = loop
        self.fd = linux.inotify_init()
        self._by_number: dict[int, Tail] = {}
        loop.watch(self.fd, self._ready)

    def follow(self, path: str, on_line: OnLine, *, from_end: bool) -> Tail:
        """Follow a file; `from_end`: what is in it was reported before. Raises OSError."""
        tail = Tail(self, path, on_line)
        tail.open(from_end=from_end)
        return tail

    def watch(self, tail: Tail, path: str) -> int:
        """Watch a file. Raises OSError."""
        number = linux.inotify_add_watch(self.fd, path, linux.IN_MODIFY | linux.IN_MOVE_SELF)
        self._by_number[number] = tail
        return number

    def unwatch(self, number: int) -> None:
        if self._by_number.pop(number, None) is not None:
            linux.inotify_rm_watch(self.fd, number)

    def _ready(self, events: int) -> None:
        changed: dict[Tail, int] = {}
        with contextlib.suppress(BlockingIOError):
            data, offset = os.read(self.fd, _READ_SIZE), 0
            while offset + _EVENT.size <= len(data):
                number, mask, _, length = _EVENT.unpack_from(data, offset)
                offset += _EVENT.size + length
                if (tail := self._by_number.get(number)) is not None:
                    changed[tail] = changed.get(tail, 0) | mask
        for tail, mask in changed.items():
            tail.read()
            if mask & linux.IN_MOVE_SELF:
                tail.renamed()


class Tail:
    """One container's log."""

    def __init__(self, tails: Tails, path: str, on_line: OnLine) -> None:
        self._tails, self._path, self._on_line = tails, path, on_line
        self._fd = self._number = -1
        self._rest = b""
        self._allowance = Allowance()
        self._dropped: dict[str, int] = {}
        self._closed = False

    def open(self, *, from_end: bool) -> None:
        """Begin with the file at the path. Raises OSError."""
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            number = self._tails.watch(self, self._path)
            if from_end:
                os.lseek(fd, 0, os.SEEK_END)
        except OSError:
            os.close(fd)
            raise
        self._let_go()
        self._fd, self._number = fd, number
        self.read()

    def read(self) -> None:
        """Report the lines that have come. A file that cannot be read any more is left alone."""
        if self._fd < 0:
            return
        self._allowance.earn()
        for _ in range(_MOST_AT_ONCE // _READ_SIZE):
            try:
                data = os.read(self._fd, _READ_SIZE)
            except OSError:
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._tell(line)
            if len(data) < _READ_SIZE:
                return
        self._tails.loop.call_later(_REST_SECONDS, self.read)

    def _tell(self, line: bytes) -> None:
        parsed = parse_line(line)
        if parsed is None:
            return
        stream, text = parsed
        if self._allowance.take():
            self._on_line(stream, text, self._dropped.pop(stream, 0))
        else:
            self._dropped[stream] = self._dropped.get(stream, 0) + 1

    def renamed(self, tries: int = _ROTATED_TRIES) -> None:
        """Continue in the new file: it was rotated, and the runtime makes one when the kubelet asks for it."""
        if self._closed or not tries:
            return
        try:
            if os.stat(self._path).st_ino != os.fstat(self._fd).st_ino:
                self.read()
                self.open(from_end=False)
                return
        except OSError:
            pass  # it is not there yet
        self._tails.loop.call_later(_ROTATED_SECONDS, lambda: self.renamed(tries - 1))

    def close(self) -> None:
        """Report what is there, and that lines at the end were too many. Idempotent."""
        if self._closed:
            return
        self.read()
        self._closed = True
        self._let_go()
        for stream, count in self._dropped.items():
            self._on_line(stream, "", count)

    def _let_go(self) -> None:
        if self._fd >= 0:
            self._tails.unwatch(self._number)
            os.close(self._fd)
            self._fd = self._number = -1


def parse_line(line: bytes) -> tuple[str, str] | None:
    """Return (stream, text) of `<time> <stream> <F|P> <text>`; None for anything else."""
    words = line.split(b" ", 3)
    if len(words) < 3 or words[1] not in (b"stdout", b"stderr"):
        return None
    return words[1].decode(), (words[3] if len(words) > 3 else b"").decode("utf-8", "replace")
