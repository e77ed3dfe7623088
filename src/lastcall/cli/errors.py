"""The guard that turns every error into one line and an exit status.

A traceback is never shown, except with `LASTCALL_DEBUG=1`.
"""

# check: prints because it flushes what stdout and stderr still hold

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from lastcall.cli.exit_status import BROKEN_PIPE, INTERRUPTED, USAGE, WORLD, of_error
from lastcall.cli.terminal import say_after_wiping, say_all
from lastcall.errors import LastcallError, ReaderGone, WorldError
from lastcall.world.os_errors import describe_os_error


def start_failure(error: Any) -> WorldError:
    """Convert a ClusterStartError to one line, with the setting that is missing and the command that fixes it."""
    need = f" [{error.need}]" if error.need is not None else ""
    return WorldError(f"the cluster cannot start: {error}{need} (`lastcall doctor` checks everything it needs)")


Tell = Callable[[str], None]
"""Says one line to the user."""


def say_on_stderr(line: str) -> None:
    """Print an error line on stderr."""
    with suppress(OSError):  # nobody reads it, or its disk is full: the exit status says enough
        say_after_wiping(f"lastcall: {line}")


def guarded(command: Callable[[], int], tell: Tell = say_on_stderr) -> int:
    """Run a command and report every error in plain words; return the exit status."""
    try:
        return command()
    except (BrokenPipeError, ReaderGone) as error:
        # The reader of our output has gone (`lastcall run … | head`): there is nobody to report to.
        _silence(1)
        _debug(error)
        return BROKEN_PIPE
    except LastcallError as error:
        return _say(tell, str(error), of_error(error), error)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort as error:
        return _say(tell, "interrupted", INTERRUPTED, error)
    except click.ClickException as error:
        if not isinstance(error, click.UsageError):
            return _say(tell, error.format_message(), error.exit_code, error)
        _debug(error)
        shown = io.StringIO()
        error.show(shown)
        with suppress(OSError):
            say_all(shown.getvalue(), err=True)
        return error.exit_code
    except KeyboardInterrupt as error:
        return _say(tell, "interrupted", INTERRUPTED, error)
    except OSError as error:
        return _say(tell, describe_os_error(error), WORLD, error)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else WORLD
    except RecursionError as error:
        return _say(tell, "the input is nested too deeply", USAGE, error)
    except ExceptionGroup as group:
        # What happened first in a task group is what happened.
        first = group.exceptions[0]
        return guarded(lambda: _reraise(first), tell)
    except Exception as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        text = f"internal error: {what} (LASTCALL_DEBUG=1 shows the traceback; please report it)"
        return _say(tell, text, WORLD, error)


def _reraise(error: Exception) -> int:
    raise error


def _say(tell: Tell, text: str, status: int, error: BaseException) -> int:
    _debug(error)
    for line in text.rstrip("\n").split("\n"):
        tell(line)
    return status


def _debug(error: BaseException) -> None:
    if os.environ.get("LASTCALL_DEBUG"):
        # late: only to debug
        import traceback

        say_all("".join(traceback.format_exception(error)), err=True)


def flush_streams() -> None:
    """Write out what stdout and stderr still hold, so that the interpreter does not fail at it when it ends."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # its disk is full or its reader has gone: that was reported, where it could be
            _silence(number)


def _silence(number: int) -> None:
    """Keep the interpreter from failing once more when it flushes this stream at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
