"""Runs the lastcall command as a user would: reads what it says meanwhile, and sees that it leaves nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ordinary_user
from tree import MachineState, Tree, assert_clean, assert_nothing_stays, cgroups_named
from waiting import PATIENCE

AT_ONCE = 4
"""Clusters that a test may have running side by side: most of their time they wait."""


def default_signals() -> None:
    """The tests may run under nohup; the command is to hear its signals all the same."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@dataclass(frozen=True)
class Line:
    """`at` is seconds of the monotonic clock."""

    at: float
    stream: str
    text: str


@dataclass(frozen=True)
class Result:
    """What a command ended with. `status` is negative for a signal, as in subprocess."""

    status: int
    out: str
    err: str
    seconds: float

    @property
    def document(self) -> dict[str, Any]:
        """The JSON on stdout."""
        document: dict[str, Any] = json.loads(self.out)
        return document


@dataclass
class Credentials:
    """What /proc said of the running command."""

    uid: str = ""
    groups: str = ""
    cap_eff: str = ""


class Lastcall:
    """`with Lastcall(["run", "-"], manifests=[…]) as command:`. Nothing of it may be left, or `finish` fails.

    `user` is one of `ordinary_user.USERS`. HOME and everything below the XDG variables and TMPDIR is a directory of its
    own. `environment` is set on top of that; None takes a variable away.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        manifests: Sequence[dict[str, Any]] | None = None,
        stdin: str | None = None,
        user: str = ordinary_user.USERS[0],
        environment: dict[str, str | None] | None = None,
        program: Sequence[str] = ("-m", "lastcall.cli.main"),
        prepare_home: Callable[[Path], None] = lambda home: None,
        new_session: bool = True,
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="lastcall-test-"))
        self.home.chmod(0o755)
        for name in ("home", "tmp", "data", "cache", "config", "state"):
            (self.home / name).mkdir()
            (self.home / name).chmod(0o777)
        prepare_home(self.home)
        self.credentials = Credentials()
        self.namespaces: dict[str, str] = {}
        self._before = MachineState.take(self.home)
        self._lines: list[Line] = []
        self._changed = threading.Condition()
        self._open = 2
        self.started_at = time.monotonic()
        command = [*ordinary_user.command_prefix(user), "env", *self._environment(environment or {})]
        if manifests is not None:
            stdin = "\n---\n".join(json.dumps(each) for each in manifests)
        self.process = subprocess.Popen(
            [*command, sys.executable, *program, *arguments],
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=new_session,
            preexec_fn=default_signals,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("out", self.process.stdout), ("err", self.process.stderr))
        ]
        for reader in self._readers:
            reader.start()
        if stdin is not None:
            assert self.process.stdin is not None
            self.process.stdin.write(stdin.encode())
            self.process.stdin.close()

    def _environment(self, more: dict[str, str | None]) -> list[str]:
        places = {"HOME": "home", "TMPDIR": "tmp", "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache"}
        places["XDG_STATE_HOME"] = "state"
        values: dict[str, str | None] = {name: str(self.home / place) for name, place in places.items()}
        values |= {"XDG_CONFIG_HOME": str(self.home / "config"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": None}
        values |= {"LASTCALL_DEBUG": None, "KUBECONFIG": None, **more}
        unset = [word for name, value in values.items() if value is None for word in ("-u", name)]
        return [*unset, *(f"{name}={value}" for name, value in values.items() if value is not None)]

    # -- while it runs ------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The front process."""
        return self.process.pid

    def _read(self, name: str, stream: Any) -> None:
        for raw in stream:
            line = Line(time.monotonic(), name, raw.decode(errors="replace").rstrip("\n"))
            with self._changed:
                if not self._lines:
                    self._look_at_credentials()
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def _look_at_credentials(self) -> None:
        """/proc/<pid>/status, once the command is the one that speaks."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.credentials = Credentials(fields["Uid"], fields["Groups"].strip(), fields["CapEff"])

    def wait_for(self, *texts: str, timeout: float = 60.0) -> Line:
        """The first line with one of the texts; fails when the command ends, or falls silent, without it."""
        deadline = time.monotonic() + timeout * PATIENCE
        seen = 0
        with self._changed:
            while True:
                for line in self._lines[seen:]:
                    if any(text in line.text for text in texts):
                        return line
                seen = len(self._lines)
                if not self._open or not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise AssertionError(f"no {texts} within {timeout} s in:\n{self.said()}")

    def tree(self) -> Tree:
        """The process tree; from here on `finish` demands that its namespaces become empty."""
        tree = Tree.find(self.pid)
        self.namespaces = tree.namespaces
        return tree

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """As the terminal does it: to front alone, for init has a session of its own."""
        os.kill(self.pid, number)

    def said(self, stream: str = "") -> str:
        return "\n".join(line.text for line in self._lines if stream in ("", line.stream))

    # -- its end ------------------------------------------------------------------------------------------------------

    def finish(self, timeout: float = 120.0) -> Result:
        """Wait for the end and look at what is left. A traceback is a failure, always."""
        try:
            status = self.process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s:\n{self.said()}") from None
        seconds = time.monotonic() - self.started_at
        for reader in self._readers:
            reader.join(60)
            assert not reader.is_alive(), "a process that outlived the command still holds its stdout or stderr"
        assert "Traceback" not in self.said(), self.said()
        assert "internal error" not in self.said(), self.said()
        if self.namespaces:
            assert_clean(self._before, self.home, self.namespaces)
        else:
            assert_nothing_stays(self._before, self.home)
        # The name ends with the pid namespace, the pid and the start time of front.
        assert not cgroups_named(f"*lastcall-*-ns*-{self.pid}-*")
        return Result(status, self.said("out") + "\n", self.said("err"), seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        shutil.rmtree(self.home, ignore_errors=True)


def lastcall(arguments: Sequence[str], *, timeout: float = 120.0, **options: Any) -> Result:
    """A command from start to end."""
    with Lastcall(arguments, **options) as command:
        return command.finish(timeout)


@dataclass
class InParallel:
    """Jobs that are started together by the first test that asks for one, `AT_ONCE` at a time; each runs once."""

    jobs: dict[Any, Callable[[], Any]]
    _pool: ThreadPoolExecutor | None = None
    _futures: dict[Any, Any] = field(default_factory=dict)

    def __getitem__(self, key: Any) -> Any:
        """The job's result, or what it raised."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(AT_ONCE)
            self._futures = {each: self._pool.submit(job) for each, job in self.jobs.items()}
        return self._futures[key].result()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
