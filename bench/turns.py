"""`python -m bench turns OTHER [--rounds 9] [--pods 60]`: this checkout and another one (a path), in turns.

One cluster of each after the other, round after round, so that a machine that is slower for a while is so for both; the
order changes with each round. `ratio` is this checkout's median by the other's; its interval is that of 2 000 draws of
the rounds with replacement (95 %): one that holds 1 shows no difference. Both are measured by this checkout's `bench`.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.figures import machine

HERE = Path(__file__).resolve().parent.parent
API = ("get", "create", "list")
DRAWS = 2000

Rounds = dict[str, list[list[float]]]
"""Figure → what each round has of it."""


def run(checkout: Path, *words: str) -> str:
    """What `python WORDS` prints with the `lastcall` of a checkout and this one's `bench`."""
    path = os.pathsep.join((str(checkout / "src"), str(HERE)))
    environment = {**os.environ, "PYTHONPATH": path, "SPAWNED_NS": str(time.monotonic_ns())}
    done = subprocess.run([sys.executable, *words], env=environment, cwd=HERE, stdout=subprocess.PIPE, check=True,
                          text=True, timeout=900)  # fmt: skip
    return done.stdout


def cluster_round(checkout: Path, pods: int) -> dict[str, list[float]]:
    started: dict[str, Any] = json.loads(run(checkout, "-m", "bench.cluster_child", "start"))
    one: dict[str, Any] = json.loads(run(checkout, "-m", "bench.cluster_child", "pods", str(pods)))
    burst: dict[str, Any] = json.loads(run(checkout, "-m", "bench.cluster_child", "burst", "20"))
    memory = {f"PSS with one Pod, {role}, MB": [size] for role, size in started["memory"].items()}
    return {
        "command → node Ready, ms": [started["nodeReady"]],
        "command → first Pod Running, ms": [started["firstPodRunning"]],
        "PSS with one Pod, MB": [sum(started["memory"].values())],
        **memory,
        "Pod create → Running, ms": one["createToRunning"],
        "DELETE → gone, ms": one["deleteToGone"],
        "20 at once: create → all Running, ms": burst["created"],
        "20 at once: DELETE → all gone, ms": burst["deleted"],
    }


def api_round(checkout: Path) -> dict[str, list[float]]:
    """Milliseconds a request (`bench.api`): the best of three."""
    found: dict[str, list[float]] = {}
    for line in run(checkout, "-m", "bench.api", "--rounds", "3", "--only", ",".join(API)).splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) > 1 and (rate := re.fullmatch(r"([\d,]+)/s", cells[1])):
            found[f"API: {cells[0]}, ms a request"] = [1000 / float(rate[1].replace(",", ""))]
        elif len(cells) > 1 and (took := re.fullmatch(r"([\d.]+) ms", cells[1])):
            found[f"API: {cells[0]}, ms"] = [float(took[1])]
    return found


def interval(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """(ratio of the medians, 2.5 %, 97.5 % of it when rounds are drawn anew)."""

    def ratio(rounds: Sequence[int]) -> float:
        return statistics.median(value for each in rounds for value in ours[each]) / statistics.median(
            value for each in rounds for value in theirs[each]
        )

    numbers = range(len(ours))
    draw = random.Random(1)
    drawn = sorted(ratio([draw.choice(numbers) for _ in numbers]) for _ in range(DRAWS))
    return ratio(numbers), drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS)]


def show(ours: Rounds, theirs: Rounds) -> None:
    print("| figure | n | this | other | ratio | 95 % |\n|---|---|---|---|---|---|")
    for name, rounds in ours.items():
        middle, low, high = interval(rounds, theirs[name])
        medians = [statistics.median(value for each in side[name] for value in each) for side in (ours, theirs)]
        count = sum(map(len, rounds))
        print(f"| {name} | {count} | {medians[0]:.3g} | {medians[1]:.3g} | {middle:.3f} | {low:.3f}-{high:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pods", type=int, default=60, help="in each round, one after another")
    parser.add_argument("--only", choices=("cluster", "api"))
    arguments = parser.parse_args()
    print(f"{machine()}; {arguments.rounds} rounds in turns", flush=True)
    sides = (HERE, arguments.other.resolve())
    found: tuple[Rounds, Rounds] = ({}, {})
    for number in range(arguments.rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            values: dict[str, list[float]] = {}
            if arguments.only != "api":
                values |= cluster_round(sides[side], arguments.pods)
            if arguments.only != "cluster":
                values |= api_round(sides[side])
            for name, each in values.items():
                found[side].setdefault(name, []).append(each)
        print(f"round {number + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    show(*found)


if __name__ == "__main__":
    main()
