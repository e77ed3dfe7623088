"""`python -m bench prompt OTHER [--turns 15]`: from Enter to the prompt of `lastcall run`.

In turns with another checkout, measured from outside, before fork and exec: until the first line, until the DELETE
is shown, and until the prompt is back, with the CPU of the whole tree. OTHER is a checkout, or a folder with its
`src`. `ratio` and its interval as in `bench.turns`.
"""

import argparse
import compileall
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from bench.figures import machine
from bench.turns import HERE, Table, show, take_turns

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: app, image: "busybox:1.36", command: [sh, -c, "trap 'exit 0' TERM; sleep 99 & wait"]}
"""
COMMAND = (sys.executable, "-m", "lastcall.cli.main", "run", "pod.yaml", "--after", "0")
ENDS = b"DELETE"
"""In the first line of the end's timeline."""


def run_once(source: Path, folder: Path) -> dict[str, float]:
    """Run the command with the `src` of a checkout; figure → milliseconds. Raises RuntimeError where it fails."""
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(
        COMMAND, cwd=folder, env={**os.environ, "PYTHONPATH": str(source / "src")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    at: dict[str, float] = {}
    said = []
    for line in process.stdout:
        said.append(line)
        at.setdefault("first line", time.monotonic() - began)
        if ENDS in line:
            at.setdefault("the DELETE is shown", time.monotonic() - began)
    if process.wait():
        raise RuntimeError(b"".join(said).decode())
    at["prompt"] = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {**{f"Enter → {what}, ms": seconds * 1000 for what, seconds in at.items()}, "CPU, ms": cpu * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    other: Path = options.other.resolve()
    for checkout in (HERE, other):
        compileall.compile_dir(checkout / "src", quiet=1)
    print(machine(), f"load {os.getloadavg()[0]:.1f} at the start\n", sep=", ", flush=True)
    table: Table = {}
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as name:
        folder = Path(name)
        (folder / "pod.yaml").write_text(POD)
        take_turns(table, options.turns, partial(run_once, HERE, folder), partial(run_once, other, folder))
    show(table)


if __name__ == "__main__":
    main()
