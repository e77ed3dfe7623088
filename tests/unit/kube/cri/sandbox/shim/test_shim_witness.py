"""What the shim's witness tells of an end that comes between two of its looks."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from lastcall.kube.cri.sandbox.shim import dispositions, procfs
from lastcall.kube.cri.sandbox.shim import witness as witness_module
from lastcall.kube.cri.sandbox.shim.loop import Timer
from lastcall.kube.cri.sandbox.shim.sockets import LISTEN, Counters, Socket
from lastcall.kube.cri.sandbox.shim.witness import Watched, Witness


class Kernel:
    """PID 1 with one child, whose number is that of a process that is there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.child = os.getpid()
        self.family = [self.child]
        self.exiting = False
        told = {"pid": self.child, "containerPid": 2, "name": "worker", "state": "S", "disposition": "default"}
        told["parent"] = 1
        monkeypatch.setattr(procfs, "start_time", lambda pid: 0)
        monkeypatch.setattr(procfs, "descendants", lambda root, most=256, first=None: list(self.family))
        monkeypatch.setattr(dispositions, "describe", lambda pid, number: told)
        self.children = {self.child}
        monkeypatch.setattr(procfs, "children", lambda pid: set(self.children))
        monkeypatch.setattr(procfs, "exiting", lambda pid: self.exiting)
        monkeypatch.setattr(procfs, "wait_status", lambda pidfd: int(signal.SIGKILL))


class Clockwork:
    """A loop whose timers and descriptors the test lets go off."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.watched: dict[int, Callable[[int], None]] = {}

    def watch(self, fd: int, callback: Callable[[int], None]) -> None:
        self.watched[fd] = callback

    def unwatch(self, fd: int) -> None:
        self.watched.pop(fd, None)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(callback))
        return self.timers[-1]

    def go_off(self) -> None:
        callback = self.timers.pop().callback
        assert callback is not None
        callback()


def test_a_look_at_a_pid_1_that_is_ending_does_not_forget_who_lived_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel ends the others before it tells of PID 1's end, and a busy shim may look just then."""
    kernel, loop = Kernel(monkeypatch), Clockwork()
    records: list[tuple[str, dict[str, Any]]] = []
    watched = Watched(loop, 1, None, lambda: True, lambda kind, facts, _: records.append((kind, facts)))  # type: ignore[arg-type]
    witness = Witness(watched)
    witness.before_signal(signal.SIGTERM)
    witness.after_signal()
    kernel.family, kernel.exiting = [], True
    loop.go_off()
    witness.after_exit(killed=False)
    at_stop, (kind, facts) = records
    assert at_stop[0] == "ProcessesAtStop"
    assert (kind, facts["when"]) == ("ProcessesLeft", "exit")
    assert [each["pid"] for each in facts["processes"]] == [kernel.child]


def test_a_child_that_dies_with_pid_1_before_the_first_look_is_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell without a trap, in a PID namespace that it shares, is gone within a millisecond of its signal."""
    kernel, loop = Kernel(monkeypatch), Clockwork()
    records: list[tuple[str, dict[str, Any]]] = []
    witness = Witness(Watched(loop, 1, None, lambda: True, lambda kind, facts, _: records.append((kind, facts))))  # type: ignore[arg-type]
    witness.before_signal(signal.SIGTERM)
    kernel.family, kernel.exiting = [], True
    witness.after_signal()
    witness.after_exit(killed=False)
    assert [kind for kind, _ in records] == ["ProcessesAtStop", "ProcessesLeft"]
    for _, facts in records:
        assert [each["name"] for each in facts["processes"]] == ["worker"]


def test_no_look_at_a_process_keeps_the_signal_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, looked = Kernel(monkeypatch), list[int]()
    kernel.family = list(range(1000, 1016))
    monkeypatch.setattr(dispositions, "describe", lambda pid, number: looked.append(pid))
    monkeypatch.setattr(time, "monotonic_ns", lambda: 1_000_000 * len(looked))
    Witness(Watched(Clockwork(), 1, None, lambda: True, lambda *_: None)).before_signal(signal.SIGTERM)  # type: ignore[arg-type]
    assert 1 <= len(looked) <= 3


def test_who_ended_before_there_was_time_to_look_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, looked, records = Kernel(monkeypatch), list[int](), list[dict[str, Any]]()
    kernel.family = [kernel.child, *range(900_000, 900_005)]
    told = dispositions.describe(kernel.child, signal.SIGTERM)
    monkeypatch.setattr(
        dispositions, "describe", lambda pid, number: looked.append(pid) or {**(told or {}), "pid": pid}
    )
    monkeypatch.setattr(time, "monotonic_ns", lambda: 10_000_000 * len(looked))
    witness = Witness(Watched(Clockwork(), 1, None, lambda: True, lambda kind, facts, _: records.append(facts)))  # type: ignore[arg-type]
    witness.before_signal(signal.SIGTERM)
    kernel.family, kernel.exiting = [], True
    witness.after_signal()
    assert ([each["pid"] for each in records[0]["processes"]], records[0]["more"]) == ([kernel.child], 5)
    witness.after_exit(killed=False)


@pytest.mark.parametrize("broken", [OSError, ValueError, KeyError])
def test_a_look_that_fails_before_the_signal_disturbs_nothing(
    monkeypatch: pytest.MonkeyPatch, broken: type[Exception]
) -> None:
    def fails(root: int, most: int = 0, *, first: object = None) -> list[int]:
        raise broken

    Kernel(monkeypatch)
    monkeypatch.setattr(procfs, "descendants", fails)
    Witness(Watched(Clockwork(), 1, None, lambda: True, lambda *_: None)).before_signal(signal.SIGTERM)  # type: ignore[arg-type]


@pytest.mark.parametrize(("earlier", "told"), [(5.0, None), (0.0, True)])
def test_what_a_handler_begins_before_the_first_look_was_begun_after_the_signal(
    monkeypatch: pytest.MonkeyPatch, earlier: float, told: bool | None
) -> None:
    kernel, loop = Kernel(monkeypatch), Clockwork()
    kernel.family, family = [], kernel.family
    records: list[dict[str, Any]] = []
    watched = Watched(loop, 1, None, lambda: True, lambda kind, facts, _: records.append(facts))  # type: ignore[arg-type]
    witness = Witness(watched)
    witness.before_signal(signal.SIGTERM)
    kernel.family = family
    started = (time.clock_gettime(time.CLOCK_BOOTTIME) - earlier) * os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(procfs, "start_time", lambda pid: int(started))
    witness.after_signal()
    witness.before_kill()
    assert [each.get("afterSignal") for each in records[-1]["processes"]] == [told]


@pytest.mark.parametrize("gone", [False, True])
def test_no_child_is_taken_for_a_pid_1_that_is_gone_at_sigkill(monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    kernel = Kernel(monkeypatch)
    records: list[tuple[str, dict[str, Any]]] = []
    watched = Watched(Clockwork(), 1, None, lambda: True, lambda kind, facts, _: records.append((kind, facts)))  # type: ignore[arg-type]
    witness = Witness(watched)
    witness.before_signal(signal.SIGTERM)
    witness.after_signal()
    described = {"pid": 1, "containerPid": 1, "name": "main", "state": "S", "disposition": "handled", "parent": 0}
    child = dispositions.describe(kernel.child, signal.SIGTERM)
    monkeypatch.setattr(
        dispositions, "describe", lambda pid, number: child if pid == kernel.child else None if gone else described
    )
    witness.before_kill()
    waits = [[each["name"] for each in facts["processes"]] for kind, facts in records if kind == "WaitsAtKill"]
    assert waits == ([] if gone else [["main", "worker"]])


@pytest.mark.parametrize("noticed_by", ["a look", "its pidfd"])
def test_who_ended_before_pid_1_did_not_die_with_it(monkeypatch: pytest.MonkeyPatch, noticed_by: str) -> None:
    kernel, loop = Kernel(monkeypatch), Clockwork()
    records: list[tuple[str, str | None]] = []

    def record(kind: str, facts: dict[str, Any], evidence: str) -> None:
        records.append((kind, facts["signal"]))

    witness = Witness(Watched(loop, 1, None, lambda: True, record))  # type: ignore[arg-type]
    witness.before_signal(signal.SIGTERM)
    witness.after_signal()
    kernel.family = []
    if noticed_by == "a look":
        loop.go_off()
    else:
        ((_, callback),) = loop.watched.items()
        callback(1)
    kernel.exiting = True
    witness.after_exit(killed=False)
    assert records == [("ProcessesAtStop", "SIGTERM"), ("ChildEnded", "SIGKILL")]
    assert loop.watched == {}


def test_the_end_of_a_child_while_pid_1_ends_is_left_to_its_wait_status(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, loop = Kernel(monkeypatch), Clockwork()
    records: list[str] = []
    witness = Witness(Watched(loop, 1, None, lambda: True, lambda kind, *_: records.append(kind)))  # type: ignore[arg-type]
    witness.before_signal(signal.SIGTERM)
    witness.after_signal()
    kernel.exiting = True
    ((_, callback),) = loop.watched.items()
    callback(1)
    witness.after_exit(killed=False)
    assert records == ["ProcessesAtStop", "ProcessesLeft"]


def test_an_end_whose_status_is_not_known_yet_is_reported_when_pid_1_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, loop = Kernel(monkeypatch), Clockwork()
    records: list[tuple[str, Any]] = []

    def record(kind: str, facts: dict[str, Any], evidence: str) -> None:
        records.append((kind, facts.get("exitCode")))

    witness = Witness(Watched(loop, 1, None, lambda: True, record))  # type: ignore[arg-type]
    witness.before_signal(signal.SIGTERM)
    witness.after_signal()
    monkeypatch.setattr(procfs, "wait_status", lambda pidfd: None)
    ((_, callback),) = loop.watched.items()
    callback(1)
    assert records == [("ProcessesAtStop", None)]
    kernel.exiting = True
    witness.after_exit(killed=False)
    assert records == [("ProcessesAtStop", None), ("ChildEnded", None)]


@pytest.mark.parametrize("child", [True, False])
def test_whom_pid_1_adopts_after_the_signal_was_not_its_child(monkeypatch: pytest.MonkeyPatch, child: bool) -> None:
    """The signal ends a shell under an init: what the shell had begun is the init's by the first look."""
    kernel, loop = Kernel(monkeypatch), Clockwork()
    kernel.children = {kernel.child} if child else {kernel.child + 1}
    records: list[dict[str, Any]] = []
    witness = Witness(Watched(loop, 1, None, lambda: True, lambda kind, facts, _: records.append(facts)))  # type: ignore[arg-type]
    witness.before_signal(signal.SIGTERM)
    witness.after_signal()
    witness.after_exit(killed=False)
    assert [each["child"] for each in records[-1]["processes"]] == [child]


class Listening:
    """Sockets of a namespace in which nothing happens but what the test does to `ports`."""

    any = True

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports

    def keep(self, diag: object) -> None:
        pass

    def count(self, *, unread: bool = False) -> Counters:
        return Counters(in_use=len(self.ports))

    def listeners(self) -> list[Socket]:
        return [Socket(LISTEN, "0.0.0.0", port, 0, port) for port in self.ports]

    def connections(self) -> list[Socket]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("alone", "exiting", "told"),
    [
        (True, False, [("SocketsAtStop", [8080, 9090]), ("ListenerClosed", 8080)]),
        (False, False, []),
        (True, True, [("SocketsAtStop", [9090])]),
    ],
)
def test_a_listener_that_closes_before_the_first_look_was_there_at_the_signal(
    monkeypatch: pytest.MonkeyPatch, alone: bool, exiting: bool, told: list[tuple[str, object]]
) -> None:
    """Of several containers nobody knows whose it was, and what ends with PID 1 the kernel closes."""
    kernel, sockets = Kernel(monkeypatch), Listening([8080, 9090])
    monkeypatch.setattr(witness_module, "Sockets", lambda pid: sockets)
    monkeypatch.setattr(witness_module, "open_diag_in", lambda network, own: None)
    monkeypatch.setattr(procfs, "socket_inodes", lambda pids: set())
    records: list[tuple[str, object]] = []

    def record(kind: str, facts: dict[str, Any], evidence: str) -> None:
        if kind == "SocketsAtStop":
            records.append((kind, [each["port"] for each in facts["listeners"]]))
        elif kind == "ListenerClosed":
            assert facts["notBefore"] == 0.0 < facts["seconds"]
            records.append((kind, facts["port"]))

    witness = Witness(Watched(Clockwork(), 1, (3, 4), lambda: alone, record))  # type: ignore[arg-type]
    witness.before_signal(signal.SIGTERM)
    sockets.ports.remove(8080)
    kernel.exiting = exiting
    witness.after_signal()
    assert records == told
