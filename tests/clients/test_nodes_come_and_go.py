"""`lastcall node add` and `remove` on the real kernel, as a user does it: kubectl, ip, nft, and requests meanwhile."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

SERVES = "mkdir /w; echo $HOSTNAME >/w/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /w & wait"
ASKS = (
    "trap 'exit 0' TERM; (while true; do for at in $TARGETS; do "
    "timeout 5 wget -qO- http://$at/ >/dev/null 2>&1 || echo $at >>/tmp/lost; echo >>/tmp/sent; done; done) & wait"
)
PROBE = {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}
SERVICE = {
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
}  # fmt: skip
ONLY_FRIENDS = {
    "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "friends"},
    "spec": {
        "podSelector": {"matchLabels": {"app": "closed"}},
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"friend": "yes"}}}]}],
    },
}  # fmt: skip


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


@pytest.fixture
def own():
    with Place(ordinary_user.USERS[-1]) as made:
        yield made


class Cluster:
    """`kubectl`, and `ip` and `nft` of a node, against a cluster that is up."""

    def __init__(self, place: Place, *arguments: str) -> None:
        self.place = place
        self.kubeconfig = place.up(*arguments)["kubeconfig"]

    def kubectl(self, *arguments: str, **options: Any) -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, **options)

    def create(self, *manifests: dict) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self.kubectl("create", "-f", "-", stdin=text)
        names = [f"pod/{each['metadata']['name']}" for each in manifests if each["kind"] == "Pod"]
        if names:
            self.kubectl("wait", "--for=condition=Ready", "--timeout=90s", *names)

    def address(self, name: str) -> str:
        return str(json.loads(self.kubectl("get", "pod", name, "-o", "json"))["status"]["podIP"])

    def fetch(self, client: str, where: str) -> str:
        command = f"timeout 5 wget -qO- http://{where}/ || echo none"
        return self.kubectl("exec", client, "--", "sh", "-c", command).strip()

    def nodes(self) -> list[str]:
        return self.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()

    def inside(self, role: str, *command: str) -> str:
        """stdout of a command in the network of a process of the cluster."""
        enter = ["nsenter", "-t", str(self.place.pids()[role]), "-U", "-n", "-m", "--preserve-credentials"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, check=True).stdout


def serving(name: str, node: str, app: str = "web", **spec: Any) -> dict:
    made = pod(name, container("app", SERVES, readinessProbe=PROBE), nodeName=node, grace=5, **spec)
    made["metadata"]["labels"] = {"app": app}
    return made


def asking(name: str, node: str, targets: str = "", **labels: str) -> dict:
    script = ASKS if targets else "trap 'exit 0' TERM; sleep 36000 & wait"
    made = pod(name, container("app", script, env=[{"name": "TARGETS", "value": targets}]), nodeName=node, grace=5)
    made["metadata"]["labels"] = labels
    return made


def test_requests_to_pods_of_other_nodes_are_not_lost_while_nodes_come_and_go(place: Place) -> None:
    cluster = Cluster(place)
    assert place.ok("node", "add") == "node-2 is Ready\n"
    cluster.create(SERVICE, ONLY_FRIENDS, serving("one", "node-1"), serving("two", "node-2"))
    targets = f"{cluster.address('one')}:8080 {cluster.address('two')}:8080 web"
    cluster.create(asking("load-1", "node-1", targets), asking("load-2", "node-2", targets))
    assert place.ok("node", "add", "node-12", "--node-capacity", "cpu=500m,memory=512Mi") == "node-12 is Ready\n"
    capacity = json.loads(cluster.kubectl("get", "node", "node-12", "-o", "json"))["status"]["capacity"]
    assert (capacity["cpu"], capacity["memory"]) == ("500m", "512Mi")

    # Services, DNS, the API, routes and policies reach the new node.
    cluster.create(
        serving("twelve", "node-12", app="other"), serving("closed", "node-12", app="closed"),
        asking("guest", "node-12"),
        asking("friend", "node-1", friend="yes"), asking("new-friend", "node-12", friend="yes"),
    )  # fmt: skip
    eventually(lambda: "10.96.0.10" in cluster.inside("node-12", "ip", "address"), "the cluster DNS server is there")
    service = cluster.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    if place.user != "ordinary user":  # nft asks for the uid 0
        eventually(lambda: service in cluster.inside("node-12", "nft", "list", "ruleset"), "its proxy has the Service")
    eventually(lambda: cluster.fetch("guest", "web") in ("one", "two"), "the Service answers by its name")
    assert cluster.fetch("guest", "one-is-no-service") == "none"
    twelve, closed = (f"{cluster.address(name)}:8080" for name in ("twelve", "closed"))
    assert [cluster.fetch(client, twelve) for client in ("friend", "guest")] == ["twelve", "twelve"]
    answers = [cluster.fetch(client, closed) for client in ("friend", "new-friend", "guest")]
    assert answers == ["closed", "closed", "none"]
    cluster.kubectl("exec", "guest", "--", "sh", "-c", "echo | nc 10.96.0.1 443 >/dev/null")
    assert "10.244.11.0/24" in cluster.inside("control-plane", "ip", "route")

    # It goes again, and others come.
    names = [f"pod/{name}" for name in ("twelve", "closed", "friend", "guest", "new-friend")]
    assert "node-12 is drained" in place.ok("node", "remove", "node-12", "--force")
    assert cluster.nodes() == ["node-1", "node-2"]
    left = cluster.kubectl("get", *names, "--ignore-not-found", "-o", "name").split()
    assert left == ["pod/friend"], "Pods of node-1 stay"
    for _ in range(2):
        place.ok("node", "add")
        place.ok("node", "remove", "node-3")
    for client in ("load-1", "load-2"):
        assert cluster.kubectl("exec", client, "--", "sh", "-c", "cat /tmp/lost 2>/dev/null || true") == ""
        assert len(cluster.kubectl("exec", client, "--", "cat", "/tmp/sent")) > 20, "requests were sent"

    # Nothing of them is left.
    links = cluster.inside("control-plane", "ip", "-o", "link")
    assert "veth-node-2" in links and "veth-node-3" not in links and "veth-node-12" not in links
    assert "10.244.11.0/24" not in cluster.inside("control-plane", "ip", "route")
    lastcall = Path(f"/proc/{place.pids()['control-plane']}/root/lastcall")
    files = {*os.listdir(lastcall), *os.listdir(lastcall / "durable")}
    assert {each for each in files if "-" in each and each[-1].isdecimal()} == {
        "node-2", "shim-1", "shim-2", "runtime-node-2",
    }  # fmt: skip
    assert sorted(place.pids()) == sorted(["front", "init", "control-plane", "shim-1", "node-1", "shim-2", "node-2"])
    told = place.ok("status")
    assert "node-2      Ready" in told and "node-12" not in told
    assert place.status()["nodeCount"] == 2


def test_a_kept_cluster_starts_with_the_nodes_that_it_had(own: Place) -> None:
    state = str(own.home / "home/kept")
    own.kept.append(state)
    cluster = Cluster(own, "--nodes", "3", "--state", state)
    own.ok("node", "add", "node-5", "--node-capacity", "cpu=500m")
    own.ok("node", "remove", "node-2")
    own.ok("down")
    cluster = Cluster(own, "--nodes", "3", "--state", state)
    assert cluster.nodes() == ["node-1", "node-3", "node-5"]
    node = json.loads(cluster.kubectl("get", "node", "node-5", "-o", "json"))
    assert node["status"]["capacity"]["cpu"] == "500m"
    cluster.create(serving("five", "node-5"), asking("ask", "node-1"))
    assert cluster.fetch("ask", f"{cluster.address('five')}:8080") == "five"
    assert own.ok("node", "add") == "node-2 is Ready\n", "its name is free"


def ends(process: "subprocess.Popen[str]") -> tuple[int, str]:
    out, err = process.communicate(timeout=180)
    return process.returncode, out + err


@pytest.mark.parametrize("killed", ["control-plane", "node-2", "shim-2"])
def test_a_process_that_is_killed_while_a_node_comes_or_goes_leaves_no_half_of_it(own: Place, killed: str) -> None:
    cluster = Cluster(own)
    with own.start("node", "add") as adding:
        eventually(lambda: killed in own.pids(), f"{killed} is there")
        os.kill(own.pids()[killed], signal.SIGKILL)
        status, said = ends(adding)
    assert (status, said) == (0, "node-2 is Ready\n")
    slow = "trap 'sleep 5; exit 0' TERM; while true; do sleep 0.05; done"
    cluster.create(pod("slow", container("app", slow), nodeName="node-2", grace=20))
    victim = own.pids()[killed]
    with own.start("node", "remove", "node-2", "--force") as removing:
        eventually(lambda: "SchedulingDisabled" in cluster.kubectl("get", "nodes"), "the drain has begun")
        with suppress(ProcessLookupError):  # on a machine that is very busy the drain may be over
            os.kill(victim, signal.SIGKILL)
        status, said = ends(removing)
    assert status == 0 and said.endswith("node-2 is drained\nnode-2 is gone\n"), said
    assert cluster.nodes() == ["node-1"] and "node-2" not in own.pids()
    assert "veth-node-2" not in cluster.inside("control-plane", "ip", "-o", "link")
    assert own.ok("node", "add") == "node-2 is Ready\n"


def test_a_command_that_is_killed_during_the_drain_leaves_a_node_that_takes_pods(own: Place) -> None:
    cluster = Cluster(own, "--nodes", "2")
    stubborn = "trap '' TERM; while true; do sleep 0.05; done"
    cluster.create(pod("slow", container("app", stubborn), nodeName="node-2", grace=5))
    removing = own.start("node", "remove", "node-2", "--force")
    eventually(lambda: "SchedulingDisabled" in cluster.kubectl("get", "nodes"), "node-2 is cordoned")
    removing.kill()
    removing.communicate()
    eventually(lambda: "SchedulingDisabled" not in cluster.kubectl("get", "nodes"), "node-2 takes Pods again")
    cluster.create(serving("after", "node-2"))
    # One that is killed while the node starts leaves a whole node.
    adding = own.start("node", "add")
    eventually(lambda: "node-3" in own.pids(), "node-3 starts")
    adding.kill()
    adding.communicate()
    eventually(lambda: "node-3" in cluster.nodes(), "node-3 is there")
    cluster.create(serving("three", "node-3"))


@pytest.mark.parametrize("doing", ["add", "remove"])
def test_a_front_that_is_killed_leaves_whole_nodes_for_the_next_start(own: Place, doing: str) -> None:
    state = str(own.home / "home/kept")
    own.kept.append(state)
    arguments = ("--nodes", "2", "--state", state)
    cluster = Cluster(own, *arguments)
    front = own.pids()["front"]
    if doing == "add":
        changing = own.start("node", "add")
        eventually(lambda: (Path(state) / "nodes.json").exists(), "node-3 is kept")
    else:
        changing = own.start("node", "remove", "node-2")
        eventually(lambda: (Path(state) / "nodes.json").exists(), "node-2 is forgotten")
    os.kill(front, signal.SIGKILL)
    assert ends(changing)[0] == 1
    cluster = Cluster(own, *arguments)
    expected = ["node-1", "node-2", "node-3"] if doing == "add" else ["node-1"]
    eventually(lambda: cluster.nodes() == expected, f"nodes are {expected}", said=cluster.nodes)
    assert [role for role in own.pids() if role.startswith("node-")] == expected


def test_what_cannot_be_done_is_said(own: Place) -> None:
    own.up("--nodes", "2")
    refused = [
        (("add", "node-2"), "there is a node 'node-2' already"),
        (("add", "node-65"), "'node-65' is no name of a node: write node-2 to node-64, or leave it out"),
        (("remove", "node-9"), "there is no node 'node-9': the cluster has node-1, node-2"),
        (("remove", "node-1"), "node-1 has the static Pods and carries published ports, and stays"),
        (("add", "--timeout", "10ms"), "node-3 is not Ready within 0.01 s (--timeout)"),
    ]
    for arguments, why in refused:
        result = own.run("node", *arguments)
        assert result.status == 1 and why in result.err, result.err
    assert "applies to the new one only" in own.run("node", "add", "--node-capacity", "node-3:cpu=1").err
    own.ok("node", "disconnect", "node-2")
    assert "lastcall node connect node-2" in own.run("node", "remove", "node-2").err
    own.ok("node", "connect", "node-2")
    assert sorted(own.pids()) == sorted(["front", "init", "control-plane", "shim-1", "node-1", "shim-2", "node-2"])
    own.ok("down")
    result = own.run("node", "add")
    assert result.status == 1 and "no cluster named 'lastcall' is running; lastcall up starts one" in result.err
