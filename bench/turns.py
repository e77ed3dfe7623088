"""`python -m bench turns OTHER [--rounds 20] [--pods 12] [--bursts 2] [--starts 20]`: this checkout and another one.

Starts take turns one by one. For all else a cluster of each runs beside the other, and an API server of each: a Pod
of one, a Pod of the other, and the one that is not measured rests. So a machine that is slow for a second is so for
both. Which cluster is started first changes with each round, and a round is one pair, of its medians: in eight runs
beside a copy of the same commit the cluster that was started first used 0.1 to 2.3 % more CPU. Beside the times is the
CPU that the processes of the cluster used, which other work disturbs least. `ratio` is the median of ours / theirs of
each pair; its interval is that of 2 000 draws of the pairs with replacement (95 %): one that holds 1 shows no
difference. Each is driven by its own `bench` where that has `serve`.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir
from functools import partial
from pathlib import Path
from typing import Any

from bench.api import NAMESPACE, Names, Request, Server, config_map
from bench.figures import as_installed, machine

HERE = Path(__file__).resolve().parent.parent
DRAWS = 2000
BURST = 20
API_ROUNDS = 40

Pair = tuple[float, float]
Table = dict[str, list[Pair]]
"""Figure → (ours, theirs) of each turn."""


def bench_of(checkout: Path) -> Path:
    """Return the checkout whose `bench` drives this one's `lastcall`: its own where that can serve."""
    child = checkout / "bench" / "cluster_child.py"
    return checkout if child.exists() and '"serve"' in child.read_text() else HERE


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment to run the `lastcall` of a checkout under the `bench` that fits it."""
    path = os.pathsep.join((str(checkout / "src"), str(bench_of(checkout))))
    return {**os.environ, "PYTHONPATH": path, "SPAWNED_NS": str(time.monotonic_ns())}


class Standing:
    """`bench.cluster_child serve`: a cluster that does what each line asks."""

    def __init__(self, checkout: Path, stack: ExitStack) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.cluster_child", "serve"], env=environment(checkout), cwd=bench_of(checkout),
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        stack.callback(self._end)
        self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, line: str) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        result: dict[str, float] = self._answer()
        return result

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)


def started(checkout: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", "bench.cluster_child", "start"], env=environment(checkout),
                          cwd=bench_of(checkout),
                          stdout=subprocess.PIPE, check=True, timeout=120)  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout)
    return {
        "command → node Ready, ms": result["nodeReady"],
        "command → first Pod Running, ms": result["firstPodRunning"],
        "CPU of a start with one Pod, ms": sum(result["cpu"].values()),
        **{f"CPU of a start with one Pod, {role}, ms": used for role, used in result["cpu"].items()},
        "PSS with one Pod, MB": sum(result["memory"].values()),
        **{f"PSS with one Pod, {role}, MB": size for role, size in result["memory"].items()},
    }


def take_turns(
    table: Table, turns: int, ours: Callable[[], dict[str, float]], theirs: Callable[[], dict[str, float]]
) -> None:
    """Add pairs; the one that begins changes with each turn."""
    for turn in range(turns):
        first, second = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
        one, other = first(), second()
        mine, its = (one, other) if turn % 2 == 0 else (other, one)
        for name, value in mine.items():
            table.setdefault(name, []).append((value, its[name]))


def clusters(table: Table, other: Path, rounds: int, pods: int, bursts: int) -> None:
    """Add a pair for each round: the medians of a new cluster of each."""
    for turn in range(rounds):
        found: Table = {}
        with ExitStack() as stack:
            if turn % 2 == 0:
                ours, theirs = Standing(HERE, stack), Standing(other, stack)
            else:
                theirs, ours = Standing(other, stack), Standing(HERE, stack)
            take_turns(found, pods, partial(ours.ask, "pod"), partial(theirs.ask, "pod"))
            take_turns(found, bursts, partial(ours.ask, f"burst {BURST}"), partial(theirs.ask, f"burst {BURST}"))
        for name, pairs in found.items():
            table.setdefault(name, []).append(medians(pairs))


def medians(pairs: Sequence[Pair]) -> Pair:
    """Return the median of ours and that of theirs."""
    return statistics.median(ours for ours, _ in pairs), statistics.median(theirs for _, theirs in pairs)


def api(table: Table, other: Path) -> None:
    """Measure milliseconds a request."""
    with ExitStack() as stack:
        servers = []
        for checkout in (HERE, other):
            kept = dict(os.environ)
            os.environ.update(environment(checkout))
            with chdir(bench_of(checkout)):  # where `-m bench…` is looked for first
                servers.append(Server("sqlite", stack))
            os.environ.clear()
            os.environ.update(kept)
        names = Names()
        for server in servers:
            server.ask("pods 1000")

        def load(server: Server, bodies: list[list[Request]], expect: int) -> float:
            result = server.load(bodies, (expect,))
            return 1000 * float(result["seconds"]) / len(result["latencies"])

        def once(server: Server) -> dict[str, float]:
            get = ("GET", f"{NAMESPACE}/pods/pod-00000", "")
            found = {}
            for connections, count in ((1, 500), (16, 100)):
                of = f"{connections} connection{'s' * (connections > 1)}, ms a request"
                found[f"API: GET of a Pod, {of}"] = load(server, [[get] * count] * connections, 200)
                found[f"API: create of a ConfigMap, {of}"] = load(
                    server,
                    [
                        [("POST", f"{NAMESPACE}/configmaps", config_map(name)) for name in names.take(count // 2)]
                        for _ in range(connections)
                    ],
                    201,
                )
            found["API: LIST of 1 000 Pods, ms"] = load(server, [[("GET", f"{NAMESPACE}/pods", "")] * 10], 200)
            return found

        take_turns(table, API_ROUNDS, lambda: once(servers[0]), lambda: once(servers[1]))


def interval(pairs: Sequence[Pair]) -> tuple[float, float, float]:
    """Return (median of the ratios, 2.5 %, 97.5 % of it when pairs are drawn anew)."""
    ratios = [ours / theirs for ours, theirs in pairs]
    draw = random.Random(1)
    drawn = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    return statistics.median(ratios), drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS)]


def rows(table: Table, this: str = "this", other: str = "other") -> Iterator[str]:
    """Yield the table as lines of Markdown."""
    yield f"| figure | n | {this} | {other} | ratio | 95 % |"
    yield "|---|---|---|---|---|---|"
    for name, turns in table.items():
        if not (pairs := [pair for pair in turns if all(pair)]):  # CPU that is too little to be seen
            continue
        middle, low, high = interval(pairs)
        ours, theirs = medians(pairs)
        yield f"| {name} | {len(pairs)} | {ours:.4g} | {theirs:.4g} | {middle:.3f} | {low:.3f}-{high:.3f} |"


def show(table: Table) -> None:
    print(*rows(table), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20, help="of new clusters")
    parser.add_argument("--pods", type=int, default=12, help="in each round")
    parser.add_argument("--bursts", type=int, default=2, help=f"of {BURST} Pods, in each round")
    parser.add_argument("--only", choices=("starts", "clusters", "api"))
    arguments = parser.parse_args()
    other = arguments.other.resolve()
    print(f"{machine()}; in turns, load {os.getloadavg()[0]:.1f}", flush=True)
    for checkout in (HERE, other):
        as_installed(checkout)
    table: Table = {}
    if arguments.only in (None, "starts"):
        take_turns(table, arguments.starts, lambda: started(HERE), lambda: started(other))
    if arguments.only in (None, "clusters"):
        clusters(table, other, arguments.rounds, arguments.pods, arguments.bursts)
    if arguments.only in (None, "api"):
        api(table, other)
    show(table)


if __name__ == "__main__":
    main()
