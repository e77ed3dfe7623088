"""Services of a whole cluster, as a user meets them: kubectl, Pods, the node, and a node process that is killed."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import ordinary_user
import pytest
from kubectls import needs_kubectl
from staying import Place
from waiting import eventually

pytestmark = [
    pytest.mark.core,
    pytest.mark.real_kernel,
    needs_kubectl,
    pytest.mark.timeout(300),
]

APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: busybox:1.36
        command: [sh, -c, 'mkdir -p /tmp/www; hostname > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www']
        readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1}
"""
PATIENCE = 60.0


class Cluster:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.kubeconfig = place.up()["kubeconfig"]
        self._node = place.pids()["node-1"]

    def kubectl(self, *arguments: str, **more: Any) -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, **more)

    def service(self, name: str) -> Any:
        return json.loads(self.kubectl("get", "service", name, "-o", "json"))

    def in_node(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """A command in the node's network namespace."""
        enter = ["nsenter", "-t", str(self._node), "--user", "--preserve-credentials", "--net"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, timeout=PATIENCE, check=False)

    def kill_node(self) -> None:
        """And wait for the next one."""
        before = self._node
        subprocess.run(["kill", "-9", str(before)], check=True)
        self._node = eventually(lambda: self._other_node(before), "another node process", PATIENCE)

    def _other_node(self, before: int) -> int:
        now = self.place.pids().get("node-1", before)
        return now if now != before else 0

    def from_node(self, address: str, port: int = 80) -> str:
        """Which Pod answers, or why none does."""
        script = (
            "import sys, urllib.request as u\n"
            "try: print(u.urlopen(f'http://{sys.argv[1]}:{sys.argv[2]}/', timeout=20).read().decode().strip())\n"
            "except OSError as error: print(getattr(error, 'reason', error))"
        )
        done = self.in_node("python3", "-c", script, address, str(port))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def from_pod(self, pod: str, address: str, port: int = 80) -> str:
        ask = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 20 {address} {port}"
        return self.kubectl("exec", pod, "--", "sh", "-c", ask).strip().splitlines()[-1]

    def pods(self) -> list[str]:
        return sorted(self.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}").split())


@pytest.fixture(scope="module", params=ordinary_user.USERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Place(request.param) as place:
        found = Cluster(place)
        found.kubectl("apply", "-f", "-", stdin=APP)
        found.kubectl("expose", "deployment", "web", "--port", "80", "--target-port", "8080")
        found.kubectl("rollout", "status", "deployment/web", "--timeout", "60s")
        yield found


def test_pods_and_the_node_reach_a_service_by_its_cluster_ip(cluster: Cluster) -> None:
    address, pods = cluster.service("web")["spec"]["clusterIP"], cluster.pods()
    eventually(lambda: cluster.from_node(address) in pods, "the node reaches it", PATIENCE)
    assert cluster.from_pod(pods[0], address) in pods


def test_a_load_balancer_gets_an_address_on_which_the_node_answers(cluster: Cluster) -> None:
    cluster.kubectl(
        "expose", "deployment", "web", "--name", "lb", "--type", "LoadBalancer", "--port", "80", "--target-port", "8080"
    )
    found = eventually(lambda: cluster.service("lb")["status"]["loadBalancer"].get("ingress"), "an address", PATIENCE)
    address, pods = found[0]["ip"], cluster.pods()
    assert address in cluster.kubectl("get", "service", "lb")
    eventually(lambda: cluster.from_node(address) in pods, "the node answers on it", PATIENCE)
    node_port = cluster.service("lb")["spec"]["ports"][0]["nodePort"]
    assert cluster.from_node("172.18.0.2", node_port) in pods
    assert cluster.from_pod(pods[0], "172.18.0.2", node_port) in pods
    assert cluster.from_pod(pods[0], address) in pods


def test_the_story_of_a_pod_tells_when_its_node_stopped_sending_to_it(cluster: Cluster) -> None:
    pod = cluster.pods()[0]
    cluster.kubectl("delete", "pod", pod)
    explained = ("story", pod, "--explain")
    told = "node-1: no new connections any more, web → 10.244.0."
    eventually(lambda: told in cluster.place.run(*explained).out, "the rules are written", PATIENCE)
    story = cluster.place.run(*explained).out
    assert "that node still sends new connections as before" in " ".join(story.split())
    records = json.loads(cluster.place.run("story", pod, "-o", "json").out)["pods"][0]["records"]
    written = [r for r in records if r["kind"] == "EndpointRulesWritten" and r["facts"]["received"]]
    by_id = {record["id"]: record for record in records}
    seen = by_id[written[0]["causeId"]]
    assert seen["kind"] == "EndpointChangeSeen"
    assert by_id[seen["causeId"]]["kind"] in ("EndpointChanged", "EndpointRemoved")
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout", "60s")


def test_a_killed_node_process_leaves_the_rules_and_the_next_one_goes_on_with_them(cluster: Cluster) -> None:
    address = cluster.service("web")["spec"]["clusterIP"]
    eventually(lambda: cluster.from_node(address) in cluster.pods(), "the node reaches it", PATIENCE)
    cluster.kill_node()
    assert cluster.from_node(address) in cluster.pods()
    cluster.kubectl("scale", "deployment", "web", "--replicas", "0")
    eventually(lambda: "refused" in cluster.from_node(address), "no endpoint: refused", PATIENCE)
    cluster.kubectl("scale", "deployment", "web", "--replicas", "1")
    eventually(lambda: cluster.from_node(address) in cluster.pods(), "the node reaches the next Pod", PATIENCE)
