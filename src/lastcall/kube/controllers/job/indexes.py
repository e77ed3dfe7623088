"""Sets of completion indexes as `status.completedIndexes` writes them: `1,3-5,7`. Pure.

Source: pkg/controller/job/indexed_job_utils.go:orderedIntervals, pkg/controller/job/success_policy.go.
"""

# check: pure

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice

from lastcall.kube.api.text.numbers import int_of
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Indexes:
    """Closed intervals (first, last), in order, with a gap between any two."""

    intervals: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, indexes: Iterable[int]) -> "Indexes":
        """Make the set of `indexes`, in any order, also repeated."""
        return cls._joined((index, index) for index in sorted(indexes))

    @classmethod
    def parse(cls, text: str | None, completions: int) -> "Indexes":
        """Return the indexes of `text` below `completions`, without what cannot be read.

        (`parseIndexesFromString`)
        """
        found: list[tuple[int, int]] = []
        for part in (text or "").split(","):
            first, dash, last = part.partition("-")
            low, high = int_of(first), int_of(last if dash else first)
            if low is not None and high is not None and 0 <= low <= (high := min(high, completions - 1)):
                found.append((low, high))
        return cls._joined(sorted(found))

    @classmethod
    def _joined(cls, ordered: Iterable[tuple[int, int]]) -> "Indexes":
        result: list[tuple[int, int]] = []
        for first, last in ordered:
            if result and first <= result[-1][1] + 1:
                result[-1] = (result[-1][0], max(result[-1][1], last))
            else:
                result.append((first, last))
        return cls(tuple(result))

    def __or__(self, other: "Indexes") -> "Indexes":
        return self._joined(sorted(self.intervals + other.intervals))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self.intervals, (index, sys.maxsize)) - 1
        return position >= 0 and index <= self.intervals[position][1]

    def __str__(self) -> str:
        """Two neighbours are written `3,4`, more of them `3-5`."""
        parts = []
        for first, last in self.intervals:
            between = "," if last == first + 1 else "-"
            parts.append(str(first) if first == last else f"{first}{between}{last}")
        return ",".join(parts)

    def missing(self, completions: int) -> Iterator[int]:
        """Yield the indexes below `completions` that are not in the set, upwards."""
        candidate = 0
        for first, last in self.intervals:
            yield from range(candidate, min(first, completions))
            candidate = max(candidate, last + 1)
        yield from range(candidate, completions)

    def first_missing(self, count: int, completions: int) -> list[int]:
        return list(islice(self.missing(completions), max(0, count)))

    def common(self, other: "Indexes") -> int:
        """Count the indexes that both have."""
        return len(self) + len(other) - len(self | other)
