"""A user's place for clusters that stay: commands run one after another in one home, and nothing is left in the end."""

import fcntl
import functools
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ordinary_user
from kubectls import KUBECTL
from published_schema import documented
from run_command import Result, default_signals
from tree import MachineState, Tree, assert_nothing_stays, children, processes_in
from waiting import PATIENCE, eventually


@dataclass
class Place:
    """`with Place(user) as place:`. At the end every cluster of it is ended and the machine has to be clean.

    `environment` is set on top of the usual one; None takes a variable away. `prefix` is put before commands as root,
    `inner_prefix` as the user.
    """

    user: str = ordinary_user.USERS[0]
    environment: dict[str, str | None] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    inner_prefix: Sequence[str] = ()
    namespaces: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="lastcall-test-"))
        self.home.chmod(0o755)
        for name in ("home", "tmp", "state", "data", "cache", "config", "run"):
            (self.home / name).mkdir()
            (self.home / name).chmod(0o777)
        if self.user == "ordinary user":
            for name in ("home", "state", "run"):
                os.chown(self.home / name, ordinary_user.UID, ordinary_user.UID)
        self._before = MachineState.take(self.home)
        self.kept: list[str] = []
        """Directories that are to stay (`--state`)."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            result = self.run("down", "--all", "--timeout", "60", timeout=120)
            if kind is None:
                assert result.status == 0, result.err
                self.assert_clean()
        finally:
            shutil.rmtree(self.home, ignore_errors=True)

    def command(self, *arguments: str) -> list[str]:
        values: dict[str, str | None] = {
            "HOME": str(self.home / "home"),
            "TMPDIR": str(self.home / "tmp"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_RUNTIME_DIR": None,
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": None,
            "LASTCALL_DEBUG": None,
            "KUBECONFIG": None,
            **self.environment,
        }
        unset = [word for name, value in values.items() if value is None for word in ("-u", name)]
        settings = [f"{name}={value}" for name, value in values.items() if value is not None]
        program = [sys.executable, "-m", "lastcall.cli.main", *arguments]
        as_user = [*ordinary_user.command_prefix(self.user), *self.inner_prefix]
        return [*self.prefix, *as_user, "env", *unset, *settings, *program]

    def start(self, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        defaults: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": pipe,
            "stderr": pipe,
            "start_new_session": True,
            "cwd": "/",
        }
        command = self.command(*arguments)
        process: subprocess.Popen[str] = subprocess.Popen(
            command, text=True, preexec_fn=default_signals, **(defaults | options)
        )
        return process

    def run(self, *arguments: str, timeout: float = 120.0) -> Result:
        """A command from start to end. That its pipes close says that nobody it left behind has them open."""
        began = time.monotonic()
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=timeout * PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert "Traceback" not in out + err and "internal error" not in out + err, out + err
        return Result(process.returncode, out, err, time.monotonic() - began)

    def ok(self, *arguments: str) -> str:
        """stdout of a command that must succeed."""
        result = self.run(*arguments)
        assert result.status == 0, (arguments, result.out, result.err)
        return result.out

    def up(self, *arguments: str) -> dict[str, Any]:
        """`up --detach`; its facts."""
        facts: dict[str, Any] = json.loads(self.ok("up", "--detach", "-o", "json", *arguments))
        documented(facts)
        self.watch(facts["pid"])
        return facts

    def watch(self, front: int) -> Tree:
        """From here on the end demands that this tree's namespaces are empty."""
        tree = Tree.find(front)
        self.namespaces.append(tree.namespaces)
        return tree

    def status(self, name: str = "lastcall") -> dict[str, Any]:
        cluster: dict[str, Any]
        (cluster,) = json.loads(self.ok("status", name, "-o", "json"))["clusters"]
        return cluster

    def pids(self, name: str = "lastcall") -> dict[str, int]:
        return {process["role"]: process["pid"] for process in self.status(name)["processes"]}

    def kubectl(self, kubeconfig: str, *arguments: str, stdin: str = "", status: int = 0) -> str:
        """As root, who may read every kubeconfig. stdout, or stderr when it is to fail."""
        assert KUBECTL is not None
        environment = {"KUBECONFIG": kubeconfig, "HOME": str(self.home / "tmp"), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [KUBECTL, "--cache-dir", str(self.home / "tmp/kubectl"), *arguments],
            env=environment, input=stdin, capture_output=True, text=True, timeout=60 * PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == status, (arguments, done.stdout, done.stderr)
        return done.stderr if status else done.stdout

    def assert_clean(self, timeout: float = 60.0) -> None:
        for namespaces in self.namespaces:
            eventually(functools.partial(_are_empty, namespaces), "no process is left", timeout)
        shutil.rmtree(self.home / "tmp/kubectl", ignore_errors=True)
        assert_nothing_stays(self._before, self.home, timeout, tuple(self.kept))


class InTerminal:
    """A command in a terminal of its own, which `close` takes away as a closed window does."""

    def __init__(self, place: Place, *arguments: str) -> None:
        self._master, terminal = pty.openpty()

        def take_terminal() -> None:
            default_signals()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        # Not pty.fork: the process of the tests has several threads.
        self._process = subprocess.Popen(
            place.command(*arguments),
            stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, preexec_fn=take_terminal,
        )  # fmt: skip
        os.close(terminal)
        self.pid = self._process.pid
        self.said = ""

    def wait_for(self, text: str, timeout: float = 60.0) -> None:
        os.set_blocking(self._master, False)

        def is_said() -> bool:
            try:
                self.said += os.read(self._master, 65536).decode()
            except BlockingIOError:
                pass
            except OSError:
                raise AssertionError(f"ended without {text!r}: {self.said!r}") from None
            return text in self.said

        eventually(lambda: text in self.said or is_said(), repr(text), timeout, said=lambda: self.said)

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def close(self) -> None:
        os.close(self._master)

    def wait(self, timeout: float = 60.0) -> int:
        """Exit status, negative for a signal."""
        try:
            return self._process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.said) from None


def whole_tree(front: int) -> list[int]:
    """Front and everything below it."""
    found, waiting = [front], [front]
    while waiting:
        below = children(waiting.pop())
        found += below
        waiting += below
    return found


class Followed:
    """Processes that are followed to their end. A name or a namespace may be another's by then, a pidfd may not."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pidfds = {pid: os.pidfd_open(pid) for pid in pids}

    def alive(self) -> list[int]:
        """Those that have not ended (whether somebody has reaped them or not)."""
        return [pid for pid, fd in self._pidfds.items() if not select.select([fd], [], [], 0)[0]]

    def close(self) -> None:
        for fd in self._pidfds.values():
            os.close(fd)


def signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _are_empty(namespaces: dict[str, str]) -> bool:
    return not processes_in(namespaces)
