"""How `lastcall image` writes sizes and durations. Pure."""

# check: pure

import re

_UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def size_text(size: int) -> str:
    """Format a size: `12 B`, `1.5 MiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def age_seconds(text: str) -> int:
    """Return the seconds of `12h`, `30d`, `4w`. Raises ValueError for anything else."""
    match = re.fullmatch(r"(\d{1,6})([hdw])", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a number of hours, days or weeks; write 12h, 30d or 4w")
    return int(match[1]) * _UNITS[match[2]]
