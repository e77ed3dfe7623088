"""PID 1 of the cluster: sets the namespaces up, starts the roles, reaps everything, ends with front.

It stays single-threaded and does nothing but wait, so that it is there to tell what ended and how: its own children
(control plane, shim, node) and, when the shim dies, the orphans that fall to it.
"""

import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from lastcall.cluster.channel import ChannelWriter
from lastcall.cluster.options import STATE_DIR
from lastcall.cluster.plan import Plan
from lastcall.cluster.root import make_root
from lastcall.timeline import kinds
from lastcall.timeline.ring import RingRecorder
from lastcall.world import linux
from lastcall.world.clock import RealClock

SHIM_SOCKET = f"{STATE_DIR}/shim-1.sock"
SHIM_STATE = f"{STATE_DIR}/shim-1"
_SHIM_STATE_SIZE = "16m"


def run_init(plan: Plan, channel: socket.socket, roles: dict[str, Callable[[Plan], None]]) -> NoReturn:
    """The child's side of the clone, from the moment the id maps are written. Never returns."""
    writer = ChannelWriter(channel)
    try:
        linux.set_parent_death_signal(signal.SIGKILL)
        os.setsid()
        linux.set_process_name("lastcall-init")
        os.umask(0o022)
        make_root(plan.options.state_size)
        linux.sethostname(plan.options.name)
        linux.bring_up_loopback()
        # Its own file system: a Pod that fills the other one must not keep the shim from recording how it ended.
        os.mkdir(SHIM_STATE, 0o700)
        flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
        linux.mount("lastcall-shim", SHIM_STATE, "tmpfs", flags, f"mode=700,size={_SHIM_STATE_SIZE}")
        _Init(plan, writer, roles).run()
    except BaseException as error:
        if os.environ.get("LASTCALL_DEBUG"):
            traceback.print_exc()
        code = error.errno if isinstance(error, OSError) else None
        writer.send({"event": "failed", "message": str(error) or repr(error), "errno": code})
    os._exit(70)


class _Init:
    def __init__(self, plan: Plan, writer: ChannelWriter, roles: dict[str, Callable[[Plan], None]]) -> None:
        self._plan = plan
        self._writer = writer
        self._roles = roles
        self._children: dict[int, str] = {}
        self._recorder = RingRecorder(plan.rings["init"], "init", RealClock())
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # The terminal's signals are front's business; a pid-namespace init ignores what it does not handle anyway.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._start_shim()
        for role, main in self._roles.items():
            self._fork(role, main)
        self._wait()

    def _started(self, role: str, pid: int) -> None:
        self._children[pid] = role
        self._writer.send({"event": "started", "role": role, "pid": pid})

    def _start_shim(self) -> None:
        """A fresh interpreter of about 12 MB: what forks every container should be small."""
        ring, log = self._plan.rings["shim-1"].fd, self._plan.logs["shim-1"]
        pid = os.fork()
        if pid == 0:
            try:
                _become_role("shim-1", log)
                for fd in (ring, self._plan.wake_fd):
                    os.set_inheritable(fd, True)
                package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
                program = os.path.join(package, "lastcall", "cri", "sandbox", "shim", "__main__.py")
                arguments = [
                    sys.executable, "-I", "-S", program,
                    "--socket", SHIM_SOCKET, "--state", SHIM_STATE,
                    "--ring-fd", str(ring), "--wake-fd", str(self._plan.wake_fd),
                ]  # fmt: skip
                with suppress(OSError):
                    linux.execv_read_only(sys.executable, arguments)
                os.execv(sys.executable, arguments)  # noqa: S606 (no shell is the point)
            finally:
                traceback.print_exc()
                os._exit(70)
        self._started("shim-1", pid)

    def _fork(self, role: str, main: Callable[[Plan], None]) -> None:
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                signal.set_wakeup_fd(-1)
                self._writer.socket.close()
                _become_role(role, self._plan.logs[role])
                main(self._plan)
                code = 0
            except BaseException as error:
                traceback.print_exc()
                sys.stderr.write(f"{_in_one_line(error)}\n")  # front shows the last line
                sys.stderr.flush()
            finally:
                os._exit(code)
        self._started(role, pid)

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._writer.socket, selectors.EVENT_READ, "front")
            selector.register(self._wake_read, selectors.EVENT_READ, "child")
            self._reap()
            while True:
                for key, _ in selector.select():
                    if key.data == "front" and not self._writer.socket.recv(4096):
                        # Front is done, or dead. Leaving ends every process of the PID namespace.
                        os._exit(0)
                    if key.data == "child":
                        os.read(self._wake_read, 4096)
                        self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            role = self._children.pop(pid, "orphan")
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            facts = {"role": role, "pid": pid, "exitCode": code, "signal": number}
            self._recorder.record(kinds.PROCESS_DIED, facts=facts)
            self._writer.send({"event": "died", **facts})


def _in_one_line(error: BaseException) -> str:
    """What happened, without the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())


def _become_role(role: str, log_fd: int) -> None:
    """A child of init: dies with it, has a name in `ps`, and keeps its last words for front."""
    linux.set_parent_death_signal(signal.SIGKILL)
    linux.set_process_name(f"lastcall-{role}"[:15])
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not os.environ.get("LASTCALL_DEBUG"):
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
