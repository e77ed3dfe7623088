"""`python -m bench virtual-cluster`: a cluster of 1 000 nodes and 100 000 Pods in virtual time, on one core.

API server, store, controllers and scheduler are the real ones, all in one process. Deployments make the Pods; then all
of them get a new template; then all are deleted. Nodes are stages: each starts a Pod by one status and ends it by a
kubelet's last status and a DELETE with grace 0, or, as KWOK's own stages do, by that DELETE alone. Each figure is of a
fresh interpreter that may run on one core only; small and large clusters take turns, so that what disturbs the machine
disturbs both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from typing import Any

from bench.figures import machine

PHASES = ("create", "roll", "delete")
HEADER = (
    "| cluster | n | start, s | create, s | roll, s | delete, s | wall, s | ms a Pod's life | lives/s | peak, MiB |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def child(nodes: int, pods: int, replicas: int, nodes_are: str) -> dict[str, Any]:
    """Run once in a fresh interpreter; see bench.virtual_cluster_child."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.virtual_cluster_child", "--nodes", str(nodes), "--pods", str(pods),
         "--replicas", str(replicas), "--nodes-are", nodes_are],
        stdout=subprocess.PIPE, check=True, timeout=3600,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def per_pod(run: dict[str, Any], pods: int) -> float:
    """Return the CPU milliseconds of create, roll and delete for each of the 2 * `pods` lives of Pods."""
    return 1e3 * sum(run["phases"][phase]["cpu"] for phase in PHASES) / (2 * pods)


def median_cost(runs: list[dict[str, Any]], pods: int) -> float:
    return statistics.median(per_pod(run, pods) for run in runs)


def row(name: str, nodes: int, pods: int, runs: list[dict[str, Any]]) -> str:
    def shown(values: list[float], digits: int = 1) -> str:
        spread = f" ({min(values):.{digits}f}-{max(values):.{digits}f})" if len(values) > 1 else ""
        return f"{statistics.median(values):.{digits}f}{spread}"

    cells = [f"{name}, {nodes} nodes, {pods} Pods", str(len(runs))]
    cells += [shown([run["phases"][phase]["cpu"] for run in runs]) for phase in ("start", *PHASES)]
    cells += [shown([run["wall"] for run in runs]), shown([per_pod(run, pods) for run in runs], 2)]
    cells += [f"{1e3 / median_cost(runs, pods):.0f}", f"{max(run['peak'] for run in runs):.0f}"]
    return "| " + " | ".join(cells) + " |"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench virtual-cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--replicas", type=int, default=100, help="Pods of each Deployment (default: 100)")
    parser.add_argument("--scale", type=int, default=100, help="the small cluster has a SCALEth of nodes and Pods")
    parser.add_argument("--rounds", type=int, default=1, help="how often the large cluster runs")
    parser.add_argument("--small", type=int, default=3, help="runs of the small one before and after each large one")
    parser.add_argument("--nodes-are", choices=("stages", "kwok"), default="stages", help="kwok: without a last status")
    parser.add_argument("--kubelets", type=int, default=1000, help="Pods of the runs with real kubelets (0: none)")
    given = parser.parse_args(arguments)
    nodes, pods = max(1, given.nodes // given.scale), max(given.replicas, given.pods // given.scale)
    small: list[dict[str, Any]] = []
    large: list[dict[str, Any]] = []
    for _ in range(given.rounds):
        small += [child(nodes, pods, given.replicas, given.nodes_are) for _ in range(given.small)]
        large.append(child(given.nodes, given.pods, given.replicas, given.nodes_are))
    small += [child(nodes, pods, given.replicas, given.nodes_are) for _ in range(given.small)]
    print(f"{machine()}, one core; load average {os.getloadavg()[1]:.1f}")
    print()
    print(HEADER)
    print(row(given.nodes_are, nodes, pods, small))
    print(row(given.nodes_are, given.nodes, given.pods, large))
    if given.kubelets:
        kubelets = [child(nodes, given.kubelets, given.replicas, "kubelets") for _ in range(given.small)]
        print(row("kubelets", nodes, given.kubelets, kubelets))
    ratio = median_cost(large, given.pods) / median_cost(small, pods)
    print(f"\nPhases in CPU seconds. A Pod's life costs {ratio:.2f} times as much at {given.pods} Pods.")


if __name__ == "__main__":
    main(sys.argv[1:])
