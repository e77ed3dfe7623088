"""A single-threaded event loop: file descriptors and deadlines, nothing else."""

from __future__ import annotations

import heapq
import itertools
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ = select.EPOLLIN
WRITE = select.EPOLLOUT


class Timer:
    """A deadline; `cancel` makes it void."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Loop:
    """Callbacks must not block and must not raise; one that raises ends the process, and init tells of it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()

    def watch(self, fd: int, callback: Callable[[int], None], events: int = READ) -> None:
        """Call `callback(events)` whenever `fd` is ready (level-triggered)."""
        self._callbacks[fd] = callback
        self._epoll.register(fd, events)

    def modify(self, fd: int, events: int) -> None:
        self._epoll.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Before the fd is closed. Unknown fds are ignored."""
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_at(self, monotonic_ns: int, callback: Callable[[], None]) -> Timer:
        """Call once, not before the deadline."""
        timer = Timer(callback)
        heapq.heappush(self._timers, (monotonic_ns, next(self._numbers), timer))
        return timer

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call once, not before `seconds` from now."""
        return self.call_at(time.monotonic_ns() + int(seconds * 1e9), callback)

    def run_forever(self) -> None:
        while True:
            self.run_once()

    def run_once(self) -> None:
        """Wait for the next thing and do all that is due."""
        for fd, events in self._epoll.poll(self._wait_seconds()):
            # An earlier callback of this round may have unwatched it.
            callback = self._callbacks.get(fd)
            if callback is not None:
                callback(events)
        while self._timers and self._timers[0][0] <= time.monotonic_ns():
            callback_ = heapq.heappop(self._timers)[2].callback
            if callback_ is not None:
                callback_()

    def _wait_seconds(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0.0, (self._timers[0][0] - time.monotonic_ns()) / 1e9)
