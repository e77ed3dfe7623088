"""The picture of a Pod's end as SVG: lanes, phases, marks, arrows of causes.

Every x is a percentage, so the picture fits any width without a script, and text is never scaled. A script only has to
widen the element to zoom. `data-` attributes say the seconds behind a place.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from lastcall.endings.picture.axis import Axis, adaptive_axis, tick_label, ticks
from lastcall.endings.picture.lanes import Bar, Lane, Mark, Picture
from lastcall.endings.render.lines import actor_label
from lastcall.endings.render.markup import Markup, join, percent, svg, tag
from lastcall.records.said import joined, tell
from lastcall.records.words import words_for

AXIS_HEIGHT = 30
_ROW = 17
"""Pixels between marks that lie one below the other because they are too near side by side."""

_MARK_WIDTH = 0.024
"""Of the width that a plot usually has."""

_LABEL_WIDTH = 0.1
_MOST_ROWS = 6
_BAR_HEIGHT = 20
_TALL = {"actor": 40, "endpoint": 40, "container": 62, "output": 32}

SYMBOLS = Markup(
    '<svg class="defs" width="0" height="0" aria-hidden="true" focusable="false"><defs>'
    '<symbol id="g-step" overflow="visible"><circle r="8"/></symbol>'
    '<symbol id="g-detail" overflow="visible"><circle r="8" fill="transparent" stroke="none"/>'
    '<circle r="3.5"/></symbol>'
    '<symbol id="g-signal" overflow="visible"><path d="M0-12 12 0 0 12-12 0z"/></symbol>'
    '<symbol id="g-exit" overflow="visible"><rect x="-8.5" y="-8.5" width="17" height="17" rx="3"/></symbol>'
    '<marker id="arrow" viewBox="0 0 6 6" refX="14" refY="3" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto">'
    '<path d="M0 0 6 3 0 6z"/></marker>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="hatch" d="M0 0V6"/></pattern>'
    "</defs></svg>"
)
"""Shapes that all pictures of a page use; once in the page."""

_SYMBOL = {"signal": "signal", "kill": "signal", "exit": "exit", "detail": "detail"}


@dataclass(frozen=True, slots=True)
class Placed:
    """A mark with its place: `x` as a share of the width, `y` in pixels."""

    mark: Mark
    x: float
    y: float
    lane: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """The parts of a picture; `labels` belongs to the left of `plot`, and both are `height` pixels high."""

    labels: Markup
    plot: Markup
    height: int
    axis: Axis


def draw(picture: Picture, page_id: str, title: str, grace: float | None) -> Drawing:
    """Draw it. `page_id` is the prefix of the ids of the rows that the marks link to."""
    instants = [mark.entry.at for mark in picture.marks]
    for lane in picture.lanes:
        instants += lane.lines[:200]
        instants += [at for bar in lane.bars for at in (bar.start, bar.end) if at is not None]
    axis = adaptive_axis(instants, picture.start, picture.end)
    placed: dict[str, Placed] = {}
    backgrounds, lanes, labels = [], [], []
    top = float(AXIS_HEIGHT)
    for index, lane in enumerate(picture.lanes):
        rows, own = _place(lane, index, axis, top)
        tall = _TALL[lane.kind] + _ROW * (rows - 1)
        placed |= {each.mark.entry.record.id: each for each in own}
        backgrounds.append(
            svg("rect", class_=f"lane k-{lane.kind}{' odd' if index % 2 else ''}", y=top, width="100%", height=tall)
        )
        lanes.append(_lane(lane, axis, own, top, page_id))
        labels.append(_label(lane, top))
        top += tall
    height = int(top) + 4
    inner = [
        backgrounds,
        _axis(axis, height),
        _grace_line(axis, grace, height),
        tag("g", _arrows(placed), class_="arrows", aria_hidden="true"),
        lanes,
    ]
    plot = tag(
        "svg",
        inner,
        class_="plot",
        height=height,
        width="100%",
        role="group",
        aria_label=title,
        data_axis=json.dumps(
            [[_t(at) for at in axis.times], [round(p, 4) for p in axis.places]], separators=(",", ":")
        ),
    )
    return Drawing(tag("svg", labels, class_="names", height=height, aria_hidden="true"), plot, height, axis)


def _t(at: float) -> float:
    """Seconds with microseconds, as short as they can be written."""
    return round(at, 6)


# -- lanes --------------------------------------------------------------------------------------------------------


def _place(lane: Lane, index: int, axis: Axis, top: float) -> tuple[int, list[Placed]]:
    """Marks in as few rows as keep them apart; the number of rows."""
    ends: list[float] = []
    found: list[tuple[Mark, float, int]] = []
    for mark in sorted(lane.marks, key=lambda each: each.number):
        x = axis.place(mark.entry.at)
        row = next((i for i, end in enumerate(ends) if x >= end), len(ends))
        if row >= _MOST_ROWS:
            row = min(range(len(ends)), key=lambda i: ends[i])
        if row == len(ends):
            ends.append(0.0)
        small = mark.glyph == "detail"
        ends[row] = x + (_MARK_WIDTH * (0.75 if small else 1)) + (_LABEL_WIDTH if mark.label else 0)
        found.append((mark, x, row))
    base = top + (22 if lane.kind == "actor" else 50)
    return max(1, len(ends)), [Placed(mark, x, base + _ROW * row, index) for mark, x, row in found]


def _label(lane: Lane, top: float) -> Markup:
    middle = top + (27 if lane.kind != "output" else 21)
    name = svg("text", _short(lane.name, 25), class_=f"name k-{lane.kind}", x=10, y=middle)
    if not lane.detail or lane.kind == "output":
        return name
    return join([name, svg("text", _short(lane.detail, 28), class_="detail", x=10, y=middle + 14)])


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _lane(lane: Lane, axis: Axis, own: Sequence[Placed], top: float, page_id: str) -> Markup:
    bars = [_bar(bar, axis, top + 12) for bar in lane.bars]
    lines = _lines(lane, axis, top) if lane.lines else None
    return tag("g", bars, lines, [_mark(each, page_id) for each in own], class_=f"k-{lane.kind}")


def _lines(lane: Lane, axis: Axis, top: float) -> Markup:
    """A tick for each line of output; lines that would lie on one another share one."""
    ticks_: list[Markup] = []
    last = -1.0
    for at in lane.lines:
        if at < axis.start:
            continue
        x = axis.place(at)
        if x - last < 0.002:
            continue
        last = x
        ticks_.append(svg("line", x1=percent(x), x2=percent(x), y1=top + 9, y2=top + 23, data_t=_t(at)))
    count = len(lane.lines)
    label = (
        tell("$container: 1 line of output", container=lane.detail)
        if count == 1
        else tell("$container: $count lines of output", container=lane.detail, count=count)
    )
    return tag("g", tag("title", label), ticks_, class_="lines", role="img")


def _bar(bar: Bar, axis: Axis, y: float) -> Markup:
    end = axis.end if bar.end is None else bar.end
    x, width = axis.place(bar.start), max(0.0, axis.place(end) - axis.place(bar.start))
    last = at_words(bar.end) if bar.end is not None else tell("an end that nobody saw")
    span = tell("$start to $end", start=at_words(bar.start), end=last)
    parts = [
        tag("title", joined([bar.label or bar.kind, span], ": ")),
        svg(
            "rect",
            class_=f"bar b-{bar.kind}{' open' if bar.end is None else ''}",
            x=percent(x),
            y=y,
            width=percent(width),
            height=_BAR_HEIGHT,
            rx=3,
            data_a=_t(bar.start),
            data_b=_t(end),
        ),
    ]
    if bar.label and width > 0.02:
        label = svg("text", bar.label, class_="on" if bar.end is None else f"on b-{bar.kind}", x=7, y=y + 14)
        share = percent(width)
        parts.append(tag("svg", label, class_="clip", x=percent(x), width=share, data_a=_t(bar.start), data_b=_t(end)))
    return tag("g", parts, role="img")


def _mark(placed: Placed, page_id: str) -> Markup:
    mark, x, y = placed.mark, percent(placed.x), placed.y
    record = mark.entry.record
    at = _t(mark.entry.at)
    where = joined([actor_label(record), record.container])
    head = joined([f"{mark.number}. {at_words(mark.entry.at)}", where], ", ")
    parts = [
        tag("title", joined([head, words_for(record).text], ": ")),
        svg("use", href=f"#g-{_SYMBOL.get(mark.glyph, 'step')}", x=x, y=y),
    ]
    if mark.glyph != "detail":
        parts.append(svg("text", mark.number, class_="no", x=x, y=y + 3.5))
    if mark.label:
        right = placed.x > 0.9
        parts.append(
            tag(
                "svg",
                svg(
                    "text",
                    mark.label,
                    class_="word",
                    x=-14 if right else 14,
                    y=y + 4,
                    text_anchor="end" if right else None,
                ),
                x=x,
            )
        )
    return tag("a", parts, href=f"#{page_id}r{mark.number}", class_=f"m g-{mark.glyph}", data_t=at, data_n=mark.number)


def _arrows(placed: dict[str, Placed]) -> list[Markup]:
    """From every cause to its effect in another place; within a lane it shows only when asked for."""
    arrows = []
    for effect in placed.values():
        cause = placed.get(effect.mark.entry.cause_id or "")
        if cause is None:
            continue
        near = " near" if cause.lane == effect.lane else ""
        arrows.append(
            svg(
                "line",
                class_=f"arrow{near}",
                x1=percent(cause.x),
                y1=cause.y,
                x2=percent(effect.x),
                y2=effect.y,
                data_a=cause.mark.number,
                data_b=effect.mark.number,
            )
        )
    return arrows


# -- axis ---------------------------------------------------------------------------------------------------------


def _axis(axis: Axis, height: int) -> Markup:
    marks = ticks(axis)
    lines = [
        svg("line", class_="zero" if at == 0 else None, x1=percent(x), x2=percent(x), y1=22, y2=height)
        for at, x in marks
    ]
    words = []
    for at, x in marks:
        anchor = "start" if x < 0.03 else "end" if x > 0.97 else None
        words.append(svg("text", tick_label(at), x=percent(x), y=15, text_anchor=anchor))
    return tag("g", lines, words, class_="axis", aria_hidden="true")


def _grace_line(axis: Axis, grace: float | None, height: int) -> Markup | None:
    """Where the grace period is over, when the end came so far."""
    if grace is None or not axis.start < grace < axis.end:
        return None
    x = percent(axis.place(grace))
    line = svg("line", x1=x, x2=x, y1=AXIS_HEIGHT - 4, y2=height)
    word = svg(
        "text", tell("grace $grace s over", grace=f"{grace:g}"), x=x, y=AXIS_HEIGHT - 3, dx=-5, text_anchor="end"
    )
    return tag(
        "g",
        tag("title", tell("The grace period of $grace s is over", grace=f"{grace:g}")),
        line,
        word,
        class_="grace",
        data_t=_t(grace),
    )


def at_words(at: float | None) -> str:
    """`+4.2 ms`, `+3.014 s`, `-6.0 ms`."""
    if at is None:
        return "?"
    if abs(at) < 0.9995:
        value = at * 1000
        digits = 0 if abs(value) >= 100 else 1
        return f"{value:+.{digits}f} ms"
    return f"{at:+.3f} s"
