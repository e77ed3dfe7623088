"""The process that a cluster is to end with, by default the one that started it: `lastcall up --die-with-parent`.

A pidfd reports its end however it comes, SIGKILL too. `PR_SET_PDEATHSIG` would report the end of the thread that
started us, which test runners end long before their process.
"""

import asyncio
import os
from collections.abc import Callable


class Parent:
    """Made while the parent lives: ProcessLookupError where `pid` does not. `close` at the end."""

    def __init__(self, pid: int = 0) -> None:
        """`pid` 0 is the parent's."""
        self._pidfd = os.pidfd_open(pid or os.getppid())

    def on_end(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        """Call `callback` once when the parent has ended, at once if it has already."""

        def ended() -> None:
            loop.remove_reader(self._pidfd)
            callback()

        loop.add_reader(self._pidfd, ended)

    def close(self) -> None:
        os.close(self._pidfd)
