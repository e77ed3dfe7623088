"""Print what a run came to, and write it to build/last-test.json."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from testrun.outcomes import Outcome
from testrun.prepare import PROJECT
from testrun.verdict import Verdict

LAST = PROJECT / "build/last-test.json"

Skipped = Mapping[str, Sequence[str]]
"""The reason, and the tests that were skipped for it."""


def loop_seconds(python: Path | str) -> float:
    """Measure how long this machine takes for `for _ in range(10**7): pass`, in seconds with Python's start."""
    began = time.monotonic()
    subprocess.run([python, "-c", "for _ in range(10**7): pass"], check=True)
    return round(time.monotonic() - began, 2)


def commit() -> tuple[str, bool]:
    """Return the commit of the work tree, and whether the tree is exactly that; ("", False) if git knows none."""
    if not shutil.which("git"):
        return "", False
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False)  # noqa: S607
    status = subprocess.run(["git", "status", "--porcelain"], cwd=PROJECT, capture_output=True, text=True, check=False)  # noqa: S607
    known = head.returncode == 0
    return (head.stdout.strip(), status.stdout == "") if known else ("", False)


def as_document(
    tier: str, verdict: Verdict, counts: Mapping[str, int], skipped: Skipped, seconds: float, loop: float
) -> dict[str, object]:
    """Return the result as it is written to build/last-test.json."""
    head, clean = commit()
    return {
        "commit": head,
        "clean": clean,
        "tier": tier,
        "result": "green" if verdict.green else "red",
        "reasons": verdict.reasons,
        "failed": [outcome.test for outcome in verdict.failed],
        "unstable": [outcome.test for outcome in verdict.unstable],
        "repeatedAfterStall": {outcome.test: outcome.stall for outcome in verdict.stalled},
        "tests": counts,
        "skipped": skipped,
        "seconds": round(seconds, 1),
        "loopSeconds": loop,
    }


def write(document: dict[str, object]) -> None:
    """Write the result's file."""
    LAST.parent.mkdir(exist_ok=True)
    LAST.write_text(json.dumps(document, indent=2) + "\n")


def show(verdict: Verdict, counts: Mapping[str, int], skipped: Skipped, slow: Sequence[Outcome], footer: str) -> None:
    """Print what was skipped and why, failures whole, unstable tests by name with their first failure, and counts."""
    if skipped:
        print(f"== skipped; {LAST.relative_to(PROJECT)} has each test ==")
        for reason, tests in skipped.items():
            files = sorted({test.partition("::")[0] for test in tests})
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            print(f"{len(tests):5}  {reason}: {', '.join(files[:3])}{more}")
    if slow:
        print("== slower than their tier allows; `make test-times` records it ==")
        for outcome in slow:
            print(f"{outcome.cpu:7.1f} CPU s  {outcome.test}")
    for outcome in verdict.failed:
        print(f"\n== FAILED {outcome.test} ==\n{outcome.why}")
    print(f"\nunstable: {len(verdict.unstable)}")
    for outcome in verdict.unstable:
        print(f"\n{outcome.test} failed, and passed when it ran alone. First failure:\n{outcome.why}")
    for outcome in verdict.stalled:
        print(f"\n{outcome.test} failed while the machine stood still for {outcome.stall} s, and passed alone.")
    for outcome in verdict.failed:
        print(f"FAILED {outcome.test}")
    for reason in verdict.reasons:
        print(f"red: {reason}")
    print(footer)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.stdout.flush()
