"""Exit statuses of commands. Pure."""

# check: pure

from lastcall.endings import NOT_GRACEFUL, OK, WORLD, exit_status
from lastcall.errors import Crashed, Interrupted, LastcallError, ReaderGone, UserError

__all__ = ["BROKEN_PIPE", "FINDINGS", "INTERRUPTED", "NOT_GRACEFUL", "OK", "USAGE", "WORLD", "exit_status", "of_error"]

USAGE = 2
"""The user's error: a manifest or an option."""

FINDINGS = 3
"""`lastcall lint` has found something as bad as --fail-on says, or worse."""

INTERRUPTED = 130
"""Ctrl-C (128 + SIGINT). Other signals that end lastcall give 128 plus their number."""

BROKEN_PIPE = 141
"""Nobody reads what is printed (`| head`): 128 + SIGPIPE, as of git and kubectl, which that signal ends."""


def of_error(error: LastcallError) -> int:
    """Return the status of a command that ended with `error`."""
    if isinstance(error, Interrupted):
        return 128 + error.number
    statuses = {UserError: USAGE, Crashed: NOT_GRACEFUL, ReaderGone: BROKEN_PIPE}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), WORLD)
