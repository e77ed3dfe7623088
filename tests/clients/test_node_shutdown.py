"""`lastcall node shutdown`, SIGTERM to the node's process and `down --graceful`, on the real kernel."""

import json
import os
import signal

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import IGNORES_TERM, container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

MESSAGE = "Pod was terminated in response to imminent node shutdown."


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


@pytest.fixture
def own():
    with Place(ordinary_user.USERS[-1]) as made:
        yield made


def create(place: Place, kubeconfig: str, *manifests: dict) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    place.kubectl(kubeconfig, "create", "-f", "-", stdin=text)
    names = [f"pod/{manifest['metadata']['name']}" for manifest in manifests]
    place.kubectl(kubeconfig, "wait", "--for=condition=Ready", "--timeout=60s", *names)


def status_of(place: Place, kubeconfig: str, name: str) -> dict:
    return json.loads(place.kubectl(kubeconfig, "get", "pod", name, "-o", "json"))["status"]


def node_is_ready(place: Place, kubeconfig: str) -> bool:
    node = json.loads(place.kubectl(kubeconfig, "get", "node", "node-1", "-o", "json"))
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


def test_a_node_shuts_down_by_priority_and_may_be_cancelled(place: Place) -> None:
    kubeconfig = place.up()["kubeconfig"]
    critical = pod("critical", grace=1, priorityClassName="system-node-critical")
    create(place, kubeconfig, pod("stubborn", container("app", IGNORES_TERM), grace=60), critical)
    said = place.ok("node", "shutdown", "node-1", "--grace", "8", "--grace-critical", "5")
    assert said.splitlines()[0] == "priority 0 and above, 3 s: stubborn"
    assert said.splitlines()[-1] == "node-1 has shut down" and "critical" in said
    status = status_of(place, kubeconfig, "stubborn")
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Terminated", MESSAGE)
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    (condition,) = (c for c in status["conditions"] if c["type"] == "DisruptionTarget")
    assert condition["reason"] == "TerminationByKubelet"
    assert not node_is_ready(place, kubeconfig)
    late = pod("late", nodeName="node-1")
    place.kubectl(kubeconfig, "create", "-f", "-", stdin=json.dumps(late))
    eventually(lambda: status_of(place, kubeconfig, "late").get("reason") == "NodeShutdown", "it is rejected")
    assert "node-1 takes Pods again" in place.ok("node", "shutdown", "node-1", "--cancel")
    eventually(lambda: node_is_ready(place, kubeconfig), "the node is Ready again")
    create(place, kubeconfig, pod("after"))
    events = ("get", "events", "--field-selector", "involvedObject.kind=Node")
    text = "Shutdown manager detected shutdown cancellation"
    eventually(lambda: text in place.kubectl(kubeconfig, *events), "the Event")


def test_sigterm_to_the_node_s_process_is_a_shutdown_and_it_comes_back(own: Place) -> None:
    kubeconfig = own.up()["kubeconfig"]
    create(own, kubeconfig, pod("web", container("app", IGNORES_TERM), grace=2))
    node = own.pids()["node-1"]
    os.kill(node, signal.SIGTERM)
    eventually(lambda: status_of(own, kubeconfig, "web").get("reason") == "Terminated", "the Pod is ended")
    eventually(lambda: own.pids().get("node-1") not in (None, node), "the node is started again")
    create(own, kubeconfig, pod("after"))
    assert status_of(own, kubeconfig, "web")["phase"] == "Failed"
    eventually(lambda: "node-1 exited with 0" in own.ok("logs"), "it is logged")


def test_down_gracefully_lets_the_pods_end_first(own: Place) -> None:
    kubeconfig = own.up()["kubeconfig"]
    create(own, kubeconfig, pod("web"))
    said = own.ok("down", "--graceful")
    assert said.splitlines() == ["priority 0 and above, 20 s: web", "cluster lastcall is gone"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("node-1", "--grace", "5", "--grace-critical", "10"),
            "--grace 5 --grace-critical 10: critical Pods have 10 s of 5 s",
        ),
        (("node-1", "--grace-by-priority", "x=1"), "--grace-by-priority 'x=1': write a priority and a time"),
    ],
)
def test_bad_input_is_named(own: Place, arguments: tuple[str, ...], why: str) -> None:
    result = own.run("node", "shutdown", *arguments)
    assert result.status == 2 and why in result.err
    result = own.run("node", "shutdown", "node-1")
    assert result.status == 1 and "no cluster named 'lastcall' is running" in result.err
