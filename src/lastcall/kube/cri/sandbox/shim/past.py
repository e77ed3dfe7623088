"""What the journals say of processes whose shim has died: read by init, which reaps them then, and by the next shim.

A journal (`process.Journal`) has one JSON object a line: `pid`, `startTime`, `podUid` and `container` before the
process may execute anything; `exitCode`, `signal` and `finishedAt` once its wait status is known. Standard library
only.
"""

from __future__ import annotations

import contextlib
import json
import os

from lastcall.kube.cri.sandbox.shim import procfs
from lastcall.world.files import append_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PastProcess:
    """One process of a shim that is no more. `exec_id` is "" for a container's PID 1. `exit_code` None: not known."""

    def __init__(self, path: str, facts: dict[str, Any]) -> None:
        name = os.path.basename(path)
        self.path = path
        self.exec_id = name.removeprefix("exec-") if name.startswith("exec-") else ""
        self.container_id = "" if self.exec_id else name
        self.pid = _number(facts.get("pid")) or 0
        self.start_time = _number(facts.get("startTime")) or 0
        self.pod_uid = _text(facts.get("podUid"))
        self.container = _text(facts.get("container"))
        self.sandbox_id = _text(facts.get("sandboxId"))
        self.exit_code = _number(facts.get("exitCode"))
        self.signal = _text(facts.get("signal"))
        self.finished_at = _number(facts.get("finishedAt")) or 0

    @property
    def over(self) -> bool:
        """Return whether its end is on record."""
        return self.exit_code is not None

    def lives(self) -> bool:
        """Return whether it exists under its number, perhaps as a zombie."""
        return self.pid > 0 and procfs.start_time(self.pid) == self.start_time

    def ended(self, exit_code: int, signal: str, finished_at: int) -> None:
        """Record its end. A full disk loses that."""
        self.exit_code, self.signal, self.finished_at = exit_code, signal, finished_at
        text = json.dumps({"exitCode": exit_code, "signal": signal, "finishedAt": finished_at})
        line = f"\n{text}\n".encode()  # the one before may have been cut off
        with contextlib.suppress(OSError):
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                append_all(fd, line)
            finally:
                os.close(fd)

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def read_journals(directory: str) -> list[PastProcess]:
    """Read every journal of a directory; [] if there is none. A line cut off by a full disk is ignored."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [PastProcess(path, _facts(path)) for path in (os.path.join(directory, name) for name in names)]


def _facts(path: str) -> dict[str, Any]:
    """What the lines of a journal say, the last one first. What is not a line of a journal is passed over."""
    facts: dict[str, Any] = {}
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            with contextlib.suppress(ValueError, RecursionError):
                said = json.loads(line)
                facts |= said if isinstance(said, dict) else {}
    return facts


def _number(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 1 << 63 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
