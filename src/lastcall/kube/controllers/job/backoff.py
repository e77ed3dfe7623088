"""How long a Job waits before it replaces a failed Pod. Pure.

Source: pkg/controller/job/backoff_utils.go. The wait counts from the end of the last Pod that failed, or from the
beginning of its deletion where that counts as failure.
"""

# check: pure

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.kube.controllers.job.pods import all_index_failures, finish_time
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

FIRST_SECONDS = 10.0
MAX_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class BackOff:
    """Failures since the last success; `last_failure` is seconds since the epoch."""

    failures: int = 0
    last_failure: float = 0.0

    def after(self, succeeded: Iterable[Pod], failed: Iterable[Pod]) -> BackOff:
        """Return the record with Pods that ended since. (`newBackoffRecord`)"""
        last_success = max(map(finish_time, succeeded), default=None)
        failures = sorted(map(finish_time, failed))
        if last_success is not None:
            failures = [each for each in failures if each > last_success]
            return BackOff(len(failures), failures[-1] if failures else 0.0)
        if not failures:
            return self
        return BackOff(self.failures + len(failures), failures[-1])

    def remaining(self, now: float) -> float:
        """Return the seconds until a new Pod may be made. (`getRemainingTimeForFailuresCount`)"""
        if self.failures <= 0:
            return 0.0
        wait = min(FIRST_SECONDS * 2.0 ** min(self.failures - 1, 10), MAX_SECONDS)
        return max(0.0, self.last_failure + wait - now)


def index_remaining(failed: Pod | None, now: float) -> float:
    """Return the same for one index, whose last failed Pod is `failed`. (`getRemainingTimePerIndex`)"""
    if failed is None:
        return 0.0
    return BackOff(all_index_failures(failed) + 1, finish_time(failed)).remaining(now)
