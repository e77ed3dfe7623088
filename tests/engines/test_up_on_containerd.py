"""`lastcall up --container-runtime-endpoint`: Pods are containers of containerd, of each version that is here.

All in a network namespace of its own, where containerd's Pods are, too.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engines.containerd import VERSIONS, Containerd
from kubectls import KUBECTL, needs_kubectl
from waiting import eventually

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection

pytestmark = [
    pytest.mark.real_kernel,
    needs_kubectl,
]

NAME = f"containerd-{os.getpid()}"
DRAINS = 'trap "echo bye; exit 0" TERM; echo hello; httpd -p 8080 -h /etc; while :; do sleep 0.1; done'
PLAIN = "while :; do sleep 0.1; done"


class Cluster:
    """A cluster on a containerd, and kubectl in their network."""

    def __init__(self, containerd: Containerd, kubeconfig: str, home: Path) -> None:
        self.containerd, self.kubeconfig, self._home = containerd, kubeconfig, home

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        assert KUBECTL is not None
        base = [*self.containerd.inside, KUBECTL, "--kubeconfig", self.kubeconfig, "--cache-dir", str(self._home)]
        return subprocess.run(
            [*base, *arguments], input=stdin, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def pod(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("get", "pod", name, "-o", "json"))
        return found

    def state(self, name: str, container: str = "") -> dict[str, Any]:
        status = self.pod(name)["status"]
        every = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        return next((each for each in every if container in ("", each["name"])), {"state": {}, "restartCount": 0})

    def create(self, name: str, *containers: dict[str, Any], **spec: Any) -> None:
        made = [{"name": f"c{number}", "image": "busybox:1.36", **each} for number, each in enumerate(containers)]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}}
        self("apply", "-f", "-", stdin=json.dumps({**pod, "spec": {"containers": made, **spec}}))

    def ready(self, name: str) -> None:
        self("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=90s")

    def end_of(self, name: str, container: str = "") -> dict[str, Any]:
        """How a container that ended by itself did."""
        eventually(lambda: "terminated" in self.state(name, container)["state"], f"{name} ends", 60)
        found: dict[str, Any] = self.state(name, container)["state"]["terminated"]
        return found

    def end_by_delete(self, name: str, *options: str) -> tuple[dict[str, Any], float]:
        """How a container ended that is deleted, by the last status that a watch shows; and how long kubectl took."""
        assert KUBECTL is not None
        watching = subprocess.Popen(
            [*self.containerd.inside, KUBECTL, "--kubeconfig", self.kubeconfig, "get", "pod", name, "-w", "-o",
             "jsonpath={.status.containerStatuses[0].state}{'\\n'}"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(0.5)  # the watch is open before the DELETE
        began = time.monotonic()
        self("delete", "pod", name, *options)
        seconds = time.monotonic() - began
        watching.terminate()
        lines = [line for line in watching.communicate()[0].splitlines() if "terminated" in line]
        assert lines, "no status told the end"
        found: dict[str, Any] = json.loads(lines[-1])["terminated"]
        return found, seconds

    def events(self, name: str) -> list[str]:
        found = json.loads(self("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json"))
        return [f"{each['reason']}: {each['message']}" for each in found["items"]]

    def pids(self) -> dict[str, int]:
        (cluster,) = json.loads(self.containerd.lastcall("status", NAME, "-o", "json").stdout)["clusters"]
        return {each["role"]: each["pid"] for each in cluster["processes"]}


@pytest.fixture(scope="module", params=VERSIONS)
def containerd(request: pytest.FixtureRequest) -> Iterator[Containerd]:
    with Containerd(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def cluster(containerd: Containerd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    done = containerd.lastcall(
        "up", NAME, "--detach", "-o", "json", "--container-runtime-endpoint", containerd.endpoint, "--timeout", "200"
    )
    assert done.returncode == 0, done.stderr
    try:
        yield Cluster(containerd, json.loads(done.stdout)["kubeconfig"], tmp_path_factory.mktemp("kubectl"))
    finally:
        ended = containerd.lastcall("down", NAME)
    assert ended.returncode == 0, ended.stderr
    assert containerd.sandboxes() == []
    assert witnesses(containerd) == []
    links = subprocess.run([*containerd.inside, "ip", "-br", "link"], capture_output=True, text=True, check=True)
    assert "lastcall" not in links.stdout
    assert "172.18" not in subprocess.run([*containerd.inside, "ip", "route"], capture_output=True, text=True).stdout


def test_a_pod_runs_and_is_reached_by_every_way(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create("web", {"command": ["sh", "-c", DRAINS], "ports": [{"containerPort": 8080}]})
    cluster.ready("web")
    node = json.loads(cluster("get", "node", "node-1", "-o", "json"))["status"]["nodeInfo"]
    assert node["containerRuntimeVersion"].startswith(f"containerd://{cluster.containerd.version}.")
    status = cluster.pod("web")["status"]
    assert status["podIP"].startswith("10.77.0.")
    assert status["containerStatuses"][0]["containerID"].startswith("containerd://")
    assert cluster("logs", "web").strip() == "hello"
    done = cluster.run("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.returncode) == ("out\n", 3)
    assert "err\n" in done.stderr
    assert cluster("exec", "-i", "web", "--", "cat", stdin="through stdin") == "through stdin"
    cluster("expose", "pod", "web", "--port=80", "--target-port=8080")
    address = json.loads(cluster("get", "service", "web", "-o", "json"))["spec"]["clusterIP"]
    asked = ("exec", "web", "--", "nslookup", "web.default.svc.cluster.local")
    eventually(lambda: address in cluster.run(*asked).stdout, "the Service's name", 60)
    ask = f"printf 'GET /hostname HTTP/1.0\\r\\n\\r\\n' | timeout 5 nc {address} 80"
    fetch = ("exec", "web", "--", "sh", "-c", ask)
    eventually(lambda: cluster.run(*fetch).stdout.endswith("\nweb\n"), "the Service, from its own endpoint", 60)
    proxied = cluster("get", "--raw", "/api/v1/namespaces/default/pods/web:8080/proxy/hostname")
    assert proxied == "web\n"
    assert KUBECTL is not None
    forwarding = subprocess.Popen(
        [*cluster.containerd.inside, KUBECTL, "--kubeconfig", cluster.kubeconfig, "port-forward", "pod/web", ":8080"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert forwarding.stdout is not None
    try:
        port = forwarding.stdout.readline().rpartition(" -> ")[0].rpartition(":")[2]
        url = f"http://127.0.0.1:{port}/hostname"
        for _ in range(2):
            got = subprocess.run(
                [*cluster.containerd.inside, "curl", "-s", "-m", "10", url], capture_output=True, text=True, check=False
            )
            assert got.stdout == "web\n"
    finally:
        forwarding.terminate()
        forwarding.wait(30)
    stats = json.loads(cluster("get", "--raw", "/api/v1/nodes/node-1/proxy/stats/summary"))
    (pod,) = [each for each in stats["pods"] if each["podRef"]["name"] == "web"]
    assert pod["containers"][0]["memory"]["workingSetBytes"] > 0
    end, _ = cluster.end_by_delete("web")
    assert (end["exitCode"], end["reason"]) == (0, "Completed")


def test_a_pod_with_the_hosts_network_is_reached_at_the_nodes_address(cluster: Cluster) -> None:
    cluster.create("hosts", {"command": ["sh", "-c", "httpd -p 8081 -h /etc; sleep 1000"]}, hostNetwork=True)
    cluster.ready("hosts")
    assert cluster.pod("hosts")["status"]["podIP"] == "172.18.0.2"
    path = "/api/v1/namespaces/default/pods/hosts:8081/proxy/resolv.conf"
    eventually(lambda: cluster.run("get", "--raw", path).returncode == 0, "its port", 30)
    cluster("delete", "pod", "hosts", "--grace-period=1")


def test_a_privileged_container_runs(cluster: Cluster) -> None:
    """containerd refuses one in a sandbox that was not asked for as privileged."""
    cluster.create("privileged", {"command": ["sleep", "1000"], "securityContext": {"privileged": True}})
    cluster.ready("privileged")
    cluster("delete", "pod", "privileged", "--grace-period=1")


def test_what_is_attached_sees_input_and_output(cluster: Cluster) -> None:
    cluster.create("echoes", {"command": ["cat"], "stdin": True, "stdinOnce": True}, restartPolicy="Never")
    cluster.ready("echoes")
    assert "said" in cluster("attach", "-i", "echoes", stdin="said\n")
    assert cluster.end_of("echoes")["exitCode"] == 0
    cluster("delete", "pod", "echoes")


@pytest.mark.parametrize(
    ("name", "script", "grace", "code", "least"),
    [
        ("ignores", f'trap "" TERM; {PLAIN}', 3, 137, 3.0),
        ("dies", f"exec sleep 1000 & trap 'kill $!; trap - TERM; kill -TERM $$' TERM; {PLAIN}", 30, 137, 0.0),
        ("says-143", f'trap "exit 143" TERM; {PLAIN}', 300, 143, 0.0),
    ],
)
def test_grace_and_exit_codes_are_exact(
    cluster: Cluster, name: str, script: str, grace: int, code: int, least: float
) -> None:
    cluster.create(name, {"command": ["sh", "-c", script]}, terminationGracePeriodSeconds=grace)
    cluster.ready(name)
    end, seconds = cluster.end_by_delete(name)
    assert (end["exitCode"], end["reason"]) == (code, "Error")
    assert seconds >= least


def test_hooks_run_before_the_signal(cluster: Cluster) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> /proc/1/fd/1; sleep 2"]}}}
    hook["postStart"] = {"exec": {"command": ["sh", "-c", "echo started >> /proc/1/fd/1"]}}
    cluster.create("hooked", {"command": ["sh", "-c", DRAINS], "lifecycle": hook})
    cluster.ready("hooked")
    eventually(lambda: "started" in cluster("logs", "hooked"), "the postStart hook")
    end, seconds = cluster.end_by_delete("hooked")
    assert end["exitCode"] == 0
    assert seconds >= 2.0


def test_probes_restart_and_hold_back(cluster: Cluster) -> None:
    probe = {"exec": {"command": ["test", "-e", "/tmp/well"]}, "periodSeconds": 1, "failureThreshold": 1}
    script = f"touch /tmp/well; {DRAINS}"
    ready = {"httpGet": {"path": "/hostname", "port": 8080}, "periodSeconds": 1}
    cluster.create("probed", {"command": ["sh", "-c", script], "livenessProbe": probe, "readinessProbe": ready})
    cluster.ready("probed")
    cluster("exec", "probed", "--", "rm", "/tmp/well")
    eventually(lambda: cluster.state("probed")["restartCount"] == 1, "it is restarted", 60)
    assert any("Liveness probe failed" in each for each in cluster.events("probed"))
    assert "hello" in cluster("logs", "--previous", "probed")
    cluster("delete", "pod", "probed")


def test_an_end_for_lack_of_memory_has_its_cause(cluster: Cluster) -> None:
    limits = {"limits": {"memory": "32Mi"}}
    grow = {"command": ["sh", "-c", "x=a; while :; do x=$x$x; done"], "resources": limits}
    cluster.create("hungry", grow, restartPolicy="Never")
    end = cluster.end_of("hungry")
    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")
    cluster("delete", "pod", "hungry")


def test_init_containers_and_sidecars_keep_their_order(cluster: Cluster) -> None:
    initial = [
        {"name": "first", "image": "busybox:1.36", "command": ["sh", "-c", "echo first > /data/order"]},
        {"name": "side", "image": "busybox:1.36", "command": ["sh", "-c", DRAINS], "restartPolicy": "Always"},
    ]
    for each in initial:
        each["volumeMounts"] = [{"name": "work", "mountPath": "/data"}]
    app = {"command": ["sh", "-c", "cat /data/order"], "volumeMounts": [{"name": "work", "mountPath": "/data"}]}
    volumes = [{"name": "work", "emptyDir": {"medium": "Memory"}}]
    cluster.create("ordered", app, initContainers=initial, volumes=volumes, restartPolicy="Never")
    assert cluster.end_of("ordered", "c0")["exitCode"] == 0
    assert cluster("logs", "ordered", "-c", "c0") == "first\n"
    eventually(lambda: cluster.pod("ordered")["status"]["phase"] == "Succeeded", "the sidecar ends after it", 60)
    assert cluster.end_of("ordered", "side")["exitCode"] == 0
    cluster("delete", "pod", "ordered")


def test_volumes_are_seen_by_the_container(cluster: Cluster) -> None:
    cluster("create", "configmap", "settings", "--from-literal=a=b")
    volumes = [
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}},
    ]
    mounts = [
        {"name": "config", "mountPath": "/config"},
        {"name": "scratch", "mountPath": "/part", "subPath": "a/b"},
        {"name": "scratch", "mountPath": "/whole"},
        {"name": "kept", "mountPath": "/kept"},
    ]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "kept"}, "spec": claim}
    cluster("apply", "-f", "-", stdin=json.dumps(made))
    script = "touch /part/x /kept/y; cat /config/a; ls /whole/a/b /kept; echo well > /dev/termination-log"
    cluster.create(
        "mounts", {"command": ["sh", "-c", script], "volumeMounts": mounts}, volumes=volumes, restartPolicy="Never"
    )
    end = cluster.end_of("mounts")
    assert (end["exitCode"], end["message"]) == (0, "well\n")
    assert cluster("logs", "mounts") == "b/kept:\ny\n\n/whole/a/b:\nx\n"
    cluster("delete", "pod", "mounts")


def test_a_failed_start_or_pull_is_reported_in_the_words_of_the_runtime(cluster: Cluster) -> None:
    cluster.create("nothing", {"command": ["/no/such/file"]}, restartPolicy="Never")
    end = cluster.end_of("nothing")
    assert (end["exitCode"], end["reason"]) == (128, "StartError")
    assert "no such file or directory" in end["message"]
    cluster.create("absent", {"image": "absent:1", "imagePullPolicy": "Never"})
    eventually(lambda: "ErrImageNeverPull" in str(cluster.state("absent")["state"]), "it is told")
    done = cluster.run("exec", "absent", "--", "true")
    assert done.returncode != 0
    cluster("delete", "pod", "nothing", "absent")


def test_running_pods_outlive_the_nodes_process_and_containerd(cluster: Cluster) -> None:
    cluster.create("stays", {"command": ["sh", "-c", DRAINS]})
    cluster.ready("stays")
    before = cluster.state("stays")["containerID"]
    os.kill(cluster.pids()["node-1"], signal.SIGKILL)
    cluster.create("next", {"command": ["sh", "-c", DRAINS]})
    cluster.ready("next")
    assert cluster.state("stays")["containerID"] == before
    cluster.containerd.kill()
    cluster("delete", "pod", "next", "--wait=false")
    cluster.containerd.start()
    cluster("wait", "--for=delete", "pod/next", "--timeout=60s")
    assert cluster("exec", "stays", "--", "echo", "again") == "again\n"
    status = cluster.state("stays")
    assert (status["containerID"], status["restartCount"]) == (before, 0)
    end, _ = cluster.end_by_delete("stays")
    assert end["exitCode"] == 0


def test_a_stop_goes_on_while_containerd_is_killed_and_started_again(cluster: Cluster) -> None:
    cluster.create("stopping", {"command": ["sh", "-c", f'trap "sleep 4; exit 9" TERM; {PLAIN}']})
    cluster.ready("stopping")
    cluster("delete", "pod", "stopping", "--wait=false")
    time.sleep(1.5)  # StopContainer is under way
    cluster.containerd.kill()
    cluster.containerd.start()
    cluster("wait", "--for=delete", "pod/stopping", "--timeout=90s")
    (container,) = story(cluster, "stopping", 0)["containers"]
    assert (container["exitCode"], container["signal"], container["disposition"]) == (9, None, "handled")


def test_a_witness_that_was_killed_is_followed_by_one_that_sees_the_same(cluster: Cluster) -> None:
    cluster.create(
        "seen", {"command": ["sh", "-c", f'trap "" TERM; sleep 1000 & {PLAIN}']}, terminationGracePeriodSeconds=2
    )
    cluster.ready("seen")
    parent, child = witnesses(cluster.containerd)
    os.kill(child, signal.SIGKILL)

    def the_next_one_listens() -> bool:
        return any(
            sockets(each) > sockets(parent) for each in witnesses(cluster.containerd) if each not in (parent, child)
        )

    eventually(the_next_one_listens, "the next one", 30)
    cluster.create("meanwhile", {"command": ["sh", "-c", DRAINS]})
    cluster.ready("meanwhile")
    cluster("delete", "pod", "seen", "meanwhile")
    (container,) = story(cluster, "seen", 3)["containers"]
    assert container["disposition"] == "ignored"
    assert parent in witnesses(cluster.containerd)


def witnesses(containerd: Containerd) -> list[int]:
    """The processes that look at its containers, the one that only waits for the other first.

    They are in its network namespace: another test's on this machine are not.
    """
    network = os.stat(f"/run/netns/{containerd.netns}").st_ino
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
                of_it = any(word.endswith(b"/v1/witness/__main__.py") for word in words) and b"--runtime" in words
                if of_it and os.stat(each / "ns/net").st_ino == network:
                    found.append(int(each.name))
            except OSError:
                continue
    return sorted(found)


def sockets(pid: int) -> int:
    """Count the sockets that a process has."""
    try:
        return sum(os.readlink(each).startswith("socket:") for each in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0


def test_a_runtime_class_names_the_handler_and_a_missing_one_is_reported(cluster: Cluster) -> None:
    made = [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler}
        for name, handler in (("plain", "runc"), ("none", "no-such-handler"))
    ]
    for each in made:
        cluster("apply", "-f", "-", stdin=json.dumps(each))
    cluster.create("classless", {"command": ["sleep", "1000"]}, runtimeClassName="none")
    cluster.create("classed", {"command": ["sleep", "1000"]}, runtimeClassName="plain")
    cluster.ready("classed")
    said = 'no runtime for "no-such-handler" is configured'
    eventually(lambda: any(said in each for each in cluster.events("classless")), "it is told", 60)
    cluster("delete", "pod", "classed", "classless", "--grace-period=1")
    cluster("delete", "runtimeclass", "plain", "none")


def test_a_failed_pull_is_reported_and_holds_no_other_pod_up(cluster: Cluster) -> None:
    cluster.create("unpulled", {"image": "127.0.0.1:1/nothing:1"})
    cluster.create("beside-it", {"command": ["sh", "-c", DRAINS]})
    cluster.ready("beside-it")
    said = lambda: [each for each in cluster.events("unpulled") if "connection refused" in each]  # noqa: E731
    assert eventually(said, "it is told", 60)[0].startswith('Failed: Failed to pull image "127.0.0.1:1/nothing:1": ')
    cluster("delete", "pod", "unpulled", "beside-it", "--grace-period=1")


def test_a_runtime_that_hangs_holds_nobody_up_for_ever(cluster: Cluster) -> None:
    cluster.create("hangs", {"command": ["sh", "-c", DRAINS]})
    cluster.ready("hangs")
    cluster.containerd.stop()
    try:
        cluster("delete", "pod", "hangs", "--wait=false")
        assert cluster.pod("hangs")["metadata"]["deletionTimestamp"]
        other = cluster.containerd.lastcall("up", "never", "--container-runtime-endpoint", cluster.containerd.endpoint)
        assert other.returncode == 1
        assert "has not answered within 10 s; fix: start the runtime again" in other.stderr, other.stderr
    finally:
        cluster.containerd.go_on()
    cluster("wait", "--for=delete", "pod/hangs", "--timeout=90s")


def test_events_are_streamed_by_containerd_from_1_7_on(cluster: Cluster) -> None:
    """The node listens to them; another reader gets some of 1.7's, which the node's next look at the lists replaces."""

    async def first() -> str:
        connection = RuntimeConnection(str(cluster.containerd.socket))
        try:
            async with asyncio.timeout(60):
                async for _ in connection.events():
                    return "an event"
        except RuntimeServiceError as error:
            return error.reason
        finally:
            await connection.close()
        return "ended"

    names = iter(f"eventful-{number}" for number in range(100))
    made: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: asyncio.run(first()))
        while not answer.done():
            made.append(next(names))
            cluster.create(made[-1], {"command": ["sh", "-c", DRAINS]})
            cluster.ready(made[-1])
    cluster("delete", "pod", *made, "--grace-period=1")
    said = answer.result()
    assert said == ("Unimplemented" if cluster.containerd.version == "1.6" else "an event")


def test_an_end_while_nobody_looked_is_found(cluster: Cluster) -> None:
    script = "while [ ! -e /tmp/end ]; do sleep 0.1; done; exit 7"
    cluster.create("ends", {"command": ["sh", "-c", script]}, restartPolicy="Never")
    cluster.ready("ends")
    node = cluster.pids()["node-1"]
    cluster("exec", "ends", "--", "sh", "-c", "(sleep 1; touch /tmp/end) > /dev/null 2>&1 &")
    os.kill(node, signal.SIGKILL)
    assert cluster.end_of("ends")["exitCode"] == 7
    cluster("delete", "pod", "ends")


def story(cluster: Cluster, name: str, status: int) -> dict[str, Any]:
    """What `lastcall story` tells of a Pod that is gone."""
    done = cluster.containerd.lastcall("story", name, "--cluster", NAME, "-o", "json")
    assert done.returncode == status, (done.returncode, done.stderr)
    (pod,) = json.loads(done.stdout)["pods"]
    assert isinstance(pod, dict)
    return pod


def findings(pod: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["message"] for each in pod["findings"]}


def test_the_story_tells_what_the_kernel_shows_and_says_what_it_does_not(cluster: Cluster) -> None:
    script = f'trap "" TERM; httpd -p 8080 -h /etc; sleep 1000 & echo ready; {PLAIN}'
    cluster.create("told", {"command": ["sh", "-c", script]}, terminationGracePeriodSeconds=2)
    cluster.ready("told")
    cluster("delete", "pod", "told")
    pod = story(cluster, "told", 3)
    (container,) = pod["containers"]
    assert (container["exitCode"], container["signal"]) == (137, "SIGKILL")
    assert container["disposition"] == "ignored"
    left = [each["name"] for each in container["processesLeft"]["processes"]]
    assert "httpd" in left and "sleep" in left, left
    assert [each["port"] for each in container["sockets"]["listeners"]] == [8080], container["sockets"]
    assert pod["notKnown"] == [
        "Who else sent signals is not known: neither the container runtime nor the kernel says who sends one."
    ]


def test_the_story_has_what_a_crash_printed(cluster: Cluster) -> None:
    """It ends before anybody can look at its process."""
    cluster.create("crash", {"command": ["sh", "-c", "echo no such table >&2; exit 3"]}, restartPolicy="Never")
    assert cluster.end_of("crash")["exitCode"] == 3
    cluster("delete", "pod", "crash")
    (container,) = story(cluster, "crash", 3)["containers"]
    assert (container["exitCode"], container["lastLines"]) == (3, ["no such table"])


def test_pods_of_other_clients_are_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    crictl = Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2") / "bin/crictl"
    if not crictl.exists():
        pytest.skip("crictl is not installed")
    config = {
        "metadata": {"name": "foreign", "namespace": "x", "uid": "u"},
        "log_directory": str(tmp_path),
        "linux": {},
    }
    (tmp_path / "pod.json").write_text(json.dumps(config))
    ask = [*cluster.containerd.inside, str(crictl), "-r", cluster.containerd.endpoint, "-t", "30s"]
    sandbox = subprocess.run([*ask, "runp", str(tmp_path / "pod.json")], capture_output=True, text=True, check=True)
    try:
        os.kill(cluster.pids()["node-1"], signal.SIGKILL)
        cluster.create("beside", {"command": ["sh", "-c", DRAINS]})
        cluster.ready("beside")
        cluster("delete", "pod", "beside")
        shown = subprocess.run(
            [*ask, "pods", "-q", "--no-trunc", "-s", "Ready"], capture_output=True, text=True, check=True
        ).stdout
        assert sandbox.stdout.strip() in shown.split()
    finally:
        subprocess.run([*ask, "rmp", "-f", sandbox.stdout.strip()], capture_output=True, check=True)


def test_a_second_cluster_on_the_same_runtime_is_refused(cluster: Cluster) -> None:
    endpoint = cluster.containerd.endpoint
    done = cluster.containerd.lastcall("up", f"{NAME}-2", "--detach", "--container-runtime-endpoint", endpoint)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.search(r"fix: ", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("flags", "status", "why"),
    [
        (("--container-runtime-endpoint=/run/x.sock",), 2, "write unix:///run/containerd/containerd.sock"),
        (
            ("--container-runtime-endpoint=unix:///nowhere/x.sock",),
            1,
            "no such file or directory; fix: start the runtime",
        ),
        (("--container-runtime-endpoint=unix:///nowhere/x.sock", "--nodes=2"), 2, "another runtime means one node"),
        (("--container-runtime-endpoint=unix:///nowhere/x.sock", "--egress"), 2, "--egress do not work together"),
    ],
)
def test_what_is_wrong_with_the_flag_is_told_before_anything_starts(
    containerd: Containerd, flags: tuple[str, ...], status: int, why: str
) -> None:
    done = containerd.lastcall("up", "never", *flags)
    assert done.returncode == status, done.stderr
    assert why in done.stderr and "Traceback" not in done.stderr


def test_another_network_namespace_is_told(containerd: Containerd) -> None:
    done = subprocess.run(
        containerd.lastcall_command("up", "never", "--container-runtime-endpoint", containerd.endpoint),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "is in another network namespace; fix: nsenter" in done.stderr
