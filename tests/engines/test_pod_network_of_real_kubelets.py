"""A kubelet 1.36.2 with containerd on another machine is in one Pod network with the nodes of `lastcall up`.

Machines are network namespaces: in one network (host-gw), and with a router between them (vxlan). `lastcall node
network` is beside the kubelet, with the kubelet's own kubeconfig.
"""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from engines.containerd import Containerd
from engines.kubelet import OtherNode, missing_kubelet
from engines.lan import Lan, Machine, missing_lan
from kubectls import KUBECTL, needs_kubectl
from waiting import eventually

MISSING = missing_kubelet() or missing_lan()
pytestmark = [pytest.mark.real_kernel, needs_kubectl, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

NODE = "other-1"
LASTCALL = str(Path(sys.executable).parent / "lastcall")
SERVES = (
    "trap 'exit 0' TERM; mkdir -p /www; hostname > /www/index.html; dd if=/dev/zero of=/www/big bs=1M count=3; "
    "httpd -p 8080 -h /www; while :; do sleep 0.1; done"
)


@dataclass
class Cluster:
    lan: Lan
    name: str
    facts: dict[str, str]
    node: OtherNode
    home: Path
    network: "subprocess.Popen[bytes] | None" = None

    @property
    def first(self) -> Machine:
        return self.lan.machines[0]

    @property
    def second(self) -> Machine:
        return self.lan.machines[1]

    def asked(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        assert KUBECTL is not None
        base = [*self.first.inside, KUBECTL, "--kubeconfig", self.facts["kubeconfig"], "--cache-dir", str(self.home)]
        return subprocess.run(
            [*base, *arguments], input=stdin, capture_output=True, text=True, timeout=150, check=False
        )

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.asked(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr, self.said())
        return done.stdout

    def said(self) -> str:
        return (self.home / "network.log").read_text() + self.node.log("kubelet")[-1500:]

    def start_network(self) -> None:
        """With the kubelet's own kubeconfig, as a service of the machine would."""
        with (self.home / "network.log").open("ab") as log:
            self.network = subprocess.Popen(
                [*self.second.inside, LASTCALL, "node", "network", "--node-name", NODE,
                 "--kubeconfig", str(self.node.directory / "kubelet.kubeconfig"),
                 "--cni-conf-dir", str(self.node.containerd.directory / "cni")],
                stdout=log, stderr=log,
            )  # fmt: skip

    def end_network(self, number: int) -> None:
        assert self.network is not None
        self.network.send_signal(number)
        self.network.wait(30)
        self.network = None

    def pods(self) -> dict[str, tuple[str, str]]:
        """Node → name and address of the Pod of the DaemonSet there."""
        items = json.loads(self("get", "pods", "-l", "app=web", "-o", "json"))["items"]
        return {each["spec"]["nodeName"]: (each["metadata"]["name"], each["status"]["podIP"]) for each in items}


@pytest.fixture(scope="module", params=["vxlan", "host-gw"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    mode: str = request.param
    home = tmp_path_factory.mktemp("network")
    (home / "network.log").touch()
    name = f"network-{mode}-{os.getpid()}"
    with Lan("network", 2, routed=mode == "vxlan") as lan:
        first, second = lan.machines
        with Containerd(second.netns) as containerd:
            next((containerd.directory / "cni").glob("*.conflist")).unlink()
            node = OtherNode(containerd, NODE, second.address, cluster_dns="10.96.0.10")
            with node:
                options = ("--join-token", "--listen", first.address, "--pod-network", mode, "--timeout", "200")
                started = first.run(LASTCALL, "up", name, "--detach", "-o", "json", *options, timeout=200)
                facts = json.loads(started.stdout)
                found = Cluster(lan, name, facts, node, home)
                try:
                    bootstrap = Path(facts["joining"]["kubeconfig"])
                    authority = yaml.safe_load(bootstrap.read_text())["clusters"][0]["cluster"]
                    node.start_kubelet(
                        str(bootstrap), base64.b64decode(authority["certificate-authority-data"]).decode()
                    )
                    kubeconfig = node.directory / "kubelet.kubeconfig"
                    eventually(
                        kubeconfig.exists, "the kubelet's kubeconfig", 90, said=lambda: node.log("kubelet")[-2000:]
                    )
                    found.start_network()
                    _approve_and_proxy(found, authority)
                    yield found
                finally:
                    if found.network is not None:
                        found.end_network(signal.SIGTERM)
                    first.run(LASTCALL, "down", name)
                    assert first.left() == []
        node.remove_groups()


def _approve_and_proxy(cluster: Cluster, authority: dict[str, str]) -> None:
    ready = ("get", "node", NODE, "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")
    eventually(lambda: cluster.asked(*ready).stdout == "True", "the node is Ready", 120, said=cluster.said)
    waiting = ("get", "csr", "--field-selector", "spec.signerName=kubernetes.io/kubelet-serving", "-o", "name")
    eventually(lambda: bool(cluster(*waiting).split()), "a request for a serving certificate", 60)
    cluster("certificate", "approve", *[each.partition("/")[2] for each in cluster(*waiting).split()])
    served = cluster.node.directory
    eventually(lambda: any(served.glob("pki/kubelet-server-current.pem")), "its certificate", 60)
    cluster("create", "serviceaccount", "kube-proxy", "-n", "kube-system")
    binding = ("clusterrolebinding", "kubeadm:node-proxier", "--clusterrole=system:node-proxier")
    cluster("create", *binding, "--serviceaccount=kube-system:kube-proxy")
    token = cluster("create", "token", "kube-proxy", "-n", "kube-system").strip()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": authority}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }  # fmt: skip
    cluster.node.start_proxy(yaml.safe_dump(config))
    labels = {"app": "web"}
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", SERVES]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 3}}
    web = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }  # fmt: skip
    cluster("apply", "-f", "-", stdin=json.dumps(web))
    cluster("rollout", "status", "daemonset/web", "--timeout=120s")
    service = {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}
    kind = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service}
    cluster("apply", "-f", "-", stdin=json.dumps(kind))


def test_its_pods_have_addresses_of_the_range_that_its_node_was_given(cluster: Cluster) -> None:
    ranges = json.loads(cluster("get", "nodes", "-o", "json"))["items"]
    found = {each["metadata"]["name"]: each["spec"]["podCIDRs"] for each in ranges}
    assert found == {"node-1": ["10.244.0.0/24"], NODE: ["10.244.64.0/24"]}
    assert {node: ip.rpartition(".")[0] for node, (_, ip) in cluster.pods().items()} == {
        "node-1": "10.244.0", NODE: "10.244.64",
    }  # fmt: skip


@pytest.mark.parametrize("client", ["node-1", NODE])
def test_pods_of_both_machines_reach_each_other_by_their_own_addresses(cluster: Cluster, client: str) -> None:
    pods = cluster.pods()
    (asking, own), (server, address) = pods[client], pods["node-1" if client == NODE else NODE]
    assert (
        cluster("exec", asking, "--", "timeout", "5", "wget", "-q", "-O", "-", f"http://{address}:8080/").strip()
        == server
    )
    # More than a packet, in both directions: nothing is too large for what carries it.
    size = cluster("exec", asking, "--", "sh", "-c", f"timeout 20 wget -q -O - http://{address}:8080/big | wc -c")
    assert int(size) == 3 << 20
    held = f"nc {address} 8080 < /dev/zero & sleep 2; kill $!"
    holding = subprocess.Popen(
        [*cluster.first.inside, str(KUBECTL), "--kubeconfig", cluster.facts["kubeconfig"], "exec", asking, "--",
         "sh", "-c", held],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        eventually(lambda: own in cluster("exec", server, "--", "netstat", "-tn"), f"{server} sees {own}", 60)
    finally:
        holding.kill()
        holding.wait(30)


@pytest.mark.parametrize("client", ["node-1", NODE])
def test_a_service_leads_from_either_machine_to_the_pods_of_both(cluster: Cluster, client: str) -> None:
    pods = cluster.pods()
    ask = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do timeout 5 wget -q -O - http://web/; done"

    def answered() -> set[str]:
        return set(cluster("exec", pods[client][0], "--", "sh", "-c", ask).split())

    eventually(lambda: answered() == {name for name, _ in pods.values()}, "both answer", 60, said=cluster.said)


def test_the_pods_of_a_real_kubelet_ask_the_dns_service(cluster: Cluster) -> None:
    asking = cluster.pods()[NODE][0]
    address = cluster("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    assert "nameserver 10.96.0.10" in cluster("exec", asking, "--", "cat", "/etc/resolv.conf")
    assert address in cluster("exec", asking, "--", "nslookup", "web.default.svc.cluster.local")
    reach = "nc -w 3 kubernetes.default.svc.cluster.local 443 </dev/null && echo reached"
    assert "reached" in cluster("exec", asking, "--", "sh", "-c", reach)


def test_the_api_server_reaches_the_pods_of_the_other_machine(cluster: Cluster) -> None:
    name = cluster.pods()[NODE][0]
    assert cluster("get", "--raw", f"/api/v1/namespaces/default/pods/{name}:8080/proxy/").strip() == name
    path = "/api/v1/namespaces/default/services/web:80/proxy/"
    eventually(lambda: cluster("get", "--raw", path).strip() == name, "the Service leads there, too", 30)


def test_the_machines_reach_all_pods_and_pods_the_machines_but_nothing_else(cluster: Cluster) -> None:
    pods = cluster.pods()
    for machine in (cluster.first, cluster.second):
        for name, address in pods.values():
            assert machine.fetch(f"http://{address}:8080/").strip() == name
    asking = pods["node-1"][0]
    for machine in (cluster.first, cluster.second):
        cluster("exec", asking, "--", "ping", "-c", "1", "-W", "3", machine.address)
    elsewhere = "10.50.9.9"
    assert cluster.asked("exec", asking, "--", "ping", "-c", "1", "-W", "1", elsewhere).returncode != 0
    assert elsewhere not in cluster.first.run("ip", "route").stdout


def test_routes_that_somebody_deletes_come_back(cluster: Cluster) -> None:
    name, address = cluster.pods()[NODE]
    cluster.first.run("ip", "route", "del", "10.244.64.0/24")
    eventually(lambda: cluster.first.fetch(f"http://{address}:8080/").strip() == name, "the route is back", 30)


def test_killed_it_leaves_nothing_and_the_next_one_goes_on(cluster: Cluster) -> None:
    name, address = cluster.pods()[NODE]
    before = cluster.second.run("ip", "route").stdout
    assert "proto 108" in before
    cluster.end_network(signal.SIGKILL)

    def left() -> str:
        routes = cluster.second.run("ip", "route", "show", "proto", "108").stdout
        links = cluster.second.run("ip", "-br", "link").stdout
        return routes + cluster.second.run("nft", "list", "tables").stdout + ("lastcall" if "lastcall" in links else "")

    eventually(lambda: "lastcall" not in left() and "10.244" not in left(), "nothing is left", 10, said=left)
    cluster.start_network()
    # Its own routes first: in one network the Pods' answers find their way without them.
    eventually(lambda: "proto 108" in cluster.second.run("ip", "route").stdout, "the routes are back", 30)
    eventually(lambda: cluster.first.fetch(f"http://{address}:8080/").strip() == name, "Pods are reached", 30)


def test_a_second_one_on_the_machine_is_refused(cluster: Cluster) -> None:
    kubeconfig = str(cluster.node.directory / "kubelet.kubeconfig")
    done = cluster.second.run(LASTCALL, "node", "network", "--kubeconfig", kubeconfig, check=False)
    assert done.returncode == 1
    assert "another process of lastcall has the Pod network of this machine; fix: end that one" in done.stderr


def test_a_node_that_is_deleted_is_routed_to_no_more(cluster: Cluster) -> None:
    fake = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "gone"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.50.0.77"}]},
    }  # fmt: skip
    cluster("create", "-f", "-", stdin=json.dumps(fake))
    range_of = ("get", "node", "gone", "-o", "jsonpath={.spec.podCIDR}")
    eventually(lambda: cluster(*range_of) == "10.244.65.0/24", "its range", 60)
    routed = cluster.first.netns
    if "vxlan" in cluster.name:
        eventually(lambda: "10.244.65.0/24" in cluster.first.run("ip", "route").stdout, routed, 60)
    cluster("delete", "node", "gone")
    eventually(lambda: "10.244.65.0/24" not in cluster.first.run("ip", "route").stdout, routed, 60)
    fdb = cluster.first.run("bridge", "fdb", "show").stdout
    assert "10.50.0.77" not in fdb
