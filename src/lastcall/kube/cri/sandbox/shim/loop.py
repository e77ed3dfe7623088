"""A single-threaded event loop: file descriptors and deadlines, nothing else.

Each callback is a guarded turn (`lastcall.world.crash_guard`): the containers live as long as this process does.
"""

# check: allow time.monotonic_ns because the shim has a loop of its own

from __future__ import annotations

import heapq
import itertools
import select
import time

from lastcall.world import crash_guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_REST_SECONDS = 0.01
MOST_REST_SECONDS = 10.0
READ = select.EPOLLIN
WRITE = select.EPOLLOUT


class Timer:
    """A deadline; `cancel` makes it void."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Loop:
    """Callbacks must not block. One that raises ends its own turn, and its descriptor is left alone for a while, longer
    each time: what is not read stays ready, and would keep all others waiting."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()
        self._events: dict[int, int] = {}
        self._resting: dict[int, Timer] = {}
        self._failures: dict[int, int] = {}

    def watch(self, fd: int, callback: Callable[[int], None], events: int = READ) -> None:
        """Call `callback(events)` whenever `fd` is ready (level-triggered)."""
        self._callbacks[fd] = callback
        self._events[fd] = events
        self._failures.pop(fd, None)
        self._epoll.register(fd, events)

    def modify(self, fd: int, events: int) -> None:
        self._events[fd] = events
        if fd not in self._resting:
            self._epoll.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Stop watching a descriptor, before it is closed. Unknown ones are ignored."""
        if self._callbacks.pop(fd, None) is not None:
            del self._events[fd]
            self._failures.pop(fd, None)
            if (timer := self._resting.pop(fd, None)) is not None:
                timer.cancel()
            else:
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
        """Wait for the next event and do all that is due."""
        for fd, events in self._epoll.poll(self._wait_seconds()):
            # An earlier callback of this round may have unwatched it.
            callback = self._callbacks.get(fd)
            if callback is None:
                continue
            if crash_guard.on_turn is not None:
                crash_guard.on_turn("shim", _name(callback))
            try:
                callback(events)
            except Exception as error:
                crash_guard.caught("shim", _name(callback), error)
                self._rest(fd)
        while self._timers and self._timers[0][0] <= time.monotonic_ns():
            callback_ = heapq.heappop(self._timers)[2].callback
            if callback_ is None:
                continue
            if crash_guard.on_turn is not None:
                crash_guard.on_turn("shim timer", _name(callback_))
            try:
                callback_()
            except Exception as error:
                crash_guard.caught("shim timer", _name(callback_), error)

    def _rest(self, fd: int) -> None:
        if fd not in self._callbacks:
            return  # the callback had taken itself away
        failures = self._failures[fd] = self._failures.get(fd, 0) + 1
        self._epoll.unregister(fd)
        seconds = min(FIRST_REST_SECONDS * 2 ** min(failures - 1, 30), MOST_REST_SECONDS)
        self._resting[fd] = self.call_later(seconds, lambda: self._go_on(fd))

    def _go_on(self, fd: int) -> None:
        del self._resting[fd]
        self._epoll.register(fd, self._events[fd])

    def _wait_seconds(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0.0, (self._timers[0][0] - time.monotonic_ns()) / 1e9)


def _name(callback: Callable[..., None]) -> str:
    """`Peer._ready`, for a log."""
    return str(getattr(callback, "__qualname__", callback))
