"""A Pod's story as the page draws it: lanes, steps with the rule behind each, what comes next. Pure."""

# check: pure
# check: reads facts because any record in the lane of the service proxies may name its node

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lastcall.endings import Ending, Lane, Mark, decide_picture, is_ongoing, outcome_words
from lastcall.endings.render import actor_label
from lastcall.kube.api import AnyObject
from lastcall.records import kinds
from lastcall.records.explain import explain
from lastcall.records.record import Record
from lastcall.records.text import printable
from lastcall.records.words import meaning, words_for
from lastcall.ui.predict import Next, what_comes_next

MOST_MARKS = 400
MOST_LINES = 400
"""Lines of output that the page gets: the latest."""

_PROXIES = "service proxy"
_KUBERNETES = ("pkg/", "staging/", "plugin/", "cmd/")


def story(ending: Ending, pod: AnyObject | None, now_ns: int, kubernetes_version: str) -> dict[str, Any]:
    """The document of one Pod. `now_ns` is the monotonic clock of the records; seconds count from the story's zero."""
    picture = decide_picture(ending, most=MOST_MARKS)
    now = (now_ns - ending.zero_ns) / 1e9 if ending.zero_ns else 0.0
    numbers = {mark.entry.record.id: mark.number for mark in picture.marks}
    wall = next((e.record.wall_ns - e.record.at_ns + ending.zero_ns for e in ending.entries), 0)
    ongoing = is_ongoing(ending)
    return {
        "uid": ending.pod.uid,
        "namespace": ending.pod.namespace,
        "name": ending.pod.name,
        "node": ending.pod.node,
        "zero": ending.zero_kind,
        "zeroAt": wall / 1e6,
        "now": round(now, 4),
        "start": picture.start,
        "end": _at(picture.end),
        "grace": ending.grace_seconds,
        "gone": None if ending.gone is None else _at(ending.gone),
        "ongoing": ongoing and ending.gone is None,
        "outcome": ending.outcome,
        "words": outcome_words(ending),
        "leftOut": picture.left_out,
        "lanes": [_lane(lane) for each in picture.lanes for lane in _by_node(each)],
        "steps": [_step(mark, numbers, kubernetes_version) for mark in picture.marks],
        "output": [
            {"at": round(each.at, 4), "container": each.container, "text": printable(each.text)}
            for each in ending.output[-MOST_LINES:]
        ],
        "findings": [
            {"id": each.id, "severity": each.severity, "text": each.text, "advice": each.advice}
            for each in ending.findings
        ],
        "notKnown": list(ending.not_known),
        "why": ending.decided_by.why if ending.decided_by else "",
        "next": [asdict(each) for each in what_comes_next(ending, pod, now)],
    }


def _at(seconds: float) -> float:
    """Rounded all alike: the page shows what is not after the moment it shows, and the last step is at the very end."""
    return round(seconds, 5)


def plan(steps: Sequence[Next]) -> list[dict[str, Any]]:
    """For the page."""
    return [asdict(each) for each in steps]


def source_link(rule: str, kubernetes_version: str) -> str:
    """Where the rule stands in Kubernetes's source; "" for a rule of something else. Opened by a click only."""
    path, _, _function = rule.partition(":")
    if not path.startswith(_KUBERNETES):
        return ""
    return f"https://github.com/kubernetes/kubernetes/blob/v{kubernetes_version or '1.36'}.0/{path}"


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
        "marks": [{"n": m.number, "at": _at(m.entry.at), "glyph": m.glyph, "label": m.label} for m in lane.marks],
        "lines": [round(each, 4) for each in lane.lines],
    }


def _step(mark: Mark, numbers: dict[str, int], kubernetes_version: str) -> dict[str, Any]:
    record = mark.entry.record
    words = words_for(record)
    return {
        "n": mark.number,
        "at": _at(mark.entry.at),
        "actor": actor_label(record),
        "container": record.container,
        "kind": record.kind,
        "text": words.text,
        "level": words.level,
        "style": words.style,
        "evidence": record.evidence,
        "rule": record.rule,
        "source": source_link(record.rule, kubernetes_version),
        "explain": explain(record.rule),
        "meaning": meaning(record.kind),
        "cause": numbers.get(mark.entry.cause_id or ""),
    }


def end_row(ending: Ending) -> dict[str, Any]:
    """A line of the history of ends."""
    wall = next((e.record.wall_ns - e.record.at_ns + ending.zero_ns for e in ending.entries), 0)
    return {
        "uid": ending.pod.uid,
        "namespace": ending.pod.namespace,
        "name": ending.pod.name,
        "node": ending.pod.node,
        "at": wall / 1e6,
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
    """Whether the story of its Pod may be whole with it."""
    return bool(record.pod_uid) and record.kind in ENDS
