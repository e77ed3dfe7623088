"""A Pod that uses up what it can get at: its neighbour goes on answering, and no role is started anew.

What is asserted is the outcome; how long the neighbour took is printed (`pytest -s`).
"""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from kept_run import API, create, has_cgroups, with_container
from kubectls import CURRENT, find_kubectl
from run_command import Lastcall
from waiting import PATIENCE

pytestmark = pytest.mark.real_kernel

LIMITED = {"limits": {"memory": "64Mi", "cpu": "1"}}
BOMBS = {
    "processes": "b() { b | b & }; b; sleep 100",
    "memory": "while true; do tail /dev/zero; done",
    "fds": 'for n in $(seq 40); do sh -c \'i=3; while [ $i -lt 900 ]; do eval "exec $i</dev/null"; i=$((i+1)); done;'
    " sleep 100' & done; wait",
    "layer": "while true; do dd if=/dev/zero of=/tmp/full bs=1M; done",
    "emptydir": "while true; do dd if=/dev/zero of=/empty/full bs=1M; done",
    "log": "yes lastcall-lastcall-lastcall-lastcall-lastcall-lastcall",
    "inotify": "for n in $(seq 200); do inotifyd true /tmp & done; wait",
}
SECONDS = 4.0
NEIGHBOUR = with_container(
    "neighbour", "mkdir -p /tmp/www; echo here > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www"
)
CLIENT = with_container("client", "sleep 10000")


def bomb(name: str) -> dict[str, Any]:
    manifest = with_container(f"bomb-{name}", BOMBS[name], resources=LIMITED)
    if name == "emptydir":
        manifest["spec"]["volumes"] = [{"name": "empty", "emptyDir": {}}]
        manifest["spec"]["containers"][0]["volumeMounts"] = [{"name": "empty", "mountPath": "/empty"}]
    manifest["spec"]["terminationGracePeriodSeconds"] = 0
    return manifest


@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_a_pod_that_uses_up_what_it_can_leaves_its_neighbour_answering(user: str, tmp_path: Path) -> None:
    kubectl = find_kubectl(CURRENT)
    bombs = dict(BOMBS)
    if user == "root":
        del bombs["inotify"]  # its instances are counted with those of every other program of root
    if not has_cgroups(user):
        del bombs["memory"]  # the machine's would be the limit
        del bombs["processes"]  # they are counted by user, and neighbours have the same (docs/fidelity.md)
    arguments = ["run", "-", "--keep", "--after", "0", "--state-size", "512m"]
    with Lastcall(arguments, manifests=[with_container("first", "sleep 100")], user=user) as command:
        roles = command.tree().roles
        api = API(command)
        kubeconfig = command.wait_for("--kubeconfig").text.split("--kubeconfig ")[1].split()[0]
        for manifest in (NEIGHBOUR, CLIENT):
            create(api, manifest)
        address = api.running("neighbour")["podIP"]
        api.running("client")
        fetch = ["sh", "-c", rf"printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 60 {address} 8080 | tail -n 1"]
        environment = {"KUBECONFIG": kubeconfig, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}

        def ask() -> float:
            """A command in one Pod that asks another over HTTP: its seconds."""
            begin = time.monotonic()
            done = subprocess.run(
                [kubectl, "exec", "client", "--", *fetch],
                env=environment,
                capture_output=True,
                text=True,
                timeout=120 * PATIENCE,
            )
            assert done.stdout == "here\n", done.stderr
            return time.monotonic() - begin

        print(f"\n{user}: quiet {min(ask() for _ in range(3)):.2f} s")
        for name in bombs:
            create(api, bomb(name))
            end, took = time.monotonic() + SECONDS, []
            while time.monotonic() < end:
                took.append(ask())
            state = api.get(f"/api/v1/namespaces/default/pods/bomb-{name}")["status"]
            print(
                f"{user}: {name} median {sorted(took)[len(took) // 2]:.2f} s, most {max(took):.2f} s; {state['phase']}"
            )
            delete = [kubectl, "delete", "pod", f"bomb-{name}", "--grace-period=0", "--force", "--timeout=60s"]
            subprocess.run(delete, env=environment, capture_output=True, timeout=90 * PATIENCE, check=True)
        for name in ("neighbour", "client"):
            status = api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]
            assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Running", 0)
        assert command.tree().roles == roles, "nobody was started anew"
        command.interrupt()
        command.finish(60)
