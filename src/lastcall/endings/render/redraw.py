"""A line of a terminal that changes in place."""

# check: prints because StatusLine and the command line redraw through it

import os
import sys
from typing import IO, Any

from lastcall.records.quoting import log_line

WIPE = "\r\x1b[K"
"""Empties the line of a terminal."""


def takes_escapes(stream: Any) -> bool:
    """Return True for a terminal that knows escape sequences."""
    return bool(stream.isatty()) and os.environ.get("TERM", "dumb") != "dumb"


def redrawn_stderr() -> IO[str] | None:
    """Return stderr for `redraw`; None if stderr cannot change a line in place."""
    return sys.stderr if takes_escapes(sys.stderr) else None


def redraw(stream: IO[str], text: str = "") -> None:
    """Replace the line of a terminal."""
    stream.write(f"{WIPE}{log_line(text)}")
    stream.flush()
