"""Collect the results of one run from all of its processes."""

import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from testrun import branches, jobs, outcomes, verdict
from testrun.jobs import SILENT, Job
from testrun.outcomes import FAILED, PASSED, SKIPPED, Log, Outcome
from testrun.prepare import PROJECT, say
from testrun.tiers import Tier, Times, time_of

LONGEST = 3600.0
"""Above the time limits (seconds) that tests of the whole tier set for themselves: recordings, pains, conformance."""


class Run:
    """The results of a run, from all of its processes."""

    def __init__(self, tier: Tier, venvs: Sequence[Path], place: Path) -> None:
        self.tier = tier
        self.venvs = venvs
        self.first: dict[tuple[Path, str], Outcome] = {}
        """(virtual environment, test) → its first result."""
        self.failures: list[tuple[Path, Outcome]] = []
        self.collecting = 0.0
        self.place = place
        self.measured_venv: Path | None = None
        """Where branches are counted (`branches.py`)."""
        self.coverage_data = place / "coverage"
        self._seed = secrets.randbelow(2**32)
        self._number = 0

    def pytest(self, name: str, venv: Path, arguments: Iterable[str], tier: str = "", kind: str = "") -> Job:
        """Return the job of one pytest process. Count branches if all of its tests are to count."""
        self._number += 1
        arguments = list(arguments)
        measured = venv == self.measured_venv and all(each.startswith(branches.MEASURED_TESTS) for each in arguments)
        words = self.place / f"{self._number}.args"
        words.write_text("".join(f"{each}\n" for each in arguments))
        log = self.place / f"{self._number}.log"
        counting = branches.under_coverage(self.coverage_data) if measured else []
        command: list[str | Path] = [
            venv / "bin/python", *counting, "-m", "pytest", "-q", "-p", "testrun.plugin",
            f"--tier={tier or self.tier.name}", f"--kind={kind}", f"--test-log={log}",
            f"--hypothesis-seed={self._seed}", f"@{words}",
        ]  # fmt: skip
        environment = {
            "PYTHONPATH": os.pathsep.join([str(PROJECT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONHASHSEED": str(self._seed),
        }
        silent = LONGEST if self.tier.kernel == "all" else SILENT
        return Job(name, command, self.place / f"{self._number}.out", log, environment, silent)

    def stage(self, title: str, todo: Sequence[Job], at_once: int) -> None:
        """Run jobs side by side; print a line for each that ends. What a dead process had left runs in a new one."""
        say(f"== {title}: {len(todo)} processes, {at_once} at once ==")
        waiting = list(todo)
        done = 0
        while waiting:
            batch, waiting = waiting, []
            for job in jobs.run(batch, at_once):
                done += 1
                log = _log(job)
                rest = self._take(job, log)
                say(f"[{done}] {job.name}: {_summary(job, log)}, {job.seconds:.0f} s")
                if rest:
                    venv = Path(job.command[0]).parents[1]
                    waiting.append(self.pytest(f"{job.name}, the rest", venv, rest))

    def _take(self, job: Job, log: Log) -> list[str]:
        """Add a process's results; return the tests that it did not come to."""
        if job.log is None:
            if job.status:
                failed = Outcome(job.name, FAILED, why=job.output.read_text()[-20000:], proof=True)
                self._fail(Path(), failed)
            return []
        venv = Path(job.command[0]).parents[1]
        self.collecting += log.collecting
        for outcome in log.outcomes:
            self.first.setdefault((venv, outcome.test), outcome)
        for failure in outcomes.failures_of(log, job.ending):
            why = failure.why if log.selected else f"{failure.why}\n{job.output.read_text()[-5000:]}"
            self._fail(venv, replace(failure, why=why))
        return [] if log.finished or log.errors or not log.running else log.left()

    def _fail(self, venv: Path, failure: Outcome) -> None:
        self.first.setdefault((venv, failure.test), failure)
        self.failures.append((venv, failure))
        last = [line for line in failure.why.splitlines() if line.startswith("E ")] or failure.why.splitlines()
        say(f"FAILED {failure.test}: {last[0][:300] if last else ''}")

    def retry(self) -> set[str]:
        """Run each failure that may be the machine's again, alone, up to two times; return those that passed."""
        passed = set[str]()
        candidates = [(venv, failure) for venv, failure in self.failures if verdict.runs_again(failure)]
        by_themselves = [failure for _, failure in candidates if failure.stall < verdict.LONG_STALL]
        if len(by_themselves) > 4 * verdict.MOST_UNSTABLE:
            say(f"{len(by_themselves)} tests failed: too many to be chance, none runs again.")
            return passed
        for venv, failure in candidates:
            for attempt in range(verdict.RETRIES):
                job = self.pytest(failure.test, venv, [failure.test], tier="all")
                for ended in jobs.run([job], 1):
                    log = _log(ended)
                    good = log.finished and [each.result for each in log.outcomes] == [PASSED]
                    say(f"again, alone ({attempt + 1}): {failure.test}: {'passed' if good else 'failed'}")
                    if good:
                        passed.add(failure.test)
                if failure.test in passed:
                    break
        return passed

    def counts(self) -> dict[str, int]:
        """Return how many tests passed, failed and were skipped at first."""
        return {
            result: sum(outcome.result == result for outcome in self.first.values())
            for result in (PASSED, FAILED, SKIPPED)
        }

    def skipped(self) -> dict[str, list[str]]:
        """Return the tests that were skipped, by reason."""
        return outcomes.skips(self.first.values())

    def slow(self, times: Times) -> list[Outcome]:
        """Return the pure tests that took twice what the tier allows and more, and are not known to."""
        most = 2 * self.tier.slowest + 0.5
        slow = [each for each in self.first.values() if each.pure and each.cpu > most]
        unknown = [each for each in slow if time_of(times, each.test) <= self.tier.slowest]
        return sorted(unknown, key=lambda each: -each.cpu)

    def cpu(self) -> float:
        """Return the CPU seconds of all tests and of collecting them."""
        return self.collecting + sum(outcome.cpu for outcome in self.first.values())


def _log(job: Job) -> Log:
    """Read what a process wrote about its tests; nothing if it runs no tests or died before."""
    return outcomes.read(job.log.read_text().splitlines() if job.log and job.log.exists() else ())


def _summary(job: Job, log: Log) -> str:
    if job.log is None:
        return job.ending if job.status else "ok"
    count = {result: sum(each.result == result for each in log.outcomes) for result in (PASSED, FAILED, SKIPPED)}
    return ", ".join(f"{number} {result}" for result, number in count.items() if number) or job.ending
