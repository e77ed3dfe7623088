"""`python -m bench [--starts N] [--pods N]`: the figures of README and RESULTS.md, as a Markdown table.

`python -m bench virtual-cluster`: see bench/virtual_cluster.py; `python -m bench rollouts`: bench/rollouts.py.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

from bench.figures import HEADER, machine, row


def child(*arguments: str) -> dict[str, Any]:
    """Run bench.cluster_child in a fresh interpreter."""
    environment = {**os.environ, "SPAWNED_NS": str(time.monotonic_ns())}
    done = subprocess.run(
        [sys.executable, "-m", "bench.cluster_child", *arguments],
        env=environment, stdout=subprocess.PIPE, check=True, timeout=600,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--pods", type=int, default=200)
    arguments = parser.parse_args()
    print(machine())
    print()
    print(HEADER)
    starts = [child("start") for _ in range(arguments.starts)]
    print(row("command → node Ready", [each["nodeReady"] for each in starts], "ms"))
    print(row("command → first Pod Running", [each["firstPodRunning"] for each in starts], "ms", "700 ms"))
    print(row("memory of the tree, one Pod (PSS)", [sum(each["memory"].values()) for each in starts], "MB", "110 MB"))
    pods = child("pods", str(arguments.pods))
    print(row("Pod create → Running", pods["createToRunning"], "ms", "30 / p95 60 ms"))
    print(row("DELETE → gone", pods["deleteToGone"], "ms", "10 / p99 25 ms"))
    memory = ", ".join(f"{role} {size:.0f}" for role, size in pods["memory"].items())
    print(f"\nPSS after {arguments.pods} Pods, MB: {memory}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["virtual-cluster"]:
        from bench import virtual_cluster

        virtual_cluster.main(sys.argv[2:])
    elif sys.argv[1:2] == ["rollouts"]:
        from bench import rollouts

        rollouts.main(sys.argv[2:])
    else:
        main()
