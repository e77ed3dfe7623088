"""Whether this command can use a container runtime, looked at before anything starts."""

import errno
import os
import socket
import stat
import struct
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv4Network

from lastcall.kube.cluster.layout import CONTROL_PLANE_IP
from lastcall.kube.cluster.options import LOAD_BALANCER_CIDR, SERVICE_CIDR
from lastcall.kube.cluster.runtime.other.link import NAME

FORWARD = "/proc/sys/net/ipv4/ip_forward"
ROUTES = "/proc/net/route"
_FIXES = {
    errno.EACCES: "let this user use the socket",
    errno.ECONNREFUSED: "start the runtime: its socket is left from an earlier run",
}


def socket_of(endpoint: str) -> str:
    """Return the path in `unix:///run/containerd/containerd.sock`. Raises ValueError, which says the fix."""
    path = endpoint.removeprefix("unix://")
    if path == endpoint or not path.startswith("/"):
        raise ValueError(f"{endpoint!r} is not a Unix socket: write unix:///run/containerd/containerd.sock")
    return os.path.realpath(path)


def runtime_pid(path: str) -> int:
    """Return the process that made the socket, 0 for one of another PID namespace. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(path)
        pid: int = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        return pid


def why_not(path: str) -> str:
    """Return why the runtime behind this socket cannot be used from here, with the fix; "" when it can."""
    if os.getuid() != 0:
        return "needs root, for the runtime's socket and its Pod network; fix: sudo"
    if find_spec("grpc") is None or find_spec("google.protobuf") is None:
        return "grpcio is not installed; fix: pip install 'lastcall[containerd]'"
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return "not a socket; fix: name the runtime's socket"
        pid = runtime_pid(path)
    except OSError as error:
        fix = _FIXES.get(error.errno or 0, "start the runtime, or name its socket")
        return f"{os.strerror(error.errno or 0).lower()}; fix: {fix}"
    try:
        theirs, own = os.stat(f"/proc/{pid}/ns/net"), os.stat("/proc/self/ns/net")
    except OSError:
        theirs = own = os.stat("/proc/self/ns/net")  # a runtime that cannot be seen: another PID namespace's
    if theirs.st_ino != own.st_ino:
        return f"is in another network namespace; fix: nsenter --net=/proc/{pid}/ns/net lastcall …"
    with open(FORWARD) as file:
        if file.read().strip() != "1":
            return "this machine forwards no packets between Pods and Services; fix: sysctl -w net.ipv4.ip_forward=1"
    with open(ROUTES) as file:
        if taken := taken_network(file.read()):
            return f"this machine has a route to {taken}, which lastcall uses itself; fix: remove that network"
    return ""


def taken_network(routes: str) -> str:
    """Return a route of /proc/net/route that covers our addresses and is not ours; "" for none."""
    ours = [IPv4Network(each) for each in (SERVICE_CIDR, LOAD_BALANCER_CIDR, f"{CONTROL_PLANE_IP}/32")]
    for line in routes.splitlines()[1:]:
        name, destination, *_ = words = line.split()
        address, mask = (IPv4Address(int(text, 16).to_bytes(4, "little")) for text in (destination, words[7]))
        network = IPv4Network(f"{address}/{mask}")
        if name != NAME and network.prefixlen and any(each.overlaps(network) for each in ours):
            return str(network)
    return ""
