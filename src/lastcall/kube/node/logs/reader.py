"""Reading container logs in the CRI format. Source: kuberuntime/logs/logs.go.

A line is `<RFC 3339 with nanoseconds> <stdout|stderr> <P|F> <text>\\n`; `P` is a part of a longer line.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

BLOCK = 64 * 1024
POLL_SECONDS = 0.05
"""How often a followed log is looked at."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Query of a log request. `since` is absolute; None means no limit everywhere. `stream` "" is both."""

    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None
    stream: str = ""


@dataclass(slots=True)
class _Output:
    """Turns CRI lines into what a client sees."""

    options: LogOptions
    written: int = 0
    at_line_start: bool = True

    @property
    def full(self) -> bool:
        return self.options.limit_bytes is not None and self.written >= self.options.limit_bytes

    def feed(self, line: bytes) -> bytes:
        """The visible bytes of one CRI line (with its newline); b"" for a filtered or broken one."""
        parts = line.rstrip(b"\n").split(b" ", 3)
        if len(parts) < 4:
            return b""
        stamp, stream, tags, text = parts
        if self.options.stream and stream.decode("ascii", "replace") != self.options.stream.lower():
            return b""
        if self.options.since is not None and not _not_before(stamp, self.options.since):
            return b""
        out = text
        if self.options.timestamps and self.at_line_start:
            out = stamp + b" " + out
        partial = tags.split(b":", 1)[0] == b"P"
        if not partial:
            out += b"\n"
        self.at_line_start = not partial
        if self.options.limit_bytes is not None:
            out = out[: max(0, self.options.limit_bytes - self.written)]
        self.written += len(out)
        return out


def _not_before(stamp: bytes, since: datetime) -> bool:
    text = stamp.decode("ascii", "replace")
    # Python's datetime keeps microseconds.
    head, dot, tail = text.partition(".")
    if dot:
        digits = tail.rstrip("Z").split("+")[0].split("-")[0]
        text = f"{head}.{digits[:6]}{tail[len(digits) :]}"
    try:
        return parse_rfc3339(text) >= since
    except ValueError:
        return True


def tail_offset(file: BinaryIO, lines: int) -> int:
    """Return where the last `lines` lines of a file begin. Source: pkg/util/tail/tail.go:FindTailLineStartIndex."""
    end = file.seek(0, os.SEEK_END)
    if lines <= 0:
        return end
    position = end
    found = 0
    last_byte = True
    while position > 0:
        size = min(BLOCK, position)
        position -= size
        file.seek(position)
        block = file.read(size)
        stop = len(block)
        if last_byte and block.endswith(b"\n"):
            stop -= 1
        last_byte = False
        while (stop := block.rfind(b"\n", 0, stop)) >= 0:
            found += 1
            if found == lines:
                return position + stop + 1
    return 0


def tail_log_text(path: Path, lines: int, limit: int) -> str:
    """Return the last `limit` bytes of the last `lines` log lines, without stamps; "" if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(tail_offset(file, lines))
            output = _Output(LogOptions())
            text = b"".join(output.feed(line) for line in file)
    except OSError:
        return ""
    return text[-limit:].decode("utf-8", "replace")


async def read_logs(
    path: Path, options: LogOptions, *, world: World, is_running: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Yield blocks of visible log bytes. With `follow`, go on until the container is gone and all is read.

    Raises FileNotFoundError when there is no log. A rotated log is followed into the new file. With `tail_lines` and
    without `follow`, lines that are written meanwhile are not read (cri-client/pkg/logs/logs.go:ReadLogs).
    """
    output = _Output(options)
    left = options.tail_lines if not options.follow else None
    file: BinaryIO = path.open("rb")
    following: BinaryIO | None = None
    try:
        if options.tail_lines is not None:
            file.seek(tail_offset(file, options.tail_lines))
        rest, gone = b"", False
        while not output.full and left != 0:
            block = file.read(BLOCK)
            if block:
                *lines, rest = (rest + block).split(b"\n")
                if left is not None:
                    lines = lines[:left]
                    left -= len(lines)
                if visible := b"".join(output.feed(line + b"\n") for line in lines):
                    yield visible
                continue
            if not options.follow:
                break
            if following is not None:
                # Nobody writes into the old file any more, and it is read to its end.
                file.close()
                file, rest, following = following, b"", None
                continue
            following = _reopened(path, file)
            if following is not None:
                continue
            if gone:
                break
            if not await is_running():
                # Read once more: the last lines may have come since.
                gone = True
                continue
            await world.clock.sleep(POLL_SECONDS)
    finally:
        file.close()
        if following is not None:
            following.close()


def _reopened(path: Path, file: BinaryIO) -> BinaryIO | None:
    """The new file under the same name after a rotation, else None."""
    try:
        status = path.stat()
    except OSError:
        return None
    current = os.fstat(file.fileno())
    if (status.st_dev, status.st_ino) == (current.st_dev, current.st_ino):
        return None
    return path.open("rb")
