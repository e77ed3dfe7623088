"""Decide what a run's failures mean: which tests run again, which are unstable, and whether the run is red."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from testrun.outcomes import Outcome

RETRIES = 2
"""How often a failed test runs again by itself."""

MOST_UNSTABLE = 3
"""More unstable tests than this make a run red."""

LONG_STALL = 0.5
"""A test that failed while the machine stood still for this long (seconds) proves nothing about itself."""

NAMED = "## Unstable tests"


def runs_again(failure: Outcome) -> bool:
    """Return True if a failure may be the machine's: the test depends on real time.

    Pure tests have no time to depend on. `proof` marks acknowledged writes, leftovers, escapes, permissions and false
    alarms; a hang, a process that died and a collection error have it, too.
    """
    return not failure.proof and "::" in failure.test and not failure.pure


def known_unstable(page: str) -> set[str]:
    """Return the node ids that the section "Unstable tests" of docs/testing.md lists."""
    section = page.partition(NAMED)[2].partition("\n## ")[0]
    return set(re.findall(r"^- `([^`]+)`", section, re.MULTILINE))


@dataclass
class Verdict:
    """What a run came to."""

    failed: list[Outcome] = field(default_factory=list)
    """Those that count."""
    unstable: list[Outcome] = field(default_factory=list)
    """First failures of tests that passed when they ran again."""
    stalled: list[Outcome] = field(default_factory=list)
    """As `unstable`, but the machine stood still during the first failure."""
    reasons: list[str] = field(default_factory=list)
    """Why the run is red, a sentence each; empty if it is green."""

    @property
    def green(self) -> bool:
        """Return True if nothing makes the run red."""
        return not self.reasons


def judge(failures: Sequence[Outcome], passed_again: Iterable[str], known: Iterable[str], ran: int) -> Verdict:
    """Return the verdict over a run's first failures.

    `passed_again` names the tests that passed when they ran again, `known` those listed as unstable already, `ran` is
    the number of tests with a result.
    """
    again, listed = set(passed_again), set(known)
    verdict = Verdict()
    for failure in failures:
        passed = verdict.stalled if failure.stall >= LONG_STALL else verdict.unstable
        (passed if failure.test in again else verdict.failed).append(failure)
    if verdict.failed:
        verdict.reasons.append(f"{len(verdict.failed)} failed.")
    if len(verdict.unstable) > MOST_UNSTABLE:
        verdict.reasons.append(f"{len(verdict.unstable)} tests are unstable; at most {MOST_UNSTABLE} may be.")
    repeated = [failure.test for failure in verdict.unstable if failure.test in listed]
    if repeated:
        verdict.reasons.append(f"Unstable again, as docs/testing.md says already: {', '.join(repeated)}.")
    if not ran and not failures:
        verdict.reasons.append("No test ran.")
    return verdict
