"""What front has of the runtime of a cluster: its socket, the directory that both share, the link between them."""

# check: starts processes because a Python without a shell asks the container runtime

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import field

from lastcall.kube.cluster.layout import STATE_DIR, NodeLayout
from lastcall.kube.cluster.options import DURABLE_DIR, KUBELET_PORT, LOCAL_PATH_DIR, ClusterOptions
from lastcall.kube.cluster.runtime.other import link
from lastcall.kube.cluster.runtime.other.checks import runtime_pid
from lastcall.kube.cluster.runtime.other.place import Place
from lastcall.kube.cri.v1.witness import messages
from lastcall.records.ring import Ring
from lastcall.world.dataclass import dataclass

SECONDS = 90.0
"""For the runtime to stop and remove all Pods of a cluster."""
SWEEP = """import sys
sys.path.insert(0, sys.argv.pop(1))
from lastcall.kube.cluster.runtime.other.sweep import main
sys.exit(main(*sys.argv[1:]))
"""
HERE = os.path.dirname(os.path.abspath(messages.__file__))
PACKAGE = os.path.normpath(os.path.join(HERE, *[os.pardir] * 5))
"""Where this lastcall is: `-I` leaves out what PYTHONPATH says."""
WITNESS = os.path.join(HERE, "__main__.py")


@dataclass(slots=True)
class OtherRuntime:
    """`path` is its socket. `make` before the cluster's processes, `connect` when init is there, `end` after them."""

    path: str
    place: Place
    name: str
    version: str
    kubelet: socket.socket
    """Listens in the runtime's network namespace; the node serves it."""
    _index: int = field(default=-1)
    _witness: "subprocess.Popen[bytes] | None" = field(default=None)

    @classmethod
    def make(cls, options: ClusterOptions, instance: str, node: NodeLayout) -> "OtherRuntime":
        """Ask the runtime who it is, and remove what earlier clusters left. Raises OSError, which says the fix."""
        answer = json.loads(_sweep(options.container_runtime))
        try:
            kubelet = link.kubelet_socket(node)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise OSError(
                f"{node.ip}:{KUBELET_PORT}: {why}: another cluster or a kubelet uses it; fix: stop that one"
            ) from None
        try:
            place = Place.make(instance)
        except BaseException:
            kubelet.close()
            raise
        return cls(options.container_runtime, place, answer["name"], answer["version"], kubelet)

    def connect(self, init_pid: int, node: NodeLayout, ring: Ring) -> None:
        """Join the networks, and start the witness, which writes to `ring`. Raises OSError."""
        self._index = link.connect(init_pid, node)
        if pid := runtime_pid(self.path):
            self._start_witness(pid, ring)

    def _start_witness(self, pid: int, ring: Ring) -> None:
        fds = [fd for fd in (ring.fd, ring.wake_fd) if fd >= 0]
        command = [
            sys.executable, "-I", "-S", WITNESS,
            "--socket", f"{self.place.directory}/{messages.SOCKET}", "--runtime", str(pid),
            "--ring-fd", str(ring.fd), "--wake-fd", str(ring.wake_fd),
        ]  # fmt: skip
        self._witness = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=fds)  # noqa: S603 (our own interpreter and program)

    def paths(self, state: str) -> list[tuple[str, str]]:
        """Return (directory inside, directory for the runtime); `state` is the host's state directory, "" for none."""
        claims = (DURABLE_DIR, state) if state else (LOCAL_PATH_DIR, f"{self.place.directory}/claims")
        return [(STATE_DIR, self.place.directory), claims]

    def end(self) -> str:
        """Remove all that is the cluster's; return why something is left, "" for nothing. Idempotent, never raises."""
        if self.kubelet.fileno() < 0:
            return ""
        self.kubelet.close()
        why = ""
        try:
            _sweep(self.path, self.place.instance)
        except OSError as error:
            why = str(error)
        if self._witness is not None:
            self._witness.kill()
            self._witness.wait()
        if self._index >= 0:
            with suppress(OSError):
                link.disconnect(self._index)
        self.place.remove()
        return why


def _sweep(path: str, *instance: str) -> str:
    """What it printed. Raises OSError."""
    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-I", "-c", SWEEP, PACKAGE, path, *instance],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        text = f"has not done within {SECONDS:.0f} s what lastcall asked for; fix: start the runtime again"
    else:
        if not done.returncode:
            return done.stdout
        text = done.stderr.strip().rpartition("\n")[2]
    raise OSError(f"--container-runtime-endpoint unix://{path}: the container runtime {text}")
