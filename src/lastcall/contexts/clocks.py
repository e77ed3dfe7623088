"""Clocks of different machines: how far another one is from ours, and how wrong that may be. Pure.

One look at another clock is a `Sample`: ours before, theirs, ours after. Their time was read somewhere between, so each
sample bounds the offset from both sides, whatever way the two messages took, and several bound it together. (RFC 5905
section 8 takes the middle of the quickest sample; the intersection of bounds is that of section 11.2.1.)
"""

# check: pure

from collections.abc import Iterable
from typing import Literal, NamedTuple

from lastcall.world.dataclass import dataclass

DRIFT = 500e-6
"""How much two clocks may drift apart: the most by which Linux slews one to correct it (adjtimex: MAXFREQ)."""

Order = Literal["before", "after", "unknown"]


class Sample(NamedTuple):
    """`sent` and `received` by our clock, `remote` by theirs, in seconds. `resolution`: theirs is cut off to it, as the
    whole seconds of an HTTP `Date` are."""

    sent: float
    remote: float
    received: float
    resolution: float = 0.0


@dataclass(frozen=True, slots=True)
class Offset:
    """Their clock minus ours is `seconds`, wrong by at most `error` at `at` of our clock, by more before and after."""

    seconds: float
    error: float
    at: float
    drift: float = DRIFT

    def error_at(self, ours: float) -> float:
        """Return how wrong `seconds` may be at another time."""
        return self.error + abs(ours - self.at) * self.drift

    def to_ours(self, theirs: float) -> float:
        """Return a time of their clock, by ours."""
        return theirs - self.seconds

    def order(self, theirs: float, ours: float) -> Order:
        """Return whether what their clock timed was before or after what ours did; `unknown` within the error."""
        apart = self.to_ours(theirs) - ours
        if abs(apart) <= self.error_at(ours):
            return "unknown"
        return "before" if apart < 0 else "after"

    @property
    def text(self) -> str:
        """Return `+1.234 s ± 0.5 ms`."""
        return f"{signed_seconds(self.seconds)} ± {signed_seconds(self.error).lstrip('+')}"


class NotOneOffset(ValueError):
    """No offset fits all samples: a clock was set in between, or drifts more than it may."""


def offset_of(samples: Iterable[Sample], *, drift: float = DRIFT) -> Offset:
    """Return the offset that all samples allow, at the moment of the latest. Raises NotOneOffset; ValueError without a
    sample, and for one that was received before it was sent."""
    looked = sorted(samples, key=lambda each: each.received)
    if not looked:
        raise ValueError("no sample of the other clock")
    at = looked[-1].received
    least, most = float("-inf"), float("inf")
    for each in looked:
        if each.received < each.sent:
            raise ValueError(f"a sample was received at {each.received:g}, before it was sent at {each.sent:g}")
        spread = (at - each.sent) * drift
        least = max(least, each.remote - each.received - spread)
        most = min(most, each.remote + each.resolution - each.sent + spread)
    if least > most:
        raise NotOneOffset(
            "the other clock was set during the measurement: samples differ by "
            f"{signed_seconds(least - most).lstrip('+')}"
        )
    return Offset((least + most) / 2, (most - least) / 2, at, drift)


def widest_offset(samples: Iterable[Sample], *, drift: float = DRIFT) -> Offset:
    """Return the offset of a clock that jumps to and fro: with an error so large that it holds for each of the samples
    alone. Raises ValueError without a sample."""
    alone = [offset_of([each], drift=drift) for each in samples]
    if not alone:
        raise ValueError("no sample of the other clock")
    least, most = min(each.seconds - each.error for each in alone), max(each.seconds + each.error for each in alone)
    return Offset((least + most) / 2, (most - least) / 2, max(each.at for each in alone), drift)


def signed_seconds(seconds: float) -> str:
    """Format seconds with their sign: `+1.234 s`, `-0.5 ms`. Milliseconds below a second."""
    if abs(seconds) >= 1:
        return f"{seconds:+.3f} s"
    return f"{seconds * 1000:+.1f} ms"
