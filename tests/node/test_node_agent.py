"""The node agent as a program, with real processes in a tree of files that looks as a node's /sys/fs/cgroup."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_features import TELLS_ENDS
from waiting import eventually

UID, ID = "1f4bfe9c-5b1a-4a9c-9a55-2d1c8b8f4d11", "6832a35f7d2ddd02ded04efcfb0efef2ea77f7926b51f02e7aed4d6abc77f24f"

IGNORES = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
HANDLES = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); "
    "print('up', flush=True); time.sleep(600)"
)
WAITS = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {15}); print('up', flush=True); signal.sigwait({15})"

pytestmark = pytest.mark.real_kernel


class Agent:
    """The program, and what it has said."""

    def __init__(self, tree: Path, *options: str) -> None:
        command = [sys.executable, "-m", "lastcall.trace.agent", "--cgroup", str(tree), "--node", "n1", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    def say(self, **fields: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(fields).encode() + b"\n")
        self.process.stdin.flush()

    def records(self, kind: str) -> list[dict[str, Any]]:
        return [each["record"] for each in list(self.said) if each.get("record", {}).get("kind") == kind]

    def first(self, key: str) -> dict[str, Any]:
        eventually(lambda: any(key in each for each in list(self.said)), f"a line with {key}")
        return next(each for each in self.said if key in each)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")
    return tmp_path


@pytest.fixture
def started(tree: Path) -> Iterator[Callable[..., Any]]:
    """Starts processes that end with the test."""
    made: list[subprocess.Popen[bytes]] = []

    def start(program: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        made.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        put(tree, process.pid)
        return process

    yield start
    for process in made:
        process.kill()
        process.wait()


@pytest.fixture
def agent(tree: Path) -> Iterator[Callable[..., Agent]]:
    made: list[Agent] = []

    def start(*options: str) -> Agent:
        made.append(Agent(tree, *options))
        made[-1].say(hello=1, after=0)
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()


def put(tree: Path, *pids: int, kills: int = 0) -> None:
    """What the group of the container shows."""
    group = tree / "kubepods.slice" / f"kubepods-pod{UID.replace('-', '_')}.slice" / f"cri-containerd-{ID}.scope"
    group.mkdir(parents=True, exist_ok=True)
    before = (group / "cgroup.procs").read_text() if (group / "cgroup.procs").exists() else ""
    (group / "cgroup.procs").write_text(before + "".join(f"{pid}\n" for pid in pids))
    (group / "memory.events").write_text(f"oom {kills}\noom_kill {kills}\n")
    (group / "memory.max").write_text("67108864\n")


def test_it_greets_and_answers_with_its_clock(agent: Callable[..., Agent]) -> None:
    one = agent()
    greeting = one.first("agent")
    assert (greeting["node"], greeting["cgroups"]) == ("n1", 2)
    one.say(ping=7)
    pong = one.first("pong")
    assert pong["pong"] == 7
    assert pong["at_ns"] > 0


@pytest.mark.parametrize(("program", "disposition"), [(IGNORES, "ignored"), (HANDLES, "handled")])
def test_how_pid_1_meets_the_signal_is_read_when_the_pod_ends(
    agent: Callable[..., Agent], started: Callable[..., Any], program: str, disposition: str
) -> None:
    process = started(program)
    one = agent()
    one.say(watch=UID)
    one.say(ending=UID)
    eventually(lambda: one.records("ProcessSignalState"), "a look at PID 1")
    record = one.records("ProcessSignalState")[0]
    assert (record["facts"]["pid"], record["facts"]["disposition"]) == (process.pid, disposition)
    assert (record["pod_uid"], record["container"], record["evidence"]) == (UID, ID, "observed")


def test_a_program_that_waits_for_the_signal_is_told_as_such_or_not_at_all(
    agent: Callable[..., Agent], started: Callable[..., Any]
) -> None:
    started(WAITS)
    one = agent()
    one.say(watch=UID)
    one.say(ending=UID)
    eventually(lambda: one.records("ProcessSignalState"), "a look at PID 1")
    assert one.first("agent")["traces"] is (os.geteuid() == 0)
    wanted = {"handled"} if os.geteuid() == 0 else {None}
    assert {each["facts"]["disposition"] for each in one.records("ProcessSignalState")} == wanted


def test_the_exit_is_seen_when_it_happens(agent: Callable[..., Agent], started: Callable[..., Any], tree: Path) -> None:
    process = started(HANDLES)
    one = agent()
    one.say(watch=UID)
    one.say(ending=UID)
    eventually(lambda: one.records("ProcessSignalState"), "a look at PID 1")
    process.send_signal(signal.SIGTERM)
    process.wait()
    eventually(lambda: one.records("ProcessExited"), "the exit")
    facts = one.records("ProcessExited")[0]["facts"]
    assert facts["exitCode"] == (3 if TELLS_ENDS else None)
    assert (facts["signal"], facts["oomKills"], facts["memoryLimit"]) == (None, 0, 67108864)


def test_a_kill_for_lack_of_memory_is_counted(
    agent: Callable[..., Agent], started: Callable[..., Any], tree: Path
) -> None:
    process = started(IGNORES)
    one = agent()
    one.say(watch=UID)
    one.say(ping=1)
    one.first("pong")  # in order: the Pod is looked at by now
    put(tree, kills=1)
    process.kill()
    process.wait()
    eventually(lambda: one.records("ProcessExited"), "the exit")
    facts = one.records("ProcessExited")[0]["facts"]
    assert (facts["oomKilled"], facts["oomKills"], facts["limitReached"]) == (True, 1, True)
    if TELLS_ENDS:
        assert (facts["exitCode"], facts["signal"]) == (137, "SIGKILL")


def test_an_exec_in_the_container_is_seen_while_the_pod_ends(
    agent: Callable[..., Agent], started: Callable[..., Any], tree: Path
) -> None:
    started(HANDLES)
    one = agent()
    one.say(watch=UID)
    one.say(ending=UID)
    eventually(lambda: one.records("ProcessSignalState"), "a look at PID 1")
    hook = started("import time; print('up', flush=True); time.sleep(600)")  # its parent is not in the container
    eventually(lambda: one.records("ExecStarted"), "the exec")
    assert one.records("ExecStarted")[0]["facts"]["argv"][1] == "-c"
    hook.kill()
    hook.wait()
    eventually(lambda: one.records("ExecExited"), "its end")
    assert one.records("ExecExited")[0]["facts"]["pid"] == hook.pid


def test_a_client_that_comes_back_gets_what_happened_meanwhile(
    agent: Callable[..., Agent], started: Callable[..., Any]
) -> None:
    started(HANDLES)
    one = agent()
    one.say(watch=UID)
    one.say(ending=UID)
    eventually(lambda: one.records("ProcessSignalState"), "a look at PID 1")
    one.say(hello=1, after=0)
    eventually(lambda: len(one.records("ProcessSignalState")) == 2, "the line once more")


def test_it_ends_when_its_stdin_does_and_when_nobody_says_anything(agent: Callable[..., Agent]) -> None:
    one, two, three = agent(), agent("--idle", "0.5"), agent()
    assert one.process.stdin is not None
    one.process.stdin.close()
    three.say(end=True)
    for each in (one, two, three):
        assert each.process.wait(60) == 0
    assert "nothing was said" in two.first("end")["end"]


def test_what_it_does_not_understand_is_answered(agent: Callable[..., Agent]) -> None:
    one = agent()
    assert one.process.stdin is not None
    one.process.stdin.write(b"what?\n" + b"x" * 200_000 + b"\n")
    one.say(ping=1)
    one.first("pong")
    assert [each["error"] for each in one.said if "error" in each] == ["not JSON", "a line of more than 65536 bytes"]


def test_without_control_groups_it_says_what_to_mount(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lastcall.trace.agent", "--cgroup", str(tmp_path / "nothing")]
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ended.returncode == 1
    assert "fix: mount the node's /sys/fs/cgroup there, read-only" in ended.stderr
