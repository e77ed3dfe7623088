"""How long this process was held up: its machine was too busy, or stood still. What it saw then is nobody's loss."""

from collections import deque

from lastcall.world.clock import Clock, monotonic

_PULSE_SECONDS = 0.1
_USUAL_SECONDS = 0.02
"""A pulse no later than this is as good as on time."""


class Pulse:
    """A pulse: how late it comes is how long this process was held up."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due = monotonic(clock)
        self._stalls: deque[tuple[float, float]] = deque(maxlen=1000)  # when it was over, how long it was

    async def beat(self) -> None:
        """Run until cancelled."""
        while True:
            self._due = monotonic(self._clock) + _PULSE_SECONDS
            await self._clock.sleep(_PULSE_SECONDS)
            at = monotonic(self._clock)
            if at - self._due > _USUAL_SECONDS:
                self._stalls.append((at, at - self._due))

    def held_up(self, since: float) -> float:
        """Return the longest time (seconds) since then; the pulse may itself be overdue at this moment."""
        overdue = monotonic(self._clock) - self._due
        longest = overdue if overdue > _USUAL_SECONDS else 0.0
        for at, late in reversed(self._stalls):
            if at < since:
                break
            longest = max(longest, late)
        return longest
