"""The strips of requests on top of a rollout's picture, one for each kind.

How many were sent when, and what became of them; what lasts for seconds (streams, WebSockets) is a line each, from its
begin to its end.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lastcall.endings.render import Markup
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.rollout.scale import Scale
from lastcall.traffic import LONG_LIVED, Kind, Outcome

BUCKETS = 120
"""Columns of a strip, at most; fewer where each would stand for only a few requests, and their number mean nothing."""
LEAST_BUCKETS, IN_A_BUCKET = 24, 8
STRIP = 56
"""Its height, in pixels; with many lines it is higher."""
MOST_TRACKS = 50
"""Lines beside one another at one time; more are told as columns."""
LOST_PIXELS = 7
"""A single lost request among thousands is to be seen."""

Became = Literal["answered", "moved", "lost"]
_CLASSES: dict[Became, str] = {"lost": "k-lost", "moved": "k-moved", "answered": "k-answered"}
"""From the bottom up."""
_WORDS: dict[Became, str] = {"lost": "lost", "moved": "carried on elsewhere", "answered": "good"}


@dataclass(frozen=True, slots=True)
class Strip:
    """The requests of a kind: what is drawn, its height in pixels, how many there were and were lost as the header
    counts them, and `before` in the control period."""

    label: str
    content: Sequence[Markup | None]
    height: int
    total: int
    lost: int
    before: int = 0


def strips(result: Result, scale: Scale) -> list[Strip]:
    """One for each kind."""
    found = result.account
    lost, moved = {each.outcome.id for each in found.lost}, {each.id for each in found.moved}
    became: dict[int, Became] = {
        each.id: "lost" if each.lost or each.id in lost else "moved" if each.id in moved else "answered"
        for each in result.outcomes
    }
    kinds = list(dict.fromkeys(each.kind for each in sorted(result.outcomes, key=lambda each: each.planned)))
    rows = []
    for kind in kinds:
        those = [each for each in result.outcomes if each.kind == kind]
        total, lost_of_it = found.totals.get(kind, 0), found.losses.get(kind, 0)
        how_many = total, lost_of_it, len(those) - total - sum(each.kind == kind for each in found.unmeasured)
        tracks = _tracks(those) if kind in LONG_LIVED else []
        if 0 < len(tracks) <= MOST_TRACKS:
            pitch = min(max((STRIP - 6) // len(tracks), 3), 10)
            height = max(STRIP, 6 + pitch * len(tracks))
            rows.append(
                Strip(_label(kind), _lines(tracks, pitch, height, became, result.began, scale), height, *how_many)
            )
        else:
            rows.append(Strip(_label(kind), _columns(those, became, result.began, scale), STRIP, *how_many))
    return rows or [Strip("requests", [], STRIP, 0, 0)]


def _label(kind: Kind) -> str:
    return {"stream": "streams", "websocket": "WebSockets", "http2": "HTTP/2 requests", "tcp": "TCP"}.get(
        kind, f"{kind} requests"
    )


def _columns(outcomes: Sequence[Outcome], became: dict[int, Became], began: float, scale: Scale) -> list[Markup | None]:
    """How many were sent at each time, and what became of those."""
    buckets = min(max(len(outcomes) // IN_A_BUCKET, LEAST_BUCKETS), BUCKETS)
    wide = (scale.end - scale.start) / buckets
    counts: Counter[tuple[int, Became]] = Counter()
    for each in outcomes:
        bucket = min(int((each.sent - began - scale.start) / wide), buckets - 1)
        counts[bucket, became[each.id]] += 1
    most = max((sum(counts[bucket, each] for each in _CLASSES) for bucket in range(buckets)), default=0) or 1
    drawn: list[Markup | None] = [scale.line(at, STRIP, "grid-line") for at in scale.ticks()]
    for bucket in range(buckets):
        start, base = scale.start + bucket * wide, STRIP
        for which, class_ in _CLASSES.items():
            number = counts[bucket, which]
            height = round(number / most * (STRIP - 6))
            if number:
                height = max(height, LOST_PIXELS if which == "lost" else 2)
            base -= height
            if height:
                title = f"{number} {_WORDS[which]}, sent from {start:.2f} s on"
                drawn.append(scale.rect(start, start + wide * 0.9, max(base, 0), height, class_, title))
    return [*drawn, scale.line(0.0, STRIP, "zero-line")]


def _tracks(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """One after the other in each, so that none covers another."""
    tracks: list[list[Outcome]] = []
    for each in sorted(outcomes, key=lambda each: (each.sent, each.id)):
        free = next((track for track in tracks if track[-1].finished <= each.sent), None)
        if free is None:
            tracks.append([each])
        else:
            free.append(each)
    return tracks


def _lines(
    tracks: Sequence[Sequence[Outcome]],
    pitch: int,
    height: int,
    became: dict[int, Became],
    began: float,
    scale: Scale,
) -> list[Markup | None]:
    drawn: list[Markup | None] = [scale.line(at, height, "grid-line") for at in scale.ticks()]
    least = (scale.end - scale.start) / 400  # what ended at once is to be seen, too
    for number, track in enumerate(tracks):
        for each in track:
            start, end = each.sent - began, max(each.finished - began, each.sent - began + least)
            title = f"{_WORDS[became[each.id]]}, {start:.2f} s to {each.finished - began:.2f} s"
            if each.messages:
                title += f", {each.messages} messages echoed"
            y = 3 + number * pitch
            drawn.append(scale.rect(start, end, y, max(pitch - 1, 1), _CLASSES[became[each.id]], title))
    return [*drawn, scale.line(0.0, height, "zero-line")]
