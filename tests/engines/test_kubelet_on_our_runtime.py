"""A kubelet 1.36.2 on `lastcall runtime`, as a node of `lastcall up --join-token`.

In order: Pods run and are reached, the runtime is killed under them and comes back, its shim is killed, all of it ends.
Images are pulled from a registry with TLS.
"""

import base64
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from engines.cri_machine import LastcallRuntime, Machine, missing_critest
from engines.kubelet import ADDRESS, OtherNode, missing_kubelet
from kubectls import KUBECTL, needs_kubectl
from waiting import eventually

pytestmark = [
    pytest.mark.real_kernel,
    needs_kubectl,
    pytest.mark.skipif(bool(missing_critest()), reason=missing_critest()),
    pytest.mark.skipif(bool(missing_kubelet()), reason=missing_kubelet()),
    pytest.mark.timeout(600),
]

NAME, NODE = f"oncri-{os.getpid()}", "cri-1"
IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.29-2"
SERVES = (
    "trap 'exit 0' TERM; echo hello; mkdir -p /www; hostname > /www/index.html; httpd -p 8080 -h /www; "
    "while :; do sleep 0.1; done"
)
GATE = "featureGates: {PodAndContainerStatsFromCRI: true}\n"


@dataclass
class Cluster:
    machine: Machine
    runtime: LastcallRuntime
    facts: dict[str, Any]
    node: OtherNode
    home: Path

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        assert KUBECTL is not None
        network = ["nsenter", f"--net=/run/netns/{self.machine.netns}"]
        base = [*network, KUBECTL, "--kubeconfig", self.facts["kubeconfig"], "--cache-dir", str(self.home)]
        return subprocess.run(
            [*base, *arguments], input=stdin, capture_output=True, text=True, timeout=150, check=False
        )

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        said = (
            arguments,
            done.stdout,
            done.stderr,
            self.node.log("kubelet")[-3000:],
            self.machine.log("runtime")[-2000:],
        )
        assert done.returncode == 0, said
        return done.stdout

    def asked(self, *arguments: str) -> str:
        done = self.run(*arguments)
        return done.stdout if done.returncode == 0 else ""

    def apply(self, *objects: dict[str, Any]) -> None:
        self("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def status(self, pod: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.asked("get", "pod", pod, "-o", "json") or "{}").get("status", {})
        return found

    def main(self, pod: str) -> dict[str, Any]:
        """Its first container's status."""
        return next(iter(self.status(pod).get("containerStatuses", [])), {})

    def is_ready(self, pod: str) -> bool:
        return bool(self.main(pod).get("ready"))

    def summary(self, pod: str) -> dict[str, Any]:
        text = self.asked("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/stats/summary")
        pods = json.loads(text or '{"pods": []}')["pods"]
        return next((each for each in pods if each["podRef"]["name"] == pod), {})

    def start_kubelet(self) -> None:
        joining = self.facts["joining"]["kubeconfig"]
        cluster = yaml.safe_load(Path(joining).read_text())["clusters"][0]["cluster"]
        self.node.start_kubelet(joining, base64.b64decode(cluster["certificate-authority-data"]).decode())
        eventually(
            lambda: self.node_is("True"), "the node is Ready", 120, said=lambda: self.node.log("kubelet")[-3000:]
        )

    def node_is(self, ready: str) -> bool:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return self.asked("get", "node", NODE, "-o", path) == ready

    def crictl(self, *arguments: str) -> str:
        program = str(
            Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2") / "bin/crictl"
        )
        return self.machine(program, "-r", f"unix://{self.runtime.socket}", "-t", "30s", *arguments)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Machine() as machine:
        runtime = LastcallRuntime(machine)
        node = OtherNode(machine, NODE, socket=runtime.socket)
        with node:
            runtime.start()
            options = ("--join-token", "--listen", ADDRESS, "--timeout", "200", "-o", "json")
            started = machine.lastcall("up", NAME, "--detach", *options)
            assert started.returncode == 0, started.stderr
            try:
                yield Cluster(machine, runtime, json.loads(started.stdout), node, tmp_path_factory.mktemp("kubectl"))
            finally:
                ended = machine.lastcall("down", NAME)
                assert ended.returncode == 0, ended.stderr
    node.remove_groups()


def pod(name: str, *command: str, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": IMAGE, "command": list(command), **(container or {})}
    more = {"terminationGracePeriodSeconds": 5, "nodeSelector": {"kubernetes.io/hostname": NODE}, **spec}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [main], **more},
    }  # fmt: skip


def test_a_kubelet_joins_on_it_and_is_ready(cluster: Cluster) -> None:
    cluster.start_kubelet()
    waiting = ("get", "csr", "--field-selector", "spec.signerName=kubernetes.io/kubelet-serving", "-o", "name")
    eventually(lambda: bool(cluster.asked(*waiting).split()), "a request for its serving certificate", 60)
    cluster("certificate", "approve", *[each.partition("/")[2] for each in cluster(*waiting).split()])
    eventually(lambda: any(cluster.node.directory.glob("pki/kubelet-server-current.pem")), "its certificate", 60)
    info = json.loads(cluster("get", "node", NODE, "-o", "json"))["status"]
    assert info["nodeInfo"]["containerRuntimeVersion"].startswith("lastcall://")
    handlers = {each.get("name", ""): each["features"] for each in info["runtimeHandlers"]}
    assert handlers[""]["recursiveReadOnlyMounts"]


def test_a_pod_of_every_part_runs_and_is_reached(cluster: Cluster) -> None:
    volumes = [
        {"name": "data", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "config", "configMap": {"name": "settings"}},
    ]
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    hook = {"exec": {"command": ["sh", "-c", "echo hooked > /data/hook"]}}
    container = {
        "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}},
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1},
        "livenessProbe": {"exec": {"command": ["cat", "/data/init"]}, "periodSeconds": 1},
        "lifecycle": {"postStart": hook, "preStop": {"exec": {"command": ["sleep", "1"]}}},
        "volumeMounts": mounts,
    }
    init = {
        "name": "init",
        "image": IMAGE,
        "command": ["sh", "-c", "echo first > /data/init"],
        "volumeMounts": mounts[:1],
    }
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": "value"}}
    web = pod("web", "sh", "-c", SERVES, container=container, initContainers=[init], volumes=volumes)
    cluster.apply(settings, web)
    eventually(
        lambda: cluster.is_ready("web"), "web is ready", 90, said=lambda: cluster.asked("describe", "pod", "web")
    )
    main = cluster.main("web")
    assert main["image"] == IMAGE, "not the id by which the kubelet asked for it"
    assert main["imageID"].startswith("registry.k8s.io/e2e-test-images/busybox@sha256:")
    assert main["user"]["linux"] == {"uid": 0, "gid": 0, "supplementalGroups": [0]}
    read = "cat /data/init /data/hook; cat /config/key; mount | grep -c ' /memory type tmpfs'"
    assert cluster("exec", "web", "-c", "main", "--", "sh", "-c", read) == "first\nhooked\nvalue1\n"
    assert cluster("logs", "web", "-c", "main") == "hello\n"
    assert cluster("exec", "-i", "web", "-c", "main", "--", "cat", stdin="in and out") == "in and out"
    assert cluster.run("exec", "web", "-c", "main", "--", "sh", "-c", "exit 7").returncode == 7
    place = json.dumps({"spec": {"nodeSelector": {"kubernetes.io/hostname": NODE}}})
    attached = ("run", "typed", f"--image={IMAGE}", "--restart=Never", "-i", "--rm", "-q", "--overrides", place)
    assert "typed in" in cluster(*attached, "--", "cat", stdin="typed in\n")


def test_ports_are_forwarded_to_it(cluster: Cluster) -> None:
    script = f"""
{KUBECTL} --kubeconfig {cluster.facts["kubeconfig"]} port-forward pod/web 18081:8080 >/dev/null 2>&1 &
for i in $(seq 100); do found=$(busybox wget -q -O - http://127.0.0.1:18081/ 2>/dev/null) && break; sleep 0.1; done
kill $!; echo $found
"""
    network = ["nsenter", f"--net=/run/netns/{cluster.machine.netns}"]
    done = subprocess.run([*network, "sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "web", done.stderr


def test_its_use_of_the_machine_is_told_and_limited(cluster: Cluster) -> None:
    def main() -> dict[str, Any]:
        return next(iter(cluster.summary("web").get("containers", [])), {})

    eventually(lambda: main().get("cpu", {}).get("usageNanoCores"), "its CPU use, between two looks", 60)
    assert main()["memory"]["workingSetBytes"] > 0
    assert main()["memory"]["rssBytes"] > 0
    assert main()["rootfs"]["usedBytes"] > 0
    uid = cluster("get", "pod", "web", "-o", "jsonpath={.metadata.uid}")
    identity = cluster.main("web")["containerID"].removeprefix("lastcall://")
    top = Path("/sys/fs/cgroup")
    below = f"{cluster.node.groups}/kubepods/burstable/pod{uid}/{identity}"  # where the kubelet made the Pod's
    limits = [*top.glob(f"*/{below}/memory.limit_in_bytes"), *top.glob(f"{below}/memory.max")]
    assert [each.read_text().strip() for each in limits] == [str(64 << 20)]
    hungry = pod("hungry", "sh", "-c", "dd if=/dev/zero of=/dev/null bs=200M", restartPolicy="Never",
                 container={"resources": {"limits": {"memory": "32Mi"}}})  # fmt: skip
    cluster.apply(hungry)
    ended = eventually(lambda: cluster.main("hungry").get("state", {}).get("terminated"), "the end of hungry", 60)
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def test_pods_of_the_machines_namespaces_and_of_user_ids_of_their_own(cluster: Cluster) -> None:
    privileged = {"securityContext": {"privileged": True}}
    waits = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    cluster.apply(
        pod("host", *waits, hostNetwork=True, hostPID=True, container=privileged),
        pod("mapped", *waits, hostUsers=False),
    )
    for name in ("host", "mapped"):
        eventually(
            lambda name=name: cluster.is_ready(name),
            name,
            60,
            said=lambda name=name: cluster.asked("describe", "pod", name),
        )
    assert ADDRESS in cluster("exec", "host", "--", "ip", "-4", "addr", "show", "dev", "lo")
    assert "lastcall runtime" in cluster("exec", "host", "--", "sh", "-c", "ps").replace(
        "-m lastcall.cli.main", "lastcall"
    )
    assert cluster.status("host")["podIP"] == ADDRESS
    inside, outside, count = cluster("exec", "mapped", "--", "cat", "/proc/self/uid_map").split()
    assert (inside, count) == ("0", "65536")
    assert int(outside) >= 65536
    assert cluster("exec", "mapped", "--", "sh", "-c", "id -u; stat -c %u /bin/busybox").split() == ["0", "0"]


def test_what_is_mounted_on_the_machine_later_is_seen_by_those_who_asked(cluster: Cluster) -> None:
    shared = cluster.machine.directory / "shared"
    cluster.machine(
        "sh", "-c", f"mkdir -p {shared}/later; mount --bind {shared} {shared}; mount --make-shared {shared}"
    )
    volumes = [{"name": "host", "hostPath": {"path": str(shared)}}]
    waits = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    for name, propagation in (("sees", "HostToContainer"), ("private", "None")):
        mount = {"name": "host", "mountPath": "/host", "mountPropagation": propagation}
        cluster.apply(pod(name, *waits, volumes=volumes, container={"volumeMounts": [mount]}))
        eventually(lambda name=name: cluster.is_ready(name), name, 60)
    cluster.machine("sh", "-c", f"mount -t tmpfs later {shared}/later; touch {shared}/later/file")
    assert cluster("exec", "sees", "--", "ls", "/host/later") == "file\n"
    assert cluster("exec", "private", "--", "ls", "/host/later") == ""
    cluster("delete", "pod", "sees", "private", "--wait=true", "--timeout=60s")


def test_the_runtime_is_killed_under_the_kubelet_and_containers_live_on(cluster: Cluster) -> None:
    before = {name: cluster.main(name)["containerID"] for name in ("web", "host", "mapped")}
    cluster.runtime.kill()
    cluster("delete", "pod", "mapped", "--wait=false")
    cluster.runtime.start()
    eventually(lambda: not cluster.status("mapped"), "what was deleted meanwhile is gone", 60)
    eventually(lambda: cluster.is_ready("web"), "web is ready", 60)
    for name in ("web", "host"):
        now = cluster.main(name)
        assert (now["containerID"], now["restartCount"]) == (before[name], 0)
    assert cluster("exec", "web", "-c", "main", "--", "echo", "again") == "again\n"
    assert cluster("logs", "web", "-c", "main") == "hello\n"


def test_a_probe_that_fails_restarts_a_container_with_the_exit_code_of_its_end(cluster: Cluster) -> None:
    cluster("exec", "web", "-c", "main", "--", "rm", "/data/init")
    eventually(lambda: cluster.main("web").get("restartCount", 0) >= 1, "a restart", 60)
    ended = eventually(lambda: cluster.main("web").get("lastState", {}).get("terminated"), "its end", 30)
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    cluster("delete", "pod", "web", "--wait=true", "--timeout=60s")


@pytest.mark.parametrize("directory", ["", "host"])
def test_a_keeper_is_killed_and_the_kubelet_starts_its_containers_again(cluster: Cluster, directory: str) -> None:
    if not directory:
        cluster.apply(pod("plain", "sh", "-c", SERVES))
        eventually(lambda: cluster.is_ready("plain"), "plain is ready", 60)
    name = "host" if directory else "plain"
    before = cluster.main(name)["containerID"]
    pid = int((cluster.runtime.root / directory / "keeper").read_text())
    cluster.machine("kill", "-KILL", str(pid))
    eventually(
        lambda: cluster.is_ready(name) and cluster.main(name)["containerID"] != before,
        "another container", 90, said=lambda: cluster.asked("describe", "pod", name),
    )  # fmt: skip
    assert cluster.run("exec", name, "--", "true").returncode == 0


def test_with_stats_from_the_runtime_the_kubelets_metrics_name_pods_and_containers(cluster: Cluster) -> None:
    cluster.node.kill("kubelet")
    cluster.node.more = GATE
    cluster.start_kubelet()
    eventually(lambda: cluster.is_ready("plain"), "plain is ready", 60)
    raw = ("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/metrics/cadvisor")
    wanted = re.compile(r'^container_memory_rss\{container="main",.*namespace="default",pod="plain"\} [1-9]', re.M)
    eventually(lambda: wanted.search(cluster.asked(*raw)), "its metric", 60, said=lambda: cluster.asked(*raw)[:3000])
    assert re.search(
        r'^container_network_receive_bytes_total\{.*interface="eth0".*pod="plain"\} \d', cluster(*raw), re.M
    )
    eventually(lambda: cluster.summary("plain").get("network", {}).get("rxBytes") is not None, "its network", 60)
    assert cluster.summary("plain")["containers"][0]["memory"]["rssBytes"] > 0


def test_at_the_end_nothing_is_left_of_pods_and_runtime(cluster: Cluster) -> None:
    cluster("delete", "pods", "--all", "--timeout=100s")
    cluster.node.kill("kubelet")
    cluster.crictl("rmp", "-f", "-a")
    assert cluster.crictl("ps", "-a", "-q") == ""
    cluster.runtime.kill(signal.SIGTERM)
    root = str(cluster.runtime.root)
    left = [each for each in Path("/proc").glob("[0-9]*/cmdline") if root.encode() in _read(each)]
    assert not left
    assert root not in cluster.machine("cat", "/proc/mounts")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
