"""The exit status that stories ask for (`exitStatus` of `lastcall/ending/v1`). Pure."""

# check: pure

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.endings.story import Ending

OK = 0
"""Every Pod ended gracefully."""

WORLD = 1
"""The world's error: the kernel, the network, a process of the cluster, a Pod that does not become Ready or go."""

NOT_GRACEFUL = 3
"""Something was ended by SIGKILL, a preStop hook failed or outlived the grace period, or before the DELETE a container
crashed or was restarted by a probe."""


def exit_status(endings: "Sequence[Ending]") -> int:
    """Return the status that the stories alone ask for.

    A container that ends with another exit code than 0 on its stop signal is graceful: that is the application's own
    business. One that does so before it was asked to stop, or after a signal that had no effect, has crashed. How a
    container ended not being known is the world's error.
    """
    outcomes = [ending.outcome for ending in endings]
    if "unknown" in outcomes:
        return WORLD
    if any(outcome in ("killed", "crashed", "restarted", "hookFailed") for outcome in outcomes):
        return NOT_GRACEFUL
    return OK
