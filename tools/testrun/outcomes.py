"""Read what one pytest process wrote about its tests (`plugin.py`), also when the process died."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Outcome:
    """The result of one test."""

    test: str
    result: str
    seconds: float = 0.0
    """By the clock."""
    cpu: float = 0.0
    """CPU seconds of the process and of its children that have ended."""
    why: str = ""
    """What failed, or why the test was skipped."""
    pure: bool = False
    """The test computes only."""
    core: bool = False
    """It is marked `core`."""
    proof: bool = False
    """One failure is proof: the test is never repeated."""
    stall: float = 0.0
    """The longest time (seconds) for which the machine stood still during a test in real time (`heartbeat.py`)."""


@dataclass
class Log:
    """The results of one process."""

    selected: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    running: str = ""
    """The test that had started and not ended when the log ended."""
    errors: list[str] = field(default_factory=list)
    """Collection errors."""
    finished: bool = False
    """The process reached its end."""
    collecting: float = 0.0
    """CPU seconds until the first test."""

    def left(self) -> list[str]:
        """Return the selected tests without a result that had not even started."""
        done = {outcome.test for outcome in self.outcomes}
        return [test for test in self.selected if test not in done and test != self.running]


def read(lines: Iterable[str]) -> Log:
    """Return the results in the lines of a log. A torn last line is left out."""
    log = Log()
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "selected" in entry:
            log.selected, log.collecting = entry["selected"], entry["cpu"]
        elif "started" in entry:
            log.running = entry["started"]
        elif "test" in entry:
            log.outcomes.append(Outcome(**entry))
            log.running = "" if entry["test"] == log.running else log.running
        elif "error" in entry:
            log.errors.append(entry["error"])
        elif "finished" in entry:
            log.finished = True
    return log


def skips(found: Iterable[Outcome]) -> dict[str, list[str]]:
    """Return the tests that were skipped by the reason that each gave, the reason of most tests first."""
    by_reason: dict[str, set[str]] = {}
    for outcome in found:
        if outcome.result == SKIPPED:
            by_reason.setdefault(outcome.why.removeprefix("Skipped: "), set()).add(outcome.test)
    return {
        reason: sorted(tests) for reason, tests in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item))
    }


def failures_of(log: Log, ending: str) -> list[Outcome]:
    """Return the failed tests of a process, with the one during which it died.

    `ending` says how the process ended, for the test that it took along. Such a failure is proof.
    """
    failed = [outcome for outcome in log.outcomes if outcome.result == FAILED]
    failed += [Outcome("collection", FAILED, why=error, proof=True) for error in log.errors]
    if not log.finished and not log.errors:
        died = f"The process {ending} during this test." if log.running else f"The process {ending} between tests."
        failed.append(Outcome(log.running or "pytest", FAILED, why=died, proof=True))
    return failed
