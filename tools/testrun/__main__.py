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
from testrun.outcomes import PASSED
from testrun.prepare import PROJECT, say
from testrun.run import Run
from testrun.tiers import TIERS, Tier

TIMES = PROJECT / "tests/times.json"
UNSTABLE = PROJECT / "docs/testing.md"

GROUP_SECONDS = 40.0
"""About how long one process computes."""
KERNEL_SECONDS = 45.0


def files(tier: Tier) -> tuple[list[str], list[str]]:
    """Return the pure test files and the kernel's that a tier may run something of."""
    found = sorted((PROJECT / "tests").rglob("test_*.py"))
    pure, kernel = list[str](), list[str]()
    for path in found:
        name = path.relative_to(PROJECT).as_posix()
        if tiers.is_pure(name):
            pure.append(name)
        elif tier.kernel == "all" or (tier.kernel == "core" and "mark.core" in path.read_text()):
            kernel.append(name)
    return pure, kernel


def run_all(run: Run) -> None:
    """Run the checks and the tests of a tier."""
    cores = os.cpu_count() or 1
    times = tiers.read_times(TIMES)
    pure, kernel = files(run.tier)

    def shared_out(paths: list[str], venv: Path, seconds: float) -> list[Job]:
        expected = {path: tiers.expected(run.tier, path, times) for path in paths}
        return [run.pytest(_title(group.files), venv, group.files) for group in groups(expected, seconds)]

    checks = Job("checks", [PROJECT / "tools/check", run.venvs[0]], run.place / "checks.out")
    for number, venv in enumerate(run.venvs):
        todo = [checks] if number == 0 and run.tier.name != "fast" else []
        counted = [path for path in pure if path.startswith(branches.MEASURED_TESTS)]
        others = [path for path in pure if path not in counted]
        todo += shared_out(counted, venv, GROUP_SECONDS) + shared_out(others, venv, GROUP_SECONDS)
        run.stage(f"tests that compute, {venv.name}", todo, cores)
    if kernel:
        run.stage("tests on the kernel", shared_out(kernel, run.venvs[0], KERNEL_SECONDS), cores)


def _title(paths: list[str]) -> str:
    first = paths[0].removeprefix("tests/")
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def main() -> int:
    parser = argparse.ArgumentParser(prog="testrun", description=__doc__)
    parser.add_argument("tier", choices=list(TIERS))
    parser.add_argument("--record-times", action="store_true", help="Write the time of each test to tests/times.json.")
    parser.add_argument("--coverage", action="store_true", help="Count branches; the tier `all` always does.")
    parser.add_argument("--venv", type=Path, help="Use this virtual environment as it is, and install nothing.")
    options = parser.parse_args()
    began = time.monotonic()
    tier = TIERS[options.tier]
    venvs = [options.venv] if options.venv else prepare.environments(tier)
    loop = report.loop_seconds(venvs[0] / "bin/python")
    say(f"prepared in {time.monotonic() - began:.0f} s; a loop of 10**7 takes {loop} s")
    wanted = shlex.split(os.environ.get("TESTS", ""))
    (PROJECT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="testrun-", dir=PROJECT / "build") as directory:
        run = Run(tier, venvs, Path(directory))
        if wanted:
            run.stage("the tests named in TESTS", [run.pytest("tests", venv, wanted, "all") for venv in venvs], 1)
        else:
            run.measured_venv = venvs[-1] if options.coverage or tier.all_pythons else None  # the newest Python
            run_all(run)
        passed_again = run.retry()
        measured_branches = branches.combine(venvs[-1] / "bin/python", run.coverage_data)
    known = verdict.known_unstable(UNSTABLE.read_text() if UNSTABLE.exists() else "")
    failures = [failure for _, failure in run.failures]
    result = verdict.judge(failures, passed_again, known, len(run.first))
    if measured_branches:
        coverage = branches.with_measured(branches.read(PROJECT), measured_branches)
        print(branches.table(coverage))
        result.reasons += branches.problems(coverage, ())
        if options.record_times:
            branches.write(PROJECT, coverage)
    if options.record_times:
        measured = {
            test: outcome.cpu if tiers.is_pure(test) else outcome.seconds
            for (venv, test), outcome in run.first.items()
            if venv == venvs[0] and outcome.result == PASSED
        }
        new = tiers.with_new_times({} if not wanted else tiers.read_times(TIMES), measured)
        TIMES.write_text(tiers.as_text(new))
    seconds = time.monotonic() - began
    report.write(report.as_document(tier.name, result, run.counts(), seconds, loop))
    footer = f"{seconds / 60:.1f} minutes, {run.cpu():.0f} CPU s of tests; a loop of 10**7 takes {loop} s"
    report.show(result, run.counts(), run.slow() if not wanted else [], footer)
    return 0 if result.green else 1


if __name__ == "__main__":
    sys.exit(main())
