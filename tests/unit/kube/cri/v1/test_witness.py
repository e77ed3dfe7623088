"""The witness of another runtime's containers: real processes, whose parent this test is."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_api import ListRecorder

from lastcall.kube.cri.sandbox.cgroups import memory
from lastcall.kube.cri.sandbox.shim import procfs
from lastcall.kube.cri.sandbox.shim.loop import Loop
from lastcall.kube.cri.sandbox.shim.witness import Witness
from lastcall.kube.cri.v1.witness import container, messages
from lastcall.kube.cri.v1.witness.container import Context
from lastcall.kube.cri.v1.witness.server import Server
from lastcall.kube.cri.v1.witness.tails import Tails, parse_line
from lastcall.records import kinds
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

STAYS = 'trap "" TERM; sleep 300 & echo ready; while :; do sleep 0.02; done'
DRAINS = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done"


class Node:
    """A witness in this process, asked by lines; `begin` starts a program as a container's PID 1."""

    def __init__(self, directory: Path) -> None:
        self.loop, self.recorder = Loop(), ListRecorder(World())
        self.directory = directory
        self.server = Server(Context(self.loop, self.recorder, Tails(self.loop)), str(directory / "w.sock"))
        self.programs: list[subprocess.Popen[bytes]] = []

    def ask(self, message: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.server.answer(json.dumps(message.to_wire()).encode()))
        return answer

    def begin(self, script: str, name: str = "app", **more: Any) -> "subprocess.Popen[bytes]":
        program = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
        self.programs.append(program)
        assert program.stdout is not None and program.stdout.readline() == b"ready\n"
        watch = messages.Watch(id=name, pod_uid="u-1", name=name, attempt=0, pid=program.pid, log="", **more)
        assert self.ask(watch) == {"done": True, "start": procfs.start_time(program.pid)}
        return program

    def until(self, kind: str) -> dict[str, Any]:
        """Turn the loop until there is a record of that kind."""
        for _ in range(500):
            if found := self.of(kind):
                return found[0]
            self.loop.call_later(0.05, lambda: None)
            self.loop.run_once()
        raise AssertionError(f"no {kind}: {[each['kind'] for each in self.recorder.records]}")

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.recorder.records if each["kind"] == kind]

    @property
    def kinds(self) -> list[str]:
        return [each["kind"] for each in self.recorder.records]

    def turn(self, seconds: float) -> None:
        """Turn the loop for so long."""
        over: list[bool] = []
        self.loop.call_later(seconds, lambda: over.append(True))
        while not over:
            self.loop.run_once()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    found = Node(tmp_path)
    yield found
    for program in found.programs:
        with_group = os.getpgid(program.pid) if program.poll() is None else program.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(with_group, signal.SIGKILL)
        program.wait(30)
        assert program.stdout is not None
        program.stdout.close()


shows_statuses = pytest.mark.skipif(
    tuple(int(each) for each in os.uname().release.split(".")[:2]) < (6, 15), reason="before Linux 6.15"
)


@shows_statuses
def test_a_stop_that_is_ignored_is_told_in_the_order_in_which_it_happens(node: Node) -> None:
    program = node.begin(STAYS)
    (started,) = node.of(kinds.PROCESS_STARTED)
    assert (started["facts"]["argv"][0], started["evidence"]) == ("sh", "observed")
    assert node.ask(messages.Stopping(id="app", signal=15, timeout=1)) == {"done": True}
    assert node.of(kinds.PROCESS_SIGNAL_STATE)[0]["facts"]["disposition"] == "ignored"
    assert [each["evidence"] for each in node.of(kinds.SIGNAL_SENT)] == ["inferred"]
    node.turn(1.1)
    assert kinds.PROCESSES_LEFT not in node.kinds, "whether SIGKILL came is not known yet"
    program.kill()
    program.wait(30)
    exited = node.until(kinds.PROCESS_EXITED)
    assert (exited["facts"]["exitCode"], exited["facts"]["signal"], exited["evidence"]) == (137, "SIGKILL", "observed")
    told = [each for each in node.kinds if each in (kinds.PROCESSES_LEFT, kinds.SIGNAL_SENT, kinds.PROCESS_EXITED)]
    assert told == [kinds.SIGNAL_SENT, kinds.PROCESSES_LEFT, kinds.SIGNAL_SENT, kinds.PROCESS_EXITED]
    assert "sleep" in [each["name"] for each in node.of(kinds.PROCESSES_LEFT)[0]["facts"]["processes"]]
    kill = node.of(kinds.SIGNAL_SENT)[1]["facts"]
    assert (kill["signal"], kill["why"], kill["stopSignalPending"]) == ("SIGKILL", "grace over", False)


@shows_statuses
def test_an_end_by_itself_right_before_sigkill_has_no_sigkill(node: Node) -> None:
    program = node.begin(DRAINS)
    node.ask(messages.Stopping(id="app", signal=15, timeout=1))
    node.turn(1.1)
    program.terminate()
    program.wait(30)
    exited = node.until(kinds.PROCESS_EXITED)
    assert (exited["facts"]["exitCode"], exited["facts"]["signal"]) == (0, None)
    assert [each["facts"]["signal"] for each in node.of(kinds.SIGNAL_SENT)] == ["SIGTERM"]
    for left in node.of(kinds.PROCESSES_LEFT):
        assert left["facts"]["when"] == "exit"


def test_the_stop_signal_is_sent_once_and_a_later_call_brings_sigkill_nearer(node: Node) -> None:
    node.begin(STAYS)
    node.ask(messages.Stopping(id="app", signal=15, timeout=300))
    node.ask(messages.Stopping(id="app", signal=15, timeout=1))
    node.ask(messages.Stopping(id="app", signal=15, timeout=100))
    container = node.server._containers["app"]
    assert container._kill is None
    node.turn(1.1)
    assert container._kill is not None
    assert [each["facts"]["signal"] for each in node.of(kinds.SIGNAL_SENT)] == ["SIGTERM"]


@shows_statuses
def test_a_look_that_fails_before_sigkill_keeps_no_later_record_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(witness: Witness) -> None:
        raise OverflowError("timestamp out of range")

    monkeypatch.setattr(Witness, "before_kill", fails)
    program = node.begin(STAYS)
    with pytest.raises(OverflowError):
        node.server._containers["app"].stopping(15, 0)
    program.kill()
    program.wait(30)
    assert node.until(kinds.PROCESS_EXITED)["facts"]["exitCode"] == 137
    assert node.of(kinds.SIGNAL_SENT)[0]["facts"]["signal"] == "SIGKILL"


@pytest.mark.parametrize(("code", "name"), [(137, "SIGKILL"), (3, None)])
def test_where_the_kernel_does_not_show_it_the_runtime_says_how_it_ended(
    node: Node, monkeypatch: pytest.MonkeyPatch, code: int, name: str | None
) -> None:
    monkeypatch.setattr(procfs, "wait_status", lambda pidfd: None)
    program = node.begin(STAYS)
    node.ask(messages.Stopping(id="app", signal=15, timeout=0))
    program.kill()
    program.wait(30)
    assert node.ask(messages.Ended(id="app", exit_code=code, oom_killed=False)) == {"done": True}
    (exited,) = node.of(kinds.PROCESS_EXITED)
    assert (exited["facts"]["exitCode"], exited["facts"]["signal"], exited["evidence"]) == (code, name, "inferred")
    assert (kinds.PROCESSES_LEFT in node.kinds) == (name == "SIGKILL")
    assert node.ask(messages.Ended(id="app", exit_code=code, oom_killed=False)) == {"done": True}
    assert len(node.of(kinds.PROCESS_EXITED)) == 1


@shows_statuses
@pytest.mark.parametrize(
    ("files", "limit", "reached"),
    [
        ({"memory.events": "oom 1\noom_kill 1\n", "memory.max": "4096\n"}, 4096, True),
        ({"memory.events": "oom 0\noom_kill 1\n", "memory.max": "9999999\n", "memory.peak": "4096\n"}, 9999999, False),
        ({"memory.events": "oom 0\noom_kill 1\n", "memory.max": "4096\n"}, 4096, None),
        ({"memory.oom_control": "oom_kill 1\n", "memory.limit_in_bytes": "4096\n"}, 4096, None),
    ],
    ids=["its own", "its Pod's or its node's", "a kernel without a peak", "version 1"],
)
def test_whose_memory_ran_out_is_told_with_the_limit_at_the_end(
    node: Node, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], limit: int, reached: bool | None
) -> None:
    group = node.directory / "kubepods/pod/c"
    group.mkdir(parents=True)
    monkeypatch.setattr(container, "GROUPS", str(node.directory))
    events, size = (f"kubepods/pod/c/{name}" for name in list(files)[:2])
    monkeypatch.setattr(memory, "files_of", lambda groups: (events, size))
    (node.directory / size).write_text("77777\n")
    program = node.begin(STAYS)
    for name, text in files.items():
        (group / name).write_text(text)
    program.kill()
    program.wait(30)
    facts = node.until(kinds.PROCESS_EXITED)["facts"]
    assert (facts["oomKilled"], facts["memoryLimit"], facts["limitReached"]) == (True, limit, reached)


@pytest.mark.parametrize("pid", [0, None])
def test_of_a_container_that_has_ended_already_start_and_output_are_told(node: Node, pid: int | None) -> None:
    program = subprocess.Popen(["true"])
    program.wait(30)
    log = node.directory / "0.log"
    log.write_text("2026-01-01T00:00:00Z stderr F no such table\n")
    about = {"pid": program.pid if pid is None else pid, "argv": ["sh", "-c", "true"], "log": str(log)}
    watch = messages.Watch(id="gone", pod_uid="u-1", name="gone", attempt=0, **about)
    assert node.ask(watch)["done"] is True
    assert [(each["kind"], each["evidence"]) for each in node.recorder.records] == [
        (kinds.PROCESS_STARTED, "inferred"),
        (kinds.OUTPUT, "observed"),
    ]
    assert node.ask(messages.Stopping(id="gone", signal=15, timeout=1)) == {"done": False}
    assert node.ask(messages.Ended(id="gone", exit_code=0, oom_killed=False)) == {"done": False}
    assert node.ask(messages.Listeners(id="gone")) == {"listeners": None}


def test_a_container_that_an_earlier_witness_knew_starts_once(node: Node) -> None:
    program = node.begin(STAYS, known=True)
    assert node.kinds == []
    watch = messages.Watch(id="app", pod_uid="u-1", name="app", attempt=0, pid=program.pid, log="")
    assert node.ask(watch)["done"] is True
    assert node.kinds == []


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_process_with_the_number_of_one_that_has_ended_is_not_watched(node: Node, earlier: int) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        start = procfs.start_time(process.pid)
        about = {"pid": process.pid, "known": True, "start": start - earlier}
        watch = messages.Watch(id="app", pod_uid="u-1", name="app", attempt=0, log="", **about)
        assert node.ask(watch) == {"done": True, **({} if earlier else {"start": start})}
        assert node.ask(messages.Stopping(id="app", signal=15, timeout=1)) == {"done": not earlier}
    finally:
        process.kill()
        process.wait(30)


def test_output_is_told_as_the_log_grows_and_after_it_was_rotated(node: Node) -> None:
    log = node.directory / "0.log"
    log.write_text("2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:00Z stderr F two\nnot a line\n")
    tails, lines = Tails(node.loop), list[tuple[str, str, int]]()
    tail = tails.follow(str(log), lambda *line: lines.append(line), from_end=False)
    assert lines == [("stdout", "one", 0), ("stderr", "two", 0)]
    with log.open("a") as file:
        file.write("2026-01-01T00:00:00Z stdout P thr")
    node.turn(0.05)
    log.rename(node.directory / "0.log.1")
    with (node.directory / "0.log.1").open("a") as file:
        file.write("ee\n")
    log.write_text("2026-01-01T00:00:00Z stdout F four\n")
    node.turn(0.3)
    assert [text for _, text, _ in lines[2:]] == ["three", "four"]
    with log.open("a") as file:
        file.write("".join(f"t stdout F {number}\n" for number in range(1000)))
    node.turn(0.05)
    tail.close()
    assert lines[-1][1] == "" and 300 < lines[-1][2] <= 600, "too many lines are counted"


def test_a_line_of_a_log_is_stream_and_text() -> None:
    assert parse_line(b"2026-01-01T00:00:00.1Z stdout F a b  c") == ("stdout", "a b  c")
    assert parse_line(b"2026-01-01T00:00:00.1Z stderr P ") == ("stderr", "")
    assert parse_line(b"2026-01-01T00:00:00.1Z stderr F") == ("stderr", "")
    assert parse_line(b"2026 other F a") is None
    assert parse_line(b"") is None


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"verb": "sing"}', b'{"verb": "watch"}', b'{"verb": "ended", "id": 3}', b"[" * 9999]
)
def test_a_question_that_cannot_be_read_is_answered_with_an_error(node: Node, line: bytes) -> None:
    assert "error" in json.loads(node.server.answer(line))
