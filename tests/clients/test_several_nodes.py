"""`lastcall up --nodes N` on the real kernel: a network namespace each, and links that can be cut."""

import json
import os
import signal

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

SERVES = "mkdir /w; echo $HOSTNAME >/w/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /w & wait"
SOON = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 0}


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


class Cluster:
    """`kubectl` against a cluster of `nodes` nodes."""

    def __init__(self, place: Place, nodes: int) -> None:
        self.place = place
        facts = place.up("--nodes", str(nodes))
        assert facts["nodeCount"] == nodes
        self.kubeconfig = facts["kubeconfig"]

    def kubectl(self, *arguments: str, **options) -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, **options)

    def create(self, *manifests: dict) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self.kubectl("create", "-f", "-", stdin=text)
        names = [f"pod/{manifest['metadata']['name']}" for manifest in manifests]
        self.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *names)

    def pod(self, name: str) -> dict | None:
        text = self.kubectl("get", "pod", name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text else None

    def fetch(self, client: str, server: str) -> str:
        found = self.pod(server)
        assert found is not None
        return self.kubectl("exec", client, "--", "wget", "-qO-", f"http://{found['status']['podIP']}:8080/").strip()

    def ready(self, node: str) -> str:
        conditions = json.loads(self.kubectl("get", "node", node, "-o", "json"))["status"]["conditions"]
        return next(each["status"] for each in conditions if each["type"] == "Ready")

    def pid(self, role: str) -> int | None:
        (found,) = json.loads(self.place.ok("status", "lastcall", "-o", "json"))["clusters"]
        return next(process["pid"] for process in found["processes"] if process["role"] == role)


def serving(name: str, node: str, **spec) -> dict:
    probe = {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}
    return pod(name, container("app", SERVES, readinessProbe=probe), nodeName=node, grace=5, **spec)


def test_pods_of_several_nodes_reach_one_another_and_the_api_server(place: Place) -> None:
    cluster = Cluster(place, 3)
    cluster.create(
        serving("one", "node-1"), serving("two", "node-2"), serving("three", "node-3"),
        serving("host", "node-2", hostNetwork=True),
    )  # fmt: skip
    addresses = [cluster.pod(name)["status"]["podIP"] for name in ("one", "two", "three")]
    assert [address.rpartition(".")[0] for address in addresses] == ["10.244.0", "10.244.1", "10.244.2"]
    for client in ("one", "two"):
        assert [cluster.fetch(client, each) for each in ("one", "two", "three", "host")] == [
            "one", "two", "three", "node-2",
        ]  # fmt: skip
    assert cluster.fetch("host", "three") == "three"
    reach = "echo | nc {} {} >/dev/null"
    cluster.kubectl("exec", "two", "--", "sh", "-c", reach.format("10.96.0.1", 443))
    endpoint = json.loads(cluster.kubectl("get", "endpointslice", "kubernetes", "-o", "json"))
    address, port = endpoint["endpoints"][0]["addresses"][0], endpoint["ports"][0]["port"]
    cluster.kubectl("exec", "two", "--", "sh", "-c", reach.format(address, port))


def test_a_node_that_is_cut_off_is_lost_and_its_pod_ends_when_it_is_back() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        cluster = Cluster(place, 2)
        cluster.create(serving("lost", "node-2", tolerations=[SOON]), serving("kept", "node-1"))
        place.ok("node", "disconnect", "node-2")
        assert "node-2      Ready, cut off (lastcall node connect node-2 reconnects it)" in place.ok("status")
        eventually(lambda: cluster.ready("node-2") == "Unknown", "node-2 is lost", 90)
        eventually(lambda: "deletionTimestamp" in cluster.pod("lost")["metadata"], "its Pod is evicted")
        assert cluster.ready("node-1") == "True"
        place.ok("node", "connect", "node-2")
        assert "cut off" not in place.ok("status")
        eventually(lambda: cluster.pod("lost") is None, "the node ends the Pod")
        eventually(lambda: cluster.ready("node-2") == "True", "node-2 is back")
        cluster.create(serving("again", "node-2"))
        assert cluster.fetch("kept", "again") == "again"


def test_the_processes_of_a_second_node_may_die_as_those_of_the_first(place: Place) -> None:
    cluster = Cluster(place, 2)
    cluster.create(serving("a", "node-1"), serving("b", "node-2"))
    before = cluster.pid("node-2")
    os.kill(before, signal.SIGKILL)
    eventually(lambda: cluster.pid("node-2") not in (None, before), "node-2 is started again")
    cluster.create(serving("c", "node-2"))
    assert [cluster.fetch("a", each) for each in "bc"] == ["b", "c"]
    assert cluster.pod("b")["status"]["containerStatuses"][0]["restartCount"] == 0
    os.kill(cluster.pid("shim-2"), signal.SIGKILL)

    def restarts(name: str) -> int:
        return cluster.pod(name)["status"]["containerStatuses"][0]["restartCount"]

    eventually(lambda: restarts("b") == 1, "the containers of a dead shim are started again")
    assert restarts("a") == 0


def test_what_cannot_be_asked_of_a_node_is_said(place: Place) -> None:
    place.up()
    result = place.run("node", "disconnect", "node-2")
    assert result.status == 1
    assert "there is no node 'node-2': the cluster has node-1" in result.err
    result = place.run("node", "disconnect", "node-1")
    assert result.status == 1 and "start the cluster with --nodes 2" in result.err
    assert "65 is too many: give a whole number of nodes from 1 to 64" in place.run("up", "--nodes", "65").err
