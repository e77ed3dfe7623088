"""A kubelet 1.36.2 with containerd joins a cluster of `lastcall up --join-token`; kube-proxy 1.36.2 beside it.

In order: it joins, works, is drained, lost, and comes back. Cluster and node share a network namespace of their own.
"""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID
from engines.containerd import Containerd
from engines.kubelet import ADDRESS, OtherNode, missing_kubelet
from kubectls import KUBECTL, needs_kubectl
from waiting import eventually

pytestmark = [
    pytest.mark.real_kernel,
    needs_kubectl,
    pytest.mark.skipif(bool(missing_kubelet()), reason=missing_kubelet()),
]

NAME = f"joined-{os.getpid()}"
NODE = "other-1"
SERVES = (
    "trap 'exit 0' TERM; echo hello; mkdir -p /www; hostname > /www/index.html; httpd -p 8080 -h /www; "
    "while :; do sleep 0.1; done"
)
AS_ELSEWHERE = re.compile(r"system:anonymous|no relationship found between node")
"""Refusals that a real API server gives as well: before there is a certificate, and of a Pod that is gone."""
READY = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"


@dataclass
class Cluster:
    containerd: Containerd
    facts: dict[str, str]
    joining: dict[str, str]
    node: OtherNode
    home: Path

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        assert KUBECTL is not None
        base = [*self.containerd.inside, KUBECTL, "--kubeconfig", self.facts["kubeconfig"]]
        return subprocess.run(
            [*base, "--cache-dir", str(self.home), *arguments],
            input=stdin, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr, self.node.log("kubelet")[-3000:])
        return done.stdout

    def asked(self, *arguments: str) -> str:
        done = self.run(*arguments)
        return done.stdout if done.returncode == 0 else ""

    def ready(self) -> str:
        return self.asked("get", "node", NODE, "-o", READY)

    def pods(self, app: str) -> list[dict[str, str]]:
        """Name, node and address of those that run and are not being deleted."""
        found = json.loads(self.asked("get", "pods", "-l", f"app={app}", "-o", "json") or '{"items": []}')["items"]
        return [
            {"name": each["metadata"]["name"], "node": each["spec"]["nodeName"], "ip": each["status"].get("podIP", "")}
            for each in found
            if each.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
        ]

    def certificate(self) -> str:
        return base64.b64decode(
            yaml.safe_load(Path(self.joining["kubeconfig"]).read_text())["clusters"][0]["cluster"][
                "certificate-authority-data"
            ]
        ).decode()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("joined")
    with Containerd() as containerd:
        node = OtherNode(containerd, NODE)
        with node:
            options = ("--join-token", "--listen", ADDRESS, "--timeout", "200", "-o", "json")
            started = containerd.lastcall("up", NAME, "--detach", *options)
            assert started.returncode == 0, started.stderr
            try:
                facts = json.loads(started.stdout)
                found = Cluster(containerd, facts, facts["joining"], node, home)
                node.start_kubelet(found.joining["kubeconfig"], found.certificate())
                yield found
            finally:
                ended = containerd.lastcall("down", NAME)
                assert ended.returncode == 0, ended.stderr
    node.remove_groups()


def deployment(app: str, replicas: int = 1, **spec: object) -> str:
    labels = {"app": app}
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", SERVES]}
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for key in ("unreachable", "not-ready")
    ]
    pod = {"containers": [container], "tolerations": tolerations, "terminationGracePeriodSeconds": 5, **spec}
    return json.dumps(
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
    )  # fmt: skip


def test_a_kubelet_joins_with_the_token_and_gets_its_certificates(cluster: Cluster) -> None:
    assert os.stat(cluster.joining["kubeconfig"]).st_mode & 0o777 == 0o600
    eventually(lambda: cluster.ready() == "True", "the node is Ready", 120)
    (current,) = cluster.node.directory.glob("pki/kubelet-client-current.pem")
    certificate = x509.load_pem_x509_certificate(current.read_bytes())
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    assert common == f"system:node:{NODE}"
    requests = json.loads(cluster("get", "csr", "-o", "json"))["items"]
    (client,) = [each for each in requests if each["spec"]["signerName"].endswith("apiserver-client-kubelet")]
    assert client["spec"]["username"] == f"system:bootstrap:{cluster.joining['token'][:6]}"
    assert "system:bootstrappers:kubeadm:default-node-token" in client["spec"]["groups"]
    assert [each["reason"] for each in client["status"]["conditions"]] == ["AutoApproved"]


def test_its_serving_certificate_is_approved_by_an_administrator(cluster: Cluster) -> None:
    waiting = ("get", "csr", "--field-selector", "spec.signerName=kubernetes.io/kubelet-serving", "-o", "name")
    eventually(lambda: bool(cluster.asked(*waiting).split()), "a request", 60)
    cluster("certificate", "approve", *[each.partition("/")[2] for each in cluster(*waiting).split()])
    eventually(lambda: any(cluster.node.directory.glob("pki/kubelet-server-current.pem")), "its certificate", 60)


def test_it_runs_a_deployment_whose_logs_and_processes_are_reached_through_the_api(cluster: Cluster) -> None:
    cluster("apply", "-f", "-", stdin=deployment("web", 2, nodeSelector={"kubernetes.io/hostname": NODE}))
    cluster("rollout", "status", "deployment/web", "--timeout=120s")
    first = cluster.pods("web")[0]
    eventually(lambda: cluster.asked("logs", first["name"]) == "hello\n", "its log", 30)
    assert cluster("exec", first["name"], "--", "hostname").strip() == first["name"]
    assert cluster("exec", "-i", first["name"], "--", "cat", stdin="in and out").strip() == "in and out"
    assert cluster.run("exec", first["name"], "--", "sh", "-c", "exit 7").returncode == 7
    place = json.dumps({"spec": {"nodeSelector": {"kubernetes.io/hostname": NODE}}})
    attached = ("run", "typed", "--image=busybox:1.36", "--restart=Never", "-i", "--rm", "-q", "--overrides", place)
    assert "typed in" in cluster(*attached, "--", "cat", stdin="typed in\n")
    node = json.loads(cluster("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/stats/summary"))["node"]
    assert node["nodeName"] == NODE


def test_ports_are_forwarded_to_its_pods(cluster: Cluster) -> None:
    pod = cluster.pods("web")[0]["name"]
    script = f"""
{KUBECTL} --kubeconfig {cluster.facts["kubeconfig"]} port-forward pod/{pod} 18080:8080 >/dev/null 2>&1 &
for i in $(seq 100); do found=$(busybox wget -q -O - http://127.0.0.1:18080/ 2>/dev/null) && break; sleep 0.1; done
kill $!; echo $found
"""
    done = subprocess.run(
        [*cluster.containerd.inside, "sh", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == pod, done.stderr


def test_kube_proxy_routes_its_pods_to_services_and_to_the_api_server(cluster: Cluster) -> None:
    cluster("create", "serviceaccount", "kube-proxy", "-n", "kube-system")
    binding = ("clusterrolebinding", "kubeadm:node-proxier", "--clusterrole=system:node-proxier")
    cluster("create", *binding, "--serviceaccount=kube-system:kube-proxy")
    token = cluster("create", "token", "kube-proxy", "-n", "kube-system").strip()
    config = yaml.safe_load(Path(cluster.joining["kubeconfig"]).read_text())
    config["users"][0]["user"] = {"token": token}
    cluster.node.start_proxy(yaml.safe_dump(config))
    cluster("expose", "deployment", "web", "--port=80", "--target-port=8080")
    address = cluster("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    pods = {each["name"] for each in cluster.pods("web")}
    asking = next(iter(pods))

    def answered() -> set[str]:
        ask = f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do wget -q -O - http://{address}/; done"
        return set(cluster.asked("exec", asking, "--", "sh", "-c", ask).split())

    eventually(lambda: answered() == pods, "both Pods answer", 60, said=lambda: cluster.node.log("kube-proxy")[-3000:])
    reach = "nc -w 3 10.96.0.1 443 </dev/null && echo reached"
    eventually(lambda: "reached" in cluster.asked("exec", asking, "--", "sh", "-c", reach), "the API server", 60)


def test_a_drain_moves_its_pods_to_a_node_of_lastcalls(cluster: Cluster) -> None:
    cluster("cordon", "node-1")
    cluster("apply", "-f", "-", stdin=deployment("moved", 2))
    cluster("rollout", "status", "deployment/moved", "--timeout=120s")
    assert {each["node"] for each in cluster.pods("moved")} == {NODE}
    drained = cluster.pods("moved")[0]["name"]
    cluster("uncordon", "node-1")
    cluster("delete", "deployment", "web")
    cluster("drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")
    eventually(lambda: [each["node"] for each in cluster.pods("moved")] == ["node-1"] * 2, "both are on node-1", 100)
    eventually(
        lambda: not cluster.asked("get", "pods", "--field-selector", f"spec.nodeName={NODE}", "-o", "name"),
        "none is left",
        60,
    )
    told = cluster.containerd.lastcall("story", drained, "--name", NAME)
    assert told.returncode == 1, told.stdout + told.stderr
    assert "how it ended is not known: its node records nothing" in told.stdout
    cluster("uncordon", NODE)


def test_a_kubelet_that_is_killed_is_a_lost_node_and_its_pods_run_elsewhere(cluster: Cluster) -> None:
    cluster("cordon", "node-1")
    cluster("apply", "-f", "-", stdin=deployment("lost"))
    cluster("rollout", "status", "deployment/lost", "--timeout=120s")
    (before,) = cluster.pods("lost")
    assert before["node"] == NODE
    cluster("uncordon", "node-1")
    cluster.node.kill("kubelet")
    eventually(lambda: cluster.ready() == "Unknown", "the node is lost", 110)
    taints = ("get", "node", NODE, "-o", "jsonpath={.spec.taints[*].key}")
    eventually(lambda: "node.kubernetes.io/unreachable" in cluster.asked(*taints), "its taint", 30)
    eventually(lambda: [each["node"] for each in cluster.pods("lost")] == ["node-1"], "the Pod is replaced", 100)
    gone = cluster("get", "pod", before["name"], "-o", "jsonpath={.metadata.deletionTimestamp}")
    assert gone, "it was not evicted"
    told = cluster.containerd.lastcall("story", before["name"], "--name", NAME)
    assert told.returncode == 0, told.stderr
    assert "never started" not in told.stdout


def test_a_kubelet_that_is_back_is_ready_and_ends_what_was_to_end(cluster: Cluster) -> None:
    cluster.node.start_kubelet(cluster.joining["kubeconfig"], cluster.certificate())
    eventually(lambda: cluster.ready() == "True", "Ready again", 100)
    taints = ("get", "node", NODE, "-o", "jsonpath={.spec.taints}")
    eventually(lambda: not cluster.asked(*taints), "no taint", 60)
    here = ("get", "pods", "--field-selector", f"spec.nodeName={NODE}", "-o", "name")
    eventually(lambda: not cluster.asked(*here), "the old Pod is gone", 100)
    cluster("cordon", "node-1")
    cluster("apply", "-f", "-", stdin=deployment("again"))
    cluster("rollout", "status", "deployment/again", "--timeout=120s")
    cluster("uncordon", "node-1")


def test_nothing_that_kubelet_and_kube_proxy_asked_for_is_missing_or_refused(cluster: Cluster) -> None:
    for program in ("kubelet", "kube-proxy"):
        log = cluster.node.log(program)
        assert "the server could not find the requested resource" not in log
        refused = [line for line in log.splitlines() if "is forbidden: User" in line and not AS_ELSEWHERE.search(line)]
        assert not refused, refused
