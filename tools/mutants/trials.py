"""Fork for each trial, run tests in the child until one fails, and take its messages from a pipe.

The parent has collected every test and has run none, so that each child starts from the same clean state.
"""

import gc
import os
import resource
import selectors
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mutants.choosing import Touched
from mutants.results import KILLED, SILENT, SURVIVED, TIMEOUT

SLOWER = 20
"""A test that takes this many times its CPU time, and `AT_LEAST` seconds, does not end: the change has killed it."""
AT_LEAST = 5.0

SILENCE = 30.0
"""A trial is silent if a test waits this long (seconds, beside `SLOWER` times its own time)."""

GLANCE = 1.0
"""Seconds between two looks of the parent at its children. A longer pause stopped all of them, and does not count."""

MEMORY = 4 << 30
"""Most bytes of a child's data."""

DIED = "its process ended"

Write = Callable[[str], None]
"""Sends a line to the parent: `started N`, `passed N`, `failed N`, of the trial's test N."""


@dataclass
class Trial:
    """Something to do in a child."""

    name: str
    tests: Sequence[Touched]
    body: Callable[[Write], None]
    outcome: str = ""
    test: str = ""
    """The test that failed or did not end."""
    ran: int = 0
    """How many tests passed."""
    seconds: float = 0.0


def run(trials: Iterable[Trial], at_once: int, done: Callable[[Trial], None]) -> None:
    """Run the trials, some side by side, and call `done` with each that has ended.

    A silent one runs again when the others have ended, alone: other work on the machine may have kept it waiting.
    """
    silent = list[Trial]()
    _run(trials, at_once, lambda trial: silent.append(trial) if trial.outcome == SILENT else done(trial))
    _run(silent, 1, done)


def _run(trials: Iterable[Trial], at_once: int, done: Callable[[Trial], None]) -> None:
    waiting = list(reversed(list(trials)))
    running = list[_Child]()
    with selectors.DefaultSelector() as selector:
        while waiting or running:
            while waiting and len(running) < at_once:
                child = _Child(waiting.pop())
                selector.register(child.pipe, selectors.EVENT_READ, child)
                running.append(child)
            began = time.monotonic()
            readable = [key.data for key, _ in selector.select(GLANCE)]
            for child in running:
                child.silent += min(time.monotonic() - began, 2 * GLANCE)
            for child in readable:
                child.read()
            for child in [each for each in running if each.has_ended()]:
                selector.unregister(child.pipe)
                running.remove(child)
                child.close()
                done(child.trial)


def run_until_failure(
    items: Sequence[tuple[pytest.Item, float]], budget: float, failed: Callable[[], bool], write: Write
) -> None:
    """Run tests, each with its usual CPU seconds, until one fails or the budget (CPU seconds) is spent."""
    for number, (item, seconds) in enumerate(items):
        if time.process_time() > budget:
            return
        write(f"started {number}")
        signal.setitimer(signal.ITIMER_PROF, max(AT_LEAST, SLOWER * seconds))
        run_alone(item)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write(f"{'failed' if failed() else 'passed'} {number}")
        if failed():
            return


def run_alone(item: pytest.Item) -> None:
    """Run one test as if there were no other: every fixture is set up for it and torn down after it."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def isolate(config: Any) -> None:
    """Make this child independent of its parent: a session, an output, limits and a temporary folder of its own."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:
        factory._basetemp = Path(tempfile.mkdtemp(dir=os.environ[PLACE]))


PLACE = "MUTANTS_PLACE"


class _Child:
    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._place = tempfile.mkdtemp(prefix="m-")
        self._text = ""
        self._over = False
        self._began = time.monotonic()
        self.silent = 0.0
        """Seconds since the child wrote something."""
        self.pipe, end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            with suppress(BaseException):
                os.close(self.pipe)
                os.environ[PLACE] = self._place
                trial.body(lambda line: _write(end, line))
                _write(end, "ended")
                status = 0
            os._exit(status)
        os.close(end)

    def read(self) -> None:
        """Take what the child has written."""
        new = os.read(self.pipe, 65536).decode()
        self._over = not new
        self._text += new
        self.silent = 0.0

    def has_ended(self) -> bool:
        """Return True once the pipe is closed or the child is silent for too long."""
        expected = self._test("started").seconds if "started" in self._text else 0.0
        return self._over or self.silent > SILENCE + SLOWER * expected

    def close(self) -> None:
        """Kill what is left, and fill in the trial's outcome."""
        too_long = not self._over
        if too_long:
            os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        os.close(self.pipe)
        shutil.rmtree(self._place, ignore_errors=True)
        trial = self.trial
        trial.seconds = round(time.monotonic() - self._began, 2)
        trial.ran = self._text.count("passed ")
        trial.test = ""
        by_time = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
        if "failed " in self._text:
            trial.outcome, trial.test = KILLED, self._test("failed").test
        elif "ended\n" in self._text:
            trial.outcome = SURVIVED
        else:
            trial.outcome = SILENT if too_long else TIMEOUT if by_time else KILLED
            trial.test = self._test("started").test if "started " in self._text else DIED

    def _test(self, word: str) -> Touched:
        return self.trial.tests[int(self._text.rpartition(f"{word} ")[2].partition("\n")[0] or 0)]


def _write(pipe: int, line: str) -> None:
    os.write(pipe, f"{line}\n".encode())


def freeze() -> None:
    """Keep the collector away from what exists, so that children share its memory with the parent."""
    gc.collect()
    gc.freeze()
