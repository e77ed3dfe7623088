"""Values as a reader is shown them. Pure."""

# check: pure

from typing import Any

from lastcall.timeline.said import beginning

LONGEST = 400
"""Characters of a text that a line shows."""


def printable(text: str, limit: int = LONGEST) -> str:
    """One line without control characters; a longer text is cut and says so."""
    return beginning(one_line(text), limit)


def one_line(text: str) -> str:
    """Without control characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return "    " if character == "\t" else repr(character)[1:-1]


def seconds(value: Any) -> str:
    """`3.0 s`, `12 ms`, `0.4 ms`; "" for nothing."""
    if not isinstance(value, int | float):
        return ""
    if value >= 0.9995:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.0095 else f"{value * 1000:.1f} ms"
