"""How long a change of endpoints takes to reach the kernel.

On one machine it is a millisecond, in a large cluster seconds: that is the race which loses requests. So both hops
have a delay that can be set: API → proxy (the watch) and proxy → kernel (the sync).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

T = TypeVar("T")

Delay = float | Callable[[], float]
"""Seconds, or something that draws them anew for each change (take its randomness from `world.random`)."""


@dataclass(slots=True)
class Propagation:
    """The delays of both hops. They may change while the proxy runs; changes that are under way keep their delay."""

    api_to_proxy: Delay = 0.0
    proxy_to_kernel: Delay = 0.0


class DelayLine(Generic[T]):
    """Hands on what is put in, each item not earlier than its delay says, and never out of order.

    Without a delay, and with nothing before it, an item is handed on at once, inside `put`.
    """

    def __init__(self, world: World, delay: Callable[[], Delay], deliver: Callable[[T], None]) -> None:
        self._world = world
        self._delay = delay
        self._deliver = deliver
        self._waiting: deque[tuple[float, T]] = deque()
        self._arrived = asyncio.Event()

    def put(self, item: T) -> None:
        delay = self._delay()
        seconds = delay if isinstance(delay, int | float) else delay()
        if seconds <= 0 and not self._waiting:
            self._deliver(item)
            return
        self._waiting.append((monotonic(self._world.clock) + max(seconds, 0.0), item))
        self._arrived.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            await self._arrived.wait()
            while self._waiting:
                left = self._waiting[0][0] - monotonic(self._world.clock)
                if left > 0:
                    await self._world.clock.sleep(left)
                    continue
                # Delivered before it is taken away: what is put meanwhile must not overtake it.
                self._deliver(self._waiting[0][1])
                self._waiting.popleft()
            self._arrived.clear()
