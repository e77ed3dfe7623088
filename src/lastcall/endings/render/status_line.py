"""Show what is being waited for: a line that changes in place on a terminal; in a log, a line of its own, once."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from lastcall.endings.render.redraw import redraw
from lastcall.records.quoting import one_line
from lastcall.world.dataclass import dataclass

LOG_SECONDS = 15.0
"""In a log a line about waiting comes so long after the last one, and only when it says something else."""

_COUNTS = re.compile(r" \(\d+ times\)")


def _columns() -> int:
    """Of the terminal, or as COLUMNS says: `shutil` is not worth its import."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(2).columns or 80
    return 80


@dataclass(slots=True)
class StatusLine:
    """`write` gets lines for a log. `terminal` is where the line changes in place, None where stderr is not a terminal.

    `clear` before anything else is written to the terminal."""

    write: Callable[[str], None]
    terminal: IO[str] | None = None
    _shown: bool = False
    _reported: str = ""
    _reported_at: float = 0.0

    def show(self, now: float, waited: float, text: str) -> None:
        """Show `text`: what the command waits for and why. `waited` is seconds, `now` seconds of the monotonic
        clock."""
        if self.terminal is not None:
            line = one_line(f"  waiting, {waited:.0f} s: {text}")
            width = _columns() - 1
            short = line if len(line) <= width else f"{line[: width - 1]}…"
            redraw(self.terminal, short)
            self._shown = True
            return
        plain = _COUNTS.sub("", text)
        if waited >= LOG_SECONDS and now - self._reported_at >= LOG_SECONDS and plain != self._reported:
            self._reported, self._reported_at = plain, now
            self.write(f"still waiting after {waited:.0f} s: {text}")

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._shown and self.terminal is not None:
            redraw(self.terminal)
            self._shown = False
