"""A client of an API server that restarts: what can be asked twice is asked again."""

from collections.abc import Awaitable, Callable
from typing import Any

from lastcall.kube.client import Client, until_answered
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

_ASKS = ("get", "list")


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
