"""`python -m bench [--starts N] [--pods N]`: the figures of README and RESULTS.md, as a Markdown table.

`python -m bench list` names the other measurements, `python -m bench NAME …` runs one of them.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.figures import HEADER, as_installed, machine, row


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
    as_installed(Path(__file__).resolve().parent.parent)
    starts = [child("start") for _ in range(arguments.starts)]
    print(row("command → node Ready", [each["nodeReady"] for each in starts], "ms"))
    print(row("command → first Pod Running", [each["firstPodRunning"] for each in starts], "ms", "700 ms"))
    print(row("memory of the tree, one Pod (PSS)", [sum(each["memory"].values()) for each in starts], "MB", "110 MB"))
    pods = child("pods", str(arguments.pods))
    print(row("Pod create → Running", pods["createToRunning"], "ms", "30 / p95 60 ms"))
    print(row("DELETE → gone", pods["deleteToGone"], "ms", "10 / p99 25 ms"))
    memory = ", ".join(f"{role} {size:.0f}" for role, size in pods["memory"].items())
    print(f"\nPSS after {arguments.pods} Pods, MB: {memory}")


OTHERS = {
    "ends": "how fast Pods end, one by one and 200 at once, step by step, with the CPU of each (1 min)",
    "api": "the API server over TLS: requests per second, LIST, watchers (8 min; --quick: 1 min)",
    "store": "the SQLite store by itself, and its restart with 10 000 Pods (30 s)",
    "engines": "the store on memory, SQLite and etcd; two API servers on one etcd, in turns (2 min; --rounds 5)",
    "containerd": "Pods on one containerd, by lastcall and by the real kubelet 1.36.2, in turns (10 min; --rounds 15)",
    "beside": "starts, Pods and requests beside a real Kubernetes 1.36.2, in turns (30 min; --rounds 15 --starts 15)",
    "floor": "a GET of the API server beside aiohttp alone (1 min; --rounds 15)",
    "admission": "a cluster with one webhook and ten policies beside one without (2 min; --pods 40 --rounds 10)",
    "virtual-cluster": "100 000 Pods on 1 000 nodes in virtual time (5 min)",
    "lint": "`lastcall lint`, and what its pass adds to `run` and `rollout` (30 s; --runs 20)",
    "healthy": "that no role is started again on a machine that is far too busy (--minutes 30 --burners 15)",
    "page": "the live page: cost, frames, replayed (frames by script and layout), steps or history (5 to 15 min)",
    "pytest-app": "the tests of examples/pytest-app with four workers; --real KUBECONFIG beside it (2 min; --rounds 3)",
    "load": "how true the load generator is to its rate, beside wrk (4 min; --seconds 5 --rounds 3)",
    "services": "an endpoint change at 10, 1 000 and 5 000 Services; new connections by ClusterIP and direct (20 s)",
    "soak": "what a cluster keeps of 20 000 Pods that are gone: memory, descriptors, files (1 h or more)",
    "trace": "what `lastcall trace` costs while Pods end: CPU, memory, requests (5 min; --pods 5000)",
    "memory": "what clients make the control plane hold: MB during attacks and a minute later (10 min; --only NAME)",
    "turns": "all of the first line, 20 Pods at once and the API, in turns with another checkout (30 min; PATH)",
    "prompt": "from Enter to first line and prompt of `lastcall run` (3 min; --turns 15; PATH: in turns with it)",
    "time-to-k8s": "from Enter to a name resolved in a Deployment's Pod, phase by phase (2 min; --turns 15)",
    "counts": "requests, processes, mounts, wake-ups of a Pod's life: exact (1 min; --pods 20)",
    "service-nodes": "EndpointSlice written → the rules of the last of 3 nodes (1 min; N: how many times, 20)",
    "diagnosis": "how well causes are named: applications that are broken on purpose (1 h; --kernel 120 --virtual 500)",
    "rollouts": "`lastcall rollout` on the examples, again and again (hours; --runs 1 --seconds 5 --only polite: 30 s)",
}
"""Name → what it measures, and about how long it takes; each is a module of this package."""


def show() -> None:
    """Print all measurements, a line each."""
    wide = max(map(len, OTHERS))
    print(f"{'':{wide}}  the figures of README: starts, Pods, memory (1 min; --starts 10 --pods 200)")
    for name, what in OTHERS.items():
        print(f"{name:{wide}}  {what}")


if __name__ == "__main__":
    name = sys.argv[1] if sys.argv[1:] else ""
    if name in OTHERS:
        os.execv(sys.executable, [sys.executable, "-m", f"bench.{name.replace('-', '_')}", *sys.argv[2:]])
    elif name == "list":
        show()
    elif name and not name.startswith("-"):
        sys.exit(f"bench: there is no {name!r}: {', '.join(OTHERS)} (`python -m bench list`)")
    else:
        main()
