"""The client's side of the node agent: what it creates, what it makes of what agents say, what it takes away again."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import until

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.resources import JOBS
from lastcall.kube.client.api import ListResult
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace.node_agent.agents import NodeAgents
from lastcall.trace.node_agent.job import agent_job, how_it_ended, is_running, job_name, why_not_running
from lastcall.trace.node_agent.options import AgentOptions
from lastcall.trace.node_agent.translate import (
    BadLine,
    NodeClock,
    names_of_containers,
    parse_line,
    record_of,
)
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

UID, ID = "1f4bfe9c-5b1a-4a9c-9a55-2d1c8b8f4d11", "ab" * 32
POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "shop", "uid": UID},
    "spec": {"nodeName": "n1"},
    "status": {"containerStatuses": [{"name": "app", "containerID": f"containerd://{ID}"}]},
}
SECOND = 1_000_000_000
EXITED = {"containerId": ID, "pid": 7, "exitCode": 0, "signal": None, "oomKilled": False, "oomKills": 0}


def said(kind: str, facts: dict[str, Any], **other: Any) -> dict[str, Any]:
    value = {"id": "x-1", "at_ns": 50 * SECOND, "wall_ns": 1, "kind": kind, "pod_uid": UID, "container": ID}
    return {**value, "facts": facts, "evidence": "observed", **other}


def clock() -> NodeClock:
    """A node whose clock is 40 s behind ours."""
    made = NodeClock()
    made.answered(90 * SECOND, 50 * SECOND, 90 * SECOND + 1000)
    return made


# -- what is created -----------------------------------------------------------------------------------------------


def test_the_agent_has_no_right_that_it_does_not_need() -> None:
    spec = agent_job("c1", "n1", "shop", "image", traces=False)["spec"]["template"]["spec"]
    security = spec["containers"][0]["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert (security["runAsNonRoot"], security["readOnlyRootFilesystem"]) == (True, True)
    assert security["allowPrivilegeEscalation"] is False
    assert (spec["automountServiceAccountToken"], spec["hostPID"]) == (False, True)
    assert "hostNetwork" not in spec
    assert "privileged" not in security
    assert [each["readOnly"] for each in spec["containers"][0]["volumeMounts"]] == [True]


def test_only_on_request_it_may_read_what_processes_wait_for() -> None:
    spec = agent_job("c1", "n1", "shop", "image", traces=True)["spec"]["template"]["spec"]
    security = spec["containers"][0]["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
    assert security["runAsUser"] == 0


def test_the_cluster_removes_it_without_its_client() -> None:
    spec = agent_job("c1", "n1", "shop", "image", traces=False)["spec"]
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 30)
    assert spec["activeDeadlineSeconds"] == 24 * 3600
    assert "--idle=60" in spec["template"]["spec"]["containers"][0]["command"]


def test_a_long_name_of_a_node_makes_no_long_name_of_a_job() -> None:
    names = {job_name("0a1b2c3d", node) for node in ("n" * 253, "n" * 252)}
    assert len(names) == 2
    assert all(len(name) <= 52 for name in names), "its Pod's name has six characters more, and is a label"


def pod_with(state: dict[str, Any], phase: str = "Pending") -> dict[str, Any]:
    return {
        "metadata": {"name": "a"},
        "status": {"phase": phase, "containerStatuses": [{"image": "i:1", "state": state}]},
    }


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (
            pod_with({"waiting": {"reason": "ErrImagePull"}}),
            "i:1 is not on the node (ErrImagePull); fix: `lastcall image",
        ),
        (
            pod_with({"waiting": {"reason": "CreateContainerConfigError", "message": "no"}}),
            "CreateContainerConfigError: no",
        ),
        (pod_with({"waiting": {"reason": "ContainerCreating"}}), ""),
        ({"metadata": {}, "status": {"phase": "Pending"}}, ""),
    ],
)
def test_what_keeps_an_agent_from_running_is_told(pod: dict[str, Any], words: str) -> None:
    told = why_not_running(pod)
    assert words in told
    assert bool(told) is bool(words)
    assert not is_running(pod)
    assert how_it_ended(pod) == ""


def test_how_an_agent_ended_is_told() -> None:
    assert "exit code 1 (Error)" in how_it_ended(
        pod_with({"terminated": {"exitCode": 1, "reason": "Error"}}, phase="Failed")
    )
    evicted = {"metadata": {}, "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}}
    assert how_it_ended(evicted) == "it has ended: low on memory"


# -- what agents say -----------------------------------------------------------------------------------------------


def test_a_record_stands_at_its_place_on_our_clock_with_the_containers_name() -> None:
    record = record_of(said(kinds.PROCESS_EXITED, EXITED), clock(), {UID: {ID: "app"}}, (91 * SECOND, 1000 * SECOND))
    assert record is not None
    assert (record.container, record.actor, record.evidence) == ("app", "node-agent", "observed")
    assert abs(record.at_ns - 90 * SECOND) < SECOND // 1000
    assert abs(record.wall_ns - 999 * SECOND) < SECOND // 1000


def test_what_is_heard_of_has_been() -> None:
    value = said(kinds.PROCESS_EXITED, EXITED, at_ns=60 * SECOND)
    record = record_of(value, clock(), {UID: {ID: "app"}}, (91 * SECOND, 1000 * SECOND))
    assert record is not None
    assert record.at_ns == 91 * SECOND


def test_a_clock_that_was_set_is_measured_anew() -> None:
    made = clock()
    made.answered(100 * SECOND, 5 * SECOND, 100 * SECOND + 1000)
    assert made.offset is not None
    assert abs(made.offset.seconds + 95) < 0.001


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        (kinds.PROCESS_EXITED, {**EXITED, "exitCode": None}),
        (kinds.PROCESS_SIGNAL_STATE, {"pid": 7, "containerPid": 1, "signal": "SIGTERM", "disposition": None}),
    ],
)
def test_what_an_agent_could_not_read_makes_no_record(kind: str, facts: dict[str, Any]) -> None:
    assert record_of(said(kind, facts), clock(), {UID: {ID: "app"}}, (91 * SECOND, 0)) is None


def test_the_sandboxs_own_container_makes_no_record() -> None:
    assert record_of(said(kinds.PROCESS_EXITED, EXITED), clock(), {UID: {"cd" * 32: "app"}}, (91 * SECOND, 0)) is None


def test_what_does_not_belong_to_a_record_is_left_out() -> None:
    left = {"pid": 1, "containerPid": 2, "name": "sh", "state": "S", "disposition": "default", "child": True, "x": []}
    facts = {"when": "exit", "signal": "SIGTERM", "processes": [left], "more": 0, "zombies": 0, "secondsBefore": 0.1}
    record = record_of(
        said(kinds.PROCESSES_LEFT, {**facts, "y": {}}), clock(), {UID: {ID: "app"}}, (91 * SECOND, 1000 * SECOND)
    )
    assert record is not None
    left.pop("x")
    assert record.facts == facts


def test_before_the_clock_is_known_nothing_is_told() -> None:
    assert record_of(said(kinds.PROCESS_EXITED, EXITED), NodeClock(), {UID: {ID: "app"}}, (91 * SECOND, 0)) is None


@pytest.mark.parametrize(
    "value",
    [
        {},
        said("DeleteAccepted", {}),
        said(kinds.PROCESS_EXITED, []),  # type: ignore[arg-type]
        said(kinds.PROCESS_EXITED, EXITED, at_ns="now"),
        said(kinds.PROCESS_EXITED, EXITED, container=5),
        said(kinds.PROCESS_EXITED, {**EXITED, "exitCode": "0"}),
        said(kinds.PROCESS_EXITED, {**EXITED, "exitCode": True}),
        said(kinds.PROCESS_EXITED, {**EXITED, "signal": 9}),
        said(kinds.EXEC_STARTED, {"execId": "x", "pid": 7, "argv": "sh"}),
        said(kinds.EXEC_STARTED, {"execId": "x", "pid": 7, "argv": [7]}),
        said(kinds.EXEC_STARTED, {"execId": "x", "pid": 7, "argv": ["x"] * 10_000}),
        {**said(kinds.PROCESS_EXITED, EXITED), "kind": ["x"]},
    ],
)
def test_what_an_agent_does_not_see_is_not_taken_from_it(value: dict[str, Any]) -> None:
    with pytest.raises(BadLine):
        record_of(value, clock(), {UID: {ID: "app"}}, (91 * SECOND, 0))


@pytest.mark.parametrize("line", [b"", b"[1]", b"nothing", b"\xff", b"{" + b" " * 300_000 + b"}"])
def test_what_is_not_a_line_of_an_agent_is_refused(line: bytes) -> None:
    with pytest.raises(BadLine):
        parse_line(line)


def test_ids_of_all_runs_have_their_names() -> None:
    last = {"terminated": {"containerID": "cri-o://old"}}
    pod = {
        "status": {
            "initContainerStatuses": [{"name": "init", "state": {"terminated": {"containerID": "containerd://i"}}}],
            "containerStatuses": [{"name": "app", "containerID": "cri-o://new", "lastState": last}],
        }
    }
    assert names_of_containers(pod) == {"i": "init", "new": "app", "old": "app"}


# -- all of them ---------------------------------------------------------------------------------------------------


class Cluster:
    """As much of an API server, a node and an agent as a client meets."""

    def __init__(self, *, refuses: StatusError | None = None, pod: dict[str, Any] | None = None) -> None:
        self.jobs: dict[str, Any] = {}
        self.refuses, self.pod = refuses, pod
        self.heard: list[dict[str, Any]] = []
        self.out: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.attached = 0
        self.started = 0

    async def create(self, resource: Any, obj: Any, namespace: str) -> Any:
        if self.refuses is not None:
            raise self.refuses
        if obj["metadata"]["name"] in self.jobs:
            raise status_failure(409, "AlreadyExists", "it is there")
        self.jobs[obj["metadata"]["name"]] = obj
        self.started += 1
        return obj

    async def list(self, resource: Any, namespace: str, *, label_selector: str) -> ListResult:
        running = pod_with({"running": {}}, phase="Running")
        return ListResult([self.pod or running] if self.jobs else [], "1")

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        return self.jobs[name]

    async def delete(self, resource: Any, name: str, namespace: str, *, propagation_policy: str) -> Any:
        assert (resource, propagation_policy) == (JOBS, "Background")
        if self.jobs.pop(name, None) is None:
            raise status_failure(404, "NotFound", "it is not there")
        return {}

    @asynccontextmanager
    async def websocket(self, path: str, query: Any, protocols: Any) -> AsyncIterator[Any]:
        self.attached += 1
        yield self

    closed = False

    async def send_bytes(self, data: bytes) -> None:
        assert data[0] == 0
        value = json.loads(data[1:])
        self.heard.append(value)
        if "ping" in value:
            self.say(pong=value["ping"], wall_ns=1, at_ns=World().clock.monotonic_ns() - 40 * SECOND)

    def say(self, **fields: Any) -> None:
        """In two messages: a line may be cut anywhere."""
        line = json.dumps(fields).encode() + b"\n"
        self.out.put_nowait(b"\x01" + line[:7])
        self.out.put_nowait(b"\x01" + line[7:])

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (data := await self.out.get()) is not None:
            yield SimpleNamespace(data=data)


class Client:
    def __init__(self, cluster: Cluster) -> None:
        self.records: list[Record] = []
        self.notes: list[str] = []
        self.agents = NodeAgents(
            cluster,  # type: ignore[arg-type]
            AgentOptions(image="i:1"),
            namespace="shop",
            on_record=self.records.append,
            on_note=self.notes.append,
            world=World(),
        )


def at_now(**other: Any) -> dict[str, Any]:
    return said(kinds.PROCESS_EXITED, EXITED, at_ns=World().clock.monotonic_ns() - 40 * SECOND, **other)


@pytest.mark.loopback
async def test_a_pod_brings_its_node_an_agent_which_is_told_of_its_end() -> None:
    cluster = Cluster()
    client = Client(cluster)
    async with Tasks() as tasks:
        client.agents.start(tasks)
        client.agents.pod(POD)
        await until(lambda: {"watch": UID} in cluster.heard, "the Pod")
        assert cluster.heard[0] == {"hello": 1, "after": 0}
        assert {"ending": UID, "addresses": []} not in cluster.heard
        client.agents.pod({**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "now"}})
        await until(lambda: {"ending": UID, "addresses": []} in cluster.heard, "its end")
        cluster.say(seq=1, record=at_now())
        await until(lambda: client.records, "a record")
        client.agents.gone(UID)
        await until(lambda: {"forget": UID} in cluster.heard, "that it is gone")
        tasks.cancel()
    assert len(cluster.jobs) == 1
    await client.agents.close()
    assert cluster.jobs == {}
    assert client.notes == []


@pytest.mark.loopback
async def test_an_attachment_that_breaks_goes_on_where_it_was() -> None:
    cluster = Cluster()
    client = Client(cluster)
    async with Tasks() as tasks:
        client.agents.start(tasks)
        client.agents.pod(POD)
        await until(lambda: {"watch": UID} in cluster.heard, "the Pod")
        cluster.say(seq=5, record=at_now())
        await until(lambda: client.records, "a record")
        cluster.out.put_nowait(None)
        await until(lambda: {"hello": 1, "after": 5} in cluster.heard, "the second hello")
        tasks.cancel()
    assert cluster.started == 1, "the agent is the same"
    await client.agents.close()


@pytest.mark.loopback
async def test_a_record_waits_for_the_name_of_its_container() -> None:
    cluster = Cluster()
    client = Client(cluster)
    async with Tasks() as tasks:
        client.agents.start(tasks)
        client.agents.pod({**POD, "status": {}})
        await until(lambda: {"watch": UID} in cluster.heard, "the Pod")
        cluster.say(seq=1, record=at_now())
        cluster.say(lost=3)
        await until(lambda: client.notes, "the line after it")
        assert client.records == []
        client.agents.pod(POD)
        assert [each.container for each in client.records] == ["app"]
        tasks.cancel()
    await client.agents.close()


@pytest.mark.loopback
async def test_an_agent_that_may_not_be_created_is_told_of_once_with_the_rights() -> None:
    cluster = Cluster(refuses=status_failure(403, "Forbidden", "jobs.batch is forbidden"))
    client = Client(cluster)
    async with Tasks() as tasks:
        client.agents.start(tasks)
        client.agents.pod(POD)
        await until(lambda: client.notes, "why there is none")
        client.agents.pod(POD)
    assert len(client.notes) == 1
    assert "jobs.batch is forbidden\nfix: kubectl create role" in client.notes[0]
    assert list(client.agents.without()) == ["n1"]


@pytest.mark.loopback
async def test_an_agent_that_ends_again_and_again_is_given_up() -> None:
    cluster = Cluster(pod=pod_with({"terminated": {"exitCode": 1, "reason": "Error"}}, phase="Failed"))
    client = Client(cluster)
    async with Tasks() as tasks:
        client.agents.start(tasks)
        client.agents.pod(POD)
        await until(lambda: client.notes, "why there is none")
    assert "it has ended: exit code 1 (Error)" in client.notes[0]
    assert cluster.started == 4
    await client.agents.close()
    assert cluster.jobs == {}


@pytest.mark.loopback
async def test_what_is_not_understood_ends_the_agent_and_not_the_client() -> None:
    cluster = Cluster()
    client = Client(cluster)
    async with Tasks() as tasks:
        client.agents.start(tasks)
        client.agents.pod(POD)
        cluster.out.put_nowait(b"\x01not JSON\n")
        await until(lambda: client.notes, "why there is none")
    assert "its answer cannot be read" in client.notes[0]
    await client.agents.close()
