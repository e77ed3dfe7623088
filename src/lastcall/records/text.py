"""Values as a reader is shown them. Pure."""

# check: pure

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from lastcall.records.quoting import one_line
from lastcall.records.said import beginning

LONGEST = 400
"""Characters of a text that a line shows."""


def printable(text: str, limit: int = LONGEST) -> str:
    """Return `one_line(text)`, cut to `limit` characters; a text that is cut says so."""
    return beginning(one_line(text), limit)


def without_repeats(lines: Iterable[str]) -> list[str]:
    """Return the lines, with equal ones in a row as one that says how many there were."""
    runs = [(line, len(list(those))) for line, those in groupby(lines)]
    return [line if count == 1 else f"{line} ({count} times)" for line, count in runs]


def seconds(value: Any) -> str:
    """Format seconds: `3.0 s`, `12 ms`, `0.4 ms`; "" for nothing."""
    if not isinstance(value, int | float):
        return ""
    if value >= 0.9995:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.0095 else f"{value * 1000:.1f} ms"
