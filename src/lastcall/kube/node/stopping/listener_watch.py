"""Who of a container listens while its preStop hook runs: a hook may tell the program to quit while requests come.

What the runtime sees of sockets from the stop signal on is its own (`kube/cri/sandbox/shim/witness.py`).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from lastcall.kube.cri.api import RuntimeService, RuntimeServiceError, TCPListener
from lastcall.world import crash_guard
from lastcall.world.clock import Clock
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.records.definitions.kubelet_end import ListenerClosedInHook

_FIRST_LOOKS = (0.02, 0.03, 0.05)
_LOOK_SECONDS, _LATE_LOOK_SECONDS, _LATE_AFTER = 0.1, 1.0, 30.0
_SECONDS_EACH = 0.02
"""The least time between two looks at one container, for each hook that runs at the moment (seconds)."""


class ListenerWatch:
    """Watch the listeners of one container from `begin` to `end`, and report each that has closed meanwhile."""

    _active = 0

    def __init__(
        self, clock: Clock, runtime: RuntimeService, container_id: str, tell: "Callable[[ListenerClosedInHook], object]"
    ) -> None:
        self._clock, self._runtime, self._container_id, self._tell = clock, runtime, container_id, tell
        self._there: set[TCPListener] = set()
        self._began = self._looked = 0
        self._task: asyncio.Task[None] | None = None

    async def begin(self, tasks: Tasks) -> None:
        """Look for the first time, right before the hook begins; go on if a process listens."""
        self._began = self._looked = self._clock.monotonic_ns()
        self._there = await self._listeners() or set()
        if self._there:
            follow = crash_guard.guarded("kubelet preStop listeners", self._container_id, self._follow())
            self._task = tasks.spawn(follow, name=f"listeners {self._container_id}")

    async def end(self) -> None:
        """Look for the last time, before the stop signal, at which the program quits, too."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait((self._task,))
        await self._look()

    async def _follow(self) -> None:
        ListenerWatch._active += 1
        try:
            looks = iter(_FIRST_LOOKS)
            while self._there:
                late = (self._looked - self._began) / 1e9 >= _LATE_AFTER
                seconds = next(looks, _LATE_LOOK_SECONDS if late else _LOOK_SECONDS)
                await self._clock.sleep(max(seconds, ListenerWatch._active * _SECONDS_EACH))
                await self._look()
        finally:
            ListenerWatch._active -= 1

    async def _look(self) -> None:
        now = self._clock.monotonic_ns()
        there = await self._listeners()  # may be cancelled
        before, self._looked = self._looked, now
        if there is None:  # it has ended, and the kernel closes what it had
            self._there = set()
            return
        for each in sorted(self._there - there, key=lambda each: (each.port, each.address)):
            self._tell(
                {
                    "address": each.address,
                    "port": each.port,
                    "seconds": (self._clock.monotonic_ns() - self._began) / 1e9,
                    "notBefore": (before - self._began) / 1e9,
                }
            )
        self._there &= there

    async def _listeners(self) -> set[TCPListener] | None:
        """Return who listens; None where the runtime does not know."""
        found = None
        with suppress(RuntimeServiceError):
            found = await self._runtime.listeners(self._container_id)
        return None if found is None else set(found)
