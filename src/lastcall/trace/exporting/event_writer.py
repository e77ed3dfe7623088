"""Writes the Events of `warnings.py`, behind the watching's back."""

import asyncio
from collections import deque
from collections.abc import Callable

from lastcall.endings import Ending
from lastcall.kube.api import EVENTS, Object, StatusError, is_already_exists, name_of, namespace_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.trace.exporting.health import Delivered
from lastcall.trace.exporting.warnings import warnings_of
from lastcall.world import crash_guard
from lastcall.world.clock import rfc3339_now
from lastcall.world.world import World

MOST_WAITING = 1000
MOST_TRIES = 5
FIRST_WAIT_SECONDS = 1.0

_FORBIDDEN = (
    "no permission to write Events: {message}; fix: kubectl create clusterrole lastcall-events --verb=create "
    "--resource=events, and bind it to the same account"
)


class EventWriter:
    """`ended(ending)` never waits; `run` writes one after the other until it is cancelled."""

    def __init__(self, world: World, client: Client, note: Callable[[str], None]) -> None:
        self._world, self._client, self._note = world, client, note
        self._queue: deque[Object] = deque()
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._forbidden_reported = False
        self._sent = self._failed = self._dropped = self._there = 0

    def delivered(self) -> Delivered:
        """Return how many Events were delivered; `there`: it had been written before."""
        return {"sent": self._sent, "there": self._there, "failed": self._failed, "dropped": self._dropped,
                "waiting": len(self._queue) + (not self._idle.is_set() and not self._queue)}  # fmt: skip

    def ended(self, ending: Ending) -> None:
        """Queue what is to be said about a finished story; drop it when there is no room."""
        for event in warnings_of(ending, rfc3339_now(self._world.clock)):
            if len(self._queue) >= MOST_WAITING:
                self._dropped += 1
                continue
            self._queue.append(event)
            self._idle.clear()
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            while self._queue:
                event = self._queue.popleft()
                try:
                    await self._write(event)
                except Exception as error:
                    self._failed += 1
                    crash_guard.caught("events", f"{namespace_of(event)}/{name_of(event)}", error)
            self._wake.clear()
            self._idle.set()

    async def flush(self, seconds: float) -> bool:
        """Wait until everything is dealt with. Return False when `seconds` did not suffice."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    async def _write(self, event: Object) -> None:
        wait = FIRST_WAIT_SECONDS
        for attempt in range(MOST_TRIES):
            try:
                await self._client.create(EVENTS, event, namespace_of(event))
            except StatusError as error:
                if is_already_exists(error):
                    self._there += 1
                    return
                if error.code < 500 and error.code != 429:
                    # A namespace that ends takes no Events: rights have nothing to do with it.
                    if error.code == 403 and "terminat" not in error.message and not self._forbidden_reported:
                        self._forbidden_reported = True
                        self._note(_FORBIDDEN.format(message=error.message))
                    break
            except ConnectionLost:
                pass
            else:
                self._sent += 1
                return
            if attempt < MOST_TRIES - 1:
                await self._world.clock.sleep(wait)
                wait *= 2
        self._failed += 1
