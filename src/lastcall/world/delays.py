"""How long something takes: a time, or a distribution that is asked anew each time. Pure but for the randomness given.

Written as people write it: `1s`, `250ms`, `1m30s`, `1.5`, `uniform(0s,3s)`, `normal(1s,200ms)`, `exponential(1s)`,
`poll(10s)`: the rest of a period that began with the clock, as for something that only looks every 10 s.
"""

# check: pure

import re
from collections.abc import Callable
from random import Random

from lastcall.world.dataclass import dataclass
from lastcall.world.durations import parse_seconds

_SHAPE = re.compile(r"([a-z]+)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Delay:
    """`text` is how it was written; `most` is the longest it can usually be, in seconds."""

    text: str
    most: float
    _draw: Callable[[Random, float], float]

    def seconds(self, random: Random, now: float) -> float:
        """Return the seconds to wait, never negative. `now` is the monotonic clock's."""
        return max(0.0, self._draw(random, now))


def parse_delay(text: str) -> Delay:
    """Parse a delay: a time, or a distribution of times. Raises ValueError."""
    found = _SHAPE.fullmatch(text.strip().lower())
    if found is None:
        seconds = parse_seconds(text)
        return Delay(text.strip(), seconds, lambda random, now: seconds)
    shape, numbers = found[1], [parse_seconds(part) for part in found[2].split(",")]
    match shape, numbers:
        case "uniform", [low, high] if low <= high:
            return Delay(text.strip(), high, lambda random, now: random.uniform(low, high))
        case "normal", [mean, deviation]:
            return Delay(text.strip(), mean + 3 * deviation, lambda random, now: random.gauss(mean, deviation))
        case "exponential", [mean] if mean > 0:
            return Delay(text.strip(), 5 * mean, lambda random, now: random.expovariate(1 / mean))
        case "poll", [period] if period > 0:
            return Delay(text.strip(), period, lambda random, now: period - now % period)
    raise ValueError(f"{text!r}: write uniform(0s,3s), normal(1s,200ms), exponential(1s) or poll(10s)")


NONE = parse_delay("0s")
