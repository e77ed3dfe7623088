"""One cluster of lastcall on three machines: `up --pod-network` on the first, `node join` on the others.

Machines are network namespaces: in one network (host-gw), and with a router between them (vxlan). In order: they join,
work, one is drained, one is lost and comes back, and at the end nothing is left on any.
"""

import json
import os
import signal
from collections.abc import Iterator

import pytest
from engines.lan import Lan, missing_lan
from engines.several_machines import LASTCALL, NODES, Cluster, running
from kubectls import needs_kubectl
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl, pytest.mark.skipif(bool(missing_lan()), reason=missing_lan())]


@pytest.fixture(scope="module", params=["vxlan", "host-gw"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    mode: str = request.param
    home = tmp_path_factory.mktemp("machines")
    with (
        Lan("machines", 3, routed=mode == "vxlan") as lan,
        running(lan, f"machines-{mode}-{os.getpid()}", home, mode) as it,
    ):
        yield it


def test_nodes_of_other_machines_have_ranges_of_their_own_and_know_the_dns_service(cluster: Cluster) -> None:
    items = json.loads(cluster("get", "nodes", "-o", "json"))["items"]
    ranges = {each["metadata"]["name"]: each["spec"]["podCIDR"] for each in items}
    assert ranges == {"node-1": "10.244.0.0/24", "two": "10.244.64.0/24", "three": "10.244.65.0/24"}
    assert {cluster.ready(node) for node in ranges} == {"True"}
    assert sorted(cluster.pods()) == ["node-1", "three", "two"]


@pytest.mark.parametrize("client", ["node-1", "two", "three"])
def test_every_pod_is_reached_from_every_machine(cluster: Cluster, client: str) -> None:
    pods = {node: found[0] for node, found in cluster.pods().items()}
    asking = pods[client][0]
    for name, address in pods.values():
        fetch = f"timeout 5 wget -q -O - http://{address}:8080/"
        eventually(
            lambda fetch=fetch: cluster.asked("exec", asking, "--", "sh", "-c", fetch).returncode == 0, fetch, 20
        )
        assert cluster("exec", asking, "--", "sh", "-c", fetch).strip() == name
        big = f"timeout 20 wget -q -O - http://{address}:8080/big | wc -c"
        assert int(cluster("exec", asking, "--", "sh", "-c", big)) == 3 << 20
        assert cluster.machine(client).fetch(f"http://{address}:8080/").strip() == name


@pytest.mark.parametrize("client", ["node-1", "two", "three"])
def test_a_service_has_the_pods_of_all_machines_by_its_name(cluster: Cluster, client: str) -> None:
    pods = {node: found[0][0] for node, found in cluster.pods().items()}
    ask = "for i in $(seq 30); do timeout 5 wget -q -O - http://web.default.svc.cluster.local/; done"

    def answered() -> set[str]:
        return set(cluster("exec", pods[client], "--", "sh", "-c", ask).split())

    eventually(lambda: answered() == set(pods.values()), "all answer", 60)
    reach = "nc -w 3 kubernetes.default 443 </dev/null && echo reached"
    assert "reached" in cluster("exec", pods[client], "--", "sh", "-c", reach)


def test_logs_exec_and_proxy_go_to_every_machine(cluster: Cluster) -> None:
    for node, ((name, _),) in cluster.pods().items():
        assert "hello" in cluster("logs", name), node
        assert cluster("exec", "-i", name, "--", "cat", stdin="in and out").strip() == "in and out"
        assert cluster("get", "--raw", f"/api/v1/namespaces/default/pods/{name}:8080/proxy/").strip() == name


def test_an_end_is_told_in_full_on_its_machine_and_what_is_known_on_the_first(cluster: Cluster) -> None:
    ((name, _),) = cluster.pods()["two"]
    cluster("delete", "pod", name, "--wait=true")
    there = cluster.lastcall("two", "story", name, "--name", cluster.own_name("two")).stdout
    assert "SIGTERM" in there and "exit code 0 (Completed)" in there, there
    here = cluster.first.run(LASTCALL, "story", name, "--name", cluster.name, check=False).stdout
    assert "DELETE accepted" in here
    assert "how it ended is not known: its node records nothing here" in here
    cluster("rollout", "status", "daemonset/web", "--timeout=60s")


def test_a_drain_moves_pods_to_another_machine(cluster: Cluster) -> None:
    cluster("cordon", "node-1")
    cluster("cordon", "three")
    cluster.deploy("moved", replicas=2)
    assert set(cluster.pods("moved")) == {"two"}
    cluster("uncordon", "three")
    cluster("drain", "two", "--ignore-daemonsets", "--timeout=90s")
    eventually(lambda: len(cluster.pods("moved").get("three", [])) == 2, "both are on three", 60)
    for node in ("node-1", "two"):
        cluster("uncordon", node)


def test_a_machine_that_is_lost_is_replaced_and_comes_back(cluster: Cluster) -> None:
    before = {name for name, _ in cluster.pods("moved")["three"]}
    cluster.lan.cut(NODES["three"] + 1)
    eventually(lambda: cluster.ready("three") == "Unknown", "the node is lost", 110)

    def elsewhere() -> int:
        pods = cluster.pods("moved")
        return sum(len(found) for node, found in pods.items() if node != "three")

    eventually(lambda: elsewhere() == 2, "its Pods are replaced", 110)
    asking = cluster.pods()["node-1"][0][0]
    ask = "for i in $(seq 20); do timeout 5 wget -q -O - http://web/; done"
    alive = {cluster.pods()[node][0][0] for node in ("node-1", "two")}
    answered = set(cluster("exec", asking, "--", "sh", "-c", ask).split())
    assert answered == alive, "the Service leads to no lost Pod"
    cluster.lan.cut(NODES["three"] + 1, off=False)
    eventually(lambda: cluster.ready("three") == "True", "Ready again", 110)
    left = ("get", "pods", "-l", "app=moved", "--field-selector", "spec.nodeName=three", "-o", "name")
    eventually(lambda: not cluster(*left), "what was to end has ended", 110)
    told = cluster.lastcall("three", "story", next(iter(before)), "--name", cluster.own_name("three")).stdout
    assert "SIGTERM" in told, told
    name, address = cluster.pods()["three"][0]
    fetch = f"timeout 5 wget -q -O - http://{address}:8080/"
    eventually(lambda: cluster.asked("exec", asking, "--", "sh", "-c", fetch).stdout.strip() == name, fetch, 60)


def test_two_nodes_of_one_machine_and_one_beside_the_first_are_in_it_too(cluster: Cluster) -> None:
    more = {"two-b": cluster.machine("two"), "one-b": cluster.first}
    before = set(cluster("get", "csr", "-o", "name").split())
    try:
        for node, machine in more.items():
            own = ("--node-name", node, "--name", f"{cluster.name}-{node}", "--kubelet-port", "10251")
            words = (*cluster.join.split()[2:], *own, "--detach", "--state", str(cluster.home / node))
            machine.run(LASTCALL, *words, timeout=200)

        def waiting() -> list[str]:
            mine = [f"system:node:{node}" for node in more]
            items = json.loads(cluster("get", "csr", "-o", "json"))["items"]
            return [each["metadata"]["name"] for each in items if each["spec"]["username"] in mine]

        eventually(lambda: len(waiting()) == 4, f"requests beside {before}", 60)
        cluster("certificate", "approve", *waiting())
        cluster("rollout", "status", "daemonset/web", "--timeout=90s")
        pods = {node: found[0] for node, found in cluster.pods().items()}
        assert len(pods) == 5
        for client, (asking, _) in pods.items():
            for name, address in pods.values():
                fetch = f"timeout 5 wget -q -O - http://{address}:8080/"
                got = lambda asking=asking, fetch=fetch: cluster.asked("exec", asking, "--", "sh", "-c", fetch).stdout  # noqa: E731
                eventually(lambda got=got, name=name: got().strip() == name, f"{client} reaches {name}", 30)
        # One process routes for both nodes of the machine; when it ends, the other one does.
        cluster.lastcall("two", "down", cluster.own_name("two"))
        name, address = pods["two-b"]
        asking = pods["node-1"][0]
        fetch = ("exec", asking, "--", "timeout", "5", "wget", "-q", "-O", "-", f"http://{address}:8080/")
        routes = cluster.machine("two").run
        eventually(lambda: "proto 108" in routes("ip", "route").stdout, "it routes", 30)
        eventually(lambda: cluster.asked(*fetch).stdout.strip() == name, "two-b is reached", 30)
        state = str(cluster.home / "two")
        own = ("--node-name", "two", "--name", cluster.own_name("two"))
        cluster.lastcall("two", "node", "join", *own, "--detach", "--state", state)
    finally:
        for node, machine in more.items():
            machine.run(LASTCALL, "down", f"{cluster.name}-{node}", check=False)
            cluster.asked("delete", "node", node)


def test_a_node_whose_processes_are_killed_leaves_nothing_and_joins_again(cluster: Cluster) -> None:
    machine = cluster.machine("two")
    eventually(lambda: "proto 108" in machine.run("ip", "route").stdout, "it routes, for the other one has ended", 60)
    own = cluster.own_name("two")
    (status,) = json.loads(cluster.lastcall("two", "status", own, "-o", "json").stdout)["clusters"]
    os.kill(status["pid"], signal.SIGKILL)
    eventually(lambda: machine.left() == [], "nothing is left", 20, said=machine.left)
    # It is known: neither token nor approval is needed.
    state = str(cluster.home / "two")
    cluster.lastcall("two", "node", "join", "--node-name", "two", "--name", own, "--detach", "--state", state)
    asking = cluster.pods()["node-1"][0][0]

    def answers() -> bool:
        pods = cluster.pods().get("two")
        fetch = f"timeout 5 wget -q -O - http://{pods[0][1]}:8080/" if pods else "false"
        return bool(pods) and cluster.asked("exec", asking, "--", "sh", "-c", fetch).stdout.strip() == pods[0][0]

    eventually(answers, "its Pod is reached", 90)


def test_a_node_that_goes_is_routed_to_no_more(cluster: Cluster) -> None:
    cluster.lastcall("two", "down", cluster.own_name("two"))
    assert cluster.machine("two").left() == []
    cluster("delete", "node", "two")
    for machine in (cluster.first, cluster.machine("three")):
        gone = lambda machine=machine: "10.244.64.0/24" not in machine.run("ip", "route").stdout  # noqa: E731
        eventually(gone, "no route is left", 60)
