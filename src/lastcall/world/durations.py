"""Times as people write them: `30s`, `1m30s`, `500ms`, `1h`, `1.5`. Every command imports this: nothing of weight."""

# check: pure

import math
import re

MOST_SECONDS = 3600.0

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)\s*"
_UNITS = "".join(rf"(?:{_NUMBER}{unit}\s*)?" for unit in ("h", "m(?!s)", "s", "ms"))
"""Compiled by the first time that is read (1 ms), not by every command's start."""


def parse_duration(text: str) -> float:
    """Parse `30s`, `1m30s`, `500ms`, `1h` into seconds. A plain number is seconds, any sign. Raises ValueError."""
    stripped = text.strip().lower()
    found = re.fullmatch(_UNITS, stripped)
    if stripped and found is not None:
        scales = (3600, 60, 1, 0.001)
        return math.fsum(float(part) * scale for part, scale in zip(found.groups(), scales, strict=True) if part)
    seconds = float(stripped)
    if not math.isfinite(seconds):
        raise ValueError(f"{text!r} is not a time")
    return seconds


def format_duration(seconds: float) -> str:
    """Format seconds for `parse_duration`, in the largest unit that leaves a whole number: `2h`, `90s`, `500ms`."""
    for unit, scale in (("h", 3600), ("m", 60), ("s", 1)):
        if seconds and seconds % scale == 0 and (unit != "m" or seconds >= 300):
            return f"{int(seconds // scale)}{unit}"
    return f"{seconds * 1000:g}ms" if 0 < seconds < 1 else f"{seconds:g}s"


def parse_seconds(text: str) -> float:
    """Parse `1s`, `250ms`, `1m30s` or `1.5` into seconds, from 0 up to a limit. Raises ValueError."""
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_SECONDS:
        raise ValueError(f"{text!r} is not a time: write 1s, 250ms or 1.5, at most {MOST_SECONDS:g}s")
    return seconds
