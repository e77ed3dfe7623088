"""Stories as a page to keep: `lastcall run --output html`, and what the live page saves."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lastcall.endings import Ending, is_ongoing, outcome_words
from lastcall.endings.render import plain_text
from lastcall.records.language import ENGLISH
from lastcall.records.said import joined, tell
from lastcall.ui.saved import saved_page
from lastcall.ui.story import Extent, end_row, story

OUTPUT_BYTES = 240_000
"""Of a page, for the lines that all containers printed."""
MOST_MARKS = 4000
"""In a page, of all Pods together."""
MOST_OTHERS = 300
"""Of a Pod, records that are not in its picture."""
MOST_TEXT = 3000
"""Lines, for readers without JavaScript."""
_TEXT_WIDTH = 110

_COUNTED = {
    "killed": tell("killed"),
    "crashed": tell("crashed"),
    "restarted": tell("restarted by a probe"),
    "hookFailed": tell("with a failed preStop hook"),
    "unknown": tell("with an end that is not known"),
    "ending": tell("still ending"),
    "graceful": tell("ended gracefully"),
}
"""The worst first."""


def html_page(
    endings: Sequence[Ending],
    *,
    kubernetes_version: str,
    lastcall_version: str,
    error: str = "",
    pods: int | None = None,
    language: str = ENGLISH,
) -> str:
    """Return the whole page. `error` is the world's error that cut the story short, "" without one.

    `pods`: how many Pods these endings are of, when each ended once under every version of `kubernetes_version`.
    """
    title = _title(endings) if pods is None else _title_of_versions(endings, pods, kubernetes_version)
    data = {
        "about": _about(endings, kubernetes_version, lastcall_version),
        "error": error,
        "caption": tell("All Pods") if pods is None else tell("Every Pod under every version"),
        **stories(endings, "" if pods else kubernetes_version),
    }
    text = _shortened(plain_text(endings, _TEXT_WIDTH)) if endings else str(title)
    return saved_page(title, data, "\n".join(filter(None, (error, text))), language=language)


def _shortened(text: str) -> str:
    """What nobody would read to its end has its first third and the rest of its end."""
    lines = text.splitlines()
    left_out = len(lines) - MOST_TEXT
    if left_out <= 0:
        return text
    first = MOST_TEXT // 3
    note = f"… {left_out} lines are left out of this page; --output text has them …"
    return "\n".join([*lines[:first], note, *lines[first + left_out :]])


def stories(endings: Sequence[Ending], kubernetes_version: str) -> dict[str, Any]:
    """Return the stories and a row for each; as one Pod may have ended under several versions, a number is its key."""
    count = max(1, len(endings))
    extent = Extent(max(60, MOST_MARKS // max(10, count)), OUTPUT_BYTES // count, MOST_OTHERS)
    made, ends = [], {}
    for number, ending in enumerate(endings, 1):
        last = max((each.record.at_ns for each in ending.entries), default=0)
        made.append({**story(ending, None, last, kubernetes_version, extent), "uid": str(number)})
        ends[f"end/{number}"] = {**end_row(ending), "uid": str(number)}
    return {"stories": made, "ends": ends}


def _title(endings: Sequence[Ending]) -> str:
    if not endings:
        return tell("No Pod was deleted")
    if len(endings) == 1:
        return joined([endings[0].pod.name, outcome_words(endings[0])])
    return tell("$count Pods: $ends", count=len(endings), ends=_counted(endings))


def _title_of_versions(endings: Sequence[Ending], pods: int, versions: str) -> str:
    what = tell("1 Pod") if pods == 1 else tell("$count Pods", count=pods)
    ends = _counted(endings) or tell("none was deleted")
    return tell("$pods under Kubernetes $versions: $ends", pods=what, versions=versions, ends=ends)


def _counted(endings: Sequence[Ending]) -> str:
    counts = Counter("ending" if is_ongoing(ending) else ending.outcome for ending in endings)
    said = [joined([str(counts[outcome]), words]) for outcome, words in _COUNTED.items() if counts[outcome]]
    return joined(said, ", ")


def _about(endings: Sequence[Ending], kubernetes_version: str, lastcall_version: str) -> str:
    parts = [tell("rules of Kubernetes $version", version=kubernetes_version), f"lastcall {lastcall_version}"]
    wall = min((e.deleted_at_ns for e in endings if e.deleted_at_ns is not None), default=None)
    if wall is not None:
        parts = [datetime.fromtimestamp(wall / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"), *parts]
    return joined(parts, " · ")
