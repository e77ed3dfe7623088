"""Front of a staying cluster, with a tree that is none."""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from lastcall.kube.api.errors import not_found
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.api import ConnectionLost, ListResult
from lastcall.kube.cluster.control.socket import ControlClient, Logs, claim
from lastcall.kube.cluster.errors import ClusterDied, ClusterStartError, ControlError
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.staying import follower
from lastcall.kube.cluster.staying import front as module
from lastcall.kube.cluster.staying.front import Front
from lastcall.kube.cluster.staying.front_log import FrontLog
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.world import crash_guard

pytestmark = pytest.mark.loopback


class Client:
    """Answers as `failure` says, or with one Ready node and two Pods."""

    failure: BaseException | None = None
    hangs = False

    async def list(self, resource: Any) -> ListResult:
        if self.failure:
            raise self.failure
        if self.hangs:
            await asyncio.Event().wait()
        if resource is PODS:
            return ListResult([{"status": {"phase": "Running"}}, {}], "7")
        conditions = [{"type": "Ready", "status": "False", "message": "container runtime is down"}]
        return ListResult([{"metadata": {"name": "node-1"}, "status": {"conditions": conditions}}], "7")

    async def close(self) -> None:
        pass


class FakeTree:
    """What `Front` needs of an embedded cluster."""

    def __init__(self) -> None:
        self.client = Client()
        self.server = "https://127.0.0.1:1"
        self.ready = asyncio.Event()
        self.ready.set()
        self.error: Exception | None = None
        self.logs = {role: os.memfd_create(role) for role in ("init", "control-plane", "shim-1", "node-1")}
        self.record: Callable[[Record], None] = lambda record: None
        self.died: Callable[..., None] = lambda *_: None
        self._sequence = 0
        self.seconds: list[float] = []
        """How long it was to wait for answers."""

    async def connect(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if self.error:
            raise self.error

    nodes = ("node-1",)
    roles = ("front", "init", "control-plane", "shim-1", "node-1")

    async def wait_node_ready(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self.ready.wait()

    def on_record(self, callback: Callable[[Record], None]) -> None:
        self.record = callback

    def on_process_died(self, callback: Callable[..., None]) -> None:
        self.died = callback

    def kubeconfig(self) -> str:
        return "kind: Config\n"

    def last_words(self, role: str, lines: int = 20) -> str:
        return f"the last words of {role}"

    def role_logs(self) -> dict[str, int]:
        return self.logs

    def host_pids(self) -> dict[str, int]:
        return {"init": 11, "node-1": 14}

    def say(self, kind: str, pod_uid: str = "", **facts: Any) -> None:
        self._sequence += 1
        self.record(Record(f"x-{self._sequence}", self._sequence, 0, "init", kind, pod_uid, facts=facts))


@pytest.fixture
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "lastcall/one"


async def with_front(
    check: Callable[[Front, FakeTree], Coroutine[Any, Any, None]], tree: FakeTree | None = None
) -> None:
    """`check` while a front runs; afterwards it is stopped."""
    tree = tree or FakeTree()
    directory = claim("one")
    front = Front(tree, ClusterOptions(name="one"), directory, FrontLog(directory))
    up = asyncio.Event()
    running = asyncio.ensure_future(front.run(lambda facts: up.set(), 5))
    try:
        await asyncio.wait_for(up.wait(), 60)
        await check(front, tree)
        if not front.ended_by_itself:
            await asyncio.to_thread(ControlClient("one")._stop_once, 1e9)
        await asyncio.wait_for(running, 60)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        directory.remove()
        directory.close()


async def status() -> dict[str, Any]:
    return await asyncio.to_thread(ControlClient("one").status)


async def logs(role: str = "") -> list[tuple[str, str]]:
    def ask() -> list[tuple[str, str]]:
        with ControlClient("one").connect() as connection:
            return [(m["role"], m["text"]) for m in connection.ask(Logs(role=role)) if "text" in m]

    return await asyncio.to_thread(ask)


async def test_its_files_say_who_it_is_and_how_it_is_reached(state_home: Path) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        facts = json.loads((state_home / "front.json").read_text())
        assert facts["pid"] == os.getpid() and facts["server"] == "https://127.0.0.1:1"
        assert (facts["protocol"], facts["records"], facts["phase"]) == (1, 1, "starting")
        assert facts["kubeconfig"] == str(state_home / "kubeconfig")
        assert (state_home / "kubeconfig").read_text() == "kind: Config\n"
        modes = {name: os.stat(state_home / name).st_mode & 0o777 for name in os.listdir(state_home)}
        assert modes == dict.fromkeys(["front.json", "front.log", "front.sock", "kubeconfig", "lock"], 0o600)

    await with_front(check)


async def test_status_counts_pods_and_says_why_a_node_is_not_ready(state_home: Path) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        found = await status()
        assert found["pods"] == {"total": 2, "Running": 1, "Unknown": 1}
        assert found["nodes"] == [{"name": "node-1", "ready": False, "message": "container runtime is down"}]
        pids = {process["role"]: process["pid"] for process in found["processes"]}
        assert pids == {"front": os.getpid(), "init": 11, "control-plane": None, "shim-1": None, "node-1": 14}

    await with_front(check)


@pytest.mark.parametrize("failure", [ConnectionLost("refused"), not_found("nodes", "node-1"), OSError(5, "I/O error")])
async def test_status_answers_without_an_api_server(state_home: Path, failure: Exception) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        tree.client.failure = failure
        found = await status()
        assert found["pods"] is None and found["nodes"][0]["ready"] is None
        assert found["nodes"][0]["message"].startswith("the API server does not answer: ")

    await with_front(check)


async def test_status_does_not_wait_for_ever(state_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "API_SECONDS", 0.05)

    async def check(front: Front, tree: FakeTree) -> None:
        tree.client.hangs = True
        assert (await status())["nodes"][0]["message"] == "the API server does not answer: it takes too long"

    await with_front(check)


async def test_a_role_that_dies_and_is_started_again_is_counted_and_logged(state_home: Path) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        for _ in range(2):
            tree.say(kinds.PROCESS_DIED, role="node-1", pid=4, exitCode=70, signal=None, restartsIn=0.02)
            tree.say(kinds.PROCESS_RESTARTED, role="node-1", pid=5)
        tree.say(kinds.PROCESS_DIED, role="orphan", pid=9, exitCode=0, signal=None)
        (node,) = [p for p in (await status())["processes"] if p["role"] == "node-1"]
        assert (node["restarts"], node["lastDeath"]) == (2, "exited with 70") and node["lastDeathAt"].endswith("Z")
        told = [text.split(" ", 1)[1] for _, text in await logs("front")]
        assert told[1:] == [
            "node-1 exited with 70: the last words of node-1; it is started again in 0.02 s",
            "node-1 runs again (pid 5 inside the cluster)",
        ] * 2  # fmt: skip

    await with_front(check)


async def test_a_role_that_dies_of_one_object_again_and_again_is_told_with_it(state_home: Path) -> None:
    hung = {"seconds": 10.2, "cpuSeconds": 10.2, "takesLonger": "", "stack": "Current thread 0x1:\n  File x.py in spin"}
    turn = {"component": "job-controller", "key": "default/x"}

    async def check(front: Front, tree: FakeTree) -> None:
        told: list[str] = []
        front.warn = told.append
        for _ in range(5):
            tree.say(
                kinds.PROCESS_DIED, role="control-plane", pid=4, exitCode=None, signal=9, restartsIn=0, hung=hung,
                workingOn=turn,
            )  # fmt: skip
            tree.say(kinds.PROCESS_RESTARTED, role="control-plane", pid=5)
        (process,) = [p for p in (await status())["processes"] if p["role"] == "control-plane"]
        assert process["diesOf"] == [{**turn, "deaths": 5}] and process["hangs"] == 5
        again = "control-plane died {} times while working on default/x (job-controller)"
        assert told == [again.format(2), again.format(4)], "twice, four times, eight times"
        log = [text.split(" ", 1)[1] for _, text in await logs("front")]
        assert log[1:4] == [
            "control-plane hung: its event loop did not turn for 10 s while working on default/x (job-controller); "
            "it is started again in 0 s",
            "  File x.py in spin",
            "control-plane runs again (pid 5 inside the cluster)",
        ]
        assert log[-2] == again.format(5)

    await with_front(check)


async def test_a_stored_object_that_is_set_aside_is_told_without_what_steers_a_terminal(state_home: Path) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        told: list[str] = []
        front.warn = told.append
        fault = {"role": "control-plane", "times": 1, "count": 1}
        tree.say(kinds.FAULT_CAUGHT, **fault, component="informer pods", key="default/x", error="KeyError: 'spec'")
        error = "UnreadableError: the stored object is set aside: it is a \x1b[2J of v1"
        tree.say(kinds.FAULT_CAUGHT, **fault, component=crash_guard.STORED_OBJECTS, key="pods/a\r\nb", error=error)
        assert told == [r"pods/a\r\nb: the stored object is set aside: it is a \x1b[2J of v1"]

    await with_front(check)


async def test_logs_of_one_role_and_of_all(state_home: Path) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        os.write(tree.logs["node-1"], b"node says\nand more")
        os.write(tree.logs["shim-1"], b"shim says\n")
        assert await logs("node-1") == [("node-1", "node says"), ("node-1", "and more")]
        told = await logs()
        assert told[0][0] == "front" and set(told[1:]) == {
            ("shim-1", "shim says"), ("node-1", "node says"), ("node-1", "and more"),
        }  # fmt: skip
        with pytest.raises(ControlError, match="there is no role 'node-2': front, init"):
            await logs("node-2")

    await with_front(check)


async def test_a_follower_gets_what_was_kept_and_then_what_comes_without_a_gap(state_home: Path) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        tree.say(kinds.POD_CREATED, "uid-1", namespace="default", name="a")
        tree.say(kinds.POD_CREATED, "uid-2", namespace="default", name="b")
        records = await ControlClient("one").records(follow=True, pod_uid="uid-1")
        assert (await anext(records)).facts["name"] == "a"
        tree.say(kinds.KILLING, "uid-2")
        tree.say(kinds.KILLING, "uid-1", reason="x")
        following = await asyncio.wait_for(anext(records), 60)
        assert (following.kind, following.pod_uid) == (kinds.KILLING, "uid-1")
        await records.aclose()

    await with_front(check)


async def test_a_follower_that_does_not_read_is_told_and_takes_no_more_memory(
    state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "FOLLOWED_RECORDS", 10)

    async def check(front: Front, tree: FakeTree) -> None:
        records = await ControlClient("one").records(follow=True)
        first = asyncio.ensure_future(anext(records))
        await until(lambda: front._followers, "a follower")
        for _ in range(100):
            tree.say(kinds.KILLING, "uid-1")  # no await: the follower cannot keep up
        assert (await asyncio.wait_for(first, 60)).kind == kinds.KILLING

        async def read_on() -> int:
            return len([record async for record in records])

        with pytest.raises(ControlError, match="more than 10 records behind: ask again"):
            await asyncio.wait_for(read_on(), 60)

    await with_front(check)


async def test_the_death_of_init_is_the_end(state_home: Path) -> None:
    async def check(front: Front, tree: FakeTree) -> None:
        tree.died("init", 1, None, 9)

    with pytest.raises(ClusterDied, match="the cluster's init was killed by SIGKILL"):
        await with_front(check)


async def test_a_start_that_fails_or_takes_too_long_says_so(state_home: Path) -> None:
    async def nothing(front: Front, tree: FakeTree) -> None:
        raise AssertionError("it never came up")

    async def start(tree: FakeTree, timeout: float) -> None:
        directory = claim("one")
        try:
            front = Front(tree, ClusterOptions(name="one"), directory, FrontLog(directory))
            await front.run(lambda facts: None, timeout)
        finally:
            directory.remove()
            directory.close()

    tree = FakeTree()
    tree.error = ClusterStartError("control-plane exited 70 while the cluster started")
    with pytest.raises(ClusterStartError, match="control-plane exited 70"):
        await start(tree, 5)
    tree = FakeTree()
    tree.ready.clear()
    with pytest.raises(ClusterStartError, match=r"not Ready within 0.05 s \(--timeout\): the last words of node-1"):
        await start(tree, 0.05)
    assert tree.seconds == [0.05, 0.05], "neither step gives up before"
