"""The time axis of a picture: where on it an instant lies. Pure.

An end is bursts of milliseconds between waits of seconds. True to scale each burst is one line, so the axis gives the
time between two events a width that grows with its cube root: 30 s is ten times as wide as 30 ms, not a thousand times.
The marks on the axis stay those of the clock.
"""

# check: pure

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_EXPONENT = 1 / 3

_LEAST = 0.006
"""Of the whole width, between two instants that differ."""

MARGIN = 0.016
"""Of the whole width, left free at both ends so that a mark there is whole."""

_MERGED_SECONDS = 1e-5
"""Instants nearer than this are one."""

STEPS = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """`times` (seconds, ascending) lie at `places` (MARGIN to 1 - MARGIN); between them the axis is straight."""

    times: tuple[float, ...]
    places: tuple[float, ...]

    @property
    def start(self) -> float:
        return self.times[0]

    @property
    def end(self) -> float:
        return self.times[-1]

    def place(self, at: float) -> float:
        """The share of the width at which an instant lies; outside of the axis the nearer of its ends."""
        if at <= self.start:
            return self.places[0]
        if at >= self.end:
            return self.places[-1]
        right = bisect_right(self.times, at)
        t0, t1 = self.times[right - 1], self.times[right]
        p0, p1 = self.places[right - 1], self.places[right]
        return p0 + (p1 - p0) * (at - t0) / (t1 - t0)


def adaptive_axis(instants: Iterable[float], start: float, end: float) -> Axis:
    """An axis from `start` to `end` on which every one of `instants` can be told from the others."""
    if end <= start:
        end = start + 0.001
    times = [start]
    for at in sorted(instants):
        if at - times[-1] >= _MERGED_SECONDS and end - at >= _MERGED_SECONDS:
            times.append(at)
    times.append(end)
    gaps = [b - a for a, b in pairwise(times)]
    widths = [(gap / (end - start)) ** _EXPONENT for gap in gaps]
    least = sum(widths) * min(_LEAST, 0.5 / len(widths))
    widths = [width + least for width in widths]
    scale, so_far = (1 - 2 * MARGIN) / sum(widths), 0.0
    places = [MARGIN]
    for width in widths:
        so_far += width
        places.append(MARGIN + so_far * scale)
    places[-1] = 1 - MARGIN
    return Axis(tuple(times), tuple(places))


def ticks(axis: Axis, most: int = 12) -> list[tuple[float, float]]:
    """(seconds, place) of the marks that get a label: round numbers, each far enough from its neighbours.

    Rounder numbers come first; finer ones fill what room is left where the axis is stretched.
    """
    apart = 1 / most
    chosen: list[tuple[float, float]] = []
    for step in _steps(axis.end - axis.start):
        first, last = _index(axis.start, step), int(axis.end / step)
        if last - first > 20 * most:
            break
        for index in range(first, last + 1):
            at = round(index * step, 9)
            place = axis.place(at)
            if all(abs(place - taken) >= apart * _room(at) for _, taken in chosen):
                chosen.append((at, place))
    return sorted(chosen)


def _room(at: float) -> float:
    """The more digits a mark has, the more room it needs to be worth its place."""
    digits = len(f"{abs(at):.9f}".replace(".", "").strip("0"))
    return (1.0, 1.0, 1.3, 2.0, 3.0)[digits] if digits < 5 else 4.0


def _steps(length: float) -> list[float]:
    """Round steps from the length of the axis down to a hundred-thousandth of it, at least 0.1 ms."""
    found = []
    power = 10.0**6
    while power >= 1e-4:
        found += [power * step for step in reversed(STEPS) if length >= power * step >= max(1e-4, length / 1e5)]
        power /= 10
    return [round(step, 9) for step in found] or [length]


def _index(start: float, step: float) -> int:
    index = int(start / step)
    return index if index * step >= start else index + 1


def tick_label(at: float) -> str:
    """`0`, `4 ms`, `2.5 s`, `10 min`."""
    if at == 0:
        return "0"
    size = abs(at)
    if size < 0.9995:
        return f"{at * 1000:g} ms"
    if size >= 600 and at % 60 == 0:
        return f"{at / 60:g} min"
    return f"{at:g} s"
