"""Execs: one more command in a running container."""

# check: allow time.monotonic_ns because the shim has a loop of its own

from __future__ import annotations

import contextlib
import os
import signal
import time

from lastcall.kube.cri.sandbox.shim import child, procfs
from lastcall.kube.cri.sandbox.shim.containers import KILL_ROUNDS, Container, Context
from lastcall.kube.cri.sandbox.shim.namespaces import clone_into
from lastcall.kube.cri.sandbox.shim.process import Exit, Journal, Launched, Output, Process, Stdio, launch
from lastcall.records import kinds
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import NoReturn

    from lastcall.kube.cri.sandbox.shim.loop import Timer
    from lastcall.records.definitions.runtime import ExecExited, ExecStarted, SignalSent

_TIMEOUT = "exec timeout"
LARGEST_OUTPUT = 16 << 20
"""Bytes per stream of an exec (containerd internal/cri/server/container_execsync.go)."""


class Exec:
    """One command in a running container; `on_done(exit, stdout, stderr, killed_because)` ends it."""

    stdin = tty = False

    def __init__(self, context: Context, container: Container, identity: str, argv: list[str]) -> None:
        self.id = identity
        self.on_done: Callable[[Exit, bytes, bytes, str], None] = lambda *_: None
        self.on_start_failed: Callable[[str], None] = lambda message: None
        self._argv = argv
        self._context = context
        self._container = container
        self._process: Process | None = None
        self._outputs: list[Output] = []
        self._captured = (bytearray(), bytearray())
        self._exit: Exit | None = None
        self._timer: Timer | None = None
        self._killed_because = ""

    def start(self, timeout: float) -> None:
        """Clone into the container. `timeout` in seconds, 0 is unlimited.

        Raises OSError, ProcessLookupError when the container has ended.
        """
        container, context = self._container, self._context
        assert container.process is not None
        if not container.running:
            raise ProcessLookupError(3, "container is not running")
        entrance, init = container.limits.entrance(), container.process.pidfd
        spec = {**container.spec, "argv": self._argv, "tty": self.tty, "cgroupFiles": entrance.files}
        spec["limited"] = context.cgroups.mode != "none"
        spec["users"] = container.sandbox.users

        def in_child(status: socket.socket, stdio: Stdio) -> NoReturn:
            child.run_exec(spec, status, stdio, init, container.maps)

        journal = Journal(context.directory, f"exec-{self.id}", container.about)
        stdin = self.stdin and not self.tty
        launched = launch(context.loop, journal, lambda: self._clone(init, entrance.directory), in_child, stdin=stdin)
        self._process = launched.process
        self._process.on_started = self._started
        self._process.on_listener = container.supervise
        self._process.on_start_failed = self._failed
        self._process.on_exited = self._exited
        self._connect(launched)
        container.execs.add(self.id)
        if timeout > 0:
            deadline = time.monotonic_ns() + int(timeout * 1e9)
            self._timer = context.loop.call_at(deadline, lambda: self.kill(_TIMEOUT))
        self._process.go()

    def _connect(self, launched: Launched) -> None:
        for read, captured in zip((launched.stdout, launched.stderr), self._captured, strict=True):
            self._outputs.append(Output(self._context.loop, read, _capture(captured), self._ended))

    def _clone(self, init: int, cgroup: str) -> tuple[int, int]:
        """A process of the container must not look into the shim's copy that is about to enter its PID namespace."""
        linux.set_dumpable(False)
        pid = -1
        try:
            pid, pidfd = clone_into(init, 0, self._context.own, cgroup)
        finally:
            if pid != 0:
                linux.set_dumpable(True)
        return pid, pidfd

    def kill(self, why: str) -> None:
        """Kill it with everything it started, if its descendants can be found. Idempotent."""
        if self._process is None or self._killed_because:
            return
        self._killed_because = why
        root = self._process.pid
        reaped = self._exit is not None
        if reaped and procfs.start_time(root):
            self._finish()  # its number belongs to someone else by now, so nothing of its session is left
            return
        facts: SignalSent = {"signal": "SIGKILL", "pid": root, "why": why}
        self._container.record(kinds.SIGNAL_SENT, facts)
        for _ in range(KILL_ROUNDS):
            left = procfs.members(root)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if left in ([], [root]):
                break
        self._container.limits.thaw()
        if reaped:
            self._finish()

    def _started(self) -> None:
        assert self._process is not None
        facts: ExecStarted = {"execId": self.id, "pid": self._process.pid, "argv": self._argv}
        self._container.record(kinds.EXEC_STARTED, facts)

    def _failed(self, message: str) -> None:
        assert self._process is not None
        self._clean_up()
        if self._killed_because == _TIMEOUT and self._process.exit is not None:
            # Before it could execute anything: that is not a start error, which a probe would not count.
            self.on_done(self._process.exit, b"", b"", _TIMEOUT)
        else:
            self.on_start_failed(message)

    def _exited(self, status: Exit) -> None:
        self._exit = status
        for output in self._outputs:
            output.drain()
        if self._killed_because or self._container.process is None or self._container.process.exit is not None:
            self._finish()
        else:
            self._ended()

    def _ended(self) -> None:
        """Like containerd, an exec is over when it has exited and nobody holds its output any more."""
        if self._exit is not None and not any(output.open for output in self._outputs):
            self._finish()

    def _finish(self) -> None:
        assert self._process is not None
        assert self._exit is not None
        if self.id not in self._container.execs:
            return
        self._clean_up()
        because = self._killed_because
        facts: ExecExited = {
            "execId": self.id,
            "pid": self._process.pid,
            "exitCode": self._exit.code,
            "signal": self._exit.signal or None,
            "killedBecause": because,
        }
        self._container.record(kinds.EXEC_EXITED, facts)
        stdout, stderr = self._captured
        self.on_done(self._exit, bytes(stdout), bytes(stderr), because)

    def _clean_up(self) -> None:
        assert self._process is not None
        self._container.execs.discard(self.id)
        if self._timer is not None:
            self._timer.cancel()
        for output in self._outputs:
            output.close()
        self._process.journal.remove()


def _capture(into: bytearray) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        into.extend(data[: max(0, LARGEST_OUTPUT - len(into))])

    return take
