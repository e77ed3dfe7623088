"""What lasts for seconds, streams and WebSockets: a line each, from its begin to its end. Pure."""

# check: pure

from collections.abc import Iterable
from typing import Any

from lastcall.traffic import Outcome

MOST_TRACKS = 50
"""Lines beside one another at one time; more are drawn as columns."""


def tracks(outcomes: Iterable[Outcome], zero: float) -> list[list[dict[str, Any]]]:
    """Return rows of lines, of which none covers another; nothing where there would be too many.

    Seconds count from `zero`, the disruption."""
    rows: list[list[Outcome]] = []
    for each in sorted(outcomes, key=lambda each: (each.sent, each.id)):
        free = next((row for row in rows if row[-1].finished <= each.sent), None)
        if free is None:
            rows.append([each])
        else:
            free.append(each)
        if len(rows) > MOST_TRACKS:
            return []
    return [[_line(each, zero) for each in row] for row in rows]


def _line(outcome: Outcome, zero: float) -> dict[str, Any]:
    return {
        "from": round(outcome.sent - zero, 3),
        "to": round(outcome.finished - zero, 3),
        "became": "lost" if outcome.lost else "moved" if outcome.moved else "answered",
        "messages": outcome.messages,
    }
