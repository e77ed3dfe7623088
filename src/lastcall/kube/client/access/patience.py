"""Sends requests again while an API server restarts, and says so.

A request that never reached the server is sent again whatever it does; one that may have been done only if it changes
nothing. What the server puts off (429 or 5xx with Retry-After) it has not done.

Source: client-go rest/with_retry.go:IsNextRetry, IsRetryableError.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lastcall.kube.api.errors import StatusError
from lastcall.kube.client.api import ConnectionLost, UnusableAnswer
from lastcall.world.clock import monotonic
from lastcall.world.world import World

T = TypeVar("T")

SECONDS = 120.0
"""A kube-apiserver is back within half a minute; one of a managed cluster may take two."""
FIRST_SECONDS, MOST_SECONDS = 0.2, 5.0
_SAFE = ("GET", "HEAD")


def wait_before(error: StatusError | ConnectionLost, method: str, attempt: int) -> float | None:
    """Return the seconds until the next attempt, without jitter; None for no more. `attempt` counts from 0. Pure."""
    backoff: float = min(FIRST_SECONDS * 2.0 ** min(attempt, 10), MOST_SECONDS)
    if isinstance(error, UnusableAnswer):
        return None
    if isinstance(error, ConnectionLost):
        return backoff if method in _SAFE or not error.sent else None
    if error.code != 429 and error.code < 500:
        return None
    asked = error.headers.get("Retry-After", "")
    if not asked.isascii() or not asked.isdecimal() or len(asked) > 5:
        return None
    return max(backoff, min(float(asked), SECONDS))


class Patience:
    """For how long the requests of one client are sent again. Until `begin` it has none."""

    def __init__(self, world: World, say: Callable[[str], None], server: str, seconds: float = SECONDS) -> None:
        self._world, self._say, self._server, self._seconds = world, say, server, seconds
        self._begun = False
        self._since: float | None = None

    def begin(self) -> None:
        """Note that the server has answered once: it is worth waiting for."""
        self._begun = True

    async def send(self, method: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Send until it succeeds or patience ends. Raises what the last attempt raised."""
        count = 0
        began = monotonic(self._world.clock)
        while True:
            try:
                result = await attempt()
            except (StatusError, ConnectionLost) as error:
                wait = wait_before(error, method, count) if self._begun else None
                now = monotonic(self._world.clock)
                if wait is None or now + wait - began > self._seconds:
                    raise
                self._tell_trouble(error, now)
                count += 1
                await self._world.clock.sleep(wait * (1 + 0.2 * self._world.random.random()))
            else:
                self._tell_end()
                return result

    def _tell_trouble(self, error: Exception, now: float) -> None:
        if self._since is None:
            self._since = now
            # A path may hold a token: that of a load generator does.
            why = (error.reason if isinstance(error, ConnectionLost) else "") or error
            self._say(f"the API server {self._server} does not answer: {why}; trying again for {self._seconds:g} s")

    def _tell_end(self) -> None:
        if self._since is not None:
            seconds = monotonic(self._world.clock) - self._since
            self._since = None
            self._say(f"the API server {self._server} answers again, after {seconds:.1f} s")
