"""`python -m bench prompt [OTHER] [--turns 15]`: from Enter to the first line and to the prompt of `lastcall run`.

Measured from outside, before fork and exec: until the first line, until the DELETE is shown, and until the prompt is
back, with the CPU of the whole tree; until the error of a manifest that is wrong; and `python -c 'import click'` beside
it in each turn, which is what any command costs that uses click. The goal is a first line within 100 ms more.

With OTHER, a checkout or a folder with its `src`, in turns with that: `ratio` and its interval as in `bench.turns`.
"""

import argparse
import compileall
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.figures import machine
from bench.turns import DRAWS, HERE, Table, show, take_turns

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: app, image: "busybox:1.36", command: [sh, -c, "trap 'exit 0' TERM; sleep 99 & wait"]}
"""
WRONG = POD.replace("image:", "imag:")
LASTCALL = (sys.executable, "-m", "lastcall.cli.main", "run")
CLICK = (sys.executable, "-c", "import click")
ENDS = b"DELETE"
"""In the first line of the end's timeline."""


def run_once(source: Path, folder: Path) -> dict[str, float]:
    """Run the commands with the `src` of a checkout; figure → milliseconds. Raises RuntimeError where one fails."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def ends(command: Sequence[str], status: int) -> float:
        began = time.monotonic()
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=60)
        if done.returncode != status:
            raise RuntimeError(done.stderr.decode())
        return time.monotonic() - began

    click = ends(CLICK, 0)
    at: dict[str, float] = {}
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(
        (*LASTCALL, "pod.yaml", "--after", "0"), cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
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
    at["prompt, where the manifest is wrong"] = ends((*LASTCALL, "wrong.yaml"), 2)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {
        "python -c 'import click', ms": click * 1000,
        **{f"Enter → {what}, ms": seconds * 1000 for what, seconds in at.items()},
        "first line beyond click, ms": (at["first line"] - click) * 1000,
        "CPU, ms": cpu * 1000,
    }


def rows(turns: Sequence[dict[str, float]]) -> Iterator[str]:
    """Yield the table of one checkout as lines of Markdown."""
    yield "| figure | n | median | 95 % |\n|---|---|---|---|"
    draw = random.Random(1)
    for name in turns[0]:
        values = [turn[name] for turn in turns]
        drawn = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(DRAWS))
        low, high = drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS)]
        yield f"| {name} | {len(values)} | {statistics.median(values):.4g} | {low:.4g}-{high:.4g} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    other: Path | None = options.other and options.other.resolve()
    for checkout in (HERE, *((other,) if other else ())):
        compileall.compile_dir(checkout / "src", quiet=1)
    print(machine(), f"load {os.getloadavg()[0]:.1f} at the start\n", sep=", ", flush=True)
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as name:
        folder = Path(name)
        (folder / "pod.yaml").write_text(POD)
        (folder / "wrong.yaml").write_text(WRONG)
        ours = partial(run_once, HERE, folder)
        if other is None:
            print(*rows([ours() for _ in range(options.turns)]), sep="\n")
            return
        table: Table = {}
        take_turns(table, options.turns, ours, partial(run_once, other, folder))
    show(table)


if __name__ == "__main__":
    main()
