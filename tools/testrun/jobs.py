"""Run commands side by side, each in a session of its own with its output in a file."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SILENT = 420.0
"""A command that writes nothing for this long (seconds) is ended: a single test may take 300, unless it says more."""


@dataclass
class Job:
    """A command to run."""

    name: str
    command: Sequence[str | Path]
    output: Path
    """Where its stdout and stderr go."""
    log: Path | None = None
    """Where pytest writes results."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of this process."""
    silent: float = SILENT
    """How long it may write nothing, in seconds."""
    ending: str = ""
    """How it ended: `exited with status 1`, `was killed by SIGKILL`."""
    status: int = 0
    seconds: float = 0.0


class _Running:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.began = self.heard = time.monotonic()
        self.size = 0
        with job.output.open("w") as output:
            self.process = subprocess.Popen(
                [str(word) for word in job.command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=os.environ | dict(job.environment), start_new_session=True,
            )  # fmt: skip

    def has_ended(self) -> bool:
        """Return True, with the job's ending filled in, once the process has ended. End one that is silent."""
        now = time.monotonic()
        status = self.process.poll()
        ending = ""
        if status is None:
            files = [path for path in (self.job.output, self.job.log) if path and path.exists()]
            size = sum(path.stat().st_size for path in files)
            if size != self.size:
                self.size, self.heard = size, now
            if now - self.heard < self.job.silent:
                return False
            ending = f"was ended: it wrote nothing for {self.job.silent:.0f} s"
            self.kill()
            status = self.process.wait()
        self.job.status, self.job.seconds = status, now - self.began
        self.job.ending = ending or _ending(status)
        if status < 0:
            self.kill()  # what it left behind
        return True

    def kill(self) -> None:
        """Kill every process of the session's first group."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _ending(status: int) -> str:
    return f"exited with status {status}" if status >= 0 else f"was killed by {signal.Signals(-status).name}"


def run(jobs: Sequence[Job], at_once: int) -> Iterator[Job]:
    """Run the jobs in this order, `at_once` at a time, and yield each when it has ended."""
    waiting, running = list(jobs), list[_Running]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_Running(waiting.pop(0)))
            ended = [each for each in running if each.has_ended()]
            running = [each for each in running if each not in ended]
            for each in ended:
                yield each.job
            if not ended:
                time.sleep(0.05)
    finally:
        for each in running:
            each.kill()
            each.process.wait()
