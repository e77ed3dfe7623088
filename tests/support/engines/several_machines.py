"""One cluster of lastcall on three machines: `up --pod-network` on the first, `node join` on the others."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kubectls import KUBECTL
from waiting import eventually

from engines.lan import Lan, Machine

LASTCALL = str(Path(sys.executable).parent / "lastcall")
SERVES = (
    "trap 'echo bye; exit 0' TERM; echo hello; mkdir -p /www; hostname > /www/index.html; "
    "dd if=/dev/zero of=/www/big bs=1M count=3; httpd -p 8080 -h /www; while :; do sleep 0.1; done"
)
NODES = {"two": 1, "three": 2}
"""The nodes that join, and their machines."""


@dataclass
class Cluster:
    lan: Lan
    name: str
    home: Path
    kubeconfig: str
    join: str
    """The command that the first machine printed."""

    @property
    def first(self) -> Machine:
        return self.lan.machines[0]

    def machine(self, node: str) -> Machine:
        return self.lan.machines[NODES.get(node, 0)]

    def own_name(self, node: str) -> str:
        """What lastcall's commands know a node as, on its machine."""
        return f"{self.name}-{node}" if node in NODES else self.name

    def asked(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        assert KUBECTL is not None
        base = [
            *self.first.inside,
            KUBECTL,
            "--kubeconfig",
            self.kubeconfig,
            "--cache-dir",
            str(self.first.home or self.home),
        ]
        return subprocess.run(
            [*base, *arguments], input=stdin, capture_output=True, text=True, timeout=150, check=False
        )

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.asked(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def lastcall(self, node: str, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return self.machine(node).run(LASTCALL, *arguments, check=check, timeout=200)

    def join_node(self, node: str) -> None:
        """By the printed command, word for word."""
        words = self.join.split()
        assert words[:4] == ["sudo", "lastcall", "node", "join"]
        state = str((self.machine(node).home or self.home) / node)
        self.lastcall(
            node, *words[2:], "--node-name", node, "--name", self.own_name(node), "--detach", "--state", state
        )

    def ready(self, node: str) -> str:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return self.asked("get", "node", node, "-o", path).stdout

    def pods(self, app: str = "web") -> dict[str, list[tuple[str, str]]]:
        """Node → names and addresses of those that run and are not being deleted."""
        found: dict[str, list[tuple[str, str]]] = {}
        for each in json.loads(self("get", "pods", "-l", f"app={app}", "-o", "json"))["items"]:
            if each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]:
                pod = (each["metadata"]["name"], each["status"].get("podIP", ""))
                found.setdefault(each["spec"]["nodeName"], []).append(pod)
        return found

    def deploy(self, name: str, kind: str = "Deployment", replicas: int = 1) -> None:
        labels = {"app": name}
        container = {
            "name": "main", "image": "busybox:1.36", "command": ["sh", "-c", SERVES],
            "readinessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1},
        }  # fmt: skip
        tolerations = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
            for key in ("unreachable", "not-ready")
        ]
        pod = {"containers": [container], "terminationGracePeriodSeconds": 3}
        if kind == "Deployment":
            pod["tolerations"] = tolerations
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        made = {
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {**spec, **({"replicas": replicas} if kind == "Deployment" else {})},
        }  # fmt: skip
        self("apply", "-f", "-", stdin=json.dumps(made))
        self("rollout", "status", f"{kind.lower()}/{name}", "--timeout=120s")


@contextmanager
def running(lan: Lan, name: str, home: Path, mode: str) -> Iterator[Cluster]:
    """On all machines, with a Pod on each; at the end nothing is left."""
    found = _start(lan, name, home, mode)
    try:
        for node in NODES:
            found.join_node(node)
        _approve(found)
        _serve(found)
        yield found
    finally:
        _end(found)


def _start(lan: Lan, name: str, home: Path, mode: str) -> Cluster:
    """On the first machine, with the address of which others join."""
    first = lan.machines[0]
    options = ("--join-token", "--listen", first.address, "--pod-network", mode)
    started = first.run(LASTCALL, "up", name, "--detach", *options, timeout=200).stdout
    join = re.search(r"machines +(sudo lastcall node join .+)", started)
    assert join is not None, started
    kubeconfig = re.search(r"export KUBECONFIG=(\S+)", started)
    assert kubeconfig is not None
    return Cluster(lan, name, home, kubeconfig[1], join[1].strip())


def _serve(cluster: Cluster) -> None:
    """A Pod on each node, behind the Service `web`."""
    cluster.deploy("web", "DaemonSet")
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service}
    cluster("apply", "-f", "-", stdin=json.dumps(made))


def _end(cluster: Cluster) -> None:
    """Everywhere, and nothing is left."""
    for node in NODES:
        cluster.lastcall(node, "down", cluster.own_name(node), check=False)
    cluster.first.run(LASTCALL, "down", cluster.name)
    for machine in cluster.lan.machines:
        eventually(partial(_is_clean, machine), "nothing is left", said=machine.left)


def _is_clean(machine: Machine) -> bool:
    return machine.left() == []


def _approve(cluster: Cluster) -> None:
    """Serving certificates, and those of service proxies: by an administrator."""
    signers = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client")

    def waiting() -> list[str]:
        items = json.loads(cluster("get", "csr", "-o", "json"))["items"]
        return [each["metadata"]["name"] for each in items if each["spec"]["signerName"] in signers]

    eventually(lambda: len(waiting()) == len(NODES) * len(signers), "requests for certificates", 60)
    cluster("certificate", "approve", *waiting())
