"""Exit statuses of commands. Pure."""

# check: pure

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.errors import Crashed, Interrupted, LastcallError, ReaderGone, UserError

if TYPE_CHECKING:
    from lastcall.endings.story import Ending

OK = 0
"""Every Pod ended gracefully."""

WORLD = 1
"""The world's error: the kernel, the network, a process of the cluster, a Pod that does not become Ready or go."""

USAGE = 2
"""The user's error: a manifest or an option."""

NOT_GRACEFUL = 3
"""Something was ended by SIGKILL, a preStop hook failed or outlived the grace period, or before the DELETE a container
crashed or was restarted by a probe."""

FINDINGS = 3
"""`lastcall lint` has found something as bad as --fail-on says, or worse."""

INTERRUPTED = 130
"""Ctrl-C (128 + SIGINT). Other signals that end lastcall give 128 plus their number."""

BROKEN_PIPE = 141
"""Nobody reads what is printed (`| head`): 128 + SIGPIPE, as of git and kubectl, which that signal ends."""


def exit_status(endings: "Sequence[Ending]") -> int:
    """The status that the stories alone ask for.

    A container that ends with another exit code than 0 on its stop signal is graceful: that is the application's own
    business. One that does so before anything told it to stop has crashed. How a container ended not being known is
    the world's error.
    """
    outcomes = [ending.outcome for ending in endings]
    if "unknown" in outcomes:
        return WORLD
    if any(outcome in ("killed", "crashed", "restarted", "hookFailed") for outcome in outcomes):
        return NOT_GRACEFUL
    return OK


def of_error(error: LastcallError) -> int:
    """Return the status of a command that ended with `error`."""
    if isinstance(error, Interrupted):
        return 128 + error.number
    statuses = {UserError: USAGE, Crashed: NOT_GRACEFUL, ReaderGone: BROKEN_PIPE}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), WORLD)
