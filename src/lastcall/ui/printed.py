"""What the containers of a Pod printed since the DELETE, as much as a page takes. Pure."""

# check: pure

from collections.abc import Sequence
from typing import Any

from lastcall.endings import Ending
from lastcall.records import kinds
from lastcall.records.said import tell
from lastcall.records.text import printable

_LINE_LIMIT = 400


def printed(ending: Ending, most_bytes: int) -> list[dict[str, Any]]:
    """Return the lines, within about `most_bytes`; with a note where some are left out."""
    lines = ending.output
    dropped = sum(
        int(e.facts_as(kinds.OUTPUT).get("dropped") or 0)
        for e in ending.entries
        if e.record.kind == kinds.OUTPUT and e.at >= 0
    )
    first, last = _within([len(line.text[:_LINE_LIMIT]) + len(line.container) + 70 for line in lines], most_bytes)
    shown: list[dict[str, Any]] = [
        {
            "at": round(each.at, 4),
            "container": each.container,
            "text": printable(each.text, _LINE_LIMIT),
            "err": each.stream == "stderr",
        }
        for each in lines
    ]
    head, tail = shown[:first], shown[len(shown) - last :]
    if left_out := len(lines) - first - last:
        head.append(_note(head[-1]["at"] if head else 0.0, _left_out(left_out)))
    notes = [_note(0.0, _dropped(dropped))] if dropped else []
    return [*notes, *head, *tail]


def _note(at: float, text: str) -> dict[str, Any]:
    return {"at": at, "container": "", "text": text, "note": True}


def _left_out(count: int) -> str:
    return tell("… $count lines are left out of this page; --output json has them …", count=count)


def _dropped(count: int) -> str:
    return tell("$count more lines came too fast to be recorded; the container's log has all of them.", count=count)


def _within(sizes: Sequence[int], most_bytes: int) -> tuple[int, int]:
    """How many of the first and of the last lines fit: a third for the beginning, the rest for the end."""
    if sum(sizes) <= most_bytes:
        return len(sizes), 0
    first = _fitting(sizes, most_bytes / 3)
    last = _fitting(sizes[::-1], most_bytes * 2 / 3)
    return first, min(last, len(sizes) - first)


def _fitting(sizes: Sequence[int], room: float) -> int:
    count = 0
    for size in sizes:
        room -= size
        if room < 0:
            break
        count += 1
    return count
