"""`python -m bench kubelets [--real KUBECONFIG] [--pods 20] [--rounds 5]`: Pods on containerd, beside a real kubelet's.

lastcall's cluster on Debian's containerd (`up --container-runtime-endpoint`), lastcall's own runtime, and with --real a
whole Kubernetes that runs already, on a containerd of its own of the same version. One client makes a Pod and waits for
Running, deletes it and waits until it is gone, one after another, all by one watch; each round asks every cluster, so
that what else runs on the machine disturbs them alike. The Pod's program ends at once on SIGTERM. containerd must have
the image `busybox:1.36`.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from engines.containerd import Containerd, missing_containerd

from bench.figures import HEADER, machine, row
from lastcall.api.resources import PODS
from lastcall.client.kubeconfig import client_for, load_kubeconfig

ENDS_AT_ONCE = "trap 'exit 0' TERM; while :; do sleep 0.01; done"
WAIT_SECONDS = 60.0
STEPS = ("create → Running", "DELETE → gone")
Times = dict[str, list[float]]
"""By step."""


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", ENDS_AT_ONCE]}
    spec = {"containers": [container], "automountServiceAccountToken": False, "enableServiceLinks": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def measure(kubeconfig: str, pods: int, label: str) -> Times:
    """Milliseconds, as the client sees them."""
    client = client_for(load_kubeconfig(kubeconfig), user_agent="lastcall-bench/1")
    found: Times = {step: [] for step in STEPS}
    try:
        there = await client.list(PODS, "default")
        async with (
            asyncio.timeout(WAIT_SECONDS * pods),
            client.watch(PODS, "default", resource_version=there.resource_version) as events,
        ):
            for number in range(pods):
                name = f"{label}-{number}"
                began = time.perf_counter()
                await client.create(PODS, pod(name), "default")
                async for _, obj in events:
                    if obj["metadata"]["name"] == name and obj.get("status", {}).get("phase") == "Running":
                        break
                found[STEPS[0]].append((time.perf_counter() - began) * 1000)
                began = time.perf_counter()
                await client.delete(PODS, name, "default")
                async for type_, obj in events:
                    if obj["metadata"]["name"] == name and type_ == "DELETED":
                        break
                found[STEPS[1]].append((time.perf_counter() - began) * 1000)
    finally:
        await client.close()
    return found


def measured(inside: Sequence[str], kubeconfig: str, pods: int, label: str) -> Times:
    """In a process of its own, in the network where the cluster is."""
    done = subprocess.run(
        [*inside, sys.executable, "-m", "bench.kubelets", "--of", kubeconfig, "--pods", str(pods), "--label", label],
        stdout=subprocess.PIPE, check=True, timeout=WAIT_SECONDS * pods + 60,
    )  # fmt: skip
    times: Times = json.loads(done.stdout)
    return times


def started(containerd: Containerd, name: str, *options: str) -> str:
    """The kubeconfig of a cluster in containerd's network."""
    done = containerd.lastcall("up", name, "--detach", "-o", "json", "--timeout", "200", *options)
    if done.returncode:
        sys.exit(done.stderr)
    kubeconfig: str = json.loads(done.stdout)["kubeconfig"]
    return kubeconfig


def compare(containerd: Containerd, real: str, pods: int, rounds: int) -> None:
    names = [f"bench-{os.getpid()}-{what}" for what in ("containerd", "own")]
    options = (("--container-runtime-endpoint", containerd.endpoint), ())
    try:
        clusters: dict[str, tuple[Sequence[str], str]] = {
            title: (containerd.inside, started(containerd, name, *more))
            for title, name, more in zip(("lastcall on containerd", "lastcall"), names, options, strict=True)
        }
        if real:
            clusters["Kubernetes on containerd"] = ((), real)
        found: dict[tuple[str, str], list[float]] = {}
        for number in range(-1, rounds):
            for title, (inside, kubeconfig) in clusters.items():
                times = measured(inside, kubeconfig, pods if number >= 0 else 2, f"r{number + 1}")
                if number >= 0:  # what comes before warms caches
                    for step, values in times.items():
                        found.setdefault((step, title), []).extend(values)
    finally:
        for name in names:
            containerd.lastcall("down", name)
    print(f"{machine()}, {containerd_version()}\n\n{HEADER}")
    for (step, title), values in found.items():
        print(row(f"{title}: {step}", values, "ms"))
    for step in STEPS if real else ():
        ours, theirs = (statistics.median(found[step, each]) for each in [list(clusters)[place] for place in (0, -1)])
        print(f"\n{step}, both on containerd: lastcall needs {ours / theirs:.2f} of what Kubernetes needs")


def containerd_version() -> str:
    done = subprocess.run(["containerd", "--version"], capture_output=True, text=True, check=True, timeout=30)
    return f"containerd {done.stdout.split()[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", metavar="KUBECONFIG", default="", help="the kubeconfig of a cluster to compare with")
    parser.add_argument("--pods", type=int, default=20, help="of each cluster in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--of", default="", help=argparse.SUPPRESS)
    parser.add_argument("--label", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.of:
        print(json.dumps(asyncio.run(measure(arguments.of, arguments.pods, arguments.label))))
        return
    if why := missing_containerd():
        sys.exit(why)
    with Containerd() as containerd:
        compare(containerd, arguments.real, arguments.pods, arguments.rounds)


if __name__ == "__main__":
    main()
