"""`lastcall node join`: our kubelet, runtime and proxy as nodes of a real Kubernetes 1.36.2.

Machines are network namespaces: the first has the control plane, the second and third each are a node. In order: the
ways to join, what works then, the end.
"""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from engines.api_server import BINARIES
from engines.lan import Lan, Machine
from engines.real_cluster import RealCluster, missing_cluster
from waiting import eventually

from lastcall.client.kubeconfig import render_kubeconfig

MISSING = missing_cluster()
pytestmark = [pytest.mark.real_kernel, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

LASTCALL = [sys.executable, "-m", "lastcall.cli.main"]
TOKEN = "abcdef.0123456789abcdef"
ADMINS, TOKENS = "by-admin", "by-token"
READY = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
FORWARDS = (
    "kubectl=$1 kubeconfig=$2 pod=$3; $kubectl --kubeconfig $kubeconfig port-forward pod/$pod 18080:8080 >&2 & "
    "for i in $(seq 100); do curl -s -m 2 http://127.0.0.1:18080/ && break; sleep 0.1; done; kill $!"
)
ATTACHES = "$1 --kubeconfig $2 attach $3 | head -n 1"
TICKS = "while :; do echo tick; sleep 0.2; done"
SERVES = "mkdir -p /tmp/w; hostname > /tmp/w/index.html; echo hello; exec httpd -f -p 8080 -h /tmp/w"


@dataclass
class Node:
    machine: Machine
    name: str
    home: Path
    command: str = field(init=False)

    def __post_init__(self) -> None:
        self.command = f"{self.name}-{os.getpid()}"

    def lastcall(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.machine.inside, *LASTCALL, *arguments], capture_output=True, text=True, timeout=180, check=False,
            env={**os.environ, "XDG_STATE_HOME": str(self.home)},
        )  # fmt: skip

    def join(self, *arguments: str) -> dict[str, Any]:
        """In the background; what it said of itself."""
        done = self.lastcall(
            "node", "join", *arguments, "--node-name", self.name, "--name", self.command, "--detach", "-o", "json"
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts

    def end(self) -> None:
        done = self.lastcall("down", self.command)
        assert done.returncode == 0, done.stderr

    def status(self) -> dict[str, Any]:
        done = self.lastcall("status", self.command, "-o", "json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["clusters"][0]
        return found

    def said(self) -> str:
        return self.lastcall("logs", self.command).stdout[-3000:]

    @property
    def pki(self) -> Path:
        return self.home / "lastcall-nodes" / self.command / "durable" / "pki"


@pytest.fixture(scope="module")
def lan() -> Iterator[Lan]:
    with Lan(f"nj{os.getpid()}", 3) as lan:
        yield lan


@pytest.fixture(scope="module")
def cluster(lan: Lan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("real"), lan.machines[0]) as cluster:
        cluster.token(TOKEN)
        yield cluster


@pytest.fixture(scope="module")
def nodes(lan: Lan, cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """Joined by an administrator's kubeconfig, and by a token. Ended at the end, if a test has not done it."""
    home = tmp_path_factory.mktemp("state")
    found = Node(lan.machines[1], ADMINS, home), Node(lan.machines[2], TOKENS, home)
    server = cluster.url.removeprefix("https://")
    try:
        found[0].join("--kubeconfig", cluster.kubeconfig)
        found[1].join(server, "--token", TOKEN, "--discovery-token-ca-cert-hash", cluster.ca_hash)
        for node in found:
            cidr = cluster("get", "node", node.name, "-o", "jsonpath={.spec.podCIDR}")
            for other in lan.machines:
                if other is not node.machine:
                    other.run("ip", "route", "add", cidr, "via", node.machine.address)
        yield found
    finally:
        for node in found:
            node.lastcall("down", node.command)


def pod(name: str, node: str, command: str = "exec sleep 3600", **spec: Any) -> dict[str, Any]:
    container = {
        "name": "app", "image": "busybox:1.36", "command": ["sh", "-c", command], **spec.pop("container", {}),
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 2, "containers": [container], **spec},
    }  # fmt: skip


def ready(cluster: RealCluster, *names: str) -> None:
    for name in names:
        cluster("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")


def requests(cluster: RealCluster, user: str) -> dict[str, dict[str, Any]]:
    """Signer → certificate request of the user."""
    items = cluster.object("csr")["items"]
    return {each["spec"]["signerName"]: each for each in items if each["spec"]["username"] == user}


def test_both_nodes_are_ready_and_known_as_a_kubelets_are(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    for node in nodes:
        assert cluster("get", "node", node.name, "-o", READY) == "True", node.said()
        found = cluster.object("node", node.name)
        assert {each["type"]: each["address"] for each in found["status"]["addresses"]} == {
            "InternalIP": node.machine.address,
            "Hostname": node.name,
        }
        assert found["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.2"
        assert found["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10250
        lease = cluster.object("lease", node.name, "-n", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == node.name
        assert cluster.object("csinode", node.name)["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
    ranges = {cluster.object("node", node.name)["spec"]["podCIDR"] for node in nodes}
    assert len(ranges) == 2


def test_with_a_token_serving_and_proxy_certificates_wait_for_an_approval(
    cluster: RealCluster, nodes: tuple[Node, Node]
) -> None:
    waiting = requests(cluster, f"system:node:{TOKENS}")
    assert set(waiting) == {"kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client"}
    assert all("conditions" not in each["status"] for each in waiting.values())
    assert set(requests(cluster, f"system:bootstrap:{TOKEN[:6]}")) == {"kubernetes.io/kube-apiserver-client-kubelet"}
    for each in waiting.values():
        told = f"kubectl certificate approve {each['metadata']['name']}"
        eventually(lambda told=told: told in nodes[1].said(), "it says what it waits for", pause=0.5)
        cluster("certificate", "approve", each["metadata"]["name"])
    eventually(lambda: (nodes[1].pki / "kube-proxy.pem").exists(), "the proxy has its certificate")


def test_an_administrator_s_node_approves_its_own_and_nothing_else(
    cluster: RealCluster, nodes: tuple[Node, Node]
) -> None:
    own = requests(cluster, f"system:node:{ADMINS}")
    assert {signer: each["status"]["conditions"][0]["type"] for signer, each in own.items()} == {
        "kubernetes.io/kubelet-serving": "Approved",
        "kubernetes.io/kube-apiserver-client": "Approved",
    }
    stranger = {
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "stranger"},
        "spec": {**own["kubernetes.io/kube-apiserver-client"]["spec"]},
    }  # fmt: skip
    for name in ("username", "groups", "uid", "extra"):
        stranger["spec"].pop(name, None)
    cluster.apply(stranger)
    eventually(lambda: "running" in nodes[0].status()["phase"])
    assert not cluster.object("csr", "stranger")["status"], "the administrator asked, not the node"
    cluster("delete", "csr", "stranger")


def test_pods_serve_on_both_and_are_reached_by_their_service(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    probe = {"readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}}
    servers = [pod(f"web-{node.name}", node.name, SERVES, container=probe) for node in nodes]
    for each in servers:
        each["metadata"]["labels"] = {"app": "web"}
    ports = [{"port": 80, "targetPort": 8080, "nodePort": 30080}]
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": ports},
    }  # fmt: skip
    cluster.apply(service, *servers, *(pod(f"client-{node.name}", node.name, TICKS) for node in nodes))
    ready(cluster, *(f"web-{node.name}" for node in nodes), *(f"client-{node.name}" for node in nodes))
    address = cluster("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    asks = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {address} 80"
    for node in nodes:
        answers: set[str] = set()

        def asked(node: Node = node, answers: set[str] = answers) -> bool:
            said = cluster("exec", f"client-{node.name}", "--", "sh", "-c", asks).strip()
            answers.add(said.rpartition("\n")[2])
            return answers == {f"web-{each.name}" for each in nodes}

        eventually(asked, f"both answer on {node.name}", said=lambda answers=answers: answers)
        for machine in (cluster.machine, node.machine):
            assert machine.fetch(f"http://{node.machine.address}:30080/").startswith("web-")


def test_the_api_server_reaches_the_kubelet_for_logs_exec_attach_and_port_forward(
    cluster: RealCluster, nodes: tuple[Node, Node]
) -> None:
    for node in nodes:
        assert cluster("logs", f"web-{node.name}") == "hello\n"
        assert cluster("exec", f"client-{node.name}", "--", "cat", "/etc/hostname") == f"client-{node.name}\n"
        assert cluster("get", "--raw", f"/api/v1/nodes/{node.name}/proxy/healthz") == "ok"
        assert "hello" in cluster(
            "get", "--raw", f"/api/v1/nodes/{node.name}/proxy/containerLogs/default/web-{node.name}/app"
        )
        kubectl = ("sh", str(BINARIES / "kubectl"), cluster.kubeconfig)
        done = cluster.machine.run("sh", "-c", ATTACHES, *kubectl, f"client-{node.name}")
        assert done.stdout == "tick\n", done
        done = cluster.machine.run("sh", "-c", FORWARDS, *kubectl, f"web-{node.name}")
        assert f"web-{node.name}" in done.stdout, done


def test_ports_of_the_node_are_its_machine_s(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    """With hostNetwork, and as hostPort; probed by the kubelet, reached from the machine and from another one."""
    node = nodes[0]
    own = {"ports": [{"containerPort": 8090}], "readinessProbe": {"tcpSocket": {"port": 8090}, "periodSeconds": 1}}
    mapped = {"ports": [{"containerPort": 8080, "hostPort": 8099}]}
    cluster.apply(
        pod("host-network", node.name, SERVES.replace("8080", "8090"), container=own, hostNetwork=True),
        pod("host-port", node.name, SERVES, container=mapped),
    )
    ready(cluster, "host-network", "host-port")
    assert cluster.object("pod", "host-network")["status"]["podIP"] == node.machine.address
    for machine in (cluster.machine, node.machine):
        for port, name in ((8090, node.name), (8099, "host-port")):
            url = f"http://{node.machine.address}:{port}/"
            eventually(lambda machine=machine, url=url, name=name: machine.fetch(url) == f"{name}\n", url, pause=0.5)
    cluster("delete", "pod", "host-network", "host-port")
    eventually(lambda: cluster.machine.fetch(f"http://{node.machine.address}:8090/") == "", "it is closed", pause=0.5)


def test_static_pods_have_mirrors(cluster: RealCluster, nodes: tuple[Node, Node], tmp_path: Path) -> None:
    node, manifests = nodes[1], tmp_path / "static"
    manifests.mkdir()
    manifest = {**pod("static", ""), "spec": {"containers": pod("x", "")["spec"]["containers"]}}
    (manifests / "static.json").write_text(json.dumps(manifest))
    node.end()
    node.join("--static-pods", str(manifests))
    name = f"static-{node.name}"
    eventually(lambda: cluster.run("get", "pod", name).returncode == 0, "its mirror is there")
    ready(cluster, name)
    before = cluster.object("pod", name)["metadata"]
    assert before["ownerReferences"][0]["kind"] == "Node"
    cluster("delete", "pod", name)

    def again() -> bool:
        done = cluster.run("get", "pod", name, "-o", "jsonpath={.metadata.uid}")
        return done.returncode == 0 and done.stdout not in ("", before["uid"])

    eventually(again, "a mirror that was deleted comes again")
    node.end()
    node.join()


def test_a_kubelet_s_bootstrap_kubeconfig_is_for_a_node_without_a_certificate(
    cluster: RealCluster, nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    node, bootstrap, file = nodes[1], tmp_path / "bootstrap.kubeconfig", nodes[1].pki / "kubelet-client.pem"
    bootstrap.write_text(render_kubeconfig("real", cluster.url, cluster.ca.certificate_pem, token=TOKEN))
    before = file.read_bytes()
    node.end()
    node.join("--bootstrap-kubeconfig", str(bootstrap))
    assert file.read_bytes() == before, "it has one"
    node.end()
    file.unlink()
    done = node.lastcall("node", "join", "--node-name", node.name, "--name", node.command)
    assert (done.returncode, "fix: --kubeconfig FILE, --bootstrap-kubeconfig FILE" in done.stderr) == (1, True), done
    node.join("--bootstrap-kubeconfig", str(bootstrap))
    assert file.read_bytes() != before
    assert cluster("get", "node", node.name, "-o", READY) == "True", node.said()


def test_a_taken_port_is_told_before_there_is_a_node(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    arguments = ("node", "join", "--kubeconfig", cluster.kubeconfig, "--node-name", "third", "--name", "third")
    done = nodes[0].lastcall(*arguments)
    assert done.returncode == 1
    assert "address already in use" in done.stderr
    assert "fix: --kubelet-port" in done.stderr
    done = nodes[0].lastcall(*arguments, "--node-ip", "192.0.2.1")
    assert "192.0.2.1 is not an address of this machine; fix: --node-ip" in done.stderr
    assert cluster.run("get", "node", "third").returncode != 0


def test_the_name_of_another_machine_s_node_is_not_taken_over(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    uid = cluster.object("node", TOKENS)["metadata"]["uid"]
    arguments = ("node", "join", "--kubeconfig", cluster.kubeconfig, "--node-name", TOKENS, "--name", "fourth")
    for _ in range(2):  # the certificate that it had for a moment is not kept
        done = nodes[0].lastcall(*arguments, "--kubelet-port", "10251")
        assert done.returncode == 1, done
        assert f"node {TOKENS} is Ready on another machine ({nodes[1].machine.address})" in done.stderr
    found = cluster.object("node", TOKENS)
    assert found["metadata"]["uid"] == uid
    assert nodes[1].machine.address in [each["address"] for each in found["status"]["addresses"]]


def test_the_kubelet_s_port_asks_the_cluster_who_may(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    """As a kubelet with webhook authentication: nobody without credentials, and rights on `nodes/…` for the others."""
    node = nodes[0]
    url = f"https://{node.machine.address}:10250"
    authority = cluster.folder / "ca.crt"

    def asks(path: str, *more: str) -> str:
        return cluster.machine.run(
            "curl", "-s", "-m", "10", "--cacert", str(authority), "-w", "%{http_code}", "-o", "/dev/null", *more,
            f"{url}{path}",
        ).stdout  # fmt: skip

    assert asks("/pods") == "401"
    assert asks("/pods", "-H", "Authorization: Bearer nonsense") == "401"
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
    bearer = f"Authorization: Bearer {cluster('create', 'token', 'reader').strip()}"
    assert asks("/pods", "-H", bearer) == "403"
    cluster("create", "clusterrole", "reader", "--verb=get", "--resource=nodes/pods,nodes/metrics")
    cluster("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader")
    eventually(lambda: asks("/metrics", "-H", bearer) == "200", "what it may is allowed", pause=1.0)
    assert asks("/containerLogs/default/x/y", "-H", bearer) == "403"
    kubelets = ("--cert", str(cluster.folder / "kubelets.crt"), "--key", str(cluster.folder / "kubelets.key"))
    assert asks("/pods", *kubelets) == "200"


def test_configuration_and_tokens_of_pods_come_with_the_node_s_own_rights(
    cluster: RealCluster, nodes: tuple[Node, Node]
) -> None:
    sources = [
        {"serviceAccountToken": {"path": "token", "audience": "shop", "expirationSeconds": 600}},
        {"configMap": {"name": "settings"}},
        {"secret": {"name": "password"}},
    ]
    spec = {"volumes": [{"name": "all", "projected": {"sources": sources}}]}
    mount = {"volumeMounts": [{"name": "all", "mountPath": "/all"}]}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"word": "open"}},
        pod("configured", ADMINS, container=mount, **spec),
    )
    ready(cluster, "configured")
    assert cluster("exec", "configured", "--", "sh", "-c", "cat /all/color /all/word") == "blueopen"
    token = cluster("exec", "configured", "--", "cat", "/all/token").split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(token + "=="))
    assert claims["aud"] == ["shop"]
    assert claims["kubernetes.io"]["node"]["name"] == ADMINS
    assert claims["kubernetes.io"]["pod"]["name"] == "configured"


def test_no_request_of_a_node_is_refused(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    """It asks for nothing that the Node authorizer would not give to a kubelet."""
    for node in nodes:
        assert "forbidden" not in node.said().lower(), node.said()
        assert all(not process["faults"] for process in node.status()["processes"]), node.status()["processes"]


def test_the_story_of_a_pod_is_told_on_its_machine(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    cluster.apply(pod("ends", ADMINS, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done"))
    ready(cluster, "ends")
    cluster("delete", "pod", "ends")
    done = nodes[0].lastcall("story", "ends", "--name", nodes[0].command, "-o", "json")
    assert done.returncode in (0, 3), done.stderr
    ending = json.loads(done.stdout)
    told = json.dumps(ending)
    assert '"ends"' in told
    assert "SIGTERM" in told
    text = nodes[0].lastcall("story", "ends", "--name", nodes[0].command).stdout
    assert "SIGTERM" in text, text


def test_a_killed_node_process_finds_its_containers_again(cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    before = cluster.object("pod", f"web-{node.name}")["status"]["containerStatuses"][0]
    pids = {each["role"]: each["pid"] for each in node.status()["processes"]}
    os.kill(pids["node-1"], signal.SIGKILL)
    eventually(
        lambda: {p["role"]: p["pid"] for p in node.status()["processes"]}["node-1"] not in (pids["node-1"], None)
    )
    cluster.apply(pod("after", node.name))
    ready(cluster, "after")
    now = cluster.object("pod", f"web-{node.name}")["status"]["containerStatuses"][0]
    assert (now["containerID"], now["restartCount"]) == (before["containerID"], before["restartCount"])


def test_a_killed_front_takes_all_with_it_and_the_next_join_starts_its_pods_again(
    lan: Lan, cluster: RealCluster, nodes: tuple[Node, Node]
) -> None:
    """Without a token: the certificate is kept. The Pods stay, as those of a machine that was switched off."""
    node = nodes[1]
    web = f"web-{node.name}"
    before = cluster.object("pod", web)
    restarts = before["status"]["containerStatuses"][0]["restartCount"]
    os.kill(node.status()["pid"], signal.SIGKILL)
    eventually(lambda: left(node.machine) == [], "nothing is left on the machine", said=lambda: left(node.machine))
    node.join()
    ready(cluster, web)

    def again() -> bool:
        return cluster.object("pod", web)["status"]["containerStatuses"][0]["restartCount"] == restarts + 1

    eventually(again, "its container was started again")
    assert cluster.object("pod", web)["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_machine_that_is_cut_off_is_lost_and_comes_back(
    lan: Lan, cluster: RealCluster, nodes: tuple[Node, Node]
) -> None:
    node = nodes[1]
    lan.cut(3)
    try:
        eventually(lambda: cluster("get", "node", node.name, "-o", READY) == "Unknown", "the node is lost", pause=1.0)
    finally:
        lan.cut(3, off=False)
    eventually(lambda: cluster("get", "node", node.name, "-o", READY) == "True", "the node is back", pause=1.0)
    assert cluster("exec", f"client-{node.name}", "--", "echo", "again") == "again\n"


def test_a_certificate_is_renewed_before_it_ends(lan: Lan, cluster: RealCluster, nodes: tuple[Node, Node]) -> None:
    """The signer gives new ones for a minute or two; the node goes on with each, without a restart."""
    node = nodes[0]
    cluster.kill("kube-controller-manager")
    command = cluster.command("kube-controller-manager")
    at = next(place for place, word in enumerate(command) if word.startswith("--cluster-signing-duration"))
    old = command[at]
    command[at] = "--cluster-signing-duration=3m"
    cluster.start("kube-controller-manager")
    node.end()
    for each in ("kubelet-client.pem", "kubelet-server.pem"):
        (node.pki / each).unlink()
    node.join("--kubeconfig", cluster.kubeconfig)
    command[at] = old

    def serials() -> tuple[int, ...]:
        names = ("kubelet-client.pem", "kubelet-server.pem")
        return tuple(x509.load_pem_x509_certificate((node.pki / name).read_bytes()).serial_number for name in names)

    eventually(lambda: (node.pki / "kubelet-server.pem").exists(), "it serves")
    first = serials()
    eventually(lambda: not set(serials()) & set(first), "both were renewed", 240, pause=1.0)
    eventually(
        lambda: cluster.run("exec", f"client-{node.name}", "--", "true").returncode == 0, "it is reached with the new"
    )
    cluster.apply(pod("renewed", node.name))
    ready(cluster, "renewed")


def test_a_drain_at_the_end_moves_its_pods_and_nothing_is_left(
    lan: Lan, cluster: RealCluster, nodes: tuple[Node, Node]
) -> None:
    node = nodes[0]
    node.end()
    with (cluster.folder / "join.log").open("wb") as log:
        foreground = subprocess.Popen(
            [*node.machine.inside, *LASTCALL, "node", "join", "--drain", "--node-name", node.name, "--name",
             node.command],
            stdout=log, stderr=log, env={**os.environ, "XDG_STATE_HOME": str(node.home)}, start_new_session=True,
        )  # fmt: skip
    eventually(lambda: "is Ready" in (cluster.folder / "join.log").read_text(), "it has joined")
    container = {"name": "app", "image": "busybox:1.36", "command": ["sh", "-c", "exec sleep 3600"]}
    template = {
        "metadata": {"labels": {"app": "moved"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    cluster.apply({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "moved"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "moved"}}, "template": template},
    })  # fmt: skip
    cluster("rollout", "status", "deployment/moved", "--timeout=120s")
    there = [each["spec"]["nodeName"] for each in cluster.object("pods", "-l", "app=moved")["items"]]
    assert set(there) == {ADMINS, TOKENS}
    foreground.send_signal(signal.SIGINT)
    assert foreground.wait(120) == 0, (cluster.folder / "join.log").read_text()
    assert left(node.machine) == []
    cluster("rollout", "status", "deployment/moved", "--timeout=120s")
    where = {each["spec"]["nodeName"] for each in cluster.object("pods", "-l", "app=moved")["items"]
             if "deletionTimestamp" not in each["metadata"]}  # fmt: skip
    assert where == {TOKENS}
    assert cluster.object("node", node.name)["spec"]["unschedulable"] is True


def left(machine: Machine) -> list[str]:
    """What is on the machine of a node that joined: links, routes, tables."""
    return [each for each in machine.left() if "lastcall" in each or "169.254" in each]
