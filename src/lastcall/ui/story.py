"""A Pod's story as the page draws it: lanes, steps with the rule behind each, what comes next. Pure."""

# check: pure
# check: reads facts because any record in the lane of the service proxies may name its node

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lastcall.endings import Ending, Lane, Mark, decide_picture, is_ongoing, last_words, outcome_words, verdict
from lastcall.kube.api import AnyObject
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.text import without_repeats
from lastcall.ui.predict import Next, what_comes_next
from lastcall.ui.printed import printed
from lastcall.ui.steps import meanings, other_steps, rules, seconds_of, steps
from lastcall.ui.summary import about, budget, containers
from lastcall.world.dataclass import dataclass

_PROXIES = "service proxy"
_MOST_TICKS = 1000
"""Of a lane of output."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a story is shown: marks of its picture, bytes of its output, records that are not in the picture."""

    marks: int = 400
    output_bytes: int = 40_000
    others: int = 0


LIVE = Extent()


def story(
    ending: Ending, pod: AnyObject | None, now_ns: int, kubernetes_version: str, extent: Extent = LIVE
) -> dict[str, Any]:
    """Return the document of one Pod.

    `now_ns` is the monotonic clock of the records; seconds count from the story's zero.
    """
    picture = decide_picture(ending, most=extent.marks)
    now = (now_ns - ending.zero_ns) / 1e9 if ending.zero_ns else 0.0
    numbers = {mark.entry.record.id: mark.number for mark in picture.marks}
    ongoing = is_ongoing(ending)
    shown = steps([mark.entry for mark in picture.marks], numbers)
    others = other_steps(ending, picture, numbers, extent.others) if extent.others else []
    listed = [*shown, *(step for group in others for step in group["steps"])]
    return {
        "uid": ending.pod.uid,
        "namespace": ending.pod.namespace,
        "name": ending.pod.name,
        "node": ending.pod.node,
        "zero": ending.zero_kind,
        "zeroAt": _wall_ns(ending) / 1e6,
        "now": round(now, 4),
        "start": picture.start,
        "end": seconds_of(picture.end),
        "grace": ending.grace_seconds,
        "gone": None if ending.gone is None else seconds_of(ending.gone),
        "ongoing": ongoing and ending.gone is None,
        "outcome": ending.outcome,
        "words": outcome_words(ending),
        "verdict": verdict(ending),
        "about": about(ending),
        "leftOut": picture.left_out,
        "lanes": [_lane(lane) for each in picture.lanes for lane in _by_node(each)],
        "steps": shown,
        "others": others,
        "rules": rules(listed, kubernetes_version),
        "meanings": meanings(shown),
        "output": printed(ending, extent.output_bytes),
        "lastWords": [{"title": title, "lines": without_repeats(lines)} for title, lines in last_words(ending)],
        "budget": budget(ending.budget, len(ending.containers)),
        "containers": containers(ending),
        "findings": [
            {
                "id": each.id,
                "severity": each.severity,
                "container": each.container,
                "text": each.text,
                "advice": each.advice,
            }
            for each in ending.findings
        ],
        "notKnown": list(ending.not_known),
        "why": ending.decided_by.why if ending.decided_by else "",
        "next": [asdict(each) for each in what_comes_next(ending, pod, now)],
    }


def _wall_ns(ending: Ending) -> int:
    """The story's zero by the wall clock."""
    return next((e.record.wall_ns - e.record.at_ns + ending.zero_ns for e in ending.entries), 0)


def plan(steps: Sequence[Next]) -> list[dict[str, Any]]:
    """Convert the steps for the page."""
    return [asdict(each) for each in steps]


def _by_node(lane: Lane) -> list[Lane]:
    """The lane of the proxies is one lane for each node: each has its own rules, and its own delay."""
    if lane.name != _PROXIES:
        return [lane]
    nodes: dict[str, list[Mark]] = {}
    for mark in lane.marks:
        nodes.setdefault(str(mark.entry.record.facts.get("node") or ""), []).append(mark)
    return [Lane(lane.kind, lane.name, node, marks=tuple(marks)) for node, marks in sorted(nodes.items())]


def _lane(lane: Lane) -> dict[str, Any]:
    return {
        "kind": lane.kind,
        "actor": lane.marks[0].entry.record.actor if lane.kind == "actor" and lane.marks else "",
        "name": lane.name,
        "detail": lane.detail,
        "bars": [{"kind": b.kind, "label": b.label, "start": b.start, "end": b.end} for b in lane.bars],
        "marks": [
            {"n": m.number, "at": seconds_of(m.entry.at), "glyph": m.glyph, "label": m.label} for m in lane.marks
        ],
        "lines": [round(each, 4) for each in _apart(lane.lines)],
    }


def _apart(lines: Sequence[float]) -> list[float]:
    """Return, of very many lines, those that differ in a picture."""
    if len(lines) <= _MOST_TICKS:
        return list(lines)
    least, kept = (lines[-1] - lines[0]) / _MOST_TICKS, [lines[0]]
    for each in lines:
        if each - kept[-1] >= least:
            kept.append(each)
    return kept


def end_row(ending: Ending) -> dict[str, Any]:
    """Return a line of the history of ends."""
    return {
        "uid": ending.pod.uid,
        "namespace": ending.pod.namespace,
        "name": ending.pod.name,
        "node": ending.pod.node,
        "at": _wall_ns(ending) / 1e6,
        "grace": ending.grace_seconds,
        "gone": ending.gone,
        "outcome": ending.outcome,
        "words": outcome_words(ending),
        "exits": [
            {"container": c.name, "code": c.exit.code, "signal": c.exit.signal} for c in ending.containers if c.started
        ],
    }


ENDS = (kinds.OBJECT_REMOVED, kinds.POD_GONE_SEEN, kinds.WORKER_FINISHED)


def is_an_end(record: Record) -> bool:
    """Return whether the story of its Pod may be whole with it."""
    return bool(record.pod_uid) and record.kind in ENDS
