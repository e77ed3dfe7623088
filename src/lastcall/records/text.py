"""Values as a reader is shown them. Pure."""

# check: pure

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lastcall.records.quoting import one_line
from lastcall.records.said import beginning

LONGEST = 400
"""Characters of a text that a line shows."""


def printable(text: str, limit: int = LONGEST) -> str:
    """Return `one_line(text)`, cut to `limit` characters; a text that is cut says so."""
    return beginning(one_line(text), limit)


_LONGEST_TURN = 4
"""Lines that are printed again and again in turn."""


def without_repeats(lines: Iterable[str]) -> list[str]:
    """Return the lines, with those that are repeated in a row, alone or a few in turn, once and with their number."""
    given, found, at = list(lines), list[str](), 0
    while at < len(given):
        turn, times = next(filter(lambda each: each[1] > 1, _turns(given, at)), (1, 1))
        once = given[at : at + turn]
        found += once if times == 1 else [f"{line} ({times} times)" for line in once]
        at += turn * times
    return found


def _turns(lines: Sequence[str], at: int) -> Iterator[tuple[int, int]]:
    """Yield how often the next line, the next two and so on are there in a row, from `at` on: (lines, times)."""
    for turn in range(1, _LONGEST_TURN + 1):
        once, times = lines[at : at + turn], 1
        while len(once) == turn and lines[at + times * turn : at + (times + 1) * turn] == once:
            times += 1
        yield turn, times


def seconds(value: Any) -> str:
    """Format seconds: `3.0 s`, `12 ms`, `0.4 ms`; "" for nothing."""
    if not isinstance(value, int | float):
        return ""
    if value >= 0.9995:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.0095 else f"{value * 1000:.1f} ms"
