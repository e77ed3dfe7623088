"""Report each right that a component lacks when it is first missed, and again once in a while with its count.

A component tries what was refused again for as long as it runs; one that said nothing would look idle.
"""

from collections.abc import Callable

from lastcall.kube.api.errors import StatusError
from lastcall.kube.client.access.rights import Right, missing_right
from lastcall.world.clock import monotonic
from lastcall.world.world import World

AGAIN_SECONDS = 600.0
MOST = 1000
"""Rights that are counted apart: more than these are not reported."""


class Refusals:
    """`say` gets the right, and how many requests were refused for it so far: 1 with the first report."""

    def __init__(self, world: World, say: Callable[[Right, int], None]) -> None:
        self._world, self._say = world, say
        self._counts: dict[Right, int] = {}
        self._reported_at: dict[Right, float] = {}

    def note(self, error: StatusError) -> None:
        """Count a refused request; what is refused for another reason than a missing right is not."""
        right = missing_right(error.status)
        if right is None or (right not in self._counts and len(self._counts) >= MOST):
            return
        count = self._counts[right] = self._counts.get(right, 0) + 1
        now = monotonic(self._world.clock)
        if count == 1 or now - self._reported_at[right] >= AGAIN_SECONDS:
            self._reported_at[right] = now
            self._say(right, count)
