"""An API server that restarts is one that answers late: what can be asked twice is asked again."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from lastcall.kube.client import Client, ConnectionLost
from lastcall.world.clock import Clock, monotonic

PATIENCE_SECONDS = 60.0
_AGAIN_SECONDS = 0.5
_ASKS = ("get", "list")

Answer = TypeVar("Answer")


async def until_answered(clock: Clock, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What `ask` answers, repeated for PATIENCE_SECONDS while the connection is lost. `ask` does the same when its
    first request was carried out and only the answer is missing. Raises ConnectionLost, and what `ask` raises."""
    deadline = monotonic(clock) + PATIENCE_SECONDS
    while True:
        try:
            return await ask()
        except ConnectionLost:
            if monotonic(clock) > deadline:
                raise
        await clock.sleep(_AGAIN_SECONDS)


@dataclass(slots=True)
class PatientClient:
    """`client`, whose `get` and `list` are repeated for a while when the connection is lost. Writes are not: whether
    one has happened is not known then, and what to do depends on what it was (`Changes`)."""

    client: Client
    clock: Clock

    def __getattr__(self, verb: str) -> Any:
        ask: Callable[..., Awaitable[Any]] = getattr(self.client, verb)
        return self._repeated(ask) if verb in _ASKS else ask

    def _repeated(self, ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        def again(*arguments: Any, **named: Any) -> Awaitable[Any]:
            return until_answered(self.clock, lambda: ask(*arguments, **named))

        return again
