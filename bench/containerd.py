"""`python -m bench containerd [--rounds 15] [--at-once 20]`: lastcall and the real kubelet on one containerd, in turns.

Needs root and the real cluster of `$KUBERNETES_CLUSTER` (the script `cluster`). It starts that with its kubelet, and
`lastcall up --container-runtime-endpoint` beside it on the same containerd. A kubelet ends Pods that it does not know,
so it is stopped (SIGSTOP) while it is lastcall's turn, which leaves nothing behind. Each turn is one Pod, then
`--at-once` Pods: create → Running and DELETE → gone, as one watch of each API server shows them. Both have their own
API server and scheduler. The image is one whose program ends on SIGTERM at once. The table is printed, and written to
docs/engines.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from bench.figures import as_installed
from bench.real_cluster import API, CLUSTER, HERE, HOME, SECONDS, measured_now, page, said, turn
from bench.turns import Table, rows, take_turns

NETNS, NAME = "peer", "bench-containerd"
PAGE = HERE / "docs" / "engines.md"


def kubelet_pid() -> int:
    """Find the kubelet of the real cluster: no other one has its configuration."""
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"kubelet") and f"--config={HOME}/run/kubelet.yaml".encode() in words:
                return int(each.name)
    raise SystemExit("the real cluster has no kubelet")


def lastcall(*arguments: str) -> str:
    inside = ["nsenter", f"--net=/run/netns/{NETNS}", sys.executable, "-m", "lastcall.cli.main"]
    done = subprocess.run([*inside, *arguments], text=True, stdout=subprocess.PIPE, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"lastcall {arguments[0]} failed")
    return done.stdout


def run_rounds(rounds: int, at_once: int, endpoint: str) -> Table:
    """Measure in the network namespace of containerd, where both API servers are."""
    kubelet = kubelet_pid()
    table: Table = {}
    with ExitStack() as stack:
        real = API(str(HOME / "admin.kubeconfig"))
        stack.callback(os.kill, kubelet, signal.SIGCONT)
        os.kill(kubelet, signal.SIGSTOP)
        up = lastcall("up", NAME, "--detach", "-o", "json", "--container-runtime-endpoint", endpoint)
        stack.callback(lastcall, "down", NAME)
        ours = API(json.loads(up)["kubeconfig"])
        os.kill(kubelet, signal.SIGCONT)
        number = iter(range(10_000))

        def of_ours() -> dict[str, float]:
            os.kill(kubelet, signal.SIGSTOP)
            try:
                return turn(ours, number, at_once)
            finally:
                time.sleep(1)  # what containerd still does for lastcall is not the kubelet's
                os.kill(kubelet, signal.SIGCONT)

        def of_kubelet() -> dict[str, float]:
            time.sleep(1)  # it has looked at what it missed
            return turn(real, number, at_once)

        take_turns({}, 1, of_ours, of_kubelet)  # not counted
        take_turns(table, rounds, of_ours, of_kubelet)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        table = run_rounds(options.rounds, options.at_once, f"unix://{HOME}/run/containerd.sock")
        print(*rows(table, "lastcall", "kubelet"), sep="\n")
        return
    version = said("containerd", "--version").split()[2].partition("~")[0]
    about = (
        f"In turns with the kubelet 1.36.2 on the same containerd {version} "
        f"(`python -m bench containerd --at-once {options.at_once}`): {measured_now()}."
    )
    print(about, flush=True)
    as_installed(HERE)
    # lastcall's kubelet listens on another address of the same namespace
    environment = {**os.environ, "KUBELET_ARGS": "--address=10.123.0.2", "V": "0"}
    subprocess.run([CLUSTER, "start"], check=True, env=environment)
    try:
        again = [sys.executable, "-m", "bench.containerd", "--inside", "--rounds", str(options.rounds)]
        figures = said("nsenter", f"--net=/run/netns/{NETNS}", *again, "--at-once", str(options.at_once))
    finally:
        subprocess.run([CLUSTER, "stop"], check=False)
    print(figures)
    PAGE.write_text(page(PAGE.read_text(), "containerd", f"{about}\n\n{figures}"))


if __name__ == "__main__":
    main()
