"""Sockets and processes as the shim reads them: the kernel's texts and messages, and the kernel itself."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from waiting import eventually

from lastcall.kube.cri.sandbox.shim import procfs
from lastcall.kube.cri.sandbox.shim.dispositions import describe
from lastcall.kube.cri.sandbox.shim.listening import ResetCounter
from lastcall.kube.cri.sandbox.shim.sockets import (
    CLOSE_WAIT,
    ESTABLISHED,
    LISTEN,
    Sockets,
    counter_line,
    open_diag,
    packets_sent,
    parse_diag,
    parse_table,
    peers_of,
    sockets_in_use,
)
from lastcall.world import linux

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = HEAD + (
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 5352204 1 0 100 0\n"
    "   1: 0200F40A:1F90 0300F40A:C3A8 08 00000000:0000001C 00:00000000 00000000     0        0 77 1 0 20 4 30 10 -1\n"
    " short line\n"
)
TCP6 = HEAD + (
    "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 00000000     0        0 9 1 0 100 0 0 10 0\n"
)


@pytest.mark.skipif(sys.byteorder != "little", reason="the samples are of a little-endian machine")
def test_the_tables_of_proc_give_address_port_state_queue_and_inode() -> None:
    found = [(s.address, s.port, s.state, s.rx, s.inode) for s in parse_table(TCP) + parse_table(TCP6)]
    assert found == [
        ("127.0.0.1", 8080, LISTEN, 3, 5352204),
        ("10.244.0.2", 8080, CLOSE_WAIT, 28, 77),
        ("::1", 80, LISTEN, 0, 9),
    ]
    assert [each.peer for each in parse_table(TCP)] == [("0.0.0.0", 0), ("10.244.0.3", 50088)]
    assert parse_table("") == []


def test_counters_are_found_by_their_names() -> None:
    text = "Ip: A B\nIp: 1 2\nTcp: CurrEstab EstabResets\nTcp: 4 7\n"
    assert counter_line(text, "Tcp:") == {"CurrEstab": 4, "EstabResets": 7}
    assert counter_line("", "Tcp:") == {}
    assert sockets_in_use("sockets: used 5\nTCP: inuse 3 orphan 0 tw 1\nUDP: inuse 2\n") == 3
    assert sockets_in_use("TCP6: inuse 2\nUDP6: inuse 0\n") == 2
    assert sockets_in_use("") == 0


DEVICES = (
    "Inter-|   Receive                  |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier\n"
    "    lo:     100       2    0    0    0     0          0         0      120       3    0    0    0     0       0\n"
    "  eth0: 7 7 0 0 0 0 0 0 8 9 0 0 0 0 0 0\n"
)


def test_packets_of_a_device_are_found_by_its_name() -> None:
    assert (packets_sent(DEVICES, "lo"), packets_sent(DEVICES, "eth0")) == (3, 9)
    with pytest.raises(KeyError):
        packets_sent(DEVICES, "eth1")


class _Machine:
    """A kernel with two network namespaces: 3 is the Pod's, 4 the shim's. It counts its changes of namespace."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *counts: tuple[int, int, int, int]) -> None:
        self._counts, self.entered = list(counts), [4]
        monkeypatch.setattr(linux, "setns", lambda fd, flags: self.entered.append(fd))
        monkeypatch.setattr(procfs, "read", self.read)

    def read(self, path: str) -> str:
        assert self.entered[-1] == 3
        name = path.removeprefix("/proc/thread-self/net/")
        resets, closed, failed, packets = self._counts[0]
        if name == "snmp":
            return f"Tcp: AttemptFails EstabResets OutRsts\nTcp: {failed} 5 {resets}\n"
        if name == "netstat":
            names = " ".join(f"TCPAbortOn{what}" for what in ("Data", "Close", "Memory", "Timeout", "Linger"))
            return f"TcpExt: {names}\nTcpExt: 0 {closed} 0 0 0\n"
        self._counts.pop(0)
        return f"  lo: 0 0 0 0 0 0 0 0 0 {packets} 0\n" if packets >= 0 else ""


def test_a_pods_resets_are_counted_from_crash_to_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine(monkeypatch, (1, 0, 1, 2), (1, 0, 1, -1), (4, 2, 3, 20))
    counter = ResetCounter()
    first, unreadable, third = (counter.since_last((3, 4)) for _ in range(3))
    assert first == {"sent": 1, "aborted": 0, "attemptsFailed": 1, "loopbackPackets": 2}
    assert unreadable is None
    assert third == {"sent": 3, "aborted": 2, "attemptsFailed": 2, "loopbackPackets": 18}
    assert machine.entered == [4, 3, 4, 3, 4, 3, 4], "it comes back also where something cannot be read"


@pytest.mark.parametrize("text", ["", "Tcp: OutRsts\nTcp: x\n"])
def test_counters_that_nobody_can_read_are_unknown(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(linux, "setns", lambda fd, flags: None)
    monkeypatch.setattr(procfs, "read", lambda path: text)
    assert ResetCounter().since_last((3, 4)) is None
    monkeypatch.setattr(linux, "setns", _no_setns)
    assert ResetCounter().since_last((3, 4)) is None


def _no_setns(fd: int, flags: int) -> None:
    raise PermissionError


@pytest.mark.loopback
def test_the_kernel_counts_a_refused_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "setns", lambda fd, flags: None)  # the namespace of this test
    counter = ResetCounter()
    assert counter.since_last((3, 4)) is not None
    with socket.socket() as bound:  # a port that nobody listens on
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(bound.getsockname(), 2)
    counts = counter.since_last((3, 4))
    assert counts is not None
    assert min(counts["sent"], counts["attemptsFailed"], counts["loopbackPackets"] // 2) >= 1


def test_a_refusal_of_the_kernel_is_an_error_and_rubbish_ends_the_answer() -> None:
    refusal = b"\x14\0\0\0\x02\0\0\0" + b"\0" * 8 + (-95).to_bytes(4, "little", signed=True)
    if sys.byteorder == "little":
        with pytest.raises(OSError, match="not supported"):
            parse_diag(refusal, [])
    assert parse_diag(b"\0" * 16, []), "a length of nothing"
    assert not parse_diag(b"", [])


@pytest.mark.loopback
@pytest.mark.parametrize("way", ["sock_diag", "proc"])
def test_the_kernel_tells_of_listeners_backlogs_and_data_not_read(way: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=8) as listener:
        port = listener.getsockname()[1]
        sockets = Sockets(os.getpid())
        sockets.keep(open_diag() if way == "sock_diag" else None)
        try:
            first = sockets.count(unread=True)
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
            accepted, _ = listener.accept()
            clients[0].send(b"12345")
            clients[1].send(b"12345")
            time.sleep(0.01)  # loopback delivers the bytes
            (mine,) = [each for each in sockets.listeners() if each.port == port]
            assert (mine.address, mine.rx, mine.state) == ("127.0.0.1", 1, LISTEN)
            assert mine.inode == os.fstat(listener.fileno()).st_ino
            unread = [each.rx for each in sockets.connections() if each.port == port]
            assert sorted(unread) == [5, 5]
            assert {each.state for each in sockets.connections()} <= {ESTABLISHED, CLOSE_WAIT}
            peers = peers_of([each for each in sockets.connections() if each.port == port])
            theirs = {client.getsockname()[1]: client is clients[0] for client in clients}
            assert {each["port"]: each["accepted"] for each in peers} == theirs
            assert {(each["address"], each["ownPort"], each["unreadBytes"]) for each in peers} == {
                ("127.0.0.1", port, 5)
            }
            assert mine.inode in procfs.socket_inodes([os.getpid()])
            accepted.close()  # with data not read
            for client in clients:
                client.close()
            after = sockets.count(unread=True)
            assert after.resets > first.resets
            assert after.unread > first.unread
        finally:
            sockets.close()
            sockets.close()


@pytest.mark.loopback
def test_a_file_that_is_closed_meanwhile_hides_no_socket_behind_it() -> None:
    free = os.dup(0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        os.close(free)  # the listing itself takes this number, below the socket's
        assert listener.fileno() > free
        assert os.fstat(listener.fileno()).st_ino in procfs.socket_inodes([os.getpid()])


@pytest.mark.loopback
def test_how_a_stranger_ended_is_told_by_its_pidfd_where_the_kernel_does() -> None:
    read, write = os.pipe()
    process = subprocess.Popen(["sh", "-c", "sleep 100 & echo $!; kill -9 $!; wait; exit 0"], stdout=write)
    child = int(os.read(read, 100))
    with contextlib.suppress(ProcessLookupError):  # it may be gone already
        pidfd = os.pidfd_open(child)
        process.wait()
        assert procfs.wait_status(pidfd) in (signal.SIGKILL, None)
        os.close(pidfd)
    process.wait()
    own = os.pidfd_open(os.getpid())
    assert procfs.wait_status(own) is None
    for fd in (own, read, write):
        os.close(fd)


@pytest.mark.loopback
def test_descendants_are_children_of_any_thread_and_their_children() -> None:
    script = (
        "import os, threading, time\n"
        "def fork():\n    if not os.fork():\n        if not os.fork(): time.sleep(100)\n        time.sleep(100)\n"
        "    print('x', flush=True)\n    time.sleep(100)\n"
        "threading.Thread(target=fork).start()"
    )
    process = subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE, process_group=0)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        eventually(lambda: len(procfs.descendants(process.pid)) >= 2, "the grandchild")
        found = procfs.descendants(process.pid)
        assert len(found) == 2
        facts = describe(found[0], signal.SIGTERM)
        assert facts is not None
        assert (facts["disposition"], facts["parent"]) == ("default", process.pid)
        assert procfs.descendants(found[1]) == []
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert describe(process.pid, signal.SIGTERM) is None
    assert procfs.descendants(process.pid) == []
