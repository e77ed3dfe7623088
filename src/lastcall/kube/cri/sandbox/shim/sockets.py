"""TCP sockets of one network namespace: counters for a few microseconds, who listens and what is open for some more.

The kernel keeps connections of all namespaces in one table, so /proc/<pid>/net/tcp costs half a millisecond on a
machine with much memory, whatever the Pod has. So counters (sockstat, snmp) tell when to look, and sock_diag(7) with a
filter looks: listeners alone take 20 µs. Where the kernel has no sock_diag the table of /proc is read after all.

Files that were opened while the process lived go on telling of its namespace after its end.
"""

from __future__ import annotations

import os
import socket
import struct

from lastcall.kube.cri.sandbox.shim import procfs
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastcall.records.definitions.parts import Listener, Peer, PodResets

ESTABLISHED, CLOSE_WAIT, LISTEN = 1, 8, 10
"""States of net/tcp_states.h."""

MOST_SOCKETS = 4096
"""No more are looked at: a namespace may have a hundred thousand."""

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_REQUEST_DUMP = 0x301
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI48x")  # struct inet_diag_req_v2: family, protocol, extensions, padding, states
_IDS, _QUEUES = (
    struct.Struct(">HH"),
    struct.Struct("=IIIII"),
)  # in struct inet_diag_msg: ports; expires, rx, tx, uid, inode
_ABORTS = ("TCPAbortOnData", "TCPAbortOnClose", "TCPAbortOnMemory", "TCPAbortOnTimeout", "TCPAbortOnLinger")
"""Of TcpExt: after these the kernel may send a reset of its own accord (tcp_send_active_reset)."""
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class Socket:
    """`rx` is the number of connections not yet accepted for a listener, the bytes not yet read for a connection.

    `peer` is the other side's (address, port). A connection that the program has not accepted has inode 0.
    """

    __slots__ = ("address", "inode", "peer", "port", "rx", "state")

    def __init__(
        self, state: int, address: str, port: int, rx: int, inode: int, peer: tuple[str, int] = ("", 0)
    ) -> None:
        self.state, self.address, self.port, self.rx, self.inode = state, address, port, rx, inode
        self.peer = peer


class Counters:
    """`in_use`: sockets that listen or are connected. The others count since the namespace began: `resets` are
    connections that ended by a reset of either side, `unread` those that were closed here with data not read."""

    __slots__ = ("established", "in_use", "resets", "unread")

    def __init__(self, in_use: int = 0, established: int = 0, resets: int = 0, unread: int = 0) -> None:
        self.in_use, self.established, self.resets, self.unread = in_use, established, resets, unread


class Sockets:
    """Of the network namespace of process `pid`. Raises OSError when it is gone. `close` it."""

    def __init__(self, pid: int) -> None:
        """Nothing but `any` is asked where there are no sockets: so the most ends cost the least."""
        self._pid = pid
        self._files: dict[str, int] = {}
        self._diag: socket.socket | None = None
        try:
            self._open("sockstat")
            self._open("sockstat6", optional=True)  # a machine may do without IPv6
            self.any = self._in_use() > 0
            if self.any:
                self._open("snmp")
                self._open("netstat")
        except OSError:
            self.close()
            raise

    def _open(self, name: str, *, optional: bool = False) -> None:
        try:
            self._files[name] = os.open(f"/proc/{self._pid}/net/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            if not optional:
                raise

    def keep(self, diag: socket.socket | None) -> None:
        """Use this socket of sock_diag, opened in the namespace, from now on; None: the tables of /proc."""
        self._diag = diag
        if diag is None:
            for name in ("tcp", "tcp6"):
                self._open(name, optional=True)

    def count(self, *, unread: bool = False) -> Counters:
        """Return the counters now; `unread` only on demand: it takes as long as all others. Raises OSError."""
        snmp = counter_line(self._read("snmp"), "Tcp:")
        more = counter_line(self._read("netstat"), "TcpExt:") if unread else {}
        return Counters(
            self._in_use(), snmp.get("CurrEstab", 0), snmp.get("EstabResets", 0), more.get("TCPAbortOnClose", 0)
        )

    def _in_use(self) -> int:
        return sum(sockets_in_use(self._read(name)) for name in ("sockstat", "sockstat6") if name in self._files)

    def listeners(self) -> list[Socket]:
        """Return the listeners. Raises OSError."""
        return self._find(1 << LISTEN)

    def connections(self) -> list[Socket]:
        """Return the connections that are open on this side. Raises OSError."""
        return self._find(1 << ESTABLISHED | 1 << CLOSE_WAIT)

    def _find(self, states: int) -> list[Socket]:
        if self._diag is not None:
            try:
                return [found for family in _FAMILIES for found in _ask(self._diag, family, states)]
            except OSError:
                self._diag.close()
                self.keep(None)
        tables = [self._read(name) for name in ("tcp", "tcp6") if name in self._files]
        return [found for table in tables for found in parse_table(table) if states >> found.state & 1]

    def _read(self, name: str) -> str:
        fd, parts, offset = self._files[name], [], 0
        while offset < MOST_SOCKETS * 150 and (part := os.pread(fd, 65536, offset)):
            parts.append(part)
            offset += len(part)
        return b"".join(parts).decode("ascii", "replace")

    def close(self) -> None:
        """Close all. Idempotent."""
        for fd in self._files.values():
            os.close(fd)
        self._files = {}
        if self._diag is not None:
            self._diag.close()
            self._diag = None


def open_diag_in(network: int, own: int) -> socket.socket | None:
    """Open as `open_diag`, in another network namespace; then come back to one's own."""
    linux.setns(network, linux.CLONE_NEWNET)
    try:
        return open_diag()
    finally:
        linux.setns(own, linux.CLONE_NEWNET)


def open_diag() -> socket.socket | None:
    """Open a socket of the namespace that the caller is in; None if the kernel has none."""
    try:
        diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
    except OSError:
        return None
    diag.settimeout(0.1)  # the kernel answers in the call itself
    return diag


def listeners_of(network: tuple[int, int], pid: int | None = None) -> list[Socket] | None:
    """Return who listens in a network namespace: the first of `network`, the second is the caller's own.

    Where the kernel has no sock_diag, process `pid` of that namespace is asked; None without one. Raises OSError.
    """
    diag = open_diag_in(*network)
    if diag is not None:
        with diag:
            return [found for family in _FAMILIES for found in _ask(diag, family, 1 << LISTEN)]
    if pid is None:
        return None
    sockets = Sockets(pid)
    try:
        sockets.keep(None)
        return sockets.listeners()
    finally:
        sockets.close()


def tcp_counts_of(network: tuple[int, int]) -> PodResets:
    """Return the counters of a network namespace since it began.

    It is the first of `network`, the second is the caller's own. Raises OSError where it cannot enter, and ValueError
    or KeyError where it cannot read.
    """
    linux.setns(network[0], linux.CLONE_NEWNET)
    try:  # "thread-self/net" is that of the namespace that the thread is in
        snmp, netstat, devices = (procfs.read(f"/proc/thread-self/net/{name}") for name in ("snmp", "netstat", "dev"))
    finally:
        linux.setns(network[1], linux.CLONE_NEWNET)
    tcp, more = counter_line(snmp, "Tcp:"), counter_line(netstat, "TcpExt:")
    return {
        "sent": tcp["OutRsts"],
        "aborted": sum(more[name] for name in _ABORTS),
        "attemptsFailed": tcp["AttemptFails"],
        "loopbackPackets": packets_sent(devices, "lo"),
    }


def _ask(diag: socket.socket, family: int, states: int) -> list[Socket]:
    request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, states)
    diag.send(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + request)
    found: list[Socket] = []
    while True:
        data = diag.recv(65536)
        done = parse_diag(data, found)
        if done:
            return found


def parse_diag(data: bytes, found: list[Socket]) -> bool:
    """Add the sockets of one datagram; return True if it was the last. Raises OSError for the kernel's refusal."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        body = offset + _HEADER.size
        if kind == _NLMSG_DONE or length < _HEADER.size:
            return True
        if kind == _NLMSG_ERROR:
            error = -struct.unpack_from("=i", data, body)[0]
            raise OSError(error, os.strerror(error))
        family, state = data[body], data[body + 1]
        port, peer_port = _IDS.unpack_from(data, body + 4)
        size = 4 if family == socket.AF_INET else 16
        address, peer = data[body + 8 : body + 8 + size], data[body + 24 : body + 24 + size]
        _, rx, _, _, inode = _QUEUES.unpack_from(data, body + 52)
        if len(found) < MOST_SOCKETS:
            other = (socket.inet_ntop(family, peer), peer_port)
            found.append(Socket(state, socket.inet_ntop(family, address), port, rx, inode, other))
        offset += length + 3 & ~3
    return False


def parse_table(text: str) -> list[Socket]:
    """Parse /proc/net/tcp or tcp6. The numbers of an address are words in the machine's own byte order (proc(5))."""
    found = []
    for line in text.splitlines()[1 : MOST_SOCKETS + 1]:
        fields = line.split()
        if len(fields) < 10:
            continue
        address, port = _end(fields[1])
        rx = int(fields[4].partition(":")[2], 16)
        found.append(Socket(int(fields[3], 16), address, port, rx, int(fields[9]), _end(fields[2])))
    return found


def _end(text: str) -> tuple[str, int]:
    """Return (address, port) of one side of a connection, as /proc/net/tcp writes it."""
    words, _, port = text.partition(":")
    packed = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed), int(port, 16)


def sockets_in_use(sockstat: str) -> int:
    """Return N of `TCP: inuse N orphan 0 …` of sockstat or sockstat6; 0 if it is missing."""
    for line in sockstat.splitlines():
        words = line.split()
        if words[:2] in (["TCP:", "inuse"], ["TCP6:", "inuse"]):
            return int(words[2])
    return 0


def counter_line(text: str, head: str) -> dict[str, int]:
    """Parse a pair of lines of /proc/net/snmp or netstat: names and values."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(head)]
    return dict(zip(lines[0], map(int, lines[1]), strict=False)) if len(lines) == 2 else {}


def packets_sent(devices: str, name: str) -> int:
    """Return how many packets a device has sent, by /proc/net/dev. Raises KeyError without such a device."""
    for line in devices.splitlines():
        device, _, counts = line.partition(":")
        if device.strip() == name:
            return int(counts.split()[9])
    raise KeyError(name)


def peers_of(found: list[Socket]) -> list[Peer]:
    """Return the other sides of connections as a record has them; addresses of IPv4 as such."""
    return [
        {
            "address": each.peer[0].removeprefix("::ffff:"),
            "port": each.peer[1],
            "ownPort": each.port,
            "accepted": each.inode != 0,
            "unreadBytes": each.rx,
        }
        for each in found
    ]


def facts_of(found: list[Socket]) -> list[Listener]:
    """Return listeners as a record has them."""
    return [{"address": each.address, "port": each.port, "backlog": each.rx} for each in found]
