"""One run of `lastcall rollout` on an example, and the table of many: for `rollouts.py` and `rollouts_there.py`."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import percentile
from lastcall.traffic.bounds import upper_bound

EXAMPLES = Path(__file__).parent.parent / "examples/rollout"
CONTROL = 5
"""Seconds of requests before the disruption."""


@dataclass(frozen=True)
class Variant:
    """One row, or two where the advice is tried. `took` is about how long its disruption takes, in seconds; `share` of
    the runs that were asked for."""

    name: str
    manifest: str
    arguments: tuple[str, ...]
    took: float
    share: float = 1.0


LAG = ("--propagation", "1s")
VARIANTS = (
    Variant("polite, preStop.sleep 5", "polite", LAG, 8.5),
    Variant("naive, a connection each", "naive", (*LAG, "--load", "fresh=200", "--apply-advice"), 4.0),
    Variant("naive, a quarter on kept connections", "naive", (*LAG, "--apply-advice"), 4.0, 0.25),
    # What these teach needs fewer requests, as in examples/README.md.
    Variant("keep-alive holder", "keep-alive", (*LAG, "--load", "fresh=10,keep-alive=30"), 6.0, 0.15),
    Variant("slow requests", "slow", (*LAG, "--disrupt", "delete", "--load", "fresh=20,slow=20"), 6.0, 0.15),
    Variant("streams", "stream",
            (*LAG, "--disrupt", "delete", "--load", "fresh=20,stream=10", "--stream-path", "/events"), 6.0, 0.15),
    Variant("WebSocket, naive", "websocket", (*LAG, "--load", "fresh=20,websocket=4"), 6.0, 0.15),
    Variant("WebSocket, polite", "websocket-polite", (*LAG, "--load", "fresh=20,websocket=4"), 9.0, 0.15),
    Variant("HTTP/2, naive", "http2", (*LAG, "--load", "http2=40"), 6.0, 0.15),
    Variant("HTTP/2, polite", "http2-polite", (*LAG, "--load", "http2=40"), 9.0, 0.15),
    Variant("proxy sidecar, old style", "sidecar-old", (*LAG, "--disrupt", "delete", "--load", "fresh=40"), 6.0, 0.15),
    Variant("proxy sidecar, native", "sidecar-native", (*LAG, "--disrupt", "delete", "--load", "fresh=40"), 8.0, 0.15),
    Variant("StatefulSet", "stateful-set", (*LAG, "--load", "fresh=40"), 20.0, 0.15),
)  # fmt: skip


def run(variant: Variant, seconds: float) -> dict[str, Any]:
    """Run the command once: return its exit status, what it said on stderr and the document it wrote."""
    settle = max(1.0, seconds - variant.took)
    command = [
        *(sys.executable, "-m", "lastcall.cli.main", "rollout", str(EXAMPLES / f"{variant.manifest}.yaml")),
        *("-o", "json", "--timeout", "300s", "--control", f"{CONTROL}s", "--settle", f"{settle:g}s"),
        *variant.arguments,
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900 + 4 * seconds)
    took = time.monotonic() - began
    found = json.loads(done.stdout) if done.stdout.startswith("{") else {"experiments": []}
    return {
        "variant": variant.name,
        "status": done.returncode,
        "stderr": done.stderr,
        "took": round(took, 1),
        "load": round(os.getloadavg()[0], 1),
        "experiments": found["experiments"],
    }


def rows(variant: str, runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return one Markdown row for the runs as they were, one for those with the advice applied."""
    statuses = Counter(each["status"] for each in runs)
    first = [each["experiments"][0] for each in runs if each["experiments"]]
    second = [each["experiments"][1] for each in runs if len(each["experiments"]) > 1]
    found = [row(variant, first, statuses if not second else None, len(runs))]
    if second:
        found.append(row(f"{variant}, with the advice", second, statuses, len(second)))
    return found


def row(name: str, experiments: Sequence[dict[str, Any]], statuses: Counter[int] | None, runs: int) -> str:
    if not experiments:
        return f"| {name} | {runs} | no result | | | | | | | |"
    total, lost = (sum(each[key] for each in experiments) for key in ("total", "lost"))
    during = [sum(each["during"][key] for each in experiments) for key in ("total", "lost")]
    causes: Counter[str] = Counter()
    for each in experiments:
        causes.update(each["byCause"])
    verdicts = Counter(each["verdict"] for each in experiments)
    books = [sum(len(each[key]) for each in experiments) for key in BOOKS]
    control = [sum(each["control"][key] for each in experiments) for key in ("total", "lost")]
    cells = [
        name,
        str(runs),
        ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()),
        f"{lost} of {total}",
        f"{upper_bound(lost, total) * 100:.2g} %",
        f"{during[1]} of {during[0]} ({upper_bound(during[1], during[0]) * 100:.2g} %)",
        ", ".join(f"{count} {cause}" for cause, count in causes.most_common()),
        " / ".join(map(str, books)),
        f"{control[1]} of {control[0]}",
        f"{percentile([each['lateness']['p99'] * 1000 for each in experiments], 0.5):.1f} ms"
        f" ({max(each['lateness']['p99'] for each in experiments) * 1000:.0f})",
        "" if statuses is None else ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items())),
    ]
    return "| " + " | ".join(cells) + " |"


BOOKS = ("withoutOutcome", "unaccounted", "answeredUnseen")
HEADER = (
    "| example | runs | verdicts | lost | 95 % bound | of them during the update (bound) | why | "
    "no outcome / unknown to the generator / unseen by the application | control period | "
    "p99 of lateness, median (most) | exit status |\n|---|---|---|---|---|---|---|---|---|---|---|"
)
