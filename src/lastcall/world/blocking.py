"""Time for code without an event loop: the short commands, which do not import asyncio, and what runs before a fork."""

# check: standard library

from __future__ import annotations

import time


def sleep(seconds: float) -> None:
    """Block this thread."""
    time.sleep(seconds)


def monotonic() -> float:
    """Return the seconds on the machine's monotonic clock."""
    return time.monotonic()


def wall() -> float:
    """Return the seconds since the Unix epoch."""
    return time.time()
