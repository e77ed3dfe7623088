"""An API server that restarts is one that answers late: what can be asked twice is asked again."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lastcall.kube.client.api import ConnectionLost
from lastcall.world.clock import Clock, monotonic

PATIENCE_SECONDS = 60.0
_AGAIN_SECONDS = 0.5

Answer = TypeVar("Answer")


async def until_answered(clock: Clock, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return what `ask` answers, repeated for PATIENCE_SECONDS while the connection is lost.

    `ask` does the same when its first request was carried out and only the answer is missing. Raises ConnectionLost,
    and what `ask` raises.
    """
    deadline = monotonic(clock) + PATIENCE_SECONDS
    while True:
        try:
            return await ask()
        except ConnectionLost:
            if monotonic(clock) > deadline:
                raise
        await clock.sleep(_AGAIN_SECONDS)
