"""`python -m bench pytest-app [--real KUBECONFIG] [--rounds 3]`: whole runs of the tests of examples/pytest-app.

With pytest-xdist: a cluster for each worker, one for all, and with --real the same tests on a cluster that runs
already, by kubectl (`bench.real_namespace`), in turns. The tests that need lastcall itself (a rollout in a cluster of
its own) are left out everywhere. The real cluster must have the images python:3 and busybox:1.36; its start is not in
its figure, those of lastcall's clusters are in theirs.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.figures import HEADER, machine, row

HERE = Path(__file__).resolve().parent.parent
APP = HERE / "examples" / "pytest-app"


def seconds(*arguments: str, real: str = "") -> float:
    """Return how long a whole run of pytest takes. Raises CalledProcessError where a test fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE / "src"), str(HERE)))}
    if real:
        environment["REAL_KUBECONFIG"] = real
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore",
         "--deselect", "tests/test_updates.py", *arguments],
        cwd=APP, env=environment, check=True, stdout=subprocess.DEVNULL if "-v" not in sys.argv else None, timeout=900,
    )  # fmt: skip
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", metavar="KUBECONFIG", default="", help="the kubeconfig of a cluster to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("-v", action="store_true", help="show what pytest says")
    arguments = parser.parse_args()
    workers = ("-n", str(arguments.workers))
    runs: dict[str, Callable[[], float]] = {
        f"{arguments.workers} workers, a cluster each": partial(seconds, *workers),
        f"{arguments.workers} workers, one cluster": partial(seconds, *workers, "--lastcall-cluster", "shared"),
    }
    if arguments.real:
        name = f"{arguments.workers} workers, a real cluster that runs already"
        runs[name] = partial(seconds, *workers, "-p", "no:lastcall", "-p", "bench.real_namespace", real=arguments.real)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(arguments.rounds):
        for name, run in runs.items():
            times[name].append(run() * 1000)
    print(machine())
    print()
    print(HEADER)
    for name, found in times.items():
        print(row(name, found, "ms"))


if __name__ == "__main__":
    main()
