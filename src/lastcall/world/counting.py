"""Counters that cost nanoseconds, for clients that may ask for `/metrics` later.

A counter is a number in a dict, a histogram a list of numbers: no locks, no label objects, no names. What a number is
called, and its text, is made at a scrape (`kube/api/metrics/text.py`), which may never be. The official
prometheus_client would be 14 MB of every role and some microseconds of every count (docs/metrics.md).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from weakref import WeakMethod

Labels = Mapping[str, str]


class Histogram:
    """How many observed values were at most each of `bounds`, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add(self, other: "Histogram") -> None:
        """Add the counts of `other`, which has the same bounds."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum

    @property
    def count(self) -> int:
        return sum(self.counts)


Samples = Iterable[tuple[Labels, float | Histogram]]
Family = tuple[str, Samples]
"""One name with its values, by their labels."""
Source = Callable[[], Iterable[Family]]


class Registry:
    """What a process has to tell to clients that ask. Sources are methods, which are forgotten with their objects."""

    __slots__ = ("_sources",)

    def __init__(self) -> None:
        self._sources: list[WeakMethod[Source]] = []

    def add(self, source: Source) -> None:
        """Add `source`, a bound method that is called at each scrape and must not raise."""
        self._sources = [each for each in self._sources if each() is not None]
        self._sources.append(WeakMethod(source))

    def families(self) -> Iterator[Family]:
        """Yield the families of all sources; a name that several sources report comes several times."""
        for each in self._sources:
            if (source := each()) is not None:
                yield from source()


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds as prometheus.ExponentialBuckets makes them."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)
