"""Container output: the log file in CRI format, and lines for the timeline.

A line of the file is `<RFC3339Nano> <stdout|stderr> <F|P> <text>`. P (partial) marks a piece of a line that is longer
than 16 KiB, and the last piece of an output that ends without a newline.
Source: containerd internal/cri/io/logger.go:redirectLogs.
"""

# check: allow time.monotonic, time.time_ns because the shim has a loop of its own

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE = 16 << 10
LINES_PER_SECOND = 200
"""Lines of one stream that the timeline gets; twice as many at once after a pause."""


def rfc3339_nano(wall_ns: int) -> str:
    """Format a time as Go's time.RFC3339Nano in UTC: nanoseconds without trailing zeros."""
    seconds, nanoseconds = divmod(wall_ns, 1_000_000_000)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{text}{fraction}Z"


class LogFile:
    """The file that both streams of a container go to. "" as path keeps nothing.

    `max_size` (bytes, 0 for none): `on_full` is called once when the file has grown to it, so that it is rotated
    and `reopen`ed; at twice that `on_hold(True)`, and `on_hold(False)` once there is room again.
    """

    def __init__(self, path: str, max_size: int = 0) -> None:
        """Creates the directories. Raises OSError."""
        self._path = path
        self._max_size = max_size
        self._size = 0
        self._full = self._held = False
        self.lossy = False
        """Nobody rotates: what comes while there is no room is lost."""
        self.on_full: Callable[[], None] = lambda: None
        self.on_hold: Callable[[bool], None] = lambda held: None
        self._fd = -1
        if path:
            self._fd, self._size = self._open()

    def _open(self) -> tuple[int, int]:
        os.makedirs(os.path.dirname(self._path), 0o755, exist_ok=True)
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        return fd, os.fstat(fd).st_size

    def reopen(self) -> None:
        """Go on in a new file; the old one has been renamed. Raises OSError, and then goes on in the old one."""
        if self._fd < 0:
            return
        fd, self._size = self._open()
        os.close(self._fd)
        self._fd = fd
        self._full = self.lossy = False
        if self._held and self._size < 2 * self._max_size:
            self._held = False
            self.on_hold(False)

    def write(self, data: bytes) -> None:
        """Write to the log. A full disk loses the log, never the container."""
        if self._fd < 0 or (self._held and self.lossy):
            return
        try:
            self._size += os.write(self._fd, data)
        except OSError:
            return
        if self._max_size and self._size >= self._max_size:
            self._over()

    def _over(self) -> None:
        if not self._full:
            self._full = True
            self.on_full()
        if not self._held and self._size >= 2 * self._max_size:
            self._held = True
            self.on_hold(True)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Allowance:
    """How many lines of a stream the timeline gets: so many a second, twice as many after a pause."""

    def __init__(self, lines_per_second: int = LINES_PER_SECOND) -> None:
        self._lines_per_second = lines_per_second
        self._left = 2.0 * lines_per_second
        self._counted_at = 0.0

    def earn(self) -> None:
        """Count the time since the last call."""
        now = time.monotonic()
        earned = (now - self._counted_at) * self._lines_per_second
        self._left = min(2.0 * self._lines_per_second, self._left + earned)
        self._counted_at = now

    def take(self) -> bool:
        """Return True if one more line may be reported."""
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Stream:
    """Cuts one stream into lines."""

    def __init__(
        self,
        name: str,
        log: LogFile,
        on_line: Callable[[str, str, int], None],
        lines_per_second: int = LINES_PER_SECOND,
    ) -> None:
        """`on_line(stream, text, dropped)` hears of each line; `dropped` counts lines that were too many to tell: those
        before this one, or, with an empty text, the last ones of the stream."""
        self._prefix = f" {name} ".encode()
        self._name = name
        self._log = log
        self._on_line = on_line
        self._rest = b""
        self._allowance = Allowance(lines_per_second)
        self._dropped = 0

    def feed(self, data: bytes) -> None:
        """Take what was read from the pipe."""
        *lines, rest = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        pieces: list[tuple[bytes, bytes]] = []
        for line in lines:
            line = line.removesuffix(b"\r")  # containerd ends a line at \n or \r\n
            while len(line) > LONGEST_LINE:
                pieces.append((b"P ", line[:LONGEST_LINE]))
                line = line[LONGEST_LINE:]
            pieces.append((b"F ", line))
        while len(rest) > LONGEST_LINE:
            pieces.append((b"P ", rest[:LONGEST_LINE]))
            rest = rest[LONGEST_LINE:]
        self._rest = rest
        self._emit(pieces)

    def end(self) -> None:
        """End the stream: write what is left."""
        if self._rest:
            self._emit([(b"P ", self._rest)])
            self._rest = b""
        if self._dropped:
            self._on_line(self._name, "", self._dropped)
            self._dropped = 0

    def _emit(self, pieces: list[tuple[bytes, bytes]]) -> None:
        if not pieces:
            return
        head = rfc3339_nano(time.time_ns()).encode() + self._prefix
        self._log.write(b"".join([head + tag + text + b"\n" for tag, text in pieces]))
        self._allowance.earn()
        for _, text in pieces:
            if not self._allowance.take():
                self._dropped += 1
                continue
            self._on_line(self._name, text.decode("utf-8", "replace"), self._dropped)
            self._dropped = 0
