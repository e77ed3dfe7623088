"""Try mutants: `python -m mutants [--package node] [--count 100] [--seed TEXT]` (`make mutants`).

Results go to build/mutants/PACKAGE.json; tests/mutants-equivalent.toml lists changes that no test can see.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutants import results, sandbox
from mutants.driver import Driver, Wanted
from mutants.results import Result

PACKAGES = ("kube/node", "kube/apiserver/deletion", "kube/controllers", "endings", "records", "traffic", "trace")
TESTS = ("tests/unit", "tests/scenarios")


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--package", action="append", help="Only this package; repeatable.")
    parser.add_argument("--count", type=int, default=100, help="Mutants for each package.")
    parser.add_argument("--seed", default="", help="Which mutants are drawn; default: the commit's hash.")
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds for the tests of one mutant.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="Mutants at once.")
    parser.add_argument("--only", action="append", help="Only mutants whose line contains this text; repeatable.")
    parser.add_argument("--tests", action="append", help="Only these tests, as pytest's argument; repeatable.")
    parser.add_argument("--source", default="src/lastcall", help="The folder of the packages.")
    options = parser.parse_args()
    project = Path.cwd()
    place = project / "build/mutants"
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()
    sandbox.enter(place)
    seed = options.seed or commit

    def done(package: str, found: list[Result]) -> None:
        texts.append(results.text(package, found))
        document = results.as_document(package, seed, commit, found)
        file = place / f"{package.replace('/', '-')}.json"
        file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")

    texts = list[str]()
    packages = options.package or list(PACKAGES)
    learned = sorted({*PACKAGES, *packages}) if set(packages) & set(PACKAGES) else packages
    wanted = Wanted(
        project,
        options.source,
        packages,
        learned,
        options.count,
        seed,
        options.budget,
        options.jobs,
        options.only or [""],
        done,
    )
    arguments = ["-q", "-s", "-p", "no:cacheprovider", "-o", "timeout=0", "--hypothesis-seed=0"]
    status = pytest.main([*arguments, *(options.tests or TESTS)], plugins=[Driver(wanted)])
    print(f"\nseed {seed}", *texts, sep="\n")
    return 0 if status == pytest.ExitCode.OK and len(texts) == len(packages) else 1


if __name__ == "__main__":
    sys.exit(main())
