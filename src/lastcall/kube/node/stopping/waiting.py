"""Waiting for something, but only so long."""

import asyncio
from typing import Any

from lastcall.world.clock import Clock


async def wait_at_most(clock: Clock, future: "asyncio.Future[Any]", seconds: float) -> bool:
    """Wait for `future` not longer than `seconds`, and not shorter; return True if it is done. It is never cancelled.

    A loop's timers may fire a little early, so the clock decides.
    """
    deadline = clock.monotonic_ns() + int(seconds * 1e9)
    while not future.done():
        left = deadline - clock.monotonic_ns()
        if left <= 0:
            return False
        await asyncio.wait((future,), timeout=left / 1e9)
    return True
