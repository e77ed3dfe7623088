"""The edge between what loses requests and what does not: how Pods end, a prediction from it, and where to try. Pure.

The values that can be tried are indexes of a row that begins with the safest: endpoint lags upwards, sleeps downwards.
Two assumptions. What is lost grows with the index (monotone): where one value loses, those after it do. And one Pod's
end is like the next one's: what was measured in one run holds for the others. Runs on the kernel are noisy at the edge:
a value is called safe only below every value that lost.
"""

# check: pure

import math
from collections.abc import Callable, Sequence
from dataclasses import field

from lastcall.traffic.lives import PodLife
from lastcall.traffic.moments import Moment
from lastcall.world.dataclass import dataclass

_BELOW = 2
"""Indexes: below the edge no rate of requests is too low to find nothing, only the Pods' own times vary."""
_LOOK_SECONDS = 1.0
"""A listener that closes shortly before its process exits may not have been seen to close."""


@dataclass(frozen=True, slots=True)
class MeasuredEnd:
    """How the Pods of one run ended, in seconds: for each time the Pod for which it was worst.

    `to_hook`: DELETE → its preStop hook (or its stop signal, without one) began. `to_term`: DELETE → stop signal.
    `accepts`: stop signal → the last moment at which a new connection was certainly served. `drains`: stop signal →
    exit. `own_lag`: what a change of endpoints took by itself, without the delays that were asked for. `killed`: the
    grace period ended a container, so nobody knows how long it would have drained.
    """

    to_hook: float
    to_term: float
    accepts: float
    drains: float
    own_lag: float
    killed: bool


def measure_end(lives: Sequence[PodLife], delayed: float) -> MeasuredEnd | None:
    """Measure how Pods end, None when no Pod was seen to end. `delayed` are the requested seconds of delay."""
    hooks, terms, accepts, drains, lags, killed = [], [], [], [], [], False
    for life in lives:
        if life.deleted is None or life.term is None or life.exited is None:
            continue
        hooks.append((life.hook if life.hook is not None else life.term).since(life.deleted))
        terms.append(life.term.since(life.deleted))
        accepts.append(max(0.0, _stops_accepting(life, life.term, life.exited).since(life.term)))
        drains.append(max(0.0, life.exited.since(life.term)))
        if life.routing_lag is not None:
            lags.append(life.routing_lag - delayed)
        killed = killed or life.killed
    if not terms:
        return None
    own_lag = max(0.0, *lags) if lags else 0.0
    return MeasuredEnd(min(hooks), min(terms), min(accepts), max(drains), own_lag, killed)


def _stops_accepting(life: PodLife, term: Moment, exited: Moment) -> Moment:
    """When a new connection was no longer sure to be served: what was not seen is taken to be early."""
    if life.listener_closed is not None:
        return life.listener_closed
    return exited if life.killed or exited.since(term) > _LOOK_SECONDS else term


def deaf_seconds(end: MeasuredEnd, lag: float, sleep: float | None = None) -> float:
    """Return how long a Pod that listens no more is still sent new connections; 0 or less: never.

    `lag` are the delays asked for, all hops together; `sleep` a preStop sleep in the place of the hook there was.
    """
    to_term = end.to_term if sleep is None else end.to_hook + sleep
    return lag + end.own_lag - (to_term + end.accepts)


def smallest_grace(drains: float, sleep: float) -> int:
    """Return terminationGracePeriodSeconds for a hook that sleeps and an application that then drains so many
    seconds."""
    return math.floor(sleep + drains) + 1


def last_safe(count: int, is_safe: Callable[[int], bool], guess: int | None = None) -> int:
    """Return the last index below `count` that is safe; -1 when not even the first one is. By bisection; with a guess,
    after growing steps away from it, which are few when it is good."""
    low, high = -1, count
    if guess is not None and count > 0:
        at, step = min(max(guess, 0), count - 1), 1
        up = is_safe(at)
        low, high = (at, count) if up else (-1, at)
        while high - low > 1:
            at = min(low + step, count - 1) if up else max(high - step, 0)
            safe = is_safe(at)
            low, high = (at, high) if safe else (low, at)
            if safe != up:
                break
            step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_safe(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Trial:
    """One run on the kernel: `lost` of `total` requests at the value with this index."""

    index: int
    lost: int
    total: int


@dataclass(slots=True)
class EdgeSearch:
    """Where to run next on the kernel, from what the runs so far found.

    `predicted` is the last index that should be safe, -1 for none. Runs take turns just below it and just above it
    (`margin` indexes away); where they find otherwise, the search moves on in growing steps. `runs` are wanted at
    least, twice as many are the end of it. `known` came before and does not count as one of them.
    """

    count: int
    predicted: int
    margin: int
    runs: int
    known: tuple[Trial, ...] = ()
    trials: list[Trial] = field(default_factory=list)

    def next(self) -> int | None:
        """Return the index for the next run; None when the search is over."""
        if self.unsafe == 0 or len(self.trials) >= 2 * self.runs:
            return None
        if len(self.trials) >= self.runs and self.settled:
            return None
        low, high = self._low(), self._high()
        return low if self._runs_at(low) <= self._runs_at(high) else high

    @property
    def safe(self) -> int | None:
        """Return the last index that lost nothing, below all that lost."""
        bound = self.count if self.unsafe is None else self.unsafe
        return max((each.index for each in self._all if not each.lost and each.index < bound), default=None)

    @property
    def unsafe(self) -> int | None:
        """Return the first index that lost requests."""
        return min((each.index for each in self._all if each.lost), default=None)

    @property
    def settled(self) -> bool:
        """Return whether there is a safe value, found so more than once, and one beyond it that loses; or there is
        none."""
        safe = self.safe
        if self.unsafe == 0:
            return True
        if safe is None or self._runs_at(safe) < min(2, self.runs):
            return False
        return self.unsafe is not None or safe == self.count - 1

    def at(self, index: int | None) -> list[Trial]:
        """Return the runs at one value."""
        return [each for each in self._all if each.index == index]

    @property
    def _all(self) -> list[Trial]:
        return [*self.known, *self.trials]

    def _runs_at(self, index: int) -> int:
        return len(self.at(index))

    def _low(self) -> int:
        wanted = max(0, self.predicted - min(self.margin, _BELOW))
        best, bound = self.safe or 0, self.unsafe
        if bound is None or wanted < bound:
            return max(wanted, best)
        back = {each.index for each in self._all if each.lost and each.index <= wanted}
        return max(best, 0, bound - self._step(len(back)))

    def _high(self) -> int:
        if self.unsafe is not None:
            return self.unsafe
        wanted = self.predicted + 1 + self.margin
        best = -1 if self.safe is None else self.safe
        if best >= wanted:
            beyond = {each.index for each in self._all if each.index > self.predicted}
            wanted = best + self._step(len(beyond))
        return min(wanted, self.count - 1)

    def _step(self, times: int) -> int:
        """The first one is as wide as the first two are apart, each further one twice as wide."""
        return int((2 * self.margin + 1) * 2 ** max(0, times - 1))
