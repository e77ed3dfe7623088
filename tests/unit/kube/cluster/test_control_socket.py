"""The control socket and its client, with a front that is none."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually, until

from lastcall.kube.cluster.control import server as control_server
from lastcall.kube.cluster.control import socket as control
from lastcall.kube.cluster.control.socket import ControlClient, claim, encode
from lastcall.kube.cluster.directory import ClusterDirectory, names
from lastcall.kube.cluster.errors import AlreadyRunning, ControlError, NewerVersion, NotRunning
from lastcall.records.record import Record

pytestmark = pytest.mark.loopback

RECORDS = [Record(f"kubelet-1-{n}", n, n, "kubelet", "Killing", "uid-1" if n % 2 else "uid-2") for n in range(1, 5)]


class Answers:
    """Says what is fixed, and counts."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()
        self.followers = 0

    async def status(self, request: control.Status) -> AsyncIterator[dict[str, Any]]:
        yield {"status": {"name": "one", "phase": "running"}}

    async def stop(self, request: control.Stop) -> AsyncIterator[dict[str, Any]]:
        yield {"stopping": True}
        self.stopped.set()

    async def records(self, request: control.Records) -> AsyncIterator[dict[str, Any]]:
        self.followers += 1
        try:
            for record in RECORDS:
                if request.pod_uid in ("", record.pod_uid):
                    yield control.record_message(record)
            if request.follow:
                await asyncio.Event().wait()
        finally:
            self.followers -= 1

    async def logs(self, request: control.Logs) -> AsyncIterator[dict[str, Any]]:
        if request.role == "broken":
            raise ValueError("a bug")
        yield {"role": "front", "text": "ü" * 100}

    async def publish(self, request: control.Publish) -> AsyncIterator[dict[str, Any]]:
        yield {"address": f"127.0.0.1:{request.port.partition(':')[0]}"}

    async def node(self, request: control.Node) -> AsyncIterator[dict[str, Any]]:
        yield {"text": f"{request.node} is asked to {request.action}"}

    async def add_node(self, request: control.AddNode) -> AsyncIterator[dict[str, Any]]:
        yield {"text": "node-2 is Ready"}
        yield {"node": "node-2"}

    async def remove_node(self, request: control.RemoveNode) -> AsyncIterator[dict[str, Any]]:
        await asyncio.sleep(0)
        raise ControlError(f"there is no node {request.node!r}")
        yield {}


class Front:
    """A control server in a thread, as front is a process."""

    def __init__(self, name: str = "one") -> None:
        self.directory = claim(name)
        self.logged: list[str] = []
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._started.wait(60)

    async def _run(self) -> None:
        self.answers = Answers()
        self._loop = asyncio.get_running_loop()
        listening = control_server.listen(self.directory)
        server = asyncio.ensure_future(control_server.serve(listening, self.answers, self.logged.append))
        self._loop.call_soon(self._started.set)
        await self.answers.stopped.wait()
        await asyncio.sleep(0.05)  # the last answer is written
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
        self.directory.remove()
        self.directory.close()

    def end(self) -> None:
        with suppress(RuntimeError):  # it was asked to stop, and its loop is closed already
            self._loop.call_soon_threadsafe(self.answers.stopped.set)
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def front(state_home: Path) -> Iterator[Front]:
    made = Front()
    yield made
    made.end()
    assert list(state_home.rglob("*")) == []


def raw(*lines: bytes) -> list[bytes]:
    """What front says to these lines, and nothing more."""
    with ControlClient("one").connect() as connection:
        for line in lines:
            connection.socket.sendall(line)
        connection.socket.shutdown(socket.SHUT_WR)
        return connection.socket.makefile("rb").read().splitlines()


def test_status_and_stop(front: Front) -> None:
    assert ControlClient("one").status() == {"name": "one", "phase": "running"}
    assert ControlClient("one").stop(10) == "ended"
    with pytest.raises(NotRunning, match="no cluster named 'one' is running"):
        ControlClient("one").stop(10)


def test_a_change_that_is_refused_says_why_and_ends_its_connection(front: Front) -> None:
    assert list(control.ask_cluster("one", control.AddNode(capacity={}), 60)) == ["node-2 is Ready"]
    for _ in range(2):
        with pytest.raises(ControlError, match="there is no node 'node-9'"):
            list(control.ask_cluster("one", control.RemoveNode(node="node-9"), 60))
    assert front.logged == []


async def test_records_of_all_pods_and_of_one(front: Front) -> None:
    client = ControlClient("one")
    assert [record async for record in await client.records()] == RECORDS
    assert [record.pod_uid async for record in await client.records(pod_uid="uid-2")] == ["uid-2", "uid-2"]


async def test_following_gives_more_and_a_client_that_goes_is_noticed(front: Front) -> None:
    records = await ControlClient("one").records(follow=True)
    seen = [await anext(records) for _ in RECORDS]
    assert seen == RECORDS
    await until(lambda: front.answers.followers == 1)
    await records.aclose()
    await until(lambda: front.answers.followers == 0)


async def test_a_follower_ends_with_the_cluster(front: Front) -> None:
    records = await ControlClient("one").records(follow=True)
    await asyncio.to_thread(ControlClient("one").stop, 10)
    assert [record async for record in records] == RECORDS


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"nonsense\n", b"cannot be read (not JSON"),
        (b"[1]\n", b"cannot be read (not a JSON object"),
        (b'{"verb": "explode"}\n', b"unknown verb 'explode': known are status, stop, records, logs, publish, node"),
        (b'{"verb": "serve", "follow": true}\n', b"unknown verb"),
        (b'{"verb": "__init__"}\n', b"unknown verb"),
        (b"{}\n", b"unknown verb None"),
    ],
)
def test_what_is_no_request_is_said_and_the_conversation_goes_on(front: Front, line: bytes, words: bytes) -> None:
    answers = raw(line, b'{"verb": "status"}\n')
    assert words in answers[0] and answers[0].startswith(b'{"error"')
    assert b'"phase":"running"' in answers[1]
    assert ControlClient("one").status()["phase"] == "running"


def test_a_line_without_an_end_does_not_fill_memory(front: Front) -> None:
    with ControlClient("one").connect() as connection:
        connection.socket.settimeout(10)
        with suppress(ConnectionError):
            for _ in range(64):
                connection.socket.sendall(b"x" * (1 << 20))
            raise AssertionError("64 MiB were read as one line")
    assert ControlClient("one").status()["phase"] == "running"


def test_a_bug_in_an_answer_ends_the_conversation_and_nothing_else(front: Front) -> None:
    assert raw(b'{"verb": "logs", "role": "broken"}\n') == []
    eventually(lambda: front.logged == ["control socket: ValueError: a bug"])
    assert ControlClient("one").status()["phase"] == "running"


def test_only_the_same_user_is_answered(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    real = control.peer
    monkeypatch.setattr(control_server, "peer", lambda sock: (real(sock)[0], 4321))
    with pytest.raises(ControlError, match=f"this cluster is of uid {os.geteuid()}, and you are uid 4321"):
        ControlClient("one").status()


def test_a_client_does_not_talk_to_another_user_s_socket(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "peer", lambda sock: (1, 4321))
    with pytest.raises(ControlError, match=r"is of another user \(uid 4321\)"):
        ControlClient("one").status()


@pytest.mark.parametrize(("field", "verb"), [("protocol", "status"), ("records", "records")])
def test_a_newer_front_is_refused_but_can_be_stopped(
    front: Front, monkeypatch: pytest.MonkeyPatch, field: str, verb: str
) -> None:
    newer = {**control.hello(), field: 99, "lastcall": "9.9.9"}
    monkeypatch.setattr(control_server, "hello", lambda: newer)
    with ControlClient("one").connect() as connection, pytest.raises(NewerVersion) as caught:
        list(connection.ask(control.Status() if verb == "status" else control.Records()))
    assert f"lastcall 9.9.9, whose {field} version is 99" in str(caught.value)
    assert "lastcall down one" in str(caught.value)
    if verb == "records":
        assert ControlClient("one").status()["phase"] == "running", "records alone are not understood"
    assert ControlClient("one").stop(10) == "ended"


def test_fields_of_a_record_that_are_unknown_here_are_left_out() -> None:
    message = control.record_message(RECORDS[0])
    message["record"]["colour"] = "green"
    assert control.read_record(message) == RECORDS[0]


def test_a_path_longer_than_a_socket_address_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(deep))
    front = Front("n" * 63)
    try:
        assert ControlClient("n" * 63).status()["phase"] == "running"
    finally:
        front.end()


def test_the_socket_and_its_neighbours_are_private(front: Front, state_home: Path) -> None:
    found = {path.name: path.stat().st_mode & 0o777 for path in (state_home / "lastcall/one").iterdir()}
    assert found == {"front.sock": 0o600, "lock": 0o600}


# -- names and what is left -------------------------------------------------------------------------------------------


def test_a_name_that_runs_is_refused_with_pid_and_ways_out(front: Front) -> None:
    with pytest.raises(AlreadyRunning) as caught:
        claim("one")
    for words in ("cluster 'one' is already running", f"pid {os.getpid()}", "lastcall down one", "--name"):
        assert words in str(caught.value)
    with claim("two") as other:
        assert names() == ["one", "two"]
        other.remove()


def test_a_name_that_is_being_started_is_waited_for_and_then_refused(
    state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CLAIM_SECONDS", 0.1)
    with claim("one") as first:
        with pytest.raises(ControlError, match="is starting or stopping"):
            ControlClient("one").connect()
        with pytest.raises(AlreadyRunning, match=r"starting or ending a cluster named 'one' for 0.1 s"):
            claim("one")
        first.remove()
    claim("one").close()


def test_a_name_whose_cluster_ends_is_free_a_moment_later(state_home: Path) -> None:
    first = claim("one")
    threading.Timer(0.2, lambda: (first.remove(), first.close())).start()
    with claim("one") as second:
        second.remove()


def test_what_a_killed_front_left_is_told_once_and_cleared(state_home: Path) -> None:
    with claim("one") as killed:
        control_server.listen(killed).close()
        killed.write("front.json", '{"pid": 4711}')
        killed.write("front.log", "first\nValueError: last words\n")
        killed.write("kubeconfig", "secret")
    with pytest.raises(NotRunning, match=r"pid 4711\) ended without being asked to|pid 4711 ended.*last words"):
        ControlClient("one").status()
    assert list(state_home.rglob("*")) == []
    with pytest.raises(NotRunning) as caught:
        ControlClient("one").status()
    assert "4711" not in str(caught.value)


def test_the_last_line_of_a_log_that_is_about_something_else_is_not_given_as_the_reason(state_home: Path) -> None:
    with claim("one") as killed:
        control_server.listen(killed).close()
        killed.write("front.json", '{"pid": 4711}')
        killed.write("front.log", "2026-01-01T00:00:00Z node-1 is Ready, the API server is https://127.0.0.1:1\n")
    with pytest.raises(NotRunning, match="its log does not say why: it was probably killed") as caught:
        ControlClient("one").status()
    assert "Ready" not in str(caught.value)


def test_a_claim_clears_what_a_killed_front_left(state_home: Path) -> None:
    with claim("one") as killed:
        killed.write("kubeconfig", "secret")
    with claim("one") as mine:
        assert [path.name for path in (state_home / "lastcall/one").iterdir()] == ["lock"]
        mine.remove()


def test_of_many_who_want_a_name_one_gets_it(state_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "CLAIM_SECONDS", 0.3)
    got: list[ClusterDirectory] = []
    refused: list[Exception] = []

    def want() -> None:
        try:
            got.append(claim("one"))
        except AlreadyRunning as error:
            refused.append(error)

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(got), len(refused)) == (1, 7)
    got[0].remove()
    got[0].close()


def test_a_front_that_is_silent_is_said_to_be_stopped(state_home: Path) -> None:
    with claim("one") as directory:
        with control_server.listen(directory) as sock:
            sock.listen()
            with pytest.raises(ControlError, match=rf"does not answer within 0.1 s.*pid {os.getpid()}\) stopped"):
                ControlClient("one").connect(0.1)
        directory.remove()


def test_messages_are_one_line_whatever_is_in_them() -> None:
    assert encode({"text": "a\nb\u2028\udc80"}).count(b"\n") == 1
