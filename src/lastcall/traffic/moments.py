"""A moment, in seconds of the monotonic clock, as exactly as it is known. Pure.

What a record says was so when it was written: its moment has no width. What a cluster's API says is so within bounds:
a DELETE was before its event came, a stop signal after the hook's sleep.
"""

# check: pure

import math
from collections.abc import Sequence
from typing import Self

from lastcall.world.dataclass import dataclass

SKEW_SECONDS = 0.01
"""A record is written a moment after what it reports; what a client sees may lie between."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Not before `earliest`, and not after `latest`; either may be infinite."""

    earliest: float
    latest: float

    @classmethod
    def at(cls, seconds: float) -> Self:
        """Return the moment that is known exactly."""
        return cls(seconds, seconds)

    @property
    def is_exact(self) -> bool:
        return self.earliest == self.latest

    def corners(self) -> "tuple[Moment, ...]":
        """Return its two ends as exact moments; one of an exact moment."""
        return (self,) if self.is_exact else (Moment.at(self.earliest), Moment.at(self.latest))

    def since(self, other: "Moment") -> float:
        """Return how long it was after another one, each at its latest."""
        return self.latest - other.latest


def exactly(seconds: float | None) -> Moment | None:
    """Return an exact moment, None for what did not happen."""
    return None if seconds is None else Moment.at(seconds)


def is_over(moment: Moment | None, at: float) -> bool:
    """Return whether it was certainly over by then."""
    return moment is not None and moment.latest <= at


def first_of(*moments: Moment | None) -> Moment | None:
    """Return the first moment of several, within the bounds that all of them leave."""
    known = [each for each in moments if each is not None]
    if not known:
        return None
    return Moment(min(each.earliest for each in known), min(each.latest for each in known))


def in_order(moments: Sequence[Moment | None]) -> list[Moment | None]:
    """Return moments of which none was before the one in front of it, with the bounds that this leaves; bounds that
    contradict it stay as they are."""
    found, earliest = list(moments), -math.inf
    for i, moment in enumerate(found):
        if moment is not None:
            earliest = max(earliest, moment.earliest)
            found[i] = _within(moment, earliest, math.inf)
    latest = math.inf
    for i, moment in reversed(list(enumerate(found))):
        if moment is not None:
            latest = min(latest, moment.latest)
            found[i] = _within(moment, -math.inf, latest)
    return found


def _within(moment: Moment, earliest: float, latest: float) -> Moment:
    found = Moment(max(moment.earliest, earliest), min(moment.latest, latest))
    return found if found.earliest <= found.latest else moment
