"""How long `lastcall lint` takes, from the command to its end, and what its pass adds to `run` and `rollout`.

Every figure is a fresh interpreter with compiled modules, as an installed one has them; its CPU time is beside it,
which other work on the machine disturbs less. `python -m bench.lint [--runs N]`.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import HEADER, machine, row

CLEAN = Path(__file__).parents[1] / "tests" / "clean"
PASS = """
import sys, time
import lastcall.cli.run.command
from lastcall.manifests.read import load_manifests
loaded = load_manifests([sys.argv[1]])
began, cpu = time.perf_counter(), time.process_time()
from lastcall.cli.certain_errors import tell_certain_errors
tell_certain_errors(loaded)
print((time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000)
"""
"""With the import of the rules, which come with the pass."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    files = sorted(CLEAN.rglob("*.yaml"), key=lambda file: file.stat().st_size)
    small, large = str(files[0]), str(files[-1])
    print(machine())
    print()
    print(HEADER)
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}

        def timed(*arguments: str) -> tuple[float, float]:
            """Wall and CPU time, ms."""
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-m", "lastcall.cli.main", *arguments]
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False, timeout=60)
            wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return wall * 1000, cpu * 1000

        def passed(file: str) -> list[float]:
            """Wall and CPU time, ms."""
            command = [sys.executable, "-c", PASS, file]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
            return [float(each) for each in done.stdout.split()]

        everything = [str(file) for file in files]
        for name, arguments in (
            (f"lastcall lint, {os.path.getsize(small)} bytes", ["lint", small]),
            (f"lastcall lint, {os.path.getsize(large)} bytes", ["lint", large]),
            (f"lastcall lint, {len(files)} files", ["lint", *everything]),
        ):
            timed(*arguments)  # compiles
            times = [timed(*arguments) for _ in range(runs)]
            print(row(name, [wall for wall, _ in times], "ms", "500 ms"))
            print(row(f"{name}: CPU", [cpu for _, cpu in times], "ms"))
        for file in (small, large):
            passed(file)
            name = f"pass of run and rollout, {os.path.getsize(file)} bytes"
            spans = [passed(file) for _ in range(runs)]
            print(row(name, [wall for wall, _ in spans], "ms", "30 ms"))
            print(row(f"{name}: CPU", [cpu for _, cpu in spans], "ms"))


if __name__ == "__main__":
    main()
