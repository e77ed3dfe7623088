"""What front has of the runtime of a cluster: its socket, the directory that both share, the link between them."""

# check: starts processes because a Python without a shell asks the container runtime

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field

from lastcall.kube.cluster.layout import STATE_DIR, NodeLayout
from lastcall.kube.cluster.options import DURABLE_DIR, KUBELET_PORT, LOCAL_PATH_DIR, ClusterOptions
from lastcall.kube.cluster.runtime.other import link
from lastcall.kube.cluster.runtime.other.place import Place

SECONDS = 90.0
"""For the runtime to stop and remove all Pods of a cluster."""
SWEEP = "lastcall.kube.cluster.runtime.other.sweep"


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

    def connect(self, init_pid: int, node: NodeLayout) -> None:
        """Raises OSError."""
        self._index = link.connect(init_pid, node)

    def paths(self, state: str) -> list[tuple[str, str]]:
        """(directory inside, directory for the runtime); `state` is the state directory of the host, "" for none."""
        claims = (DURABLE_DIR, state) if state else (LOCAL_PATH_DIR, f"{self.place.directory}/claims")
        return [(STATE_DIR, self.place.directory), claims]

    def end(self) -> str:
        """Remove all that is the cluster's. Idempotent, never raises; why something is left, "" for nothing."""
        if self.kubelet.fileno() < 0:
            return ""
        self.kubelet.close()
        why = ""
        try:
            _sweep(self.path, self.place.instance)
        except OSError as error:
            why = str(error)
        if self._index >= 0:
            with suppress(OSError):
                link.disconnect(self._index)
        self.place.remove()
        return why


def _sweep(path: str, *instance: str) -> str:
    """What it printed. Raises OSError."""
    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-I", "-m", SWEEP, path, *instance], capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"unix://{path}: the container runtime does not answer; fix: start it again") from None
    if done.returncode:
        text = done.stderr.strip().rpartition("\n")[2]
        raise OSError(f"--container-runtime-endpoint unix://{path}: {text}; fix: name a runtime that serves CRI v1")
    return done.stdout
