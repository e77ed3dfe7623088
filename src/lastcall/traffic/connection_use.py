"""Measure how a client used each connection: when requests went out on it, and how the server ended it. Pure.

A server that wants to end a connection announces that: GOAWAY, `Connection: close`. No request goes out after
that. So requests that go out at the usual pace until a Pod is killed show that it never announced its end.
"""

# check: pure

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Literal, get_args

from lastcall.traffic.moments import SKEW_SECONDS
from lastcall.traffic.outcome import BEFORE_BYTES, NEW_SECONDS, REUSED, Lost, Outcome
from lastcall.world.dataclass import dataclass

CUT: tuple[Lost, ...] = (*BEFORE_BYTES, "reset after bytes", "truncated")
"""How requests end that are under way when their connection is closed."""
LEAST_CUTS = 4
"""One after another: so many connections that end alike by chance are less than one case in a hundred."""
ALIKE = 0.1
"""How far one may be from the median, as a share of it. gRPC spreads its MAX_CONNECTION_AGE so."""
LEAST_ALIKE = 0.9
"""The share of cut connections that are so near to the median."""
Measure = Literal["requests", "seconds"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
_LEAST: Mapping[Measure, float] = {"requests": 3.0, "seconds": 0.5}
"""A connection that ends sooner was not ended at a limit."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At what the server closes its connections: after about so many requests, or so many seconds."""

    of: Measure
    value: float

    def fits(self, use: "ConnectionUse") -> bool:
        """Return whether a connection was cut at it."""
        value = _measure(use, self.of)
        return value is not None and _is_near(value, self)


@dataclass(frozen=True, slots=True)
class ConnectionUse:
    """One connection. `sent`: when requests went out on it, sorted, in seconds."""

    sent: Sequence[float]
    opened: float
    cut: float | None = None
    """When the server closed it with requests under way, after it had answered others."""

    def went_on(self, since: float, until: float) -> bool:
        """Return whether requests went out on it at their usual pace from one moment to the other, which is its end."""
        begin, end = bisect_right(self.sent, since + SKEW_SECONDS), bisect_left(self.sent, until)
        if end - begin < 2:
            return False
        last = self.sent[end - 1]
        return until - last <= 2 * (last - since) / (end - begin)


def connection_uses(outcomes: Iterable[Outcome]) -> dict[int, ConnectionUse]:
    """Return how each connection was used that requests share, by its number."""
    by_number: dict[int, list[Outcome]] = {}
    for each in outcomes:
        if each.kind in REUSED and each.served_by:
            by_number.setdefault(each.connection, []).append(each)
    return {number: _use(those) for number, those in by_number.items()}


def _use(those: Sequence[Outcome]) -> ConnectionUse:
    lost = [each for each in those if each.lost in CUT]
    under_way = any(each.finished - each.sent > NEW_SECONDS for each in lost)
    answered = any(not each.lost for each in those)
    cut = min(each.finished for each in lost) if under_way and answered else None
    return ConnectionUse(tuple(sorted(each.sent for each in those)), min(each.sent - each.age for each in those), cut)


def limit_of(uses: Mapping[int, ConnectionUse], lived_on: Callable[[int], bool]) -> Limit | None:
    """Return the limit at which a server closes connections under way; None if nothing shows one.

    `lived_on` says whether the Pod of a connection was not ending when it was cut: other cuts are left out.
    """
    cut = [use for number, use in uses.items() if use.cut is not None and lived_on(number)]
    if _in_a_row(cut) < LEAST_CUTS:
        return None
    for of in MEASURES:
        found = Limit(of, median(_measure(each, of) or 0.0 for each in cut))
        if found.value >= _LEAST[of] and sum(map(found.fits, cut)) >= LEAST_ALIKE * len(cut):
            return found
    return None


def _in_a_row(cut: Sequence[ConnectionUse]) -> int:
    """Return how many were opened one after the end of another: many that end together are one event."""
    count, last = 0, float("-inf")
    for each in sorted(cut, key=lambda each: each.cut or 0.0):
        if each.opened >= last and each.cut is not None:
            count, last = count + 1, each.cut
    return count


def _measure(use: ConnectionUse, of: Measure) -> float | None:
    """Return after how many requests or seconds it was cut; None for one that was not."""
    if use.cut is None:
        return None
    return float(len(use.sent)) if of == "requests" else use.cut - use.opened


def _is_near(value: float, limit: Limit) -> bool:
    return abs(value - limit.value) <= max(ALIKE * limit.value, 1.0 if limit.of == "requests" else 0.0)
