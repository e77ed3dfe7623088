"""The node's side of the witness: what it does not say is not known, and nothing waits for it long."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from fake_api import ListRecorder

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.remote import witness as client
from lastcall.kube.cri.v1.remote.ends import NOT_SEEN, OTHER_SENDERS, EndsFromStatus
from lastcall.kube.cri.v1.remote.witness import Witness
from lastcall.kube.cri.v1.translate.task import Task, has_ended, stop_signal_of, task_of
from lastcall.kube.cri.v1.witness import messages
from lastcall.records import kinds
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

RUNNING = api.ContainerStatus(
    "c1",
    api.ContainerMetadata("app", 2),
    "s1",
    api.ContainerState.CONTAINER_RUNNING,
    "app:1",
    "sha256:1",
    0,
    started_at=1,
    labels={"io.kubernetes.pod.uid": "u-1"},
)


def ended(code=137, reason="Error", seconds=0):
    at = RUNNING.started_at + seconds * 10**9
    state = api.ContainerState.CONTAINER_EXITED
    return api.ContainerStatus(
        "c1", RUNNING.metadata, "s1", state, "app:1", "sha256:1", 0, started_at=1, finished_at=at, exit_code=code,
        reason=reason, labels=RUNNING.labels,
    )  # fmt: skip


class FakeWitness:
    """Answers as `answers` says: verb → answer; a verb that is not there gets none. `asked` are the questions."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []
        self.connections = []

    async def serve(self, reader, writer):
        self.connections.append(writer)
        while line := await reader.readline():
            question = json.loads(line)
            self.asked.append(question)
            answer = self.answers.get(question["verb"])
            if answer is not None:
                writer.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n")


@asynccontextmanager
async def served(tmp_path, fake):
    server = await asyncio.start_unix_server(fake.serve, f"{tmp_path}/w.sock")
    try:
        yield Witness(f"{tmp_path}/w.sock", World().clock)
    finally:
        server.close()
        for writer in fake.connections:
            writer.close()


def watch(identity="c1"):
    return messages.Watch(id=identity, pod_uid="u-1", name="app", attempt=0, pid=7, log="")


def test_a_witness_that_is_another_one_is_told_what_was_watched(tmp_path):
    async def scenario():
        fake = FakeWitness(watch={"done": True}, stopping={"done": True})
        async with served(tmp_path, fake) as witness:
            assert await witness.watch(watch())
            assert witness.watches("c1")
            fake.connections[0].close()
            assert await witness.stopping("c1", 15, 30), "a connection that is gone says nothing about the next one"
            again = [each for each in fake.asked if each["verb"] == "watch"][1]
            assert (again["id"], again["known"]) == ("c1", True)
            await witness.forget("c1")
            assert not witness.watches("c1")
            witness.close()

    asyncio.run(scenario())


def test_a_witness_that_is_another_one_watches_the_same_processes_and_none_that_have_ended(tmp_path):
    """Another process may have the number of one that has ended."""

    async def scenario():
        fake = FakeWitness(watch={"done": True, "start": 77}, ended={"done": True}, forget={"done": True})
        async with served(tmp_path, fake) as witness:
            assert await witness.watch(watch("c1")) and await witness.watch(watch("c2"))
            assert await witness.ended("c1", 0, oom_killed=False)
            assert witness.watches("c1"), "it was seen"
            fake.connections[0].close()
            await witness.forget("c1")
            again = [each for each in fake.asked if each["verb"] == "watch"][2:]
            assert [(each["id"], each["start"]) for each in again] == [("c2", 77)]
            assert fake.asked[-1]["verb"] == "forget", "what the same witness holds of it is let go"
            witness.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [None, b"\xff\n", b"[]\n", b'{"error": "why"}\n', b'{"done": 3}\n', b"half"])
def test_what_it_does_not_say_is_not_known(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.3)

    async def scenario():
        async with served(tmp_path, FakeWitness(stopping=answer, listeners=answer)) as witness:
            assert await witness.stopping("c1", 15, 30) is False
            assert await witness.listeners("c1") is None, "it is left alone for a while"
            witness._away_until = 0
            assert await witness.listeners("c1") is None
            witness.close()

    asyncio.run(scenario())


def test_one_that_is_not_there_is_not_waited_for_and_left_alone_longer_each_time(tmp_path):
    async def scenario():
        witness = Witness(f"{tmp_path}/none.sock", World().clock)
        left_alone = []
        for _ in range(9):
            before = witness._clock.monotonic_ns() / 1e9
            witness._away_until = 0
            assert not await witness.watch(watch())
            left_alone.append(round(witness._away_until - before))
        assert not witness.watches("c1")
        assert left_alone[-2:] == [30, 30] and left_alone == sorted(left_alone)

    asyncio.run(scenario())


def test_listeners_are_addresses_and_ports(tmp_path):
    async def scenario():
        answer = {"listeners": [{"address": "::", "port": 80, "backlog": 0}]}
        async with served(tmp_path, FakeWitness(listeners=answer)) as witness:
            ends = EndsFromStatus(ListRecorder(World()), World().clock, witness)
            assert await ends.listeners("c1") == (api.TCPListener("::", 80),)
            witness.close()

    asyncio.run(scenario())


def recorded(tmp_path, fake, steps):
    """The records that the node writes itself."""
    world = World()
    recorder = ListRecorder(world)

    async def scenario():
        async with served(tmp_path, fake) as witness:
            await steps(EndsFromStatus(recorder, world.clock, witness))
            witness.close()

    asyncio.run(scenario())
    return [(each["kind"], each["evidence"]) for each in recorder.records], recorder.records


async def whole_life(ends):
    await ends.started(RUNNING, Task(7, ("sh",)), "/log")
    await ends.stopping(RUNNING, "SIGQUIT", 0)
    await ends.stopping(RUNNING, "SIGQUIT", 0)
    await ends.ended(ended())
    await ends.ended(ended())


def test_what_the_witness_has_recorded_is_not_recorded_twice(tmp_path):
    fake = FakeWitness(watch={"done": True}, stopping={"done": True}, ended={"done": True})
    found, records = recorded(tmp_path, fake, whole_life)
    assert found == [(kinds.NOT_SHOWN, "inferred")]
    assert records[0]["facts"]["text"] == OTHER_SENDERS
    stopping = next(each for each in fake.asked if each["verb"] == "stopping")
    assert (stopping["signal"], stopping["timeout"]) == (3, 0)
    first = fake.asked[0]
    assert (first["pid"], first["argv"], first["log"], first["attempt"]) == (7, ["sh"], "/log", 2)


def test_what_the_witness_does_not_know_is_inferred_from_the_status(tmp_path):
    fake = FakeWitness(watch={"done": False}, stopping={"done": False}, ended={"done": False})
    found, records = recorded(tmp_path, fake, whole_life)
    assert [kind for kind, _ in found] == [
        kinds.PROCESS_STARTED, kinds.SIGNAL_SENT, kinds.PROCESS_EXITED, kinds.NOT_SHOWN,
    ]  # fmt: skip
    assert {evidence for _, evidence in found} == {"inferred"}
    assert records[1]["facts"] == {"signal": "SIGKILL", "why": "StopContainer"}
    assert records[3]["facts"]["text"] == NOT_SEEN


@pytest.mark.parametrize(
    ("code", "seconds", "kills"), [(137, 10**10, 1), (137, 0, 0), (0, 10**10, 0)], ids=["late", "early", "by itself"]
)
def test_sigkill_is_inferred_of_an_end_by_it_after_the_timeout(tmp_path, code, seconds, kills):
    async def steps(ends):
        await ends.stopping(RUNNING, "", 30)
        await ends.ended(ended(code, seconds=seconds))

    fake = FakeWitness(stopping={"done": False}, ended={"done": False})
    _, records = recorded(tmp_path, fake, steps)
    sent = [each["facts"]["signal"] for each in records if each["kind"] == kinds.SIGNAL_SENT]
    assert sent == ["SIGTERM", *["SIGKILL"] * kills]


def test_one_that_never_started_has_no_end(tmp_path):
    async def steps(ends):
        await ends.ended(ended(128, "StartError"))

    assert recorded(tmp_path, FakeWitness(), steps)[0] == []


INFO = '{"pid": 42, "runtimeSpec": {"process": {"args": ["sh", "-c", "x"], "terminal": true}}}'


@pytest.mark.parametrize(
    ("info", "task"),
    [
        ({"info": INFO}, Task(42, ("sh", "-c", "x"), True)),
        ({"info": '{"pid": 0}'}, Task()),
        ({"info": '{"pid": "1", "runtimeSpec": []}'}, Task()),
        ({"info": "[1]"}, Task()),
        ({"info": "{"}, Task()),
        ({}, Task()),
    ],
)
def test_the_process_is_read_from_what_the_runtime_adds(info, task):
    assert task_of(info) == task


def test_the_stop_signal_is_the_images():
    assert stop_signal_of({"info": '{"imageSpec": {"config": {"StopSignal": "SIGQUIT"}}}'}) == "SIGQUIT"
    assert stop_signal_of({"info": '{"imageSpec": {"config": {}}}'}) == ""
    assert stop_signal_of({"info": '{"imageSpec": {"config": {"StopSignal": 3}}}'}) == ""
    assert stop_signal_of({}) == ""


@pytest.mark.parametrize(
    ("info", "ended"),
    [
        ({"info": '{"pid": 7, "processStatus": "running"}'}, False),
        ({"info": '{"pid": 7, "processStatus": "stopped"}'}, True),
        ({"info": '{"pid": 7, "processStatus": "deleted"}'}, True),
        ({"info": '{"pid": 7}'}, False),
        ({}, False),
    ],
)
def test_a_pause_process_has_ended_when_the_runtime_says_so_before_its_sandbox_does(info, ended):
    assert has_ended(info) is ended
