"""A client for which an API server that restarts is one that answers late: what only asks is asked again."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lastcall.client.api import Client, ConnectionLost
from lastcall.world.clock import Clock, monotonic

PATIENCE_SECONDS = 60.0
_AGAIN_SECONDS = 0.5
_ASKS = ("get", "list")


@dataclass(slots=True)
class PatientClient:
    """`client`, whose `get` and `list` are repeated for a while when the connection is lost. Writes are not: whether
    one has happened is not known then."""

    client: Client
    clock: Clock

    def __getattr__(self, verb: str) -> Any:
        ask: Callable[..., Awaitable[Any]] = getattr(self.client, verb)
        return self._repeated(ask) if verb in _ASKS else ask

    def _repeated(self, ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def again(*arguments: Any, **named: Any) -> Any:
            deadline = monotonic(self.clock) + PATIENCE_SECONDS
            while True:
                try:
                    return await ask(*arguments, **named)
                except ConnectionLost:
                    if monotonic(self.clock) > deadline:
                        raise
                await self.clock.sleep(_AGAIN_SECONDS)

        return again
