"""What the clocks of a cluster say in terms of ours. Pure.

Every stamp was made before it reached us, so that `arrival - stamp` is the difference of the clocks plus the way's
time, and the least of many is close to the difference alone. Stamps of whole seconds are up to a second too early; that
is the error which is reported.
"""

# check: pure

from dataclasses import field
from datetime import datetime

from lastcall.world.dataclass import dataclass

SECOND = 1_000_000_000
WINDOW_NS = 1800 * SECOND
"""A clock may drift or be set: what is older than one to two of these is not counted any more."""
SKEW_NOTICED_SECONDS = 2.0
"""Report a clock difference from this on: it matters when times are compared with the cluster's logs."""


def stamp_ns(text: str) -> int | None:
    """Return nanoseconds since the epoch of an RFC 3339 time, None for another text."""
    head, dot, tail = text.partition(".")
    digits = tail.rstrip("Z").partition("+")[0].partition("-")[0] if dot else ""
    zone = tail[len(digits) :] if dot else ""
    try:
        seconds = datetime.fromisoformat(f"{head}{zone}".replace("Z", "+00:00"))
        fraction = int(digits[:9].ljust(9, "0")) if digits else 0
        return int(seconds.timestamp()) * SECOND + fraction
    except (ValueError, OverflowError):
        return None


@dataclass(slots=True)
class ArrivalOffset:
    """`ours - theirs` of one clock, at most: the least difference seen lately. None before the first stamp.

    A clock that can be asked has `clocks.Offset`, with an error on both sides."""

    _least: int | None = None
    _before: int | None = None
    _since: int = 0

    def saw(self, stamp: int, arrived: int) -> None:
        """Compare a node's timestamp with the wall time at which it arrived, both in ns."""
        if arrived - self._since > WINDOW_NS:
            self._before, self._least, self._since = self._least, None, arrived
        difference = arrived - stamp
        self._least = difference if self._least is None else min(self._least, difference)

    @property
    def ns(self) -> int | None:
        known = [each for each in (self._least, self._before) if each is not None]
        return min(known) if known else None


@dataclass(slots=True)
class Clocks:
    """The clocks of a cluster: the API server's (""), and each node's by its name."""

    _offsets: dict[str, ArrivalOffset] = field(default_factory=dict)

    def saw(self, clock: str, stamp: str, arrived_wall_ns: int) -> None:
        """Take a stamp, only of what has just happened: a stamp of long ago says nothing."""
        made = stamp_ns(stamp)
        if made is not None:
            self.saw_ns(clock, made, arrived_wall_ns)

    def saw_ns(self, clock: str, made: int, arrived_wall_ns: int) -> None:
        """Take a time in ns since the epoch, by that clock, in the same way."""
        self._offsets.setdefault(clock, ArrivalOffset()).saw(made, arrived_wall_ns)

    def ours(self, clock: str, stamp: str) -> int | None:
        """Convert the stamp to our wall clock, in ns; by their own word where nothing is known of the clock."""
        made = stamp_ns(stamp)
        return None if made is None else self.ours_ns(clock, made)

    def ours_ns(self, clock: str, made: int) -> int:
        """Convert a time in ns since the epoch in the same way."""
        offset = self._offsets.get(clock)
        return made + ((offset.ns if offset else None) or 0)

    def behind_seconds(self, clock: str) -> float | None:
        """Return how far their clock is behind ours, negative when it is ahead; None when not known.

        Up to a second too high where stamps are whole seconds.
        """
        offset = self._offsets.get(clock)
        return None if offset is None or offset.ns is None else offset.ns / SECOND

    def forget(self, clock: str) -> None:
        """Forget the clock of a node that is gone."""
        self._offsets.pop(clock, None)
