"""A healthy cluster on a machine that is far too busy: no role may be started again.

    python -m bench.healthy --minutes 30 --burners 15

Starts a cluster of its own (`lastcall up`, in a temporary home), keeps `--burners` processes busy beside it, and makes
and deletes a Pod over and over. Every minute it prints how often each role was started again, and in the end the same
as JSON. Exit status 1 if that was ever, or if nothing was done meanwhile.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

LASTCALL = [sys.executable, "-m", "lastcall.cli.main"]
LIVES = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "app", "image": "busybox:1.36", "command": ["sh", "-c", LIVES]}],
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--burners", type=int, default=15)
    parser.add_argument("--nice", type=int, default=0, help="of the burners")
    options = parser.parse_args()
    home = tempfile.mkdtemp(prefix="lastcall-healthy-")
    environment = {**os.environ, "XDG_STATE_HOME": f"{home}/state", "XDG_DATA_HOME": f"{home}/data"}
    burners: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str, given: str | None = None, check: bool = True) -> str:
        done = subprocess.run(arguments, env=environment, input=given, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    def processes() -> list[dict[str, Any]]:
        (cluster,) = json.loads(run(*LASTCALL, "status", "healthy", "-o", "json"))["clusters"]
        return cluster["processes"]

    try:
        facts = json.loads(run(*LASTCALL, "up", "--detach", "--name", "healthy", "--timeout", "300", "-o", "json"))
        kubectl = ("kubectl", "--kubeconfig", facts["kubeconfig"], "--cache-dir", f"{home}/kubectl")
        burn = ["nice", "-n", str(options.nice), "sh", "-c", "while :; do :; done"]
        burners += [subprocess.Popen(burn) for _ in range(options.burners)]
        until = time.monotonic() + options.minutes * 60
        last, pods = time.monotonic(), 0
        load: list[float] = []
        while time.monotonic() < until:
            run(*kubectl, "create", "-f", "-", given=json.dumps(POD))
            run(*kubectl, "wait", "--for=condition=Ready", "pod/p", "--timeout=120s", check=False)
            run(*kubectl, "delete", "pod/p", "--wait", "--timeout=120s")
            pods += 1
            load.append(os.getloadavg()[0])
            if time.monotonic() - last > 60:
                last = time.monotonic()
                restarts = {each["role"]: each["restarts"] for each in processes()}
                print(
                    f"{(until - last) / 60:5.1f} minutes left, load {load[-1]:.1f}, {pods} Pods, restarts {restarts}",
                    flush=True,
                )
        found = processes()
        restarted = [each for each in found if each["restarts"]]
        print(json.dumps({"pods": pods, "load": [min(load), sum(load) / len(load), max(load)], "processes": found}))
        return 1 if restarted or not pods else 0
    finally:
        for each in burners:
            each.kill()
            each.wait()
        run(*LASTCALL, "down", "healthy", "--timeout", "120", check=False)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
