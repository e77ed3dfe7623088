"""`lastcall runtime` on the real kernel, asked by crictl 1.36: the client that people have.

In a network namespace of its own. Skipped where crictl or the CNI plugins are missing; needs root.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tree import named_namespace
from waiting import eventually

from lastcall.cri.sandbox.images.exports import ImageStore, host_image

HOME = Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2")
CRICTL = HOME / "bin/crictl"

pytestmark = [
    pytest.mark.skipif(not CRICTL.exists(), reason="crictl is not installed"),
    pytest.mark.skipif(not Path("/usr/lib/cni/bridge").exists(), reason="the CNI plugins are not installed"),
    pytest.mark.skipif(
        shutil.which("iptables") is None, reason="iptables, which CNI's portmap needs, is not installed"
    ),
    pytest.mark.skipif(os.getuid() != 0, reason="lastcall runtime needs root"),
]


class Runtime:
    """The runtime in its network namespace, and crictl beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.root = directory, directory / "root"
        self.netns = named_namespace("cri")
        self.socket = directory / "cri.sock"
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "Runtime":
        subprocess.run(["ip", "netns", "add", self.netns], check=True)
        subprocess.run(["ip", "-n", self.netns, "link", "set", "lo", "up"], check=True)
        ImageStore(self.directory / "store").add("tools:1", host_image())
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is None:
            self.start()
        self.crictl("rmp", "-f", "-a")
        self.end(signal.SIGTERM)
        subprocess.run(["ip", "netns", "del", self.netns], check=True)

    def start(self) -> None:
        log = self.directory / "log"
        log.write_text("")
        arguments = ["--listen", f"unix://{self.socket}", "--root", str(self.root)]
        with open(log, "ab") as output:
            inside = ["nsenter", f"--net=/run/netns/{self.netns}", sys.executable, "-m", "lastcall.cli.main"]
            self.process = subprocess.Popen(
                [*inside, "runtime", *arguments, "--image-store", str(self.directory / "store")],
                stderr=output,
            )
        eventually(lambda: "serves CRI v1" in log.read_text(), "the runtime serves")

    def end(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(60)
        self.process = None

    def crictl(self, *arguments: str) -> subprocess.CompletedProcess:
        base = ["nsenter", f"--net=/run/netns/{self.netns}", str(CRICTL), "-r", f"unix://{self.socket}", "-t", "30s"]
        return subprocess.run([*base, *arguments], capture_output=True, text=True, timeout=90)

    def said(self, *arguments: str) -> str:
        done = self.crictl(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def run(self, context: dict | None = None, parent: str = "", **more: object) -> tuple[str, str]:
        """A sandbox with a security context and a control group, and a container that runs; their ids. `more`: of the
        container."""
        pod, container = self.directory / "pod.json", self.directory / "container.json"
        logs = str(self.directory / "logs")
        metadata = {"name": "web", "namespace": "default", "uid": "u1"}
        pod.write_text(
            json.dumps(
                {
                    "metadata": metadata,
                    "log_directory": logs,
                    "linux": {"security_context": context or {}, "cgroup_parent": parent},
                }
            )
        )
        command = ["sh", "-c", "echo printed; exec sleep 1000"]
        config = {"metadata": {"name": "app"}, "image": {"image": "tools:1"}, "command": command}
        container.write_text(
            json.dumps({**config, **more, "log_path": "app.log", "linux": {"security_context": context or {}}})
        )
        sandbox = self.said("runp", str(pod))
        identity = self.said("create", "--no-pull", sandbox, str(container), str(pod))
        self.said("start", identity)
        return sandbox, identity


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    with Runtime(tmp_path_factory.mktemp("cri")) as found:
        yield found


def inspected(runtime: Runtime, container: str) -> dict:
    return json.loads(runtime.said("inspect", container))["status"]


def test_a_container_runs_answers_exec_and_ends(runtime):
    runtime.start()
    sandbox, container = runtime.run()
    eventually(lambda: "printed" in runtime.said("logs", container), "the log")
    assert runtime.said("exec", "-s", container, "echo", "from exec").strip() == "from exec"
    streamed = runtime.crictl("exec", container, "sh", "-c", "echo streamed; exit 3")
    assert "streamed" in streamed.stdout
    assert "exit code 3" in streamed.stderr
    assert json.loads(runtime.said("inspectp", sandbox))["status"]["network"]["ip"].startswith("10.89.")
    runtime.said("stop", "-t", "1", container)
    assert inspected(runtime, container)["state"] == "CONTAINER_EXITED"
    assert "not found" in runtime.crictl("inspect", "0" * 64).stderr.lower()
    runtime.said("rmp", "-f", sandbox)
    assert runtime.said("pods", "-q") == ""
    runtime.end(signal.SIGTERM)


def test_containers_outlive_a_runtime_that_is_killed(runtime):
    runtime.start()
    sandbox, container = runtime.run()
    before = inspected(runtime, container)["startedAt"]
    runtime.end(signal.SIGKILL)
    runtime.start()
    status = inspected(runtime, container)
    assert (status["state"], status["startedAt"]) == ("CONTAINER_RUNNING", before)
    assert runtime.said("exec", "-s", container, "echo", "again").strip() == "again"
    runtime.said("rmp", "-f", sandbox)
    runtime.end(signal.SIGTERM)


DEVICE = Path("/dev/loop-control")


@pytest.mark.skipif(not DEVICE.is_char_device(), reason=f"{DEVICE} is not there")
@pytest.mark.parametrize("context", [{}, {"namespace_options": {"network": 2}}])
def test_a_container_has_the_devices_it_was_given_and_no_others(runtime, context):
    runtime.start()
    devices = [{"container_path": "/dev/given", "host_path": str(DEVICE), "permissions": "r"}]
    mounts = [{"container_path": "/machine", "host_path": "/dev", "readonly": True}]
    sandbox, container = runtime.run(context, devices=devices, mounts=mounts)

    def does(script: str) -> bool:
        return runtime.crictl("exec", "-s", container, "sh", "-c", script).returncode == 0

    assert does(": < /dev/given; : >> /dev/null")
    assert not does("ls /dev/loop-control")
    if context:  # the machine's root
        assert not does(f": < /machine/{DEVICE.name}")
        assert not does("mknod /tmp/disk b 8 0")
        if Path("/sys/fs/cgroup/devices").is_dir():  # its kernel can restrict what is opened
            assert not does(": >> /dev/given")
    runtime.said("rmp", "-f", sandbox)
    runtime.end(signal.SIGTERM)


def test_nothing_is_left_when_no_sandbox_is(runtime):
    runtime.start()
    runtime.end(signal.SIGTERM)
    assert not runtime.socket.exists()
    with open("/proc/mounts") as mounts:
        assert str(runtime.root) not in mounts.read()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        assert str(runtime.root).encode() not in (entry.read_bytes() if entry.exists() else b"")


def host_namespace(runtime: Runtime, name: str) -> str:
    """Of the machine that the runtime is in."""
    inside = ["nsenter", f"--net=/run/netns/{runtime.netns}", "readlink", f"/proc/self/ns/{name}"]
    return subprocess.run(inside, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def test_a_pod_in_the_hosts_namespaces_outlives_the_runtime_and_ends_with_its_shim(runtime):
    runtime.start()
    context = {"namespace_options": {"network": 2, "pid": 2, "ipc": 2}}
    sandbox, container = runtime.run(context)
    for name in ("net", "pid", "ipc", "user"):
        assert runtime.said("exec", "-s", container, "readlink", f"/proc/self/ns/{name}") == host_namespace(
            runtime, name
        )
    assert not json.loads(runtime.said("inspectp", sandbox))["status"]["network"].get("ip")
    runtime.end(signal.SIGKILL)
    runtime.start()
    assert inspected(runtime, container)["state"] == "CONTAINER_RUNNING"
    held = container_processes(container)
    assert held, "a process of the container"
    os.kill(int((runtime.root / "host/keeper").read_text()), signal.SIGKILL)
    eventually(lambda: inspected(runtime, container)["state"] == "CONTAINER_EXITED", "the end of the container", 30)
    assert not any(Path(f"/proc/{pid}").exists() for pid in held)
    runtime.said("rmp", "-f", sandbox)
    sandbox, container = runtime.run(context)  # by the next keeper and shim
    runtime.said("rmp", "-f", sandbox)
    runtime.end(signal.SIGTERM)


@pytest.mark.parametrize("kind", ["", "host"])
@pytest.mark.parametrize("dies", ["shim", "keeper"])
def test_a_group_that_nobody_else_made_goes_when_shim_or_keeper_are_killed(runtime, kind, dies):
    mine = f"lastcall-test-{os.getpid()}"

    def groups() -> list[Path]:
        return [*Path("/sys/fs/cgroup").glob(f"{mine}/*"), *Path("/sys/fs/cgroup").glob(f"*/{mine}*")]

    runtime.start()
    sandbox, container = runtime.run({"namespace_options": {"pid": 2}} if kind else {}, f"/{mine}/pod")
    assert groups(), "where the machine lets us make none there is nothing to see"
    keeper = int((runtime.root / kind / "keeper").read_text())
    (shim,) = map(int, Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split())
    os.kill({"shim": shim, "keeper": keeper}[dies], signal.SIGKILL)
    eventually(lambda: inspected(runtime, container)["state"] == "CONTAINER_EXITED", "the end of the container", 30)
    eventually(lambda: groups() == [], "the group is gone", 30, said=lambda: str(groups()))
    runtime.said("rmp", "-f", sandbox)
    runtime.end(signal.SIGTERM)


def container_processes(container: str) -> list[int]:
    """By their control groups."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if container in entry.read_text():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found
