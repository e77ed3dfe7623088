"""Make rich's console for commands: a reader that goes away (`lastcall demo | head`) is an error like any other."""

import errno
import os

from lastcall.endings.render import SafeConsole


class CommandConsole(SafeConsole):
    """Raises BrokenPipeError, which `errors.guarded` knows: rich's own ends the process from within a task, and
    asyncio reports that with a traceback."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
