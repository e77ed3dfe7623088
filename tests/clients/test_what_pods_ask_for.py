"""What a Pod may ask of its node, on the real kernel and with a real kubectl: one cluster, many small Pods."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import pytest
from kept_cluster import kept_cluster, make_images
from kernel_features import needs_mapped_tmpfs
from kubectls import CURRENT, Kubectl
from pods import Manifest, container, pod
from waiting import eventually

from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.cri.sandbox.images import ImageStore, build_image
from lastcall.kube.cri.sandbox.spec import ImageConfig

pytestmark = pytest.mark.real_kernel

NODE_IP = "172.18.0.2"
SLEEPS = "trap 'exit 0' TERM; while true; do sleep 0.1; done"


HEALTH = """
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static const unsigned char settings[] = {%s}, answer[] = {%s};
static void leave(int number) { _exit(0); }
static int take(int fd, unsigned char *to, int size) {
    for (int got, at = 0; at < size; at += got) if ((got = read(fd, to + at, size - at)) <= 0) return 0;
    return 1;
}
static void serve(int fd) {
    unsigned char head[24], body[1 << 16];
    if (!take(fd, head, 24)) return;
    write(fd, settings, sizeof settings);
    while (take(fd, head, 9)) {
        if (!take(fd, body, head[1] << 8 | head[2])) return;
        if (head[3] == 0) write(fd, answer, sizeof answer);
    }
}
int main(void) {
    static struct sigaction action, ignore;
    action.sa_handler = leave, ignore.sa_handler = SIG_IGN;
    sigaction(SIGUSR1, &action, 0), sigaction(SIGPIPE, &ignore, 0);
    struct sockaddr_in all = {.sin_family = AF_INET, .sin_port = htons(9000)};
    int server = socket(AF_INET, SOCK_STREAM, 0), fd;
    if (bind(server, (struct sockaddr *)&all, sizeof all) || listen(server, 16)) return 1;
    while ((fd = accept(server, 0, 0)) >= 0) serve(fd), close(fd);
}
"""
"""Answers every HTTP/2 request with what a healthy gRPC service says; ends on SIGUSR1."""


def make_health_image(root: Path) -> None:
    """health:1, whose stop signal is SIGUSR1."""
    speaker = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    speaker.initiate_connection()
    settings = speaker.data_to_send()
    asker = h2.connection.H2Connection()
    asker.initiate_connection()
    asker.send_headers(1, [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "a")])
    speaker.receive_data(asker.data_to_send())
    speaker.send_headers(1, [(":status", "200"), ("content-type", "application/grpc")])
    speaker.send_data(1, b"\0\0\0\0\2\x08\1")
    speaker.send_headers(1, [("grpc-status", "0")], end_stream=True)
    source, program = root / "health.c", root / "health"
    both = (",".join(map(str, data)) for data in (settings, speaker.data_to_send()))
    source.write_text(HEALTH % tuple(both))
    subprocess.run(["gcc", "-static", "-O1", "-w", "-o", str(program), str(source)], check=True, timeout=60)
    store = ImageStore(root / "lastcall" / "images", unpacked=root / "unpacked")
    config = ImageConfig(entrypoint=("/health",), stop_signal="SIGUSR1")
    build_image(store, "health:1", {"/health": (str(program), 0o755)}, config)
    build_image(store, "held:1", {"/etc/words": (b"held\n", 0o644)})


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    data = tmp_path_factory.mktemp("data")
    make_images(data)
    make_health_image(data)
    gates = {"ContainerStopSignals": True, "TCPSocketLifecycleHook": True}
    with kept_cluster(data, feature_gates=gates, version=DEFAULT_VERSION) as path:
        kubectl = Kubectl(CURRENT, path, str(tmp_path_factory.mktemp("home")), "default")
        eventually(lambda: kubectl.run("get", "serviceaccount", "default")[0] == 0)
        create(kubectl, *POD_LIST)
        yield kubectl


def create(kubectl: Kubectl, *manifests: Manifest) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    kubectl("create", "-f", "-", stdin=text)


def ended(kubectl: Kubectl, name: str, phase: str = "Succeeded") -> dict[str, Any]:
    """The status of a Pod that ends by itself."""
    kubectl("wait", f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=60s", f"pod/{name}", timeout=70)
    status: dict[str, Any] = kubectl.get("pod", name)["status"]
    return status


def said(kubectl: Kubectl, name: str, of: str = "app") -> dict[str, str]:
    """What a Pod printed, `name=value` lines."""
    ended(kubectl, name)
    lines = kubectl("logs", name, "-c", of).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def events(kubectl: Kubectl, name: str) -> list[str]:
    items = kubectl.get("events", "--field-selector", f"involvedObject.name={name}")["items"]
    return [f"{event['reason']}: {event['message']}" for event in items]


def once(name: str, script: str, spec: dict[str, Any] | None = None, **fields: Any) -> Manifest:
    """A Pod that runs a script to its end."""
    return pod(name, container("app", script, **fields), grace=1, restartPolicy="Never", **(spec or {}))


def field(path: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def health(port: int) -> Manifest:
    """A container that is Ready when gRPC's health service at `port` says so."""
    return {"name": "app", "image": "health:1", "readinessProbe": {"grpc": {"port": port}, "periodSeconds": 1}}


ENVIRONMENT = [
    {"name": "NAME", **field("metadata.name")},
    {"name": "IP", **field("status.podIP")},
    {"name": "NODE", **field("spec.nodeName")},
    {"name": "COLOUR", **field("metadata.labels['colour']")},
    {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "password"}}},
    {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "missing", "key": "x", "optional": True}}},
    {"name": "BOTH", "value": "$(NAME)-$(LEVEL)-$$(LEVEL)-$(NOBODY)"},
]

VOLUMES = {
    "volumes": [{"name": "data", "emptyDir": {}}],
    "initContainers": [
        container(
            "init", "mkdir /data/one /data/expr; echo first > /data/one/file; echo second > /data/expr/file",
            volumeMounts=[{"name": "data", "mountPath": "/data"}],
        )
    ],
}  # fmt: skip

DATA = [{"name": "data", "mountPath": "/data"}]

POD_LIST: list[Manifest] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"level": "high", "size": "9"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}, "stringData": {"password": "p$(A)"}},
    {
        **once(
            "environment",
            'env; echo "ARGUMENT=$0"',
            env=ENVIRONMENT,
            envFrom=[{"configMapRef": {"name": "settings"}, "prefix": "S_"}],
            args=["$(NAME):$(IP)"],
            resources={"limits": {"memory": "64Mi"}},
        ),
        "metadata": {"name": "environment", "labels": {"colour": "red"}},
    },
    once(
        "names",
        "echo hosts=$(grep blog /etc/hosts | tr '\\t' ' '); echo resolv=$(cat /etc/resolv.conf); echo host=$(hostname)",
        {
            "hostname": "web", "subdomain": "shop",
            "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["blog.example", "blog"]}],
            "dnsPolicy": "None",
            "dnsConfig": {
                "nameservers": ["192.0.2.53"],
                "searches": ["shop.example"],
                "options": [{"name": "ndots", "value": "2"}],
            },
        },
    ),
    once(
        "volumes",
        "echo one=$(cat /one); echo expr=$(cat /expr/file); echo ro=$(touch /expr/x 2>&1)",
        VOLUMES,
        env=[{"name": "WHICH", "value": "expr"}],
        volumeMounts=[
            {"name": "data", "mountPath": "/one", "subPath": "one/file"},
            {"name": "data", "mountPath": "/expr", "subPathExpr": "$(WHICH)", "readOnly": True},
        ],
    ),
    once(
        "ids",
        "echo uid=$(id -u); echo gid=$(id -g); echo groups=$(id -G); echo dir=$(stat -c '%g %a' /data); "
        "touch /data/mine; echo file=$(stat -c '%u %g' /data/mine)",
        {
            "securityContext": {"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000, "supplementalGroups": [4000]},
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    ),
    once(
        "confined",
        "echo root=$(touch /x 2>&1); echo eff=$(grep CapEff /proc/self/status | cut -f2); "
        "echo seccomp=$(grep Seccomp: /proc/self/status | cut -f2); "
        "echo nnp=$(grep NoNewPrivs /proc/self/status | cut -f2)",
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        securityContext={
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
        },
    ),
    once("message-file", "echo noise; echo from the file > /dev/termination-log; exit 1"),
    once("message-log", "echo last words; exit 1", terminationMessagePolicy="FallbackToLogsOnError"),
    once(
        "host-network",
        "echo net=$(readlink /proc/self/ns/net); echo addresses=$(ip -o -4 addr show lo)",
        {"hostNetwork": True},
    ),
    once("host-network-2", "echo net=$(readlink /proc/self/ns/net)", {"hostNetwork": True}),
    once("own-network", "echo net=$(readlink /proc/self/ns/net); echo pid=$$$$"),
    once("host-pid", "echo pid=$$$$; echo first=$(cat /proc/1/comm)", {"hostPID": True}),
    pod(
        "again",
        container(
            "source",
            "echo run; test -e /data/second && sleep 3600; touch /data/second; "
            "until test -e /data/other -a -e /data/done; do sleep 0.1; done; sleep 1; exit 42",
            restartPolicy="Never", volumeMounts=[{"name": "data", "mountPath": "/data"}],
            restartPolicyRules=[
                {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}},
            ],
        ),
        container("other", f"touch /data/other; {SLEEPS}", pre_stop="sleep 3600", volumeMounts=DATA),
        container("done", "touch /data/done", volumeMounts=DATA),
        grace=0, restartPolicy="Never", volumes=[{"name": "data", "emptyDir": {}}],
        initContainers=[container("init", "true")],
    ),
    pod("gated", container("app", SLEEPS), readinessGates=[{"conditionType": "example.com/open"}]),
    pod("deadline", container("app", SLEEPS), grace=1, activeDeadlineSeconds=1, restartPolicy="Never"),
    pod("changing", container("app", SLEEPS), grace=5),
    pod(
        "shared",
        container("app", SLEEPS),
        container("other", "while [ -z \"$(ps -o args | grep 43219 | grep -v grep)\" ]; do sleep 0.1; done; "
                           "echo first=$(cat /proc/1/comm); echo seen=yes; sleep 3600"),
        container("third", "sleep 43219"),
        grace=0, shareProcessNamespace=True,
    ),
    pod("made-again", container("app", SLEEPS), container("other", SLEEPS), grace=0, shareProcessNamespace=True),
    pod(
        "signalled",
        container("app", "trap 'echo got USR1; exit 0' USR1; trap 'exit 9' TERM; "
                         "echo up; while true; do sleep 0.1; done",
                  lifecycle={"stopSignal": "SIGUSR1"}),
        grace=30, os={"name": "linux"}, terminationGracePeriodSeconds=30,
    ),
    pod("healthy", health(9000), grace=300),
    pod("refusing", health(9001), grace=0),
    pod(
        "tcp-hook",
        container("app", f"nc -ll -p 8080 -e true & {SLEEPS}",
                  lifecycle={"preStop": {"tcpSocket": {"port": 8080}}}),
        container("refused", SLEEPS, lifecycle={"preStop": {"tcpSocket": {"port": 8081}}}),
    ),
]  # fmt: skip


@pytest.mark.core
def test_the_environment_is_made_of_fields_resources_objects_and_references(kubectl: Kubectl) -> None:
    found = said(kubectl, "environment")
    ip = kubectl.get("pod", "environment")["status"]["podIP"]
    expected = {
        "NAME": "environment", "IP": ip, "NODE": "node-1", "COLOUR": "red", "MEMORY": "64", "LEVEL": "high",
        "PASSWORD": "p$(A)", "BOTH": "environment-high-$(LEVEL)-$(NOBODY)", "S_level": "high", "S_size": "9",
        "ARGUMENT": f"environment:{ip}", "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    }  # fmt: skip
    assert {key: found.get(key) for key in expected} == expected
    assert "NONE" not in found


def test_names_come_from_host_aliases_and_the_pod_s_own_dns(kubectl: Kubectl) -> None:
    found = said(kubectl, "names")
    assert found["hosts"] == "10.1.2.3 blog.example blog"
    assert found["resolv"] == "search shop.example nameserver 192.0.2.53 options ndots:2"
    assert found["host"] == "web"


def test_parts_of_a_volume_are_mounted_by_path_and_expression(kubectl: Kubectl) -> None:
    found = said(kubectl, "volumes")
    assert (found["one"], found["expr"]) == ("first", "second")
    assert "Read-only file system" in found["ro"]


@pytest.mark.rule("node-semantics 9.3/image-volumes")
@pytest.mark.parametrize(
    ("name", "more"), [("held", {}), pytest.param("held-users", {"hostUsers": False}, marks=needs_mapped_tmpfs)]
)
def test_an_image_is_a_volume_that_is_read_only_as_a_whole_and_by_a_path_in_it(
    kubectl: Kubectl, name: str, more: dict[str, Any]
) -> None:
    script = (
        "echo file=$(cat /whole/etc/words); echo upper=$(cat /part/words); echo one=$(cat /words);"
        " touch /whole/x || echo whole=read-only; touch /part/x || echo part=read-only; ls -ln /whole/etc/words"
    )
    mounts = [
        {"name": "held", "mountPath": "/whole"},
        {"name": "held", "mountPath": "/part", "subPath": "etc"},
        {"name": "held", "mountPath": "/words", "subPath": "etc/words"},
    ]
    volumes = [{"name": "held", "image": {"reference": "held:1", "pullPolicy": "IfNotPresent"}}]
    create(kubectl, once(name, script, {"volumes": volumes, **more}, volumeMounts=mounts))
    assert said(kubectl, name) == {
        "file": "held", "upper": "held", "one": "held", "whole": "read-only", "part": "read-only"
    }  # fmt: skip
    assert 'Pulled: Container image "held:1" already present on machine and can be accessed by the pod' in events(
        kubectl, name
    )
    missing = [{"name": "held", "image": {"reference": "nowhere:1", "pullPolicy": "Never"}}]
    create(kubectl, once(f"{name}-not", script, {"volumes": missing}, volumeMounts=mounts))
    waiting = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImageNeverPull"
    kubectl("wait", f"--for={waiting}", "--timeout=60s", f"pod/{name}-not", timeout=70)
    kubectl("delete", "pod", f"{name}-not", "--wait=false")


@pytest.mark.core
def test_users_groups_and_the_group_of_volumes(kubectl: Kubectl) -> None:
    found = said(kubectl, "ids")
    assert (found["uid"], found["gid"]) == ("1000", "2000")
    assert sorted(found["groups"].split()) == ["2000", "3000", "4000"]
    assert found["dir"] == "3000 2777"
    assert found["file"] == "1000 3000"


def test_capabilities_a_read_only_root_and_the_runtime_s_filter(kubectl: Kubectl) -> None:
    found = said(kubectl, "confined")
    assert "Read-only file system" in found["root"]
    assert int(found["eff"], 16) == 1 << 10
    assert (found["seccomp"], found["nnp"]) == ("2", "1")


def test_a_termination_message_is_the_file_or_by_its_policy_the_log(kubectl: Kubectl) -> None:
    messages = {
        name: ended(kubectl, name, "Failed")["containerStatuses"][0]["state"]["terminated"]["message"]
        for name in ("message-file", "message-log")
    }
    assert messages == {"message-file": "from the file\n", "message-log": "last words\n"}


def test_host_network_and_host_pid_are_the_node_s(kubectl: Kubectl) -> None:
    first, second, own = (said(kubectl, name) for name in ("host-network", "host-network-2", "own-network"))
    assert first["net"] == second["net"] != own["net"]
    assert NODE_IP in first["addresses"]
    assert kubectl.get("pod", "host-network")["status"]["podIP"] == NODE_IP
    assert own["pid"] == "1"
    of_host = said(kubectl, "host-pid")
    assert int(of_host["pid"]) > 1


def test_containers_that_share_a_pid_namespace_see_one_another(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/shared", timeout=70)
    eventually(lambda: "seen=yes" in kubectl("logs", "shared", "-c", "other"))
    assert "first=sh" not in kubectl("logs", "shared", "-c", "other")  # PID 1 is the sandbox's


def test_a_pod_whose_pause_process_is_told_to_end_is_made_again(kubectl: Kubectl) -> None:
    """kubelet kuberuntime_manager.go:computePodActions: a sandbox that is not ready is killed, and made again."""
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/made-again", timeout=70)
    kubectl.run("exec", "made-again", "-c", "other", "--", "kill", "-INT", "1", stdin="", timeout=60)  # it ends, too

    def again() -> bool:
        statuses = kubectl.get("pod", "made-again")["status"]["containerStatuses"]
        return all(each["restartCount"] == 1 and each["state"].get("running") for each in statuses)

    eventually(again)
    statuses = kubectl.get("pod", "made-again")["status"]["containerStatuses"]
    assert [each["lastState"]["terminated"]["exitCode"] for each in statuses] == [137, 137]
    eventually(lambda: "Pod sandbox changed, it will be killed and re-created." in kubectl("get", "events"))


def test_a_readiness_gate_is_opened_by_its_condition(kubectl: Kubectl) -> None:
    def condition(type_: str) -> dict[str, Any]:
        found = kubectl.get("pod", "gated")["status"]["conditions"]
        return next(each for each in found if each["type"] == type_)

    eventually(lambda: condition("ContainersReady")["status"] == "True")
    assert (condition("Ready")["status"], condition("Ready")["reason"]) == ("False", "ReadinessGatesNotReady")
    patch = {"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}
    kubectl("patch", "pod", "gated", "--subresource=status", "-p", json.dumps(patch))
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/gated", timeout=70)


def test_an_exit_by_its_rule_restarts_all_containers_in_their_sandbox(kubectl: Kubectl) -> None:
    def statuses() -> list[dict[str, Any]]:
        status = kubectl.get("pod", "again")["status"]
        return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]

    def again() -> bool:
        found = {each["name"]: each for each in statuses()}
        restarted = len(found) == 4 and all(each["restartCount"] == 1 for each in found.values())
        return restarted and all("running" in found[name]["state"] for name in ("source", "other"))

    eventually(again)
    ends = {each["name"]: each["lastState"]["terminated"] for each in statuses()}
    assert {(last["exitCode"], last["reason"]) for last in ends.values()} == {(137, "RestartingAllContainers")}
    eventually(lambda: "Killing: killing" in events(kubectl, "again"))
    assert not any("Sandbox" in line or "PreStop" in line for line in events(kubectl, "again"))
    conditions = kubectl.get("pod", "again")["status"]["conditions"]
    assert [each["status"] for each in conditions if each["type"] == "AllContainersRestarting"] == ["False"]


def test_an_active_deadline_fails_the_pod(kubectl: Kubectl) -> None:
    status = ended(kubectl, "deadline", "Failed")
    assert status["reason"] == "DeadlineExceeded"
    text = "DeadlineExceeded: Pod was active on the node longer than the specified deadline"
    eventually(lambda: text in events(kubectl, "deadline"))


def test_a_changed_image_restarts_the_container_in_place(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/changing", timeout=70)
    before = kubectl.get("pod", "changing")["status"]
    kubectl("set", "image", "pod/changing", "app=busybox:1.36-b")

    def after() -> dict[str, Any]:
        found: dict[str, Any] = kubectl.get("pod", "changing")["status"]["containerStatuses"][0]
        return found

    eventually(lambda: after()["restartCount"] == 1 and "running" in after()["state"])
    assert after()["image"].endswith("busybox:1.36-b") and after()["lastState"]["terminated"]["exitCode"] == 0
    assert kubectl.get("pod", "changing")["status"]["podIP"] == before["podIP"]
    eventually(lambda: "Killing: Container app definition changed, will be restarted" in events(kubectl, "changing"))


@pytest.mark.core
def test_the_stop_signal_of_the_spec_is_sent_and_shown(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/signalled", timeout=70)
    assert kubectl.get("pod", "signalled")["status"]["containerStatuses"][0]["stopSignal"] == "SIGUSR1"
    follower = kubectl.start("logs", "-f", "signalled")
    assert follower.stdout is not None
    assert follower.stdout.readline() == "up\n", "it follows before the Pod is deleted"
    kubectl("delete", "pod", "signalled", timeout=60)
    out, _ = follower.communicate(timeout=60)
    assert "got USR1" in out


@pytest.mark.core
def test_a_grpc_probe_makes_a_pod_ready_and_a_refused_one_says_why(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/healthy", timeout=70)
    address = kubectl.get("pod", "refusing")["status"]["podIP"]
    expected = (
        f'Unhealthy: Readiness probe failed: timeout: failed to connect service "{address}:9001" within 1s: '
        "context deadline exceeded"
    )
    eventually(lambda: expected in events(kubectl, "refusing"))


def test_the_stop_signal_of_the_image_is_the_one_that_is_sent(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/healthy", timeout=70)
    assert kubectl.get("pod", "healthy")["status"]["containerStatuses"][0]["stopSignal"] == "SIGUSR1"
    kubectl("delete", "pod", "healthy", "--timeout=60s", timeout=70)  # SIGTERM would find nobody for five minutes


@pytest.mark.core
def test_a_tcp_hook_connects_and_a_refused_one_is_told(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/tcp-hook", timeout=70)
    kubectl("delete", "pod", "tcp-hook", timeout=60)
    failed = ("events", "--field-selector", "involvedObject.name=tcp-hook,reason=FailedPreStopHook")
    eventually(lambda: kubectl.get(*failed)["items"])
    items = kubectl.get(*failed)["items"]
    assert [each["involvedObject"]["fieldPath"] for each in items] == ["spec.containers{refused}"]
