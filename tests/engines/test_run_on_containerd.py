"""`run` and `rollout` on containerd, of each version that is here, and what a killed cluster leaves there."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines.containerd import VERSIONS, Containerd
from waiting import eventually

pytestmark = pytest.mark.real_kernel

POD = """apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: app
    image: busybox:1.36
    command: [sh, -c, 'trap "" TERM; while :; do sleep 0.1; done']
"""
WORKLOAD = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: busybox:1.36
        command: [sh, -c, 'trap "sleep 2; exit 0" TERM; httpd -p 8080 -h /etc; while :; do sleep 0.1; done']
        ports: [{containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""


@pytest.fixture(scope="module", params=VERSIONS)
def containerd(request: pytest.FixtureRequest) -> Iterator[Containerd]:
    with Containerd(request.param) as found:
        yield found


def test_run_tells_the_end_and_leaves_nothing(containerd: Containerd, tmp_path: Path) -> None:
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(POD)
    done = containerd.lastcall(
        "run", str(manifest), "-o", "json", "--container-runtime-endpoint", containerd.endpoint, "--timeout", "120"
    )
    assert done.returncode == 3, done.stderr
    (pod,) = json.loads(done.stdout)["pods"]
    assert pod["containers"][0]["exitCode"] == 137
    assert pod["containers"][0]["disposition"] == "ignored"
    assert containerd.sandboxes() == []


SHARED = """apiVersion: v1
kind: Pod
metadata: {name: shared}
spec:
  shareProcessNamespace: true
  containers:
  - name: app
    image: busybox:1.36
    command: [sleep, "600"]
    lifecycle: {preStop: {exec: {command: [sh, -c, kill -TERM 1; sleep 5]}}}
  - name: other
    image: busybox:1.36
    command: [sh, -c, 'trap "" TERM; while :; do sleep 0.1; done']
"""
GROUP = """apiVersion: v1
kind: Pod
metadata: {name: group}
spec:
  %s
  containers:
  - name: app
    image: busybox:1.36
    %s
    command: [sh, -c, "trap 'id -g; exit 0' TERM; while :; do sleep 0.1; done"]
"""


def test_run_names_the_end_of_the_pause_process_that_killed_the_containers(
    containerd: Containerd, tmp_path: Path
) -> None:
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(SHARED)
    done = containerd.lastcall(
        "run", str(manifest), "-o", "json", "--container-runtime-endpoint", containerd.endpoint, "--timeout", "120"
    )
    assert done.returncode == 3, done.stderr
    (pod,) = json.loads(done.stdout)["pods"]
    found = [each for each in pod["findings"] if each["id"] == "pauseEnded"]
    assert {each["container"] for each in found} == {"app", "other"}, pod["findings"]
    assert all("the Pod's pause process ended (inferred: " in each["text"] for each in found)


def test_a_group_without_a_user_is_refused_for_the_pod_and_accepted_for_a_container(
    containerd: Containerd, tmp_path: Path
) -> None:
    manifest, context = tmp_path / "pod.yaml", "securityContext: {runAsGroup: 1000}"
    for of_pod, own, status, says in (
        (context, "", 1, "runAsUser beside runAsGroup (its sandbox needs both)"),
        ("", context, 0, "1000"),
    ):
        manifest.write_text(GROUP % (of_pod, own))
        done = containerd.lastcall(
            "run", str(manifest), "--container-runtime-endpoint", containerd.endpoint, "--timeout", "20"
        )
        assert done.returncode == status and says in done.stdout + done.stderr, done.stdout + done.stderr


def test_rollout_sends_requests_and_leaves_nothing(containerd: Containerd, tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WORKLOAD)
    done = containerd.lastcall(
        "rollout",
        str(manifest),
        "--path",
        "/hostname",
        "-o",
        "json",
        "--container-runtime-endpoint",
        containerd.endpoint,
        timeout=300,
    )
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)
    assert document["experiments"][0]["total"] > 100, document
    assert containerd.sandboxes() == []


def test_the_next_start_removes_what_a_killed_cluster_left(containerd: Containerd, tmp_path: Path) -> None:
    name = f"killed-{os.getpid()}"
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(POD)
    flags = ("--detach", "-o", "json", "--container-runtime-endpoint", containerd.endpoint, "--timeout", "120")
    started = containerd.lastcall("up", name, "-f", str(manifest), "--wait", *flags)
    assert started.returncode == 0, started.stderr
    os.kill(json.loads(started.stdout)["pid"], signal.SIGKILL)
    assert containerd.sandboxes() != []
    links = [*containerd.inside, "ip", "-br", "link"]
    eventually(lambda: b"lastcall" not in subprocess.run(links, capture_output=True).stdout, "the link goes", 30)
    again = containerd.lastcall("up", name, *flags)
    try:
        assert again.returncode == 0, again.stderr
        assert containerd.sandboxes() == []
    finally:
        containerd.lastcall("down", name)


PAGES = Path(__file__).resolve().parents[2]
SHOWN = re.compile(r"sudo lastcall ([^`\n]* --container-runtime-endpoint) unix:///run/containerd/containerd\.sock")


@pytest.mark.parametrize(("page", "verb"), [("README.md", "run"), ("docs/engines.md", "up")])
def test_the_command_of_each_page_works_as_it_is_written(
    containerd: Containerd, tmp_path: Path, page: str, verb: str
) -> None:
    (command,) = SHOWN.findall((PAGES / page).read_text())
    words = shlex.split(command)
    assert words[0] == verb
    (tmp_path / "pod.yaml").write_text(POD)
    done = containerd.lastcall(*words, containerd.endpoint, cwd=tmp_path)
    if verb == "up":
        containerd.lastcall("down")
    assert done.returncode == (3 if verb == "run" else 0), done.stderr
    assert containerd.sandboxes() == []


def test_requests_from_a_pod_are_refused_before_anything_starts(containerd: Containerd, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WORKLOAD)
    flags = ("--from", "pod", "--container-runtime-endpoint", containerd.endpoint)
    done = containerd.lastcall("rollout", str(tmp_path / "web.yaml"), *flags)
    assert done.returncode == 2, done.stderr
    assert "--container-runtime-endpoint and --from pod do not work together" in done.stderr
