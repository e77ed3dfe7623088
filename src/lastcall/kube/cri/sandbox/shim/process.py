"""One child of the shim: its start, its output, its end, and what is on record of it."""

# check: allow time.time_ns because the shim has a loop of its own
# check: many attributes Process because five of them are callbacks of its owner, the others the facts of a process

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import time

from lastcall.kube.cri.sandbox.shim import procfs
from lastcall.kube.cri.sandbox.shim.loop import READ, Loop
from lastcall.world import crash_guard, linux
from lastcall.world.files import append_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from lastcall.records.definitions.parts import Ids, NotExecuted

_READ_SIZE = 1 << 16
_PIPES_DRAINED_AT_EXIT = 64


class Journal:
    """What is known of one process, in a file on tmpfs: a line is on record when `append` returns. Raises OSError.

    `about` goes into the first line; `past.py` reads these files.
    """

    def __init__(self, directory: str, identity: str, about: dict[str, str]) -> None:
        self.path = os.path.join(directory, identity)
        self.about = about
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def append(self, **facts: Any) -> None:
        append_all(self._fd, json.dumps(facts).encode() + b"\n")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        self.close()
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return


class Exit:
    """A wait status. `code` is 128 + the signal's number when `signal` (a name) ended it.

    `peak_rss` is the most memory, in bytes, that the process, or a child that it waited for, had mapped at a time.
    """

    def __init__(self, code: int, signal: str, peak_rss: int = 0) -> None:
        self.code, self.signal, self.peak_rss = code, signal, peak_rss


class Output:
    """Reads one pipe until its end."""

    def __init__(self, loop: Loop, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        os.set_blocking(fd, False)
        self._loop, self._fd, self._on_data, self._on_end = loop, fd, on_data, on_end
        self._paused = False
        loop.watch(fd, self._ready)

    @property
    def open(self) -> bool:
        return self._fd >= 0

    def pause(self, paused: bool) -> None:
        """Pause reading until asked to go on; the pipe fills and its writer waits."""
        if self._fd < 0 or paused is self._paused:
            return
        self._paused = paused
        if paused:
            self._loop.unwatch(self._fd)
        else:
            self._loop.watch(self._fd, self._ready)

    def drain(self) -> None:
        """Read what is there now, within reason."""
        for _ in range(_PIPES_DRAINED_AT_EXIT):
            if not self._read():
                return

    def close(self) -> None:
        """Close it: no more is read. `on_end` is called once."""
        if self._fd >= 0:
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._on_end()

    def _ready(self, events: int) -> None:
        self._read()

    def _read(self) -> bool:
        if self._fd < 0:
            return False
        try:
            data = os.read(self._fd, _READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:  # EIO: the last holder of a terminal has closed it
            data = b""
        if data:
            self._on_data(data)
            return True
        self.close()
        return False


class Stdio:
    """The three descriptors of a program; `stdin` -1 is /dev/null."""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr


class Process:
    """A forked child. The owner sets the callbacks; each is called once."""

    def __init__(self, loop: Loop, pid: int, pidfd: int, status: socket.socket, journal: Journal) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.start_time = procfs.start_time(pid)
        self.exit: Exit | None = None
        self.finished_at = 0
        self.executed = False
        self.on_started: Callable[[], None] = lambda: None
        self.on_start_failed: Callable[[str], None] = lambda message: None
        self.on_exited: Callable[[Exit], None] = lambda status: None
        self.on_console: Callable[[int], None] = os.close
        self.on_listener: Callable[[int], None] = os.close
        self.ids: Ids = {}
        self._loop = loop
        self._status: socket.socket | None = status
        self.program = ""  # the file it was about to execute, as the child saw it
        self.not_executed: NotExecuted | None = None  # what the file is, if the kernel refused to execute it
        self._error = ""
        self.journal = journal
        status.setblocking(False)
        # On record before it may execute: whatever happens to the shim, someone can tell what this process was.
        journal.append(pid=pid, startTime=self.start_time, **journal.about)

    def go(self) -> None:
        """Let it execute, and follow it."""
        assert self._status is not None
        with contextlib.suppress(OSError):  # it has failed already; its message is waiting
            self._status.send(b"go")
        self._loop.watch(self._status.fileno(), self._on_status)
        self._loop.watch(self.pidfd, self._on_ended)

    def signal(self, number: int) -> bool:
        """Send a signal to exactly this process; return False if it has ended."""
        if self.exit is not None:
            return False
        try:
            linux.pidfd_send_signal(self.pidfd, number)
        except ProcessLookupError:
            return False
        return True

    def _on_status(self, events: int) -> None:
        while self._status is not None:
            try:
                data, ancillary, _, _ = self._status.recvmsg(16384, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except ConnectionResetError:
                continue  # it ended without reading our "go"; what it had to say is still in the queue
            if not data:
                self._loop.unwatch(self._status.fileno())
                self._status.close()
                self._status = None
                if self.program:
                    self.executed = True
                    self.on_started()
                return
            message = json.loads(data)
            if "error" in message:
                self._error = message["error"]
            elif "console" in message:
                fds = array.array("i")
                fds.frombytes(ancillary[0][2][: fds.itemsize])
                self.on_console(fds[0])
            elif "listener" in message:
                fds = array.array("i")
                fds.frombytes(ancillary[0][2][: fds.itemsize])
                self.on_listener(fds[0])
            elif "notExecuted" in message:
                self.not_executed = message["notExecuted"]
            else:
                self.program = message["executing"]
                self.ids = {"uid": message["uid"], "gid": message["gid"]}

    def _on_ended(self, events: int) -> None:
        # Both may be ready in one round: what it said comes before its end.
        self._on_status(READ)
        result = linux.waitid_pidfd(self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if result is None:
            return
        peak_rss = os.wait4(self.pid, os.WNOHANG)[2].ru_maxrss * 1024
        self.finished_at = time.time_ns()
        self._loop.unwatch(self.pidfd)
        self.exit = exit_of(result, peak_rss)
        if self.executed:
            with contextlib.suppress(OSError):  # a full disk: reported, though not on record
                self.journal.append(exitCode=self.exit.code, signal=self.exit.signal, finishedAt=self.finished_at)
            with crash_guard.Turn("shim", f"exit of {self.pid}"):
                self.on_exited(self.exit)
        else:
            how = f"killed by {self.exit.signal}" if self.exit.signal else f"exited with {self.exit.code}"
            with crash_guard.Turn("shim", f"start of {self.pid}"):
                self.on_start_failed(self._error or f"the process was {how} before it could execute the command")
        os.close(self.pidfd)
        self.pidfd = -1


def exit_of(result: os.waitid_result, peak_rss: int = 0) -> Exit:
    """Return how a process ended, of what waitid said; `peak_rss` in bytes."""
    if result.si_code == os.CLD_EXITED:
        return Exit(result.si_status, "", peak_rss)
    return Exit(128 + result.si_status, procfs.signal_name(result.si_status), peak_rss)


class Launched:
    """A process that waits for `go`, and this side of its pipes; `stdin` is -1 unless it was asked for."""

    def __init__(self, process: Process, stdin: int, stdout: int, stderr: int) -> None:
        self.process, self.stdin, self.stdout, self.stderr = process, stdin, stdout, stderr


def launch(
    loop: Loop,
    journal: Journal,
    clone: Callable[[], tuple[int, int]],
    in_child: Callable[[socket.socket, Stdio], NoReturn],
    *,
    stdin: bool = False,
) -> Launched:
    """Clone a child that is on record in `journal`. Raises OSError; then nothing stays behind, not even the journal.

    `clone` returns (pid, pidfd), pid 0 in the child, which then is `in_child`'s and never comes back.
    """
    fds: list[int] = []
    pid = pidfd = -1
    try:
        for _ in range(3 if stdin else 2):
            fds += os.pipe2(os.O_CLOEXEC)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                pid, pidfd = clone()
                if pid == 0:
                    ours.close()  # else a child of a dead shim waits for itself to say go
                    in_child(theirs, Stdio(fds[4] if stdin else -1, fds[1], fds[3]))
                process = Process(loop, pid, pidfd, ours, journal)
            except OSError:
                ours.close()
                raise
    except OSError:
        for fd in fds:
            os.close(fd)
        journal.remove()
        if pid > 0:
            with contextlib.suppress(ProcessLookupError):
                linux.pidfd_send_signal(pidfd, signal.SIGKILL)
            linux.waitid_pidfd(pidfd, os.WEXITED)
            os.close(pidfd)
        raise
    for fd in (fds[1], fds[3], *fds[4:5]):
        os.close(fd)
    return Launched(process, fds[5] if stdin else -1, fds[0], fds[2])
