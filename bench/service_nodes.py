"""`python -m bench.service_nodes [TIMES]`: from the write of an EndpointSlice to the rules of the last of three nodes.

A cluster of three nodes, a Deployment behind a Service; a Pod is deleted again and again. The times are those of the
cluster's own records, which all processes of a machine stamp with one clock.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.figures import HEADER, machine, row

NODES = 3
MANIFEST = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "app", "image": "busybox:1.36", "command": ["sleep", "1d"]}],
            },
        },
    },
}


def main(times: int) -> None:
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as home:
        environment = {**os.environ, "XDG_STATE_HOME": f"{home}/state", "XDG_DATA_HOME": f"{home}/data"}

        def run(*command: str, stdin: str = "") -> str:
            done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, check=False)
            return done.stdout

        lastcall = (sys.executable, "-m", "lastcall.cli.main")
        up: Any = json.loads(run(*lastcall, "up", "--detach", "--nodes", str(NODES), "-o", "json"))
        kubectl = ("kubectl", "--kubeconfig", up["kubeconfig"])
        try:
            run(*kubectl, "apply", "-f", "-", stdin=json.dumps(MANIFEST))
            run(*kubectl, "expose", "deployment", "web", "--port", "80", "--target-port", "8080")
            run(*kubectl, "rollout", "status", "deployment/web")
            time.sleep(2)
            seen, last = [], []
            for _ in range(times):
                pod = run(*kubectl, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
                run(*kubectl, "delete", "pod", pod)
                records = json.loads(run(*lastcall, "story", pod, "-o", "json"))["pods"][0]["records"]
                written = next(r["at"] for r in records if r["kind"] == "EndpointChanged" and r["facts"]["terminating"])
                watched = [r["at"] for r in records if r["kind"] == "EndpointChangeSeen" and r["at"] >= written]
                rules = [r["at"] for r in records if r["kind"] == "EndpointRulesWritten" and _stops(r["facts"])]
                if len(rules) == NODES:
                    seen.append((watched[0] - written) * 1e3)
                    last.append((max(rules) - written) * 1e3)
                run(*kubectl, "rollout", "status", "deployment/web")
                time.sleep(0.5)
        finally:
            run(*lastcall, "down")
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}\n\n{HEADER}")
    print(row("EndpointSlice written → the first proxy has seen it", seen, "ms"))
    print(row(f"EndpointSlice written → rules of the last of {NODES} nodes", last, "ms"))


def _stops(facts: dict[str, Any]) -> bool:
    return bool(facts["received"]) and not facts["receives"]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
