"""A cluster that stays, as a child of this process: `lastcall up --die-with-parent`."""

# check: starts processes because it runs lastcall up for a program

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from lastcall.kube.cluster import ClusterStartError
from lastcall.world.blocking import monotonic

Facts = dict[str, Any]
"""`lastcall/cluster/v1`: what `up --output json` prints."""

STOP_SECONDS = 30.0
"""How long a cluster may take to end before it is killed."""


def unused_name(prefix: str = "py") -> str:
    """Return a cluster name that no other process has."""
    return f"{prefix}-{os.getpid()}-{secrets.token_hex(3)}"


class ClusterProcess:
    """Blocking. `start` once, `stop` in the end: idempotent, and not needed where this process is killed."""

    def __init__(self, name: str, arguments: Sequence[str] = (), timeout: float = 60.0, *, die_with: int = 0) -> None:
        """`arguments` are further options of `lastcall up`; `timeout` seconds until its nodes must be Ready. It ends
        with the process `die_with`, 0 for this one."""
        self.name = name
        self._end = ["--die-with", str(die_with)] if die_with else ["--die-with-parent"]
        self._arguments = [*arguments, "--timeout", f"{timeout:g}"]
        self._process: subprocess.Popen[bytes] | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed in stop)

    def start(self) -> Facts:
        """Return the facts of a cluster whose nodes are Ready. Raises ClusterStartError with what `lastcall up`
        said."""
        command = [sys.executable, "-P", "-m", "lastcall.cli.main", "up", "--name", self.name, *self._end]
        self._process = subprocess.Popen(  # noqa: S603 (our own command)
            [*command, "--output", "json", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,  # Ctrl-C is for this process, which then says when the cluster is to end
        )
        assert self._process.stdout is not None
        try:
            return _document(self._process.stdout.fileno())
        except EOFError:
            status = self._process.wait()
            said = self.said()
            self.stop()
            raise ClusterStartError(
                said or f"lastcall up ended with exit status {status} and printed nothing"
            ) from None
        except BaseException:
            self.stop()
            raise

    def said(self) -> str:
        """Return what `lastcall up` printed on stderr."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        return "\n".join(line.removeprefix("lastcall: ") for line in lines)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the cluster, and wait until all of it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        assert process.stdout is not None
        process.stdout.close()
        self._said.close()


def _document(fd: int) -> Facts:
    """The first JSON document that arrives. Raises EOFError."""
    text = b""
    started = monotonic()
    while True:
        more = os.read(fd, 65536)
        if not more:
            raise EOFError(f"after {monotonic() - started:.1f} s")
        text += more
        try:
            facts: Facts = json.loads(text)
        except ValueError:
            continue
        return facts
