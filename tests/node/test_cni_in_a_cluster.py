"""The Pod network by the CNI plugins of Debian, in a whole cluster, as root and as an ordinary user."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

from lastcall.kube.cri.sandbox.network import NOWHERE

PLUGINS = Path("/usr/lib/cni")

pytestmark = [
    pytest.mark.real_kernel,
    needs_kubectl,
    pytest.mark.skipif(not (PLUGINS / "bridge").exists(), reason="needs containernetworking-plugins"),
    pytest.mark.skipif(os.getuid() != 0, reason="looks into the cluster's namespaces, as root"),
    pytest.mark.timeout(300),
]

PATIENCE = 60.0
SERVES = "mkdir /w; echo $HOSTNAME >/w/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /w & wait"
BRIDGE = {
    "type": "bridge",
    "bridge": "cni0",
    "isGateway": True,
    "hairpinMode": True,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.99.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
}
CHAIN = [
    BRIDGE,
    {"type": "portmap", "capabilities": {"portMappings": True}},
    {"type": "firewall"},
    {"type": "loopback"},
]

SWITCH = f"""#!{sys.executable} -IS
# Passes on what the plugin before gave. `fails` beside it: DEL does not work; `waits`: ADD does not end.
import json, os, sys, time
here, verb, request = os.path.dirname(sys.argv[0]), os.environ["CNI_COMMAND"], json.load(sys.stdin)
with open(f"{{here}}/calls", "a") as log:
    ips = [ip["address"] for ip in request.get("prevResult", {{}}).get("ips", [])]
    log.write(json.dumps([verb, os.environ["CNI_CONTAINERID"], ips, os.environ["CNI_NETNS"]]) + "\\n")
if verb == "ADD":
    while os.path.exists(f"{{here}}/waits"):
        time.sleep(0.02)
    print(json.dumps(request["prevResult"]))
if verb == "DEL" and os.path.exists(f"{{here}}/fails"):
    print(json.dumps({{"cniVersion": "1.0.0", "code": 101, "msg": "the switch is off"}}))
    sys.exit(1)
"""


class Cluster:
    def __init__(self, place: Place, *plugins: dict[str, Any]) -> None:
        self.place = place
        self.directory = place.home / "tmp" / "cni"
        self.directory.mkdir()
        place.kept.append(str(self.directory))
        self.directory.chmod(0o777)
        conf = {"cniVersion": "1.0.0", "name": "pods", "plugins": list(plugins)}
        (self.directory / "10-pods.conflist").write_text(json.dumps(conf))
        (self.directory / "20-other.conflist").write_text("never read")
        for plugin in PLUGINS.iterdir():
            (self.directory / plugin.name).symlink_to(plugin)
        (self.directory / "switch").write_text(SWITCH)
        (self.directory / "switch").chmod(0o755)
        directory = str(self.directory)
        self.kubeconfig = place.up("--cni-conf-dir", directory, "--cni-bin-dir", directory)["kubeconfig"]

    def kubectl(self, *arguments: str, **options: Any) -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, **options)

    def create(self, *manifests: dict[str, Any], wait: bool = True) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self.kubectl("create", "-f", "-", stdin=text)
        if wait:
            names = [f"pod/{manifest['metadata']['name']}" for manifest in manifests]
            self.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *names)

    def pod(self, name: str) -> dict[str, Any] | None:
        text = self.kubectl("get", "pod", name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text else None

    def events(self, reason: str) -> list[str]:
        found = json.loads(self.kubectl("get", "events", "-o", "json", "--field-selector", f"reason={reason}"))
        return [event["message"] for event in found["items"]]

    def inside(self, *command: str) -> str:
        """A command of the host in the node's network and mount namespaces."""
        node = str(self.place.pids()["node-1"])
        done = subprocess.run(["nsenter", "-t", node, "-m", "-n", *command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def addresses(self) -> list[str]:
        """What host-local has given away."""
        return sorted(name for name in self.inside("ls", "/var/lib/cni/networks/pods").split() if name[0].isdigit())

    def links(self) -> list[str]:
        """Those of Pods: the node has a pair of its own to which addresses without a Pod lead."""
        found = [each["ifname"] for each in json.loads(self.inside("ip", "-json", "link", "show", "type", "veth"))]
        return [name for name in found if not name.startswith(NOWHERE)]

    def rules(self, *words: str) -> list[str]:
        """iptables rules with one of the words."""
        lines = (self.inside("iptables", "-S") + self.inside("iptables", "-t", "nat", "-S")).splitlines()
        return [line for line in lines if any(word in line for word in words)]

    def paths_of_namespaces(self) -> list[str]:
        return self.inside("ls", "/lastcall/cni/netns", "/lastcall/durable/runtime-cni").split()

    def calls(self) -> list[list[Any]]:
        log = self.directory / "calls"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def assert_nothing_is_left(self) -> None:
        eventually(lambda: not self.addresses(), "every address is free again", PATIENCE)
        eventually(lambda: not self.links(), "no link is left", PATIENCE)
        assert self.rules("10.99.0.", "CNI-DN") == []
        assert [name for name in self.paths_of_namespaces() if not name.startswith("/")] == []


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with Place(request.param) as made:
        yield made


def serving(name: str, **fields: Any) -> dict[str, Any]:
    probe = {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}
    return pod(name, container("app", SERVES, readinessProbe=probe, **fields), grace=2)


@pytest.mark.rule("node-semantics 22.2/cni")
def test_pods_in_a_chain_of_debian_s_plugins(place: Place):
    """bridge with host-local, portmap, firewall and loopback: addresses, traffic, a host port, and nothing is left."""
    host_had = os.path.exists("/var/lib/cni")
    cluster = Cluster(place, *CHAIN)
    cluster.create(serving("one", ports=[{"containerPort": 8080, "hostPort": 9090}]), serving("two"))
    found = {name: cluster.pod(name) for name in ("one", "two")}
    ips = {name: each["status"]["podIP"] for name, each in found.items() if each}
    assert sorted(ips.values()) == cluster.addresses() == ["10.99.0.2", "10.99.0.3"]
    assert len(cluster.links()) == 2

    def fetch(client: str, address: str) -> str:
        return cluster.kubectl("exec", client, "--", "wget", "-qO-", f"http://{address}/").strip()

    assert fetch("two", f"{ips['one']}:8080") == "one"
    assert fetch("one", f"{ips['two']}:8080") == "two"
    assert fetch("two", f"{found['one']['status']['hostIP']}:9090") == "one", "portmap"
    assert "LOOPBACK,UP" in cluster.kubectl("exec", "one", "--", "ip", "link", "show", "lo")
    assert cluster.rules("9090") and cluster.rules("CNI-FORWARD -s 10.99.0.2")
    cluster.kubectl("delete", "pod", "one", "two", "--timeout=60s")
    cluster.assert_nothing_is_left()
    assert os.path.exists("/var/lib/cni") == host_had, "what plugins write is the cluster's own"


@pytest.mark.rule("node-semantics 22.2/cni")
@pytest.mark.rule("node-semantics 22.2/failed-del")
@pytest.mark.parametrize("place", ordinary_user.USERS[-1:], indirect=True)
def test_a_delete_that_fails_keeps_the_pod_until_the_plugin_works(place: Place):
    """And the node process dies between ADD and DEL, and in an ADD."""
    cluster = Cluster(place, BRIDGE, {"type": "switch"})
    cluster.create(serving("stays"))
    kill_the_node(cluster)
    fails = cluster.directory / "fails"
    fails.write_text("")
    cluster.kubectl("delete", "pod", "stays", "--wait=false")
    (message,) = eventually(lambda: cluster.events("FailedKillPod")[:1], "the kubelet says so", PATIENCE)
    (sandbox,) = {call[1] for call in cluster.calls()}
    uid = cluster.pod("stays")["metadata"]["uid"]
    assert message == (
        f'error killing pod: failed to "KillPodSandbox" for "{uid}" with KillPodSandboxError: "failed to destroy '
        f'network for sandbox \\"{sandbox}\\": plugin type=\\"switch\\" failed (delete): the switch is off"'
    )
    left = cluster.pod("stays")
    assert left is not None and left["metadata"]["deletionTimestamp"], "it stays Terminating"
    assert cluster.addresses() == ["10.99.0.2"], "bridge, which is first, is not asked before the others are done"
    fails.unlink()
    eventually(lambda: cluster.pod("stays") is None, "it goes when the plugin works again", PATIENCE)
    deletes = [call for call in cluster.calls() if call[0] == "DEL"]
    assert len(deletes) >= 2
    assert {(tuple(ips), netns) for _, _, ips, netns in deletes} == {
        (("10.99.0.2/24",), f"/lastcall/cni/netns/{sandbox}")
    }, "another process than the one that added it knows what was added"
    cluster.assert_nothing_is_left()
    detached = eventually(lambda: errors_of_detaching(place, "stays"), "the story is complete", PATIENCE)
    assert "the switch is off" in detached[0]

    waits = cluster.directory / "waits"
    waits.write_text("")
    cluster.create(serving("late"), wait=False)
    eventually(lambda: cluster.calls()[-1][0] == "ADD", "the plugin is asked", PATIENCE)
    first = cluster.calls()[-1][1]
    kill_the_node(cluster)
    waits.unlink()
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/late")
    eventually(lambda: len(cluster.addresses()) == 1, "the address of the first try is free", PATIENCE)
    assert ["DEL", first] in [call[:2] for call in cluster.calls()]
    assert cluster.addresses() == [cluster.pod("late")["status"]["podIP"]]
    cluster.kubectl("delete", "pod", "late", "--timeout=60s")
    cluster.assert_nothing_is_left()


def test_a_directory_that_configures_nothing_is_refused_before_anything_starts(tmp_path: Path):
    with Place(ordinary_user.USERS[0]) as place:
        told = place.run("up", "--cni-conf-dir", str(tmp_path))
        assert (told.status, "no network config found in" in told.err) == (2, True), told.err
        (tmp_path / "a.conf").write_text('{"name": "n", "cniVersion": "1.0.0", "type": "nothing"}')
        told = place.run("up", "--cni-conf-dir", str(tmp_path), "--cni-bin-dir", str(tmp_path))
        assert (told.status, 'failed to find plugin "nothing" in path' in told.err) == (2, True), told.err
        told = place.run("up", "--cni-bin-dir", str(tmp_path))
        assert (told.status, "--cni-bin-dir needs --cni-conf-dir" in told.err) == (2, True), told.err


def errors_of_detaching(place: Place, name: str) -> list[str]:
    """Of the Pod's story, once the last one says that it worked."""
    story = json.loads(place.run("story", name, "--output", "json").out)["pods"][0]
    errors = [each["facts"]["error"] for each in story["records"] if each["kind"] == "NetworkDetached"]
    return errors if errors and errors[-1] == "" else []


def kill_the_node(cluster: Cluster) -> None:
    before = cluster.place.pids()["node-1"]
    os.kill(before, signal.SIGKILL)
    eventually(lambda: cluster.place.pids().get("node-1", before) != before, "another node process", PATIENCE)
