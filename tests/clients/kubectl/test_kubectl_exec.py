"""exec, cp, attach, run -i and port-forward with real kubectls on a whole cluster: WebSocket and SPDY/3.1.

What kubectl says is held against what it said to a real Kubernetes 1.36.2.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kubectls import CURRENT, DEBIAN, Kubectl, find_kubectl
from tree import Tree, children
from waiting import eventually

pytestmark = pytest.mark.real_kernel

# What kubectl 1.36 said to a real Kubernetes 1.36.2 and containerd, ids replaced.
MISSING = (
    "Internal error occurred: Internal error occurred: error executing command in container: failed to exec in "
    'container: failed to start exec "<id>": OCI runtime exec failed: exec failed: unable to start container process: '
    'exec: "nosuchcmd": executable file not found in $PATH: unknown\n'
)
REFUSED = (
    "error forwarding port 9999 to pod <id>, uid : failed to execute portforward in network namespace",
    "failed to connect to localhost:9999 inside namespace",
    "IPv4: dial tcp4 127.0.0.1:9999: connect: connection refused IPv6 dial tcp6",
)
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
WAYS = {"websocket": (CURRENT, {}), "spdy": (CURRENT, SPDY), "1.20": (DEBIAN, {})}

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "demo"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "nc -ll -p 8080 -e cat & while :; do sleep 1; done"],
            },
            {
                "name": "input",
                "image": "busybox:1.36",
                "stdin": True,
                "command": ["sh", "-c", "while read x; do echo got $x; done; sleep 3600"],
            },
        ],
    },
}


@pytest.fixture(scope="module", params=WAYS)
def kubectl(
    request: pytest.FixtureRequest, kubeconfig: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """One kubectl that talks one way, in a namespace with the Pod `demo`."""
    which, environment = WAYS[request.param]
    name = "exec-" + request.param.replace(".", "-")
    admin = Kubectl(which, kubeconfig, str(tmp_path_factory.mktemp("home")))
    admin.environment |= environment
    print(f"{request.param}: {find_kubectl(which)} {admin.version}")
    with admin.in_namespace(name) as kubectl:
        create(kubectl, POD)
        eventually(lambda: ":8080 " in kubectl("exec", "demo", "-c", "main", "--", "netstat", "-ltn"))
        yield kubectl


def create(kubectl: Kubectl, manifest: dict) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{manifest['metadata']['name']}")


def victim(kubectl: Kubectl, name: str, grace: int = 0, command: str = "while :; do sleep 1; done") -> None:
    """A Pod that a test may delete."""
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
    spec = {"terminationGracePeriodSeconds": grace, "containers": [container]}
    create(kubectl, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


EARLY = re.compile(r"^E.* websocket\.go:\d+\] Unknown stream id 1, discarding message\n", re.M)
"""What kubectl logs when the empty message that says "ready" comes before it has made its streams
(kubelet remotecommand/websocket.go:createWebSocketStreams)."""


def without_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{64}", "<id>", text)


# -- exec -------------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_output_and_errors_come_apart_and_the_exit_code_is_the_command_s(kubectl: Kubectl) -> None:
    assert kubectl.run("exec", "demo", "-c", "main", "--", "echo", "hello") == (0, "hello\n", "")
    code, out, err = kubectl.run("exec", "demo", "-c", "main", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (code, out, err) == (3, "out\n", "err\ncommand terminated with exit code 3\n")
    for wanted in (1, 126, 127, 255):
        assert kubectl.run("exec", "demo", "-c", "main", "--", "sh", "-c", f"exit {wanted}")[0] == wanted
    assert kubectl.run("exec", "demo", "-c", "main", "--", "sh", "-c", "kill -9 $$")[0] == 137


def test_the_first_container_is_the_default_one(kubectl: Kubectl) -> None:
    code, out, err = kubectl.run("exec", "demo", "--", "echo", "x")
    assert (code, out) == (0, "x\n")
    if kubectl.which == CURRENT:
        assert err == 'Defaulted container "main" out of: main, input\n'


@pytest.mark.core
def test_the_input_is_read_to_its_end(kubectl: Kubectl) -> None:
    code, out, err = kubectl.run("exec", "-i", "demo", "-c", "main", "--", "cat", stdin="some input\nsecond\n")
    assert (code, out, EARLY.sub("", err)) == (0, "some input\nsecond\n", "")
    assert kubectl.run("exec", "-i", "demo", "-c", "main", "--", "sh", "-c", "exit 4", stdin="x" * 300_000)[0] == 4


def test_a_command_that_is_not_there_is_told_as_a_real_cluster_does(kubectl: Kubectl) -> None:
    code, out, err = kubectl.run("exec", "demo", "-c", "main", "--", "nosuchcmd")
    expected = MISSING
    if kubectl.which == DEBIAN or "KUBECTL_REMOTE_COMMAND_WEBSOCKETS" in kubectl.environment:
        expected = expected.replace("Internal error occurred: ", "", 1)  # only the API server's translator wraps twice
    assert (code, out) == (1, "")
    assert without_ids(err).endswith(expected)


def test_what_cannot_be_entered_is_told(kubectl: Kubectl) -> None:
    assert "container zzz is not valid for pod demo" in kubectl("exec", "demo", "-c", "zzz", "--", "true", status=1)
    assert 'pods "nope" not found' in kubectl("exec", "nope", "--", "true", status=1)
    pod = {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["true"]}], "restartPolicy": "Never"}
    kubectl(
        "create",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "done"}, "spec": pod}),
    )
    eventually(lambda: kubectl.get("pod", "done")["status"].get("phase") == "Succeeded")
    assert "cannot exec into a container in a completed pod; current phase is Succeeded" in kubectl(
        "exec", "done", "--", "true", status=1
    )
    waits = {**pod, "initContainers": [{"name": "first", "image": "busybox:1.36", "command": ["sleep", "3600"]}]}
    kubectl(
        "create",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": waits}),
    )
    eventually(lambda: kubectl.run("exec", "waits", "-c", "first", "--", "true")[0] == 0)
    assert 'unable to upgrade connection: container not found ("c")' in kubectl(
        "exec", "waits", "-c", "c", "--", "true", status=1
    )


@pytest.mark.rule("node-semantics 17.3/termination")
def test_a_terminating_pod_can_still_be_entered(kubectl: Kubectl) -> None:
    victim(kubectl, "stubborn", grace=30, command="trap '' TERM; while :; do sleep 1; done")
    kubectl("delete", "pod", "stubborn", "--wait=false")
    assert kubectl.run("exec", "stubborn", "--", "echo", "still-alive")[:2] == (0, "still-alive\n")
    kubectl("delete", "pod", "stubborn", "--force", "--grace-period=0")


@pytest.mark.rule("node-semantics 17.3/termination")
def test_deleting_the_pod_ends_what_runs_in_it(kubectl: Kubectl) -> None:
    victim(kubectl, "victim")
    process = kubectl.start("exec", "-i", "victim", "--", "sh", "-c", "echo on; sleep 3600")
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    kubectl("delete", "pod", "victim")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (137, "")
    assert "command terminated with exit code 137" in err


def test_fifty_megabytes_are_copied_in_and_out_unchanged(kubectl: Kubectl, tmp_path: Path) -> None:
    data = os.urandom(50_000_000)
    (tmp_path / "there").write_bytes(data)
    kubectl("cp", str(tmp_path / "there"), "demo:/tmp/file", "-c", "main", timeout=100)
    digest = hashlib.sha256(data).hexdigest()
    assert kubectl("exec", "demo", "-c", "main", "--", "sha256sum", "/tmp/file").split()[0] == digest
    kubectl("cp", "demo:/tmp/file", str(tmp_path / "back"), "-c", "main", timeout=100)
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == digest


def test_output_that_the_client_reads_slowly_is_complete(kubectl: Kubectl) -> None:
    process = kubectl.start("exec", "demo", "-c", "main", "--", "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x")
    assert process.stdout is not None
    size = 0
    for _ in range(10):
        size += len(process.stdout.read(1000))
        time.sleep(0.05)  # a client that reads slowly
    while piece := process.stdout.read(1 << 20):
        size += len(piece)
    assert (size, process.wait(60)) == (20_000_000, 0)
    process.communicate()


# -- with a terminal --------------------------------------------------------------------------------------------------


class Terminal:
    """kubectl on a terminal of the test's."""

    def __init__(self, kubectl: Kubectl, *arguments: str, rows: int = 24, columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        self.said = b""
        self.resize(rows, columns)
        environment = {**kubectl.environment, "TERM": "xterm"}
        command = [find_kubectl(kubectl.which), "-n", kubectl.namespace, *arguments]
        self.process = subprocess.Popen(
            command, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while text.encode() not in self.said:
            assert time.monotonic() < end, self.said
            self._read(0.1)

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.said += data
        return bool(data)

    def end(self, seconds: float = 60.0) -> int:
        deadline = time.monotonic() + seconds
        while self._read(0.1):
            if self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]:
                break
            assert time.monotonic() < deadline, self.said
        os.close(self.master)
        return self.process.wait(seconds)


def _ask_for_size(terminal: Terminal, size: bytes) -> None:
    """The size comes by a stream of its own: a shell may be there before it."""
    for _ in range(50):
        terminal.said = b""
        terminal.write("stty size; echo ask$((2))ed\n")
        terminal.wait_for("ask2ed\r\n")
        if size in terminal.said:
            break
    assert size in terminal.said


@pytest.mark.core
def test_a_shell_on_a_terminal_echoes_resizes_and_ends_with_its_code(kubectl: Kubectl) -> None:
    terminal = Terminal(kubectl, "exec", "-it", "demo", "-c", "main", "--", "sh", rows=43, columns=132)
    _ask_for_size(terminal, b"43 132")
    terminal.resize(50, 100)
    os.kill(terminal.process.pid, signal.SIGWINCH)
    _ask_for_size(terminal, b"50 100")
    terminal.write("sleep 3600\n")
    eventually(lambda: "sleep 3600" in kubectl("exec", "demo", "-c", "main", "--", "ps", "-o", "args"))
    terminal.write("\x03")  # it is in the foreground now
    terminal.write("tty; exit 4\n")
    terminal.wait_for("/dev/pts/")
    assert terminal.end() == 4
    assert b"command terminated with exit code 4" in terminal.said


# -- attach, run ------------------------------------------------------------------------------------------------------


def test_attached_input_reaches_the_container_and_detaching_leaves_it_running(kubectl: Kubectl) -> None:
    code, out, _ = kubectl.run("attach", "-i", "demo", "-c", "input", stdin="")
    assert (code, out) == (0, "")
    process = kubectl.start("attach", "-i", "demo", "-c", "input")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("hello\n")
    process.stdin.flush()
    assert process.stdout.readline() == "got hello\n"
    process.stdin.close()
    process.stdin = None
    process.communicate(timeout=60)
    eventually(lambda: kubectl("logs", "demo", "-c", "input").endswith("got hello\n"))
    assert kubectl.get("pod", "demo")["status"]["phase"] == "Running"


def test_run_with_input_is_a_filter(kubectl: Kubectl) -> None:
    arguments = ("run", "att", "--image=busybox:1.36", "--restart=Never", "-i", "--rm", "--", "cat")
    code, out, _ = kubectl.run(*arguments, stdin="piped\n")
    assert code == 0
    assert out.startswith('piped\npod "att" deleted')


def test_run_ends_with_the_container_s_code(kubectl: Kubectl) -> None:
    arguments = ("run", "once", "--image=busybox:1.36", "--restart=Never", "--rm", "-i", "--quiet")
    code, out, _ = kubectl.run(*arguments, "--", "sh", "-c", "sleep 1; echo bye; exit 5")
    assert (code, out) == (5, "bye\n")


def test_run_on_a_terminal_is_a_session(kubectl: Kubectl) -> None:
    arguments = ("run", "tty", "--image=busybox:1.36", "--restart=Never", "--rm", "-it")
    terminal = Terminal(kubectl, *arguments, "--", "sh", rows=43, columns=132)
    terminal.wait_for("try pressing enter")
    for _ in range(20):  # kubectl first says a size that is one larger, so that programs draw anew
        terminal.said = b""
        terminal.write("stty size; echo he$((1))re\n")
        with contextlib.suppress(AssertionError):
            terminal.wait_for("he1re\r\n", 5)
        if b"43 132" in terminal.said:
            break
    assert b"43 132" in terminal.said
    terminal.write("exit 6\n")
    assert terminal.end() == 6


# -- debug ------------------------------------------------------------------------------------------------------------


def test_debug_of_a_node_has_its_processes_its_network_and_its_files(kubectl: Kubectl) -> None:
    if kubectl.which == DEBIAN:
        return  # it lays no file system of the node into the Pod
    said = kubectl("debug", "node/node-1", "--image=busybox:1.36", "--profile=sysadmin", "--", "sh", "-c", _LOOK_AROUND)
    found = re.search(r"node-debugger-node-1-\w+", said)
    assert found is not None, said
    name = found[0]
    try:
        eventually(lambda: kubectl.get("pod", name)["status"]["phase"] == "Succeeded", "the look around")
        seen = kubectl("logs", name)
        assert "lastcall-init" in seen, "hostPID: the first process is the node's"
        assert "172.18.0.2" in seen, "hostNetwork"
        assert "root of the node" in seen
    finally:
        kubectl("delete", "pod", name, "--now")


_LOOK_AROUND = (
    "cat /proc/1/comm; cat /proc/net/fib_trie | grep -o 172.18.0.2 | head -1; "
    "chroot /host sh -c 'test -d /proc/1 && test -d /lastcall && echo root of the node'"
)


def test_debug_is_a_shell_beside_the_processes_of_its_target_and_ends_with_the_pod(kubectl: Kubectl) -> None:
    if kubectl.which == DEBIAN:
        return  # its debug speaks of a kind that went with Kubernetes 1.22
    victim(kubectl, "debugged", grace=1, command="sleep 43210 & while :; do sleep 1; done")
    terminal = Terminal(
        kubectl, "debug", "-it", "debugged", "--image=busybox:1.36", "-c", "probe", "--target=main", "--", "sh"
    )
    terminal.wait_for("try pressing enter")
    for _ in range(20):
        terminal.said = b""
        terminal.write("ps; echo he$((1))re\n")
        with contextlib.suppress(AssertionError):
            terminal.wait_for("he1re\r\n", 5)
        if b"sleep 43210" in terminal.said:
            break
    assert b"sleep 43210" in terminal.said
    status = kubectl.get("pod", "debugged")["status"]["ephemeralContainerStatuses"][0]
    assert (status["name"], list(status["state"])) == ("probe", ["running"])
    kubectl("debug", "debugged", "--image=busybox:1.36", "-c", "other", "--", "sleep", "3600")
    terminal.write("exit 3\n")
    assert terminal.end() == 0  # kubectl debug does not hand on the code

    def ended() -> bool:
        found = kubectl.get("pod", "debugged")["status"]["ephemeralContainerStatuses"]
        states = {each["name"]: each["state"] for each in found}
        return "running" in states.get("other", {}) and states["probe"].get("terminated", {}).get("exitCode") == 3

    eventually(ended, said=lambda: (kubectl.get("pod", "debugged"), terminal.said))
    assert "he1re" in kubectl("logs", "debugged", "-c", "probe")
    kubectl("delete", "pod", "debugged", timeout=60)


# -- port-forward -----------------------------------------------------------------------------------------------------


class Forward:
    """`with Forward(kubectl, "pod/demo", 8080) as port`."""

    def __init__(self, kubectl: Kubectl, target: str, port: int) -> None:
        self.process = kubectl.start("port-forward", target, f":{port}", "--address=127.0.0.1")
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"Forwarding from 127\.0\.0\.1:(\d+) -> ", line)
        if match is None:
            raise AssertionError(line + self.process.communicate(timeout=60)[1])
        self.port = int(match[1])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 20)

    def end(self) -> str:
        """What it said on stderr."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[1]


def exchange(connection: socket.socket, data: bytes) -> bytes:
    """Send all, then no more, and read to the end."""
    got = b""

    def send() -> None:
        connection.sendall(data)

    sender = threading.Thread(target=send)
    sender.start()
    while len(got) < len(data) and (piece := connection.recv(1 << 16)):
        got += piece
    sender.join()
    return got


@pytest.mark.core
def test_a_port_carries_megabytes_on_several_connections_at_once(kubectl: Kubectl) -> None:
    forward = Forward(kubectl, "pod/demo", 8080)
    try:
        data = os.urandom(3_000_000)

        def one(_: int) -> bool:
            with forward.connect() as connection:
                return exchange(connection, data) == data

        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(one, range(6)))
    finally:
        forward.end()


def test_a_port_where_nobody_listens_is_told_in_containerd_s_words(kubectl: Kubectl) -> None:
    forward = Forward(kubectl, "pod/demo", 9999)
    with forward.connect() as connection:
        assert connection.recv(10) == b""
    err = forward.end()
    for part in REFUSED:
        assert part in without_ids(err)


# -- what is left -----------------------------------------------------------------------------------------------------


def descriptors(tree: Tree) -> dict[str, int]:
    return {role: len(os.listdir(f"/proc/{tree.roles[role]}/fd")) for role in ("control-plane", "node", "shim")}


def test_many_at_once_and_killed_clients_leave_no_descriptor_behind(kubectl: Kubectl, kubeconfig: str) -> None:
    tree = Tree.find(int(kubeconfig.split("/")[2]))
    kubectl("exec", "demo", "-c", "main", "--", "true")
    victim(kubectl, "leaky")
    time.sleep(1)  # streams of earlier tests close on their own
    before = descriptors(tree)

    def run(number: int) -> bool:
        text = f"number {number}\n" * 1000
        return kubectl.run("exec", "-i", "demo", "-c", "main", "--", "cat", stdin=text) == (0, text, "")

    with ThreadPoolExecutor(10) as pool:
        assert all(pool.map(run, range(20)))
    clients = [kubectl.start("exec", "-i", "leaky", "--", "sh", "-c", "echo on; sleep 3600") for _ in range(5)]
    for client in clients:
        assert client.stdout is not None
        assert client.stdout.readline() == "on\n"
    for client in clients:
        client.kill()
        client.communicate()
    kubectl("delete", "pod", "leaky")
    eventually(lambda: all(after <= before[role] + 2 for role, after in descriptors(tree).items()))
    eventually(lambda: len(children(tree.roles["shim"])) == len(tree.containers()))
