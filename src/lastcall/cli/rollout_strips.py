"""The strips of requests on top of a rollout's picture, one for each kind.

How many were sent when, and what became of them; what lasts for seconds (streams, WebSockets) is a line each, from its
begin to its end.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from lastcall.cli.rollout_scale import Scale
from lastcall.cli.rollout_session import Result
from lastcall.timeline.render.markup import Markup
from lastcall.traffic.outcome import LONG_LIVED, Kind, Outcome

BUCKETS = 120
"""Columns of a strip."""
STRIP = 56
"""Its height, in pixels; with many lines it is higher."""
MOST_TRACKS = 50
"""Lines beside one another at one time; more are told as columns."""

Became = Literal["answered", "moved", "lost"]
_CLASSES: dict[Became, str] = {"lost": "k-lost", "moved": "k-moved", "answered": "k-answered"}
"""From the bottom up."""
_WORDS: dict[Became, str] = {"lost": "lost", "moved": "carried on elsewhere", "answered": "good"}


def strips(result: Result, scale: Scale) -> list[tuple[str, list[Markup | None], int]]:
    """Label, content and height of each."""
    found = result.account
    lost, moved = {each.outcome.id for each in found.lost}, {each.id for each in found.moved}
    became: dict[int, Became] = {
        each.id: "lost" if each.lost or each.id in lost else "moved" if each.id in moved else "answered"
        for each in result.outcomes
    }
    kinds = list(dict.fromkeys(each.kind for each in sorted(result.outcomes, key=lambda each: each.planned)))
    rows: list[tuple[str, list[Markup | None], int]] = []
    for kind in kinds:
        those = [each for each in result.outcomes if each.kind == kind]
        tracks = _tracks(those) if kind in LONG_LIVED else []
        if 0 < len(tracks) <= MOST_TRACKS:
            pitch = min(max((STRIP - 6) // len(tracks), 3), 10)
            height = max(STRIP, 6 + pitch * len(tracks))
            rows.append((_label(kind), _lines(tracks, pitch, height, became, result.began, scale), height))
        else:
            rows.append((_label(kind), _columns(those, became, result.began, scale), STRIP))
    return rows or [("requests", [], STRIP)]


def _label(kind: Kind) -> str:
    return {"stream": "streams", "websocket": "WebSockets", "http2": "HTTP/2 requests", "tcp": "TCP"}.get(
        kind, f"{kind} requests"
    )


def _columns(outcomes: Sequence[Outcome], became: dict[int, Became], began: float, scale: Scale) -> list[Markup | None]:
    """How many were sent at each time, and what became of those."""
    wide = (scale.end - scale.start) / BUCKETS
    counts: Counter[tuple[int, Became]] = Counter()
    for each in outcomes:
        bucket = min(int((each.sent - began - scale.start) / wide), BUCKETS - 1)
        counts[bucket, became[each.id]] += 1
    most = max((sum(counts[bucket, each] for each in _CLASSES) for bucket in range(BUCKETS)), default=0) or 1
    drawn: list[Markup | None] = [scale.line(at, STRIP, "grid-line") for at in scale.ticks()]
    for bucket in range(BUCKETS):
        start, base = scale.start + bucket * wide, STRIP
        for which, class_ in _CLASSES.items():
            number = counts[bucket, which]
            height = round(number / most * (STRIP - 6)) or (2 if number else 0)
            base -= height
            if height:
                title = f"{number} {_WORDS[which]}, sent from {start:.2f} s on"
                drawn.append(scale.rect(start, start + wide * 0.9, base, height, class_, title))
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
