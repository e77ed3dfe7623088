"""`python -m bench time-to-k8s [--turns 15]`: the phases of tstromberg/time-to-k8s, for `lastcall up`.

From Enter, one after the other: the command is back, the API server answers, Service kubernetes is there, a Deployment
is created, its Pod runs, and a name is resolved inside of it. Each phase is asked by kubectl (`$KUBECTL`, else that of
`$KUBERNETES_HOME`, else that of PATH), again at once until it succeeds. The phase that waits for Service kube-dns is
left out: lastcall's nodes answer DNS themselves. Figures that others have published with that program were taken on
other machines; only the order of magnitude can be compared.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence

from bench.figures import HEADER, as_installed, machine, row
from bench.real_cluster import HERE, HOME, Lastcall

NAME = "bench-time"
SECONDS = 120.0
IMAGE = "busybox:1.36"
PHASES: tuple[tuple[str, Sequence[str]], ...] = (
    ("API server answers", ("get", "--raw", "/readyz")),
    ("Service kubernetes", ("get", "service", "kubernetes")),
    ("create a Deployment", ("create", "deployment", "app", f"--image={IMAGE}", "--", "sleep", "600")),
    ("its Pod runs", ("wait", "deployment/app", "--for=condition=Available", "--timeout=60s")),
    ("DNS answers in it", ("exec", "deployment/app", "--", "nslookup", "kubernetes.default.svc.cluster.local")),
)


def kubectl() -> str:
    """Return the path of kubectl. Raises SystemExit."""
    own = HOME / "bin/kubectl"
    found = os.environ.get("KUBECTL") or (str(own) if own.exists() else shutil.which("kubectl"))
    if not found:
        raise SystemExit("there is no kubectl: set $KUBECTL")
    return found


def phases(own: Lastcall) -> dict[str, float]:
    """Start a cluster, go through the phases and end it. Return phase → milliseconds, and their sum."""
    began = last = time.monotonic()
    took: dict[str, float] = {}

    def over(phase: str) -> None:
        nonlocal last
        now = time.monotonic()
        took[phase] = 1000 * (now - last)
        last = now

    kubeconfig = own.up()
    try:
        over("command is back")
        for phase, arguments in PHASES:
            command = [kubectl(), "--kubeconfig", kubeconfig, *arguments]
            while (done := subprocess.run(command, env=own.environment, capture_output=True)).returncode:
                if time.monotonic() - last > SECONDS:
                    raise SystemExit(f"{phase}: {done.stderr.decode(errors='replace').strip()}")
            over(phase)
        took["all"] = 1000 * (last - began)
    finally:
        own.down()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    turns = parser.parse_args().turns
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}", flush=True)
    as_installed(HERE)
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as home:
        own = Lastcall(home, NAME)
        phases(own)  # not counted
        measured = [phases(own) for _ in range(turns)]
    print(HEADER)
    for phase in measured[0]:
        print(row(phase, [each[phase] for each in measured], "ms"))
    print(f"\nmedian of all phases: {statistics.median(each['all'] for each in measured) / 1000:.2f} s")


if __name__ == "__main__":
    main()
