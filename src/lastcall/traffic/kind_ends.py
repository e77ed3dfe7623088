"""What the end of a Pod means for each kind of load, as measured in a run; from it, a rule that predicts. Pure.

Three ways in which a late change of endpoints loses requests. A new connection is sent to a Pod that listens no more:
every kind, for all of them open connections. A request was begun so late that it is under way when the Pod stops, and
the application leaves without answering it; or the application continues with it, and the grace period ends before.
A request on a connection that is already open is not sent anywhere by the rules of endpoints: no lag of theirs loses
it. Whether a Pod's end does is a matter of what the application says on such a connection.
"""

# check: pure

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from lastcall.traffic.causes import Cause
from lastcall.traffic.find_safe import MeasuredEnd, deaf_seconds
from lastcall.traffic.lives import PodLife, by_address, led_to
from lastcall.traffic.moments import SKEW_SECONDS
from lastcall.traffic.outcome import LONG_LIVED, REUSED, Kind, Outcome
from lastcall.world.dataclass import dataclass

QUICK_SECONDS = 0.1
"""A request that is answered sooner is hardly ever under way when its Pod is asked to stop."""
_SHARE = 0.95
"""What long answers take is what this share of them took at most: single ones may have met a busy machine."""

_JUST_SECONDS = 1.0
"""A connection that had a request so shortly before the stop signal was open then."""

AtStop = Literal["answered", "lost", "unknown"]


@dataclass(frozen=True, slots=True)
class KindEnd:
    """`took` is what a good answer takes, in seconds; a stream or a WebSocket is held so long. `at_stop` is what became
    of requests that were under way at a stop signal (of a kept connection: that were on one, then or later); unknown:
    there were none. `seen` is how many there were.
    """

    kind: Kind
    took: float
    at_stop: AtStop = "unknown"
    seen: int = 0

    @property
    def pinned(self) -> bool:
        """Return whether its requests come on connections that others were on before."""
        return self.kind in REUSED

    @property
    def quick(self) -> bool:
        return self.took < QUICK_SECONDS

    @property
    def finished(self) -> bool:
        """Return whether the application ends well what it has begun; what nobody saw is taken to be lost, but for
        requests that are hardly ever under way."""
        return self.at_stop == "answered" or (self.at_stop == "unknown" and (self.quick or self.pinned))


def measure_kinds(
    kinds: Iterable[Kind], outcomes: Sequence[Outcome], causes: Mapping[int, Cause], lives: Sequence[PodLife]
) -> tuple[KindEnd, ...]:
    """Measure the kinds of one run; `causes` are those of the lost requests, by id."""
    addresses = by_address(lives)
    found = []
    for kind in kinds:
        those = [each for each in outcomes if each.kind == kind]
        known = [_at_stop(each, causes.get(each.id), led_to(each, addresses)) for each in those]
        lost, answered = known.count("lost"), known.count("answered")
        at_stop: AtStop = "lost" if lost else "answered" if answered else "unknown"
        found.append(KindEnd(kind, _took(those, causes), at_stop, lost + answered))
    return tuple(found)


def combine(first: Sequence[KindEnd], second: Sequence[KindEnd]) -> tuple[KindEnd, ...]:
    """Return what two runs saw."""
    others = {each.kind: each for each in second}
    found = []
    for each in first:
        other = others.get(each.kind, each)
        stops = (each.at_stop, other.at_stop)
        at_stop: AtStop = "lost" if "lost" in stops else "answered" if "answered" in stops else "unknown"
        seen = each.seen + (other.seen if other is not each else 0)
        found.append(replace(each, took=max(each.took, other.took), at_stop=at_stop, seen=seen))
    return tuple(found)


def short_seconds(end: MeasuredEnd, kind: KindEnd, lag: float, grace: float, sleep: float | None = None) -> float:
    """Return by how many seconds the Pod's end is too early for this kind at a lag; 0 or less: nothing is lost.

    `lag` are the delays asked for, all hops together; `grace` is the Pod's grace period; `sleep` a preStop sleep in the
    place of the hook there was.
    """
    deaf = deaf_seconds(end, lag, sleep)
    if kind.pinned and not kind.finished:
        return max(deaf, QUICK_SECONDS)  # whatever the lag
    if kind.quick:
        return deaf
    to_term = end.to_term if sleep is None else end.to_hook + sleep
    last = min(lag + end.own_lag, to_term + end.accepts)  # the last one is begun
    if kind.finished:
        return max(deaf, last + kind.took - grace)
    return max(deaf, lag + end.own_lag + kind.took - to_term)


def probe_lag(end: MeasuredEnd, kinds: Sequence[KindEnd], others: float) -> float | None:
    """Return the lag of a run in which requests are under way at the stop signal, of the kinds of which none was; None
    where that is known, or not to be had. `others` are the delays of the hops that are not searched."""
    unseen = [each.took for each in kinds if each.at_stop == "unknown" and not each.quick and not each.pinned]
    if not unseen:
        return None
    lag = end.to_term - end.own_lag - others - max(0.2, min(1.0, min(unseen) / 4))
    return lag if lag > 0 else None


def drains(end: MeasuredEnd, kinds: Sequence[KindEnd]) -> float:
    """Return how long the application may go on after its stop signal, in seconds: as it was seen to, or until the last
    request that it took is answered."""
    longest = max((each.took for each in kinds if each.at_stop == "answered" and not each.quick), default=0.0)
    return max(end.drains, end.accepts + longest if longest else 0.0)


def _took(outcomes: Sequence[Outcome], causes: Mapping[int, Cause]) -> float:
    good = sorted(each.finished - each.sent for each in outcomes if each.id not in causes and not each.moved)
    if not good:
        return max((each.finished - each.sent for each in outcomes), default=0.0)
    usual = good[len(good) // 2]  # of quick ones a busy machine makes slow ones, and they are quick all the same
    if outcomes[0].kind in LONG_LIVED:  # the client says how long, and holds some until the load is over
        return usual
    return usual if usual < QUICK_SECONDS else good[min(len(good) - 1, int(_SHARE * len(good)))]


def _at_stop(outcome: Outcome, cause: Cause | None, life: PodLife | None) -> AtStop:
    """Of one request; unknown where no stop signal came upon it."""
    if life is None or life.signalled is None:
        return "unknown"
    stop = life.signalled.latest
    if cause in ("stale connection", "cut off", "never read"):
        return "lost"
    if cause not in (None, "killed"):
        return "unknown"
    if outcome.sent < stop and outcome.finished > stop + SKEW_SECONDS:
        return "answered"  # or it was at it: what ended it was the grace period
    if outcome.kind in REUSED and cause is None and 0 <= stop - outcome.finished < _JUST_SECONDS:
        return "answered"  # its connection was there, and no request on one was lost
    return "unknown"
