"""How long good answers took, over time. Pure."""

# check: pure

from collections.abc import Iterable

from lastcall.traffic import Outcome


def latency_columns(outcomes: Iterable[Outcome], begin: float, wide: float) -> list[list[float]]:
    """Return column, median and most, in milliseconds, of the requests that were sent in each `wide` seconds.

    Measured as `traffic/latency.py` does: from the moment a request was sent to its last byte.
    """
    took: dict[int, list[float]] = {}
    for each in outcomes:
        if not each.lost:
            took.setdefault(int((each.sent - begin) / wide), []).append((each.finished - each.sent) * 1000)
    if not any(map(any, took.values())):
        return []  # of virtual time, in which an answer takes none
    return [
        [column, round(sorted(those)[(len(those) - 1) // 2], 3), round(max(those), 3)]
        for column, those in sorted(took.items())
    ]
