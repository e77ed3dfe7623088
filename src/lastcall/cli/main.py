"""Start `lastcall`. Import nothing heavy here: a signal must find a handler that can report it."""

# check: prints because it sets the errors of both streams

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from lastcall.world.garbage import collect_seldom

_set_mask: Any = getattr(signal, "pthread_sigmask", None)
"""Windows has none."""


def _have_streams() -> None:
    """A stream that is closed (`>&-`) is /dev/null from here on: no file or socket of ours may get its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(number)
                continue
            fd = os.open(os.devnull, os.O_RDWR)
            if fd != number:
                os.dup2(fd, number)
                os.close(fd)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 (until the process ends)


def main(arguments: list[str] | None = None) -> None:
    """Run the command and end the process."""
    # Ctrl-C in the middle of an import is lost or, in the start-up code of some extension modules, fatal. It has to
    # wait until the command is there (`lastcall.cli.commands.LazyGroup`).
    if _set_mask is not None:
        _set_mask(signal.SIG_BLOCK, {signal.SIGINT})
    collect_seldom()
    # late: a signal must find a handler that can report it
    from lastcall.cli.commands import invoke
    from lastcall.cli.errors import flush_streams, guarded

    _have_streams()
    for stream in (sys.stdout, sys.stderr):
        # What a container prints may not fit the terminal's encoding; that must not end the story.
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    status = guarded(lambda: invoke(arguments))
    flush_streams()
    # A second Ctrl-C may still come while the interpreter ends, which gives signals their default action back.
    if _set_mask is not None:
        _set_mask(signal.SIG_BLOCK, {signal.SIGINT})
    gc.freeze()  # all of it lives until the process ends, which looks for cycles three times
    sys.exit(status)


if __name__ == "__main__":
    main()
