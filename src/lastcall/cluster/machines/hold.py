"""Who has the Pod network of this machine; nothing of it is left when that one is gone, also when it is killed.

A child process waits for the end of the one that made it and removes what is in the machine's network namespace. The
lock is an abstract socket, which belongs to that namespace; the child holds it, too, until it is done.
"""

import errno
import os
import select
import signal
import socket
from contextlib import suppress
from typing import NoReturn

from lastcall.cluster.machines.kernel import remove_all
from lastcall.world import linux

_LOCK = "\0lastcall-pod-network"
SECONDS, _PAUSE_SECONDS = 5.0, 0.1
"""The one before may be removing what it made."""
TAKEN = "another process of lastcall has the Pod network of this machine; fix: end that one (lastcall status)"
_END_SECONDS = 5.0


class Hold:
    """`end` once. Whoever forks and lives longer calls `forget` in the child."""

    def __init__(self, lock: socket.socket, pid: int, write: int) -> None:
        self._lock, self._pid, self._write = lock, pid, write

    @classmethod
    def take(cls, seconds: float = SECONDS) -> "Hold | None":
        """Also remove what one left whose processes were all killed at once. None when another process has held it for
        so long. Raises OSError."""
        lock = _lock(max(1, int(seconds / _PAUSE_SECONDS)))
        if lock is None:
            return None
        try:
            remove_all()
            read, write = os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
        except BaseException:
            lock.close()
            raise
        if pid == 0:
            _keep(read, lock.fileno())
        os.close(read)
        return cls(lock, pid, write)

    def forget(self) -> None:
        """In a fork of this process: its end is not the end of this."""
        os.close(self._write)
        self._lock.close()

    def end(self) -> None:
        """Everything is removed. Idempotent; never raises."""
        if self._write < 0:
            return
        os.close(self._write)
        self._write = -1
        with suppress(OSError):
            pidfd = os.pidfd_open(self._pid)
            ended, _, _ = select.select([pidfd], [], [], _END_SECONDS)
            os.close(pidfd)
            if not ended:
                os.kill(self._pid, signal.SIGKILL)
        done = False
        with suppress(ChildProcessError):
            done = os.waitpid(self._pid, 0)[1] == 0
        if not done:  # it was killed
            with suppress(OSError):
                remove_all()
        self._lock.close()


def _lock(tries: int) -> socket.socket | None:
    """None when another process holds it. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    for tried in range(1, tries + 1):
        try:
            sock.bind(_LOCK)
            return sock
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                sock.close()
                raise
        if tried < tries:
            select.select([], [], [], _PAUSE_SECONDS)
    sock.close()
    return None


def _keep(read: int, lock: int) -> NoReturn:
    code = 70
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        linux.set_process_name("lastcall-keeper")
        nothing = os.open("/dev/null", os.O_RDWR)
        for fd in {0, 1, 2} - {read, lock}:
            os.dup2(nothing, fd)
        kept = sorted((read, lock))
        for first, last in ((3, kept[0] - 1), (kept[0] + 1, kept[1] - 1), (kept[1] + 1, 0xFFFF_FFFF)):
            if first <= last:
                linux.close_range(first, last)
        while os.read(read, 1):
            pass
        remove_all()
        code = 0
    finally:
        os._exit(code)
