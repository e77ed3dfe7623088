"""What the scheduler counts, and what that is called in `/metrics`.

Source: pkg/scheduler/metrics/metrics.go.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.queue import QueuedPod, SchedulingQueue
from lastcall.world.clock import Clock
from lastcall.world.counting import Family, Histogram, exponential

Result = Literal["scheduled", "unschedulable", "error"]

PROFILE = "default-scheduler"
SECONDS = exponential(0.001, 2, 15)
SLI_SECONDS = exponential(0.01, 2, 20)
ATTEMPTS = (1, 2, 4, 8, 16)
VICTIMS = (1, 2, 4, 8, 16, 32, 64)
MOST_ATTEMPTS = 15
"""More are counted as `16+`."""
PENDING: Mapping[str, str] = {"error": "backoff"}
"""Places of the queue that count as another one."""


class SchedulerCounts:
    """`began` is when a Pod's turn began, on the monotonic clock in nanoseconds."""

    def __init__(self, clock: Clock, queue: SchedulingQueue, cache: Cache) -> None:
        self._clock, self._queue, self._cache = clock, queue, cache
        self._attempts: dict[Result, Histogram] = {}
        self._algorithm = Histogram(SECONDS)
        self._needed = Histogram(ATTEMPTS)
        self._until: dict[str, Histogram] = {}
        self._preemptions, self._victims = 0, Histogram(VICTIMS)

    def decided(self, began: int) -> None:
        """Count a decision: there is a node, or none."""
        self._algorithm.observe((self._clock.monotonic_ns() - began) / 1e9)

    def ended(self, result: Result, began: int) -> None:
        """Count one attempt, with its binding where there was one."""
        found = self._attempts.get(result)
        if found is None:
            found = self._attempts[result] = Histogram(SECONDS)
        found.observe((self._clock.monotonic_ns() - began) / 1e9)

    def scheduled(self, entry: QueuedPod, began: int) -> None:
        """Count a Pod that is bound."""
        self.ended("scheduled", began)
        attempts = entry.attempts + 1
        self._needed.observe(attempts)
        shown = str(attempts) if attempts <= MOST_ATTEMPTS else f"{MOST_ATTEMPTS + 1}+"
        found = self._until.get(shown)
        if found is None:
            found = self._until[shown] = Histogram(SLI_SECONDS)
        found.observe((self._clock.monotonic_ns() - (entry.first_turn_ns or began)) / 1e9)

    def preempted(self, victims: int) -> None:
        """Count a preemption attempt; `victims` is 0 when preemption would not help."""
        self._preemptions += 1
        if victims:
            self._victims.observe(victims)

    def families(self) -> Iterator[Family]:
        """Yield the metrics: what was counted, and what waits now."""
        attempts = [({"profile": PROFILE, "result": result}, each) for result, each in self._attempts.items()]
        yield "scheduler_schedule_attempts_total", [(labels, each.count) for labels, each in attempts]
        yield "scheduler_scheduling_attempt_duration_seconds", attempts
        yield "scheduler_scheduling_algorithm_duration_seconds", [({}, self._algorithm)]
        yield "scheduler_pod_scheduling_attempts", [({}, self._needed)]
        until = [({"attempts": attempts}, each) for attempts, each in self._until.items()]
        yield "scheduler_pod_scheduling_sli_duration_seconds", until
        yield "scheduler_preemption_attempts_total", [({}, self._preemptions)]
        yield "scheduler_preemption_victims", [({}, self._victims)]
        pending = dict.fromkeys(("active", "backoff", "gated", "unschedulable"), 0)
        for place, count in self._queue.places().items():
            name = PENDING.get(place, place)
            if name in pending:  # whose turn it is waits no more
                pending[name] += count
        yield "scheduler_pending_pods", [({"queue": name}, count) for name, count in pending.items()]
        refused = self._queue.refused()
        yield (
            "scheduler_unschedulable_pods",
            [({"plugin": plugin, "profile": PROFILE}, count) for plugin, count in refused.items()],
        )
        yield "scheduler_cache_size", [({"type": name}, count) for name, count in self._cache.sizes().items()]
