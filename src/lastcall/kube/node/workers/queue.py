"""Which Pods are due, and when (kubelet util/queue/work_queue.go). A later `enqueue` of a UID replaces the earlier
one."""

import asyncio
import heapq
import math
from collections.abc import Callable

from lastcall.world import crash_guard
from lastcall.world.tasks import unless
from lastcall.world.world import World


class WorkQueue:
    def __init__(self, world: World, on_due: Callable[[str], None]) -> None:
        self._world = world
        self._on_due = on_due
        self._due: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self._earlier = asyncio.Event()

    def enqueue(self, uid: str, delay: float) -> None:
        """Report `uid` in `delay` seconds."""
        # Rounded up: a worker woken too early, which asks for the rest of a nanosecond, would be woken at once forever.
        due = self._world.clock.monotonic_ns() + math.ceil(delay * 1e9)
        self._due[uid] = due
        heapq.heappush(self._heap, (due, uid))
        if self._heap[0] == (due, uid):
            self._earlier.set()

    def forget(self, uid: str) -> None:
        self._due.pop(uid, None)

    async def run(self) -> None:
        """Pass on each UID when it is due, until cancelled."""
        while True:
            self._earlier.clear()
            now = self._world.clock.monotonic_ns()
            while self._heap and (self._heap[0][0] <= now or self._due.get(self._heap[0][1]) != self._heap[0][0]):
                due, uid = heapq.heappop(self._heap)
                if self._due.get(uid) == due:
                    del self._due[uid]
                    with crash_guard.Turn("kubelet work queue", uid):
                        self._on_due(uid)
            if self._earlier.is_set():
                continue
            if not self._heap:
                await self._earlier.wait()
            else:
                await unless(self._world.clock.sleep((self._heap[0][0] - now) / 1e9), self._earlier)
