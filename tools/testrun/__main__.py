"""Run a tier of the tests: `python -m testrun fast|main|all [--record-times]` (`make test-fast`, `test`, `test-all`).

With the variable TESTS only these run, as pytest's arguments: TESTS="tests/unit -k grace" make test.
"""

import argparse
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

from testrun import branches, prepare, report, tiers, verdict
from testrun.groups import groups
from testrun.jobs import Job
from testrun.outcomes import SKIPPED
from testrun.prepare import PROJECT, say
from testrun.run import Run
from testrun.tiers import TIERS, Tier

TIMES = PROJECT / "tests/times.json"
UNSTABLE = PROJECT / "docs/testing.md"

SECONDS = 40.0
"""About how long one process runs, if its files are not longer."""


def files(tier: Tier, kind: str) -> list[str]:
    """Return the test files that may have tests of this kind that the tier runs."""
    texts = {path.relative_to(PROJECT).as_posix(): path.read_text() for path in (PROJECT / "tests").rglob("test_*.py")}
    return sorted(path for path, text in texts.items() if tiers.may_have(tier, kind, path, text))


def run_all(run: Run, only: str) -> None:
    """Run the checks and the tests of a tier; with `only`, the tests of that kind."""
    cores = os.cpu_count() or 1
    times = tiers.read_times(TIMES)

    def shared_out(tier: Tier, paths: list[str], kind: str, venv: Path) -> list[Job]:
        expected = {path: tiers.expected(tier, path, times) for path in paths}
        made = groups(expected, SECONDS)
        return [run.pytest(_title(group.files), venv, group.files, tier.name, kind) for group in made]

    checks = Job("checks", [PROJECT / "tools/check", run.venvs[0]], run.place / "checks.out")
    for number, venv in enumerate(run.venvs if only in ("", tiers.PURE) else ()):
        todo = [checks] if number == 0 and run.tier.name != "fast" else []
        tier = TIERS[run.tier.other_pythons] if number else run.tier
        found = files(tier, tiers.PURE)
        counted = [path for path in found if path.startswith(branches.MEASURED_TESTS)]
        others = [path for path in found if path not in counted]
        todo += [*shared_out(tier, counted, tiers.PURE, venv), *shared_out(tier, others, tiers.PURE, venv)]
        run.stage(f"tests that compute, {venv.name}", todo, cores)
    for kind in (tiers.LOOPBACK, tiers.KERNEL):
        if only in ("", kind) and (todo := shared_out(run.tier, files(run.tier, kind), kind, run.venvs[0])):
            run.stage(f"tests in real time: {kind}", todo, run.tier.at_once(kind, cores))


def _title(paths: list[str]) -> str:
    first = paths[0].removeprefix("tests/")
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def main() -> int:
    parser = argparse.ArgumentParser(prog="testrun", description=__doc__)
    parser.add_argument("tier", choices=list(TIERS))
    parser.add_argument("--record-times", action="store_true", help="Write the time of each test to tests/times.json.")
    parser.add_argument("--coverage", action="store_true", help="Count branches, and write the figures down.")
    parser.add_argument("--kind", default="", choices=tiers.KINDS, help="Run only the tests of this kind.")
    parser.add_argument("--venv", type=Path, help="Use this virtual environment as it is, and install nothing.")
    options = parser.parse_args()
    wanted = shlex.split(os.environ.get("TESTS", ""))
    if options.record_times and (options.tier != "all" or wanted):
        parser.error("--record-times needs all tests of a file: use it with the tier all and without TESTS.")
    began = time.monotonic()
    tier = TIERS[options.tier]
    venvs = [options.venv] if options.venv else prepare.environments(tier)
    loop = report.loop_seconds(venvs[0] / "bin/python")
    say(f"prepared in {time.monotonic() - began:.0f} s; a loop of 10**7 takes {loop} s")
    (PROJECT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="testrun-", dir=PROJECT / "build") as directory:
        run = Run(tier, venvs, Path(directory))
        if wanted:
            run.stage("the tests named in TESTS", [run.pytest("tests", venv, wanted, "all") for venv in venvs], 1)
        else:
            run.measured_venv = venvs[-1] if options.coverage or tier.other_pythons else None  # the newest Python
            run_all(run, options.kind)
        passed_again = run.retry()
        measured_branches = branches.combine(venvs[-1] / "bin/python", run.coverage_data)
    known = verdict.known_unstable(UNSTABLE.read_text() if UNSTABLE.exists() else "")
    failures = [failure for _, failure in run.failures]
    result = verdict.judge(failures, passed_again, known, len(run.first))
    if measured_branches:
        coverage = branches.with_measured(branches.read(PROJECT), measured_branches)
        print(branches.table(coverage))
        result.reasons += branches.problems(coverage, ())
        if options.record_times or options.coverage:
            branches.write(PROJECT, coverage)
    if options.record_times:
        measured = {
            test: outcome.cpu if outcome.pure else outcome.seconds
            for (venv, test), outcome in run.first.items()
            if venv == venvs[0] and outcome.result != SKIPPED
        }
        kernel = {test for test in measured if not test.startswith(tiers.SMALL)}
        added_up = {test for (_, test), outcome in run.first.items() if test in kernel and not outcome.core}
        new = tiers.with_new_times(tiers.read_times(TIMES) if options.kind else {}, measured, added_up)
        TIMES.write_text(tiers.as_text(new))
    seconds = time.monotonic() - began
    report.write(report.as_document(tier.name, result, run.counts(), run.skipped(), seconds, loop))
    footer = f"{seconds / 60:.1f} minutes, {run.cpu():.0f} CPU s of tests; a loop of 10**7 takes {loop} s"
    slow = run.slow(tiers.read_times(TIMES)) if not wanted else []
    report.show(result, run.counts(), run.skipped(), slow, footer)
    return 0 if result.green else 1


if __name__ == "__main__":
    sys.exit(main())
