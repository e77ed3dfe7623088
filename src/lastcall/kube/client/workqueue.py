"""A work queue for controllers, with the semantics of client-go's `util/workqueue`.

An item is in at most one worker's hands. What is added while it is being worked on is handed out once more after
`done`, however often it was added; so a controller never misses the last change and never works on one item twice at
a time. The queue owns no task: waiting items become due inside `get`.
"""

# check: many attributes WorkQueue because it has the queues and the counts of a Kubernetes work queue, metrics included

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from lastcall.world.clock import monotonic
from lastcall.world.counting import Family, Histogram, exponential
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

K = TypeVar("K", bound=Hashable)


SECONDS = exponential(1e-8, 10, 10)
"""(component-base metrics/prometheus/workqueue/metrics.go)"""


class QueueShutDown(Exception):
    """The queue was shut down and holds nothing more."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Limit how soon `add_rate_limited` adds a key again: the longer of two limits, in seconds.

    Per item `base_delay * 2**failures` up to `max_delay` seconds; over all items a token bucket of `burst` tokens that
    refills at `per_second` (0 means no bucket).
    Source: client-go workqueue/default_rate_limiters.go:DefaultTypedControllerRateLimiter.
    """

    base_delay: float = 0.005
    max_delay: float = 1000.0
    per_second: float = 10.0
    burst: int = 100


class TokenBucket:
    """A token bucket that lends: `reserve` answers how many seconds until the token it took is real."""

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = now

    def _refill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._per_second)
        self._at = max(now, self._at)

    def reserve(self, now: float) -> float:
        """Take a token; answer the seconds to wait for it (0.0 when one was there)."""
        self._refill(now)
        self._tokens -= 1.0
        return 0.0 if self._tokens >= 0 else -self._tokens / self._per_second

    def try_take(self, now: float) -> bool:
        """Take a token if there is a whole one."""
        self._refill(now)
        # A hair below one is one: refilling adds rounding errors.
        if self._tokens < 1.0 - 1e-9:
            return False
        self._tokens -= 1.0
        return True


class WorkQueue(Generic[K]):
    """`add` · `add_after` · `add_rate_limited`/`forget` · `await get()` … `done(item)`; first in, first out.

    A queue with a `name` is counted under it (`/metrics`: workqueue_*).
    """

    def __init__(self, world: World, rate_limit: RateLimit | None = None, name: str = "") -> None:
        self._clock = world.clock
        self._limit = rate_limit or RateLimit()
        self._bucket = TokenBucket(self._limit.per_second, self._limit.burst, monotonic(self._clock))
        self._queue: deque[K] = deque()
        self._dirty: dict[K, int] = {}  # and since when
        self._processing: dict[K, int] = {}
        self._failures: dict[K, int] = {}
        self._due: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._sequence = 0
        self._wake = asyncio.Event()
        self._shut_down = False
        self._name, self._adds, self._retries = name, 0, 0
        self._waited, self._worked = Histogram(SECONDS), Histogram(SECONDS)
        if name:
            world.counted.add(self.families)

    def __len__(self) -> int:
        """How many items wait to be handed out now."""
        return len(self._queue)

    def add(self, item: K) -> None:
        """Hand `item` out soon; nothing more when it already waits. After `shut_down` nothing is accepted."""
        if self._shut_down or item in self._dirty:
            return
        self._dirty[item] = self._clock.monotonic_ns()
        self._adds += 1
        if item not in self._processing:
            self._queue.append(item)
            self._wake.set()

    def add_after(self, item: K, seconds: float) -> None:
        """Add `item` not earlier than `seconds` from now. Of several waits for one item the earliest counts."""
        if self._shut_down:
            return
        if seconds <= 0:
            self.add(item)
            return
        due = self._clock.monotonic_ns() + round(seconds * 1e9)
        if item in self._due and self._due[item] <= due:
            return
        self._due[item] = due
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, item))
        self._wake.set()

    def add_rate_limited(self, item: K) -> None:
        """Add `item` when the rate limit allows, and count one failure of it."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        self._retries += 1
        # 2.0**1100 overflows; long before, the cap holds.
        delay = min(self._limit.max_delay, self._limit.base_delay * 2.0 ** min(failures, 64))
        if self._limit.per_second > 0:
            delay = max(delay, self._bucket.reserve(monotonic(self._clock)))
        self.add_after(item, delay)

    def forget(self, item: K) -> None:
        """Forget the failures of `item`, which succeeded."""
        self._failures.pop(item, None)

    def num_requeues(self, item: K) -> int:
        """Return how often `add_rate_limited` was called since the last `forget`."""
        return self._failures.get(item, 0)

    async def get(self) -> K:
        """Wait for the next item; call `done` with it. Raises QueueShutDown when shut down and drained."""
        while True:
            next_due = self._move_due()
            if self._queue:
                item = self._queue.popleft()
                began = self._processing[item] = self._clock.monotonic_ns()
                self._waited.observe((began - self._dirty.pop(item)) / 1e9)
                if self._queue:
                    self._wake.set()  # another worker's turn
                return item
            if self._shut_down:
                raise QueueShutDown
            self._wake.clear()
            if next_due is None:
                await self._wake.wait()
                continue
            try:
                async with asyncio.timeout(next_due):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def done(self, item: K) -> None:
        """Finish `item`. If it was added meanwhile, it is handed out again."""
        if (began := self._processing.pop(item, None)) is not None:
            self._worked.observe((self._clock.monotonic_ns() - began) / 1e9)
        if item in self._dirty:
            self._queue.append(item)
            self._wake.set()
        elif self._shut_down:
            self._wake.set()

    def shut_down(self) -> None:
        """Accept nothing more; `get` drains what waits and then raises QueueShutDown."""
        self._shut_down = True
        self._heap.clear()
        self._due.clear()
        self._wake.set()

    def families(self) -> Iterator[Family]:
        """Yield the metrics of the queue."""
        labels, now = {"name": self._name}, self._clock.monotonic_ns()
        running = [(now - began) / 1e9 for began in self._processing.values()]
        yield "workqueue_adds_total", [(labels, self._adds)]
        yield "workqueue_depth", [(labels, len(self._queue))]
        yield "workqueue_longest_running_processor_seconds", [(labels, max(running, default=0.0))]
        yield "workqueue_queue_duration_seconds", [(labels, self._waited)]
        yield "workqueue_retries_total", [(labels, self._retries)]
        yield "workqueue_unfinished_work_seconds", [(labels, sum(running))]
        yield "workqueue_work_duration_seconds", [(labels, self._worked)]

    def _move_due(self) -> float | None:
        """Add what is due; answer the seconds to the next that is not, None when nothing waits."""
        now = self._clock.monotonic_ns()
        while self._heap:
            due, _, item = self._heap[0]
            if self._due.get(item) != due:
                heapq.heappop(self._heap)  # an earlier wait took its place
            elif due <= now:
                heapq.heappop(self._heap)
                del self._due[item]
                self.add(item)
            else:
                return (due - now) / 1e9
        return None
