"""Start a process that outlives its terminal, and reports to its starter how its start went.

The child has a session of its own, ignores SIGHUP, and has nothing of the terminal open. Until it reported, the end of
the starter is its end too: nobody would know of it.
"""

# check: starts processes because it forks the front that outlives its terminal

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

Message = dict[str, Any]
_ENDING = (signal.SIGINT, signal.SIGTERM)


class Report:
    """The child's end: one JSON object a line."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        """Readable when the starter has gone."""

    def send(self, message: Message) -> None:
        """Send to the starter; one that has gone is not an error."""
        with suppress(OSError):
            self.socket.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        self.socket.close()


class Background:
    """The starter's end."""

    def __init__(self, pid: int, sock: socket.socket) -> None:
        self.pid = pid
        self._socket = sock

    def messages(self) -> Iterator[Message]:
        """Yield what the child says until it closes its end, or ends."""
        with self._socket.makefile("rb") as lines:
            for line in lines:
                yield cast(Message, json.loads(line))

    def terminate(self) -> None:
        """Ask it to end in order."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return the child's exit status, 128 plus the number of a signal that ended it."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return code if code >= 0 else 128 - code


def start_behind(main: Callable[[Report], int]) -> Background:
    """Fork a process that runs `main` and ends with its result. It must be called before any thread exists.

    The child's stdin and stdout are /dev/null; its stderr is too, until it has a log. Signals end it, until it has
    handlers of its own. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # else one may come to the child while it has our handlers
    try:
        pid = os.fork()
        if not pid:
            for number in _ENDING:
                signal.signal(number, signal.SIG_DFL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if pid:
        theirs.close()
        return Background(pid, ours)
    status = 70
    try:
        ours.close()
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)
        status = main(Report(theirs))
    finally:
        os._exit(status)
    raise AssertionError("not reached")
