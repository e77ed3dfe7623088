"""A node that leaves one cluster and joins another, with the same state: nothing of the first is told in the second."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from engines.lan import Lan, Machine, missing_lan
from kubectls import KUBECTL, needs_kubectl
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl, pytest.mark.skipif(bool(missing_lan()), reason=missing_lan())]

LASTCALL = str(Path(sys.executable).parent / "lastcall")
CONTAINER = {"name": "app", "image": "busybox:1.36", "command": ["sleep", "3600"]}
STATIC = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "static"},
    "spec": {"terminationGracePeriodSeconds": 1, "containers": [CONTAINER]},
}
POD = {**STATIC, "metadata": {"name": "first"}, "spec": {**STATIC["spec"], "nodeName": "moves"}}

STATUS = ("get", "pod", "static-moves", "-o", "jsonpath={.status.containerStatuses[0]}")


def kubectl(machine: Machine, kubeconfig: str, *arguments: str, stdin: str = "") -> str:
    assert KUBECTL is not None
    return subprocess.run(
        [*machine.inside, KUBECTL, "--kubeconfig", kubeconfig, *arguments],
        input=stdin, capture_output=True, text=True, timeout=120, check=False,
    ).stdout  # fmt: skip


def test_a_static_pod_is_new_in_the_next_cluster_and_pods_of_the_first_are_not_told(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "pod.json").write_text(json.dumps(STATIC))
    names, node = [f"moves-{each}-{os.getpid()}" for each in ("a", "b")], f"moves-n-{os.getpid()}"
    with Lan("moves", 3) as lan:
        machine = lan.machines[2]
        try:
            for server, name in zip(lan.machines, names, strict=False):
                up = server.run(LASTCALL, "up", name, "-d", "--join-token", "--listen", server.address, timeout=200)
                join = re.search(r"lastcall (node join .+)", up.stdout)
                config = re.search(r"export KUBECONFIG=(\S+)", up.stdout)
                assert join is not None and config is not None, up.stdout
                joined = machine.run(
                    LASTCALL, *join[1].split(), "--node-name", "moves", "--name", node, "-d",
                    "--static-pods", str(tmp_path / "static"), "--state", str(tmp_path / "state"), timeout=200,
                )  # fmt: skip
                if name == names[0]:
                    kubectl(server, config[1], "apply", "-f", "-", stdin=json.dumps(POD))
                    kubectl(server, config[1], "wait", "--for=condition=Ready", "pod/first", "--timeout=60s")
                else:
                    assert "what it knew of that cluster's containers is forgotten" in joined.stderr
                eventually(lambda s=server, c=config[1]: '"ready":true' in kubectl(s, c, *STATUS), "it is Ready", 60)
                status = json.loads(kubectl(server, config[1], *STATUS))
                assert (status["restartCount"], status["lastState"]) == (0, {})
                if name == names[0]:
                    machine.run(LASTCALL, "down", node)
            told = machine.run(LASTCALL, "story", "first", "--cluster", node, check=False)
            assert "knows no Pod first in namespace default" in told.stderr
        finally:
            machine.run(LASTCALL, "down", node, check=False)
            for server, name in zip(lan.machines, names, strict=False):
                server.run(LASTCALL, "down", name, check=False)
        eventually(lambda: machine.left() == [], "nothing is left", 20, said=machine.left)
