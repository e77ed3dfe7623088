"""Real kubectl, and Pods of every kind, against `lastcall run --keep`: a cluster with kubelet, runtime and network."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import ordinary_user
import pytest
from kubectls import CURRENT, Kubectl, needs_kubectl
from pods import EXITS_ON_TERM, IGNORES_TERM, Manifest, container, pod, service
from run_command import Lastcall
from waiting import eventually

pytestmark = [pytest.mark.core, pytest.mark.real_kernel, needs_kubectl]


class Cluster(Kubectl):
    """kubectl with the KUBECONFIG that `run --keep` names."""

    def create(self, *manifests: Manifest) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self("create", "-f", "-", stdin=text)

    def ready(self, *names: str) -> None:
        self("wait", "--for=condition=Ready", "--timeout=60s", *(f"pod/{name}" for name in names))

    def output_of(self, name: str) -> str:
        """What a Pod that ends by itself printed."""
        self("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", f"pod/{name}")
        return self("logs", name)

    def begun(self, *names: str) -> None:
        """Wait until they are Ready and have printed `start`, by when their handler is there."""
        self.ready(*names)
        for name in names:
            eventually(lambda name=name: self("logs", name).startswith("start\n"), f"{name} has its handler")

    def events(self, name: str) -> list[str]:
        """Without the one that only lastcall has. They are written beside what they tell of, and soon after."""
        items = self.get("events", "--field-selector", f"involvedObject.name={name}")["items"]
        items.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        told = [f"{event['type']} {event['reason']}: {event['message']}" for event in items]
        return [line for line in told if "ImageSubstituted" not in line]


@pytest.fixture(scope="module", params=ordinary_user.USERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    arguments = ["run", "-", "--keep", "--after", "1", "--kubernetes-version", "1.36"]  # as what was recorded
    with Lastcall(arguments, manifests=[pod("first")], user=request.param) as command:
        command.tree()
        line = command.wait_for("The cluster stays up until Ctrl-C").text
        print(f"{request.param}: CapEff {command.credentials.cap_eff.strip()}")
        match = re.search(r"--kubeconfig (\S+)", line)
        assert match, line
        yield Cluster(CURRENT, match[1], str(tmp_path_factory.mktemp("kubectl")))
        command.interrupt()
        assert command.finish(60).status == 0


def test_the_kubeconfig_is_of_one_user_and_never_on_disk(cluster: Cluster) -> None:
    path = cluster.environment["KUBECONFIG"]
    assert re.fullmatch(r"/proc/\d+/fd/\d+", path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(path).st_nlink == 0


def test_create_get_logs_events_delete(cluster: Cluster) -> None:
    cluster.create(pod("basic"), service("basic"))
    cluster.begun("basic")
    name, ready, status, restarts, _ = cluster("get", "pod", "basic", "--no-headers").split()
    assert (name, ready, status, restarts) == ("basic", "1/1", "Running", "0")
    wide = cluster("get", "pod", "basic", "-o", "wide", "--no-headers")
    assert " 10.244.0." in wide and " node-1 " in wide
    assert cluster("logs", "basic") == "start\n"
    eventually(lambda: len(cluster.events("basic")) == 4, "four Events")
    assert cluster.events("basic") == [
        "Normal Scheduled: Successfully assigned default/basic to node-1",
        'Normal Pulled: Container image "busybox:1.36" already present on machine and can be accessed by the pod',
        "Normal Created: Container created",
        "Normal Started: Container started",
    ]
    eventually(lambda: "ImageSubstituted" in cluster("get", "events"), "the substitute is named in an Event of its own")
    eventually(lambda: [e["conditions"]["ready"] for e in endpoints_of(cluster, "basic")] == [True], "an endpoint")
    (endpoint,) = endpoints_of(cluster, "basic")
    assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert cluster("delete", "pod", "basic") == 'pod "basic" deleted\n'
    assert "NotFound" in cluster("get", "pod", "basic", status=1)
    eventually(lambda: cluster.events("basic")[-1] == "Normal Killing: Stopping container app", "the Event")
    eventually(lambda: not endpoints_of(cluster, "basic"), "the endpoint is gone")
    assert "NotFound" in cluster("logs", "basic", status=1)
    cluster("delete", "service", "basic")


def endpoints_of(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    slices = cluster.get("endpointslices", "-l", f"kubernetes.io/service-name={name}")["items"]
    return [endpoint for each in slices for endpoint in each.get("endpoints") or ()]


@pytest.mark.parametrize(
    ("arguments", "grace", "least"),
    [
        ([], 4, 4.0),
        (["--grace-period=3"], 600, 3.0),
        (["--now"], 600, 2.0),  # grace 1, which StopContainer raises to 2 s
        (["--force", "--grace-period=0"], 600, 0.0),
    ],
    ids=["default", "grace period", "now", "force"],
)
def test_delete_takes_what_its_grace_period_gives(
    cluster: Cluster, arguments: Sequence[str], grace: int, least: float
) -> None:
    """Never earlier; and not the Pod's own ten minutes where less was asked for: a kubectl has 60 s here."""
    cluster.create(pod("stubborn", container("app", IGNORES_TERM), grace=grace))
    cluster.begun("stubborn")
    began = time.monotonic()
    cluster("delete", "pod", "stubborn", *arguments)
    assert time.monotonic() - began >= least
    assert "NotFound" in cluster("get", "pod", "stubborn", status=1)


def test_a_name_is_free_again_at_once(cluster: Cluster) -> None:
    for _ in range(2):
        cluster.create(pod("again"))
        cluster.ready("again")
        cluster("delete", "pod", "again")


# -- what a watch shows: the writes that a real Kubernetes 1.36 makes -------------------------------------------------

ENDS: dict[str, tuple[Manifest, str, str, list[str]]] = {
    "graceful": (pod("graceful"), "Succeeded", "Completed 0", []),
    "exits-3": (
        pod("exits-3", container("app", "trap 'exit 3' TERM; echo start; while true; do sleep 0.05; done")),
        "Failed", "Error 3", [],
    ),
    "ignores-term": (pod("ignores-term", container("app", IGNORES_TERM), grace=2), "Failed", "Error 137", []),
    "hook": (pod("hook", container("app", pre_stop="sleep 1")), "Succeeded", "Completed 0", []),
    "hook-missing-binary": (
        pod("hook-missing-binary", container("app", lifecycle={"preStop": {"exec": {"command": ["/no/such"]}}})),
        "Succeeded", "Completed 0", ["Warning FailedPreStopHook: PreStopHook failed"],
    ),
    "hook-hangs": (
        pod("hook-hangs", container("app", pre_stop="sleep 60"), grace=1),
        "Succeeded", "Completed 0", ["Warning FailedPreStopHook: PreStopHook failed"],
    ),
}  # fmt: skip
"""Pod, its last phase, how its container ended, and the Events after Killing."""


def watched(process: "subprocess.Popen[str]", names: set[str]) -> dict[str, list[dict[str, Any]]]:
    """Watch events per Pod until each of `names` was DELETED; kubectl prints one a line."""
    assert process.stdout is not None
    left = set(names)
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    give_up = threading.Timer(120, process.kill)
    give_up.start()
    try:
        while left:
            line = process.stdout.readline()
            assert line, f"the watch ended before {left} were DELETED"
            event = json.loads(line)
            name = event["object"]["metadata"]["name"]
            if name in seen:
                seen[name].append(event)
                left -= {name} if event["type"] == "DELETED" else set()
    finally:
        give_up.cancel()
    return seen


def brief(event: dict[str, Any]) -> str:
    """One write in words: what matters of the end of a Pod."""
    metadata, status = event["object"]["metadata"], event["object"]["status"]
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    words = [
        event["type"],
        status["phase"],
        f"Ready={ready['status']}" + (f"/{ready['reason']}" if "reason" in ready else ""),
    ]
    words.append(f"grace={metadata['deletionGracePeriodSeconds']}")
    words.append(f"observed={status['observedGeneration']}/{metadata['generation']}")
    for each in status["containerStatuses"]:
        ((kind, state),) = each["state"].items()
        words.append(f"{kind} {state['reason']} {state['exitCode']}" if kind == "terminated" else kind)
    return " ".join(words)


def test_the_writes_and_events_of_an_end_are_those_of_a_real_kubernetes(cluster: Cluster) -> None:
    cluster.create(*(manifest for manifest, *_ in ENDS.values()))
    cluster.begun(*ENDS)
    watch = cluster.start("get", "pods", "-w", "-o", "json", "--output-watch-events")
    try:
        assert watch.stdout is not None
        for _ in ENDS:
            assert '"ADDED"' in watch.stdout.readline()
        cluster("delete", "pod", "--wait=false", *ENDS)
        events = watched(watch, set(ENDS))
    finally:
        watch.kill()
        watch.communicate()
    for name, (manifest, phase, ended, warnings) in ENDS.items():
        grace = manifest["spec"]["terminationGracePeriodSeconds"]
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        assert [brief(event) for event in events[name]] == [
            f"MODIFIED Running Ready=True grace={grace} observed=1/2 running",
            f"MODIFIED Running Ready=True grace={grace} observed=2/2 running",
            f"MODIFIED {phase} Ready=False/{reason} grace={grace} observed=2/2 terminated {ended}",
            f"MODIFIED {phase} Ready=False/{reason} grace=0 observed=2/2 terminated {ended}",
            f"DELETED {phase} Ready=False/{reason} grace=0 observed=2/2 terminated {ended}",
        ], name
        final = events[name][-1]["object"]["status"]["conditions"]
        assert {c["type"]: f"{c['status']} {c.get('reason', '')}".strip() for c in final} == {
            "PodReadyToStartContainers": "False",
            "Initialized": "True PodCompleted" if phase == "Succeeded" else "True",
            "Ready": f"False {reason}",
            "ContainersReady": f"False {reason}",
            "PodScheduled": "True",
        }, name
        told = ["Normal Killing: Stopping container app", *warnings]
        eventually(lambda name=name, told=told: cluster.events(name)[4:] == told, f"the Events of {name}: {told}")


# -- the Pod network and the token ------------------------------------------------------------------------------------

WEB = container(
    "app",
    "echo 'hello from a Pod' > /index.html; exec httpd -f -vv -p 8080 -h /",
    readinessProbe={"httpGet": {"port": 8080, "path": "/index.html"}, "periodSeconds": 1},
)
"""Ready means: the node reached the Pod over the network."""


def once(name: str, script: str, **fields: Any) -> Manifest:
    spec = {key: fields.pop(key) for key in ("volumes",) if key in fields}
    return pod(name, container("app", script, **fields), restartPolicy="Never", **spec)


def test_pods_reach_pods_and_the_node_and_the_node_reaches_pods(cluster: Cluster) -> None:
    cluster.create(pod("web", WEB, grace=1), pod("web-2", WEB, grace=1))
    cluster.ready("web", "web-2")
    ip, ip2 = (cluster.get("pod", name)["status"]["podIP"] for name in ("web", "web-2"))
    assert ip != ip2 and ip.startswith("10.244.0.")
    endpoint = cluster.get("endpointslice", "kubernetes")
    address, port = endpoint["endpoints"][0]["addresses"][0], endpoint["ports"][0]["port"]
    script = f"""
        wget -qO- http://{ip}:8080/index.html; wget -qO- http://{ip2}:8080/index.html
        nc -w 20 172.18.0.2 10250 </dev/null && echo node reached
        nc -w 20 10.96.0.1 443 </dev/null && echo API reached
        nc -w 20 {address} {port} </dev/null && echo its endpoint reached
        nc -w 20 {ip} 9 </dev/null || echo refused
        wget -qO- http://kubernetes.default/ 2>&1 || echo no DNS
    """
    cluster.create(once("visitor", script))
    text = cluster.output_of("visitor")
    visitor = cluster.get("pod", "visitor")["status"]["podIP"]
    assert text.count("hello from a Pod") == 2, text
    assert "its endpoint reached" in text and address != "10.96.0.1", text
    assert "node reached" in text and "API reached" in text and "refused" in text and "no DNS" in text, text
    eventually(lambda: visitor in cluster("logs", "web"), "a Pod sees the other's own address")
    cluster("delete", "pod", "web", "web-2", "visitor", "--now")


CALL_THE_API = """
import os, ssl, urllib.error, urllib.request
context = ssl.create_default_context(cadata=os.environ["CA"])
for token, namespace in ((os.environ["TOKEN"], "default"), (os.environ["TOKEN"], "kube-system"), ("wrong", "default")):
    url = "https://10.96.0.1:443/api/v1/namespaces/" + namespace + "/pods?limit=1"
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token})
    try:
        print(urllib.request.urlopen(request, timeout=60, context=context).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""


def test_a_pod_calls_the_api_with_its_token_and_may_what_its_role_says(cluster: Cluster) -> None:
    cluster("create", "role", "pod-reader", "--verb=list", "--resource=pods")
    cluster("create", "rolebinding", "pod-reader", "--role=pod-reader", "--serviceaccount=default:default")
    script = f"""
        cd /var/run/secrets/kubernetes.io/serviceaccount; ls; cat namespace; echo
        TOKEN=$(cat token) CA=$(cat ca.crt) exec chroot /host {sys.executable} -c "$CODE"
    """
    mount = {"name": "host", "mountPath": "/host", "readOnly": True}
    cluster.create(
        once(
            "caller",
            script,
            env=[{"name": "CODE", "value": CALL_THE_API}],
            volumeMounts=[mount],
            volumes=[{"name": "host", "hostPath": {"path": "/"}}],
        )
    )
    lines = cluster.output_of("caller").splitlines()
    assert lines[:4] == ["ca.crt", "namespace", "token", "default"]
    assert lines[4:] == ["200", "403", "401"], lines
    cluster("delete", "pod/caller", "role/pod-reader", "rolebinding/pod-reader")


def test_a_service_account_token_is_no_admin_s(cluster: Cluster) -> None:
    cluster.create(once("reader", "cat /var/run/secrets/kubernetes.io/serviceaccount/token"))
    token = cluster.output_of("reader").strip()
    assert token.count(".") == 2, "a JWT"
    refused = cluster("get", "pods", "--token", token, status=1)
    assert 'User "system:serviceaccount:default:default" cannot list resource "pods"' in refused
    cluster("delete", "pod", "reader")


def test_containers_are_entered_and_their_ports_forwarded(cluster: Cluster) -> None:
    cluster.create(pod("entered", container("app", "httpd -p 8080 -h /etc; " + EXITS_ON_TERM)))
    cluster.begun("entered")  # its server listens before it goes to the background
    assert cluster("exec", "-i", "entered", "--", "cat", stdin="through and back\n") == "through and back\n"
    assert "exit code 3" in cluster("exec", "entered", "--", "sh", "-c", "exit 3", status=3)
    forward = cluster.start("port-forward", "pod/entered", ":8080", "--address=127.0.0.1")
    assert forward.stdout is not None
    match = re.search(r"Forwarding from (127\.0\.0\.1:\d+)", forward.stdout.readline())
    assert match
    with urllib.request.urlopen(f"http://{match[1]}/hostname", timeout=60) as answer:
        assert answer.read() == b"entered\n"
    forward.send_signal(signal.SIGINT)
    forward.communicate(timeout=60)
    cluster("delete", "pod", "entered")


def test_an_ephemeral_container_sees_the_processes_of_its_target(cluster: Cluster) -> None:
    cluster.create(pod("debugged", container("app", f"sleep 43211 & {EXITS_ON_TERM}"), grace=1))
    cluster.ready("debugged")
    script = 'until ps -o args | grep -q "^sleep 43211"; do sleep 0.1; done; echo seen; sleep 3600'
    cluster("debug", "debugged", "--image=busybox:1.36", "-c", "probe", "--target=app", "--", "sh", "-c", script)
    deadline = time.monotonic() + 60
    while "seen" not in (cluster.start("logs", "debugged", "-c", "probe").communicate(timeout=60)[0]):
        assert time.monotonic() < deadline, cluster.get("pod", "debugged")["status"]
        time.sleep(0.2)  # pause of a poll
    cluster("delete", "pod", "debugged", timeout=60)
