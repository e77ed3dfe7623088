"""README's commands of "When one machine is not enough", each as it stands there, on what it needs.

Replaced are addresses, sockets and files, and `sudo`, for tests of them run as root.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from engines.containerd import Containerd, missing_containerd
from engines.etcd import Etcd, missing_etcd
from engines.lan import Lan, missing_lan
from engines.servers import Keys
from kubectls import KUBECTL, needs_kubectl
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

ROOT = Path(__file__).parents[2]
LASTCALL = str(Path(sys.executable).parent / "lastcall")
TRIED = (
    "lastcall trace",
    "lastcall run",
    "lastcall rollout --context",
    "lastcall rollout --from-cluster",
    "lastcall up --etcd-servers",
    "sudo lastcall up --container-runtime-endpoint",
    "lastcall doctor --listen",
    "sudo lastcall up --listen",
    "sudo lastcall node join 10.0.0.1",
    "kubectl certificate approve",
    "sudo lastcall node join --kubeconfig",
)
"""The beginnings of the commands that the tests below run; the last one is run by `test_node_join.py`."""
SERVES = "trap 'exit 0' TERM; httpd -p 8080 -h /etc; while :; do sleep 0.1; done"
WORKLOAD = f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - name: app
        image: busybox:1.36
        command: [sh, -c, "{SERVES}"]
        ports: [{{containerPort: 8080}}]
        readinessProbe: {{tcpSocket: {{port: 8080}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}
"""
POD = f"""apiVersion: v1
kind: Pod
metadata: {{name: one}}
spec:
  containers:
  - name: app
    image: busybox:1.36
    command: [sh, -c, "{SERVES}"]
"""


def commands() -> list[str]:
    """Of the section, without what is said about them."""
    section = re.split(r"^## ", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    (ours,) = [each for each in section if each.startswith("When one machine is not enough")]
    return [line[2:].split("  #")[0].strip() for line in ours.splitlines() if line.startswith("$ ")]


def command(begins: str) -> list[str]:
    """README's only one that begins so."""
    (found,) = [each for each in commands() if each.startswith(begins)]
    words = shlex.split(found.removeprefix("sudo "))
    assert words[0] == "lastcall"
    return [LASTCALL, *words[1:]]


def replace(words: list[str], **changes: str) -> list[str]:
    """The values of options (`etcd_cafile`); each has to be there."""
    found = list(words)
    for name, value in changes.items():
        found[found.index("--" + name.replace("_", "-")) + 1] = value
    return found


def run(
    words: list[str], *, stdin: str = "", home: Path | None = None, timeout: float = 240, **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, input=stdin, capture_output=True, text=True, timeout=timeout, check=False, cwd=home,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_each_command_of_the_section_is_tried() -> None:
    assert sorted(commands()) == sorted(each for begins in TRIED for each in commands() if each.startswith(begins))
    assert len(commands()) == len(TRIED)


@dataclass
class Prod:
    """A cluster, and a kubeconfig that has it as `prod`."""

    name: str
    home: Path
    published: str = ""
    """Where this machine reaches the Service."""

    @property
    def kubeconfig(self) -> str:
        return str(self.home / "config")

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        done = run([str(KUBECTL), "--kubeconfig", self.kubeconfig, *arguments], stdin=stdin)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def lastcall(self, words: list[str]) -> "subprocess.CompletedProcess[str]":
        return run(words, home=self.home, KUBECONFIG=self.kubeconfig)


@pytest.fixture(scope="module")
def prod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prod]:
    found = Prod(f"readme-{os.getpid()}", tmp_path_factory.mktemp("prod"))
    started = run([LASTCALL, "up", found.name, "--detach", "-o", "json", "--publish", "0:svc/shop/web:80"])
    assert started.returncode == 0, started.stderr
    try:
        facts = json.loads(started.stdout)
        found.published = facts["published"][0]["address"]
        config = yaml.safe_load(Path(facts["kubeconfig"]).read_text())
        config["contexts"][0]["name"] = config["current-context"] = "prod"
        Path(found.kubeconfig).write_text(yaml.safe_dump(config))
        (found.home / "pod.yaml").write_text(POD)
        for namespace in ("shop", "scratch"):
            found.kubectl("create", "namespace", namespace)
        found.kubectl("apply", "-f", "-", stdin=WORKLOAD)
        found.kubectl("rollout", "status", "-n", "shop", "deployment/web", "--timeout=60s")
        yield found
    finally:
        assert run([LASTCALL, "down", found.name]).returncode == 0


def test_trace_tells_how_a_pod_of_the_deployment_ends(prod: Prod) -> None:
    words = command("lastcall trace")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=prod.home,
        env={**os.environ, "KUBECONFIG": prod.kubeconfig, "PYTHONUNBUFFERED": "1"},
    ) as tracing:  # fmt: skip
        assert tracing.stderr is not None
        said = tracing.stderr.readline()
        pods = prod.kubectl("get", "pods", "-n", "shop", "-o", "jsonpath={.items[*].metadata.name}").split()
        prod.kubectl("delete", "pod", "-n", "shop", pods[0])
        prod.kubectl("rollout", "status", "-n", "shop", "deployment/web", "--timeout=60s")
        # It is told when it is over: one more end comes behind the first.
        prod.kubectl("delete", "pod", "-n", "shop", pods[1])
        tracing.send_signal(signal.SIGINT)
        out, err = tracing.communicate(timeout=60)
    assert pods[0] in out, (said, out, err)
    assert "SIGTERM" in out or "exit" in out


def test_run_creates_a_pod_there_ends_it_and_removes_it(prod: Prod) -> None:
    words = command("lastcall run")
    refused = prod.lastcall(words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "fix: --yes=prod" in refused.stderr
    done = prod.lastcall([*words, "--yes=prod"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one" in done.stdout
    assert prod.kubectl("get", "pods", "-n", "scratch", "-o", "name") == ""


def test_rollout_updates_the_deployment_under_load_and_puts_all_back(prod: Prod) -> None:
    before = prod.kubectl("get", "deployment", "-n", "shop", "web", "-o", "jsonpath={.spec}")
    words = command("lastcall rollout --context")
    refused = prod.lastcall(words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "fix: --yes=prod" in refused.stderr
    # From here: the Pod that sends else is of an image that has to be built.
    done = prod.lastcall([*words, "--yes=prod", "--url", f"http://{prod.published}", "--path", "/passwd"])
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert re.search(r"\d+ requests to Service web", done.stdout), done.stdout
    assert prod.kubectl("get", "deployment", "-n", "shop", "web", "-o", "jsonpath={.spec}") == before


def test_rollout_of_a_workload_that_was_taken_along(prod: Prod) -> None:
    done = prod.lastcall(command("lastcall rollout --from-cluster"))
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "Deployment web" in done.stdout


@pytest.mark.skipif(bool(missing_etcd()), reason=missing_etcd())
def test_a_cluster_on_an_etcd(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    own = {"cert": keys.server[0], "key": keys.server[1], "trusted-ca": keys.ca_file}
    name = f"readme-etcd-{os.getpid()}"
    with Etcd(tmp_path / "etcd", tls=own, more=("--unsafe-no-fsync",)) as etcd:
        words = replace(
            command("lastcall up --etcd-servers"),
            etcd_servers=etcd.servers, etcd_cafile=str(keys.ca_file), etcd_certfile=str(keys.client[0]),
            etcd_keyfile=str(keys.client[1]),
        )  # fmt: skip
        check_up(words, name, etcd.servers)


@pytest.mark.skipif(bool(missing_containerd()), reason=missing_containerd())
def test_a_cluster_whose_pods_are_in_containerd(tmp_path: Path) -> None:
    with Containerd() as containerd:
        words = replace(
            command("sudo lastcall up --container-runtime-endpoint"), container_runtime_endpoint=containerd.endpoint
        )
        name = f"readme-cri-{os.getpid()}"
        check_up([*containerd.inside, *words], name, "", pod=lambda: bool(containerd.sandboxes()))


@pytest.mark.skipif(bool(missing_lan()), reason=missing_lan())
def test_a_cluster_on_two_machines() -> None:
    with Lan("readme", 2) as lan:
        first, second = lan.machines
        asked = first.run(*replace(command("lastcall doctor --listen"), listen=first.address))
        assert f"{first.address}; Pods' packets have 1450 bytes at most" in asked.stdout
        words = replace(command("sudo lastcall up --listen"), listen=first.address)
        name = f"readme-lan-{os.getpid()}"

        def join(started: str, kubectl: list[str]) -> None:
            printed = re.search(r"machines +sudo (lastcall node join .+)", started)
            assert printed is not None, started
            shape = printed[1].strip()
            values = ((r" [0-9.]+:\d+ ", " 10.0.0.1:6443 "), (r"--token \S+", "--token …"), (r"sha256:\w+", "sha256:…"))
            for pattern, shown in values:
                shape = re.sub(pattern, shown, shape)
            assert [LASTCALL, *shape.split()[1:]] == command("sudo lastcall node join 10.0.0.1"), (
                "it is as README shows it"
            )
            more = ("--name", f"{name}-2", "--node-name", "second", "--detach", "--state", f"/tmp/{name}")
            second.run(LASTCALL, *printed[1].split()[1:], *more, timeout=200)
            kubectl_words = shlex.split(next(each for each in commands() if each.startswith("kubectl certificate")))
            assert kubectl_words[:3] == ["kubectl", "certificate", "approve"]
            pending = (
                *kubectl,
                "get",
                "csr",
                "-o",
                "jsonpath={.items[?(@.spec.username=='system:node:second')].metadata.name}",
            )
            eventually(lambda: len(run(list(pending)).stdout.split()) == 2, "its requests", 60)
            approved = run([*kubectl, *kubectl_words[1:3], *run(list(pending)).stdout.split()])
            assert approved.returncode == 0, approved.stderr
            serves = ["sh", "-c", "echo from the second; sleep 1000"]
            place = json.dumps({"spec": {"nodeName": "second"}})
            created = run([*kubectl, "run", "far", "--image=busybox:1.36", "--overrides", place, "--", *serves])
            assert created.returncode == 0, created.stderr
            eventually(lambda: "from the second" in run([*kubectl, "logs", "far"]).stdout, "its log", 60)
            near = run([*kubectl, "get", "pod", "one", "-o", "jsonpath={.status.podIP}"]).stdout
            pinged = run([*kubectl, "exec", "far", "--", "ping", "-c", "1", "-W", "3", near])
            assert pinged.returncode == 0, pinged.stdout

        try:
            check_up([*first.inside, *words], name, f"https://{first.address}:", then=join)
        finally:
            second.run(LASTCALL, "down", f"{name}-2", check=False)
            shutil.rmtree(f"/tmp/{name}", ignore_errors=True)
        assert first.left() + second.left() == []


def check_up(
    words: list[str],
    name: str,
    said: str,
    pod: Callable[[], bool] = lambda: True,
    then: Callable[[str, list[str]], None] = lambda started, kubectl: None,
) -> None:
    """Start it, run a Pod, and end it."""
    inside = words[: words.index(LASTCALL)]
    started = run([*words, "--name", name, "--detach", "--timeout", "200"])
    assert started.returncode == 0, started.stderr
    try:
        assert said in started.stdout
        kubeconfig = re.search(r"export KUBECONFIG=(\S+)", started.stdout)
        assert kubeconfig is not None
        kubectl = [*inside, str(KUBECTL), "--kubeconfig", kubeconfig[1]]
        created = run([*kubectl, "create", "-f", "-"], stdin=POD)
        assert created.returncode == 0, created.stderr
        ready = run([*kubectl, "wait", "--for=condition=Ready", "--timeout=60s", "pod/one"])
        assert ready.returncode == 0, ready.stderr
        eventually(pod, "the Pod is there")
        then(started.stdout, kubectl)
    finally:
        assert run([*inside, LASTCALL, "down", name]).returncode == 0
