"""What a controller expects to see before it counts again: creations and deletions it asked for itself.

A cache is always a little behind. A controller that counts its Pods before its own writes have come back to it would
make the same decision twice. Source: pkg/controller/controller_utils.go:ControllerExpectations,
UIDTrackingControllerExpectations.
"""

from dataclasses import field

from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

EXPIRY_SECONDS = 300.0
"""After this long a controller counts anyway (`ExpectationsTimeout`)."""


@dataclass(slots=True)
class _Expected:
    at: float
    creations: int = 0
    deletions: dict[str, None] = field(default_factory=dict)


class Expectations:
    """By the key of an owner. Deletions are tracked by the uid of what is deleted, so that none is counted twice."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def satisfied(self, key: str) -> bool:
        """Return True when nothing is awaited, or it was awaited for too long."""
        expected = self._expected.get(key)
        if expected is None or (expected.creations <= 0 and not expected.deletions):
            return True
        return monotonic(self._clock) - expected.at > EXPIRY_SECONDS

    def expect_creations(self, key: str, count: int) -> None:
        self._expected[key] = _Expected(monotonic(self._clock), creations=count)

    def expect_deletions(self, key: str, uids: list[str]) -> None:
        self._expected[key] = _Expected(monotonic(self._clock), deletions=dict.fromkeys(uids))

    def expect_more(self, key: str, creations: int, deletions: list[str]) -> None:
        """Expect creations and deletions at once, beside what is awaited already."""
        expected = self._expected.setdefault(key, _Expected(monotonic(self._clock)))
        expected.creations += creations
        expected.deletions |= dict.fromkeys(deletions)

    def creation_observed(self, key: str) -> None:
        """Stop waiting for one creation: it was seen, or it failed."""
        expected = self._expected.get(key)
        if expected is not None and expected.creations > 0:
            expected.creations -= 1

    def deletion_observed(self, key: str, uid: str) -> None:
        expected = self._expected.get(key)
        if expected is not None:
            expected.deletions.pop(uid, None)

    def forget(self, key: str) -> None:
        """Forget an owner that is gone."""
        self._expected.pop(key, None)
