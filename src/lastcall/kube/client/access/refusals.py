"""Rights that a component lacks: each is told when it is first missed, and again once in a while with its count.

A component tries what was refused again for as long as it runs; one that said nothing would look idle.
"""

from collections.abc import Callable

from lastcall.kube.api.errors import StatusError
from lastcall.kube.client.access.rights import Right, missing_right
from lastcall.world.clock import monotonic
from lastcall.world.world import World

AGAIN_SECONDS = 600.0
MOST = 1000
"""Rights that are kept apart: whoever lacks more has been told enough."""


class Refusals:
    """`say` gets the right, and how many requests were refused for it so far: 1 when it is told for the first time."""

    def __init__(self, world: World, say: Callable[[Right, int], None]) -> None:
        self._world, self._say = world, say
        self._counts: dict[Right, int] = {}
        self._told: dict[Right, float] = {}

    def note(self, error: StatusError) -> None:
        """Count a refused request; what is refused for another reason than a missing right is not."""
        right = missing_right(error.status)
        if right is None or (right not in self._counts and len(self._counts) >= MOST):
            return
        count = self._counts[right] = self._counts.get(right, 0) + 1
        now = monotonic(self._world.clock)
        if count == 1 or now - self._told[right] >= AGAIN_SECONDS:
            self._told[right] = now
            self._say(right, count)
