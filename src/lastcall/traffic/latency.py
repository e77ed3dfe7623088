"""How long good answers took, before, while and after something was disrupted. Pure.

Measured from the moment a request was sent to its last byte, in seconds, of requests that were planned in that phase
(what was under way when the disruption began counts to it). The rate does not depend on answers, so none is left out
because another one was slow. Streams and WebSockets last as long as their client wants: they have no latency.
"""

# check: pure

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from lastcall.traffic.outcome import LONG_LIVED, Kind, Outcome
from lastcall.world.dataclass import dataclass

When = Literal["before", "during", "after"]
PHASES: tuple[When, ...] = get_args(When)


@dataclass(frozen=True, slots=True)
class Latency:
    """Of `count` good answers, in seconds. `p99_least` is what is left of p99 when the time by which the client itself
    was held up meanwhile is taken off each: nobody else's it may have been."""

    count: int
    p50: float
    p95: float
    p99: float
    most: float
    p99_least: float


Latencies = Mapping[When, Mapping[Kind, Latency]]
"""Phase → kind of request → how long its good answers took; without those of which there were none."""


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when something was disrupted, seconds of the monotonic clock."""

    began: float
    over: float

    def phase(self, outcome: Outcome) -> When:
        if outcome.finished < self.began:
            return "before"
        return "during" if outcome.planned <= self.over else "after"


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of them do not exceed (nearest rank). `ordered` is not empty."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latencies(runs: Iterable[tuple[Sequence[Outcome], Span]]) -> Latencies:
    """Return the latencies of one run or of several together."""
    took: dict[When, dict[Kind, list[tuple[float, float]]]] = {phase: {} for phase in PHASES}
    for outcomes, span in runs:
        for each in outcomes:
            if not each.lost and each.kind not in LONG_LIVED:
                took[span.phase(each)].setdefault(each.kind, []).append((each.finished - each.sent, each.held_up))
    return {phase: {kind: _latency(those) for kind, those in kinds.items()} for phase, kinds in took.items()}


def _latency(took: Sequence[tuple[float, float]]) -> Latency:
    ordered = sorted(each for each, _ in took)
    least = sorted(max(0.0, each - held_up) for each, held_up in took)
    p50, p95, p99 = (percentile(ordered, share) for share in (0.5, 0.95, 0.99))
    return Latency(len(ordered), p50, p95, p99, ordered[-1], percentile(least, 0.99))


def format_seconds(seconds: float) -> str:
    """Return a time as people read it: `3.2 ms`, `1.04 s`."""
    return f"{seconds * 1000:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"
