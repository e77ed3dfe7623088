"""All agents of one client: one on each node that has Pods which are followed.

agents = NodeAgents(client, AgentOptions(), namespace="shop", on_record=follower.add, on_note=note, world=world)
async with Tasks() as tasks:
    agents.start(tasks)
    agents.pod(pod)          # each state of a Pod that is followed
    agents.gone(uid)
await agents.close()         # the Jobs are deleted
"""

# check: many attributes NodeAgents because it waits for the one session of all commands

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from lastcall.kube.api import JOBS, PODS, Object, StatusError, is_already_exists, is_not_found, name_of, uid_of
from lastcall.kube.client import ConnectionLost, HTTPClient
from lastcall.records.record import Record
from lastcall.trace.node_agent.job import (
    DEFAULT_IMAGE,
    agent_job,
    how_it_ended,
    is_running,
    job_name,
    rights_fix,
    selector,
    why_not_running,
)
from lastcall.trace.node_agent.options import AgentOptions
from lastcall.trace.node_agent.session import Session
from lastcall.trace.node_agent.translate import (
    BadLine,
    NodeClock,
    addresses_of,
    names_of_containers,
    parse_line,
    record_of,
)
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

MOST_NODES = 100
"""Nodes with an agent; the Pods of others have the story that the API alone gives, which is said."""
START_SECONDS = 120.0
"""Until an agent's Pod has to run: its image may be pulled."""
_POLL_SECONDS = 0.3
_PING_SECONDS = 5.0
_FIRST_PINGS = 5
_RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
_MOST_FAILURES, _MOST_ENDS = 20, 3
_HELD = 64
"""Records of containers whose name is not known yet."""


@dataclass(slots=True)
class _Node:
    name: str
    clock: NodeClock = field(default_factory=NodeClock)
    pods: dict[str, bool] = field(default_factory=dict)
    """uid → whether its end has begun."""
    announced: dict[str, bool] = field(default_factory=dict)
    """What the agent was sent, in the same way."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    last: int = 0
    pings: dict[int, int] = field(default_factory=dict)
    held: list[Mapping[str, Any]] = field(default_factory=list)
    given_up: str = ""
    attached: str = ""


class _Ended(Exception):
    """The agent's Pod has ended; the text says why."""


class NodeAgents:
    """`on_record` hears of what agents saw, `on_note` of what a waiting user should know, `client_id` marks what is
    created."""

    def __init__(
        self,
        client: HTTPClient,
        asked: AgentOptions,
        *,
        namespace: str,
        on_record: Callable[[Record], None],
        on_note: Callable[[str], None],
        world: World,
    ) -> None:
        self.client_id = world.new_uid()[:8]
        self._client, self._asked, self._namespace = client, asked, asked.namespace or namespace or "default"
        self._on_record, self._on_note, self._world = on_record, on_note, world
        self._nodes: dict[str, _Node] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._where: dict[str, str] = {}
        self._addresses: dict[str, list[str]] = {}
        self._created: set[str] = set()
        self._tasks: Tasks | None = None
        self._too_many = False

    def start(self, tasks: Tasks) -> None:
        """Start: from now on nodes get their agents."""
        self._tasks = tasks
        for node in self._nodes.values():
            tasks.spawn(self._keep(node), name=f"node agent of {node.name}")

    async def listening(self) -> None:
        """Return when every node of the followed Pods has an agent that listens, or will have none."""
        while any(not node.given_up and node.clock.offset is None for node in self._nodes.values()):
            await self._world.clock.sleep(_POLL_SECONDS)

    def pod(self, pod: Object) -> None:
        """Take a state of a Pod that is followed."""
        uid, node_name = uid_of(pod), str((pod.get("spec") or {}).get("nodeName") or "")
        if not node_name:
            return
        self._names[uid] = {**self._names.get(uid, {}), **names_of_containers(pod)}
        node = self._node(node_name)
        if node is None:
            return
        self._where[uid] = node_name
        if found := addresses_of(pod):
            self._addresses[uid] = found
        ending = bool(pod["metadata"].get("deletionTimestamp"))
        if node.pods.get(uid) != ending:
            node.pods[uid] = ending
            node.changed.set()
        held, node.held = node.held, []
        for value in held:
            self._hand_on(node, value)

    def gone(self, uid: str) -> None:
        """Forget a Pod whose story is complete."""
        self._names.pop(uid, None)
        self._addresses.pop(uid, None)
        node = self._nodes.get(self._where.pop(uid, ""))
        if node is not None and node.pods.pop(uid, None) is not None:
            node.changed.set()

    async def close(self) -> None:
        """Delete the Jobs with their Pods. What cannot be deleted now ends by itself, and the cluster removes it."""
        for name in sorted(self._created):
            await self._delete(name)
        self._created.clear()

    def without(self) -> dict[str, str]:
        """Return nodes that have no agent → why."""
        return {node.name: node.given_up for node in self._nodes.values() if node.given_up}

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(JOBS, name, self._namespace, propagation_policy="Background")
        except (StatusError, ConnectionLost) as error:
            if not (isinstance(error, StatusError) and is_not_found(error)):
                self._on_note(f"the node agent {self._namespace}/{name} cannot be deleted: {error}; {_BY_ITSELF}")

    # -- one node ----------------------------------------------------------------------------------------------------

    def _node(self, name: str) -> _Node | None:
        node = self._nodes.get(name)
        if node is None:
            if len(self._nodes) >= MOST_NODES:
                if not self._too_many:
                    self._on_note(f"{MOST_NODES} nodes have an agent, the maximum: other nodes get none")
                self._too_many = True
                return None
            node = self._nodes[name] = _Node(name)
            if self._tasks is not None:
                self._tasks.spawn(self._keep(node), name=f"node agent of {name}")
        return node

    async def _keep(self, node: _Node) -> None:
        """Run an agent for as long as the client runs. One that cannot be started is reported, and not retried."""
        failures, ends = 0, 0
        while not node.given_up:
            try:
                pod = await self._running_pod(node)
                if pod:
                    await self._listen(node, pod)
                    failures = 0
            except _Ended as error:
                ends += 1
                if ends > _MOST_ENDS:
                    node.given_up = str(error)
                else:
                    await self._delete(job_name(self.client_id, node.name))
            except StatusError as error:
                if error.code in (401, 403):
                    node.given_up = f"{error}\n{rights_fix(self._namespace)}"
                elif error.code == 422:
                    node.given_up = str(error)
                else:
                    failures += 1
            except BadLine as error:
                node.given_up = f"its answer cannot be read: {error}"
            except ConnectionLost:
                failures += 1
            if failures >= _MOST_FAILURES:
                node.given_up = "its connection breaks again and again"
            if not node.given_up:
                await self._world.clock.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
        self._on_note(f"node {node.name} has no agent: {node.given_up}")

    async def _running_pod(self, node: _Node) -> str:
        """Return the name of the agent's Pod, which runs; "" when there is none, and why is in `given_up`."""
        name = job_name(self.client_id, node.name)
        asked, image = self._asked, self._asked.image or DEFAULT_IMAGE
        job = agent_job(self.client_id, node.name, self._namespace, image, traces=asked.traces, rules=asked.rules)
        self._created.add(name)
        try:
            await self._client.create(JOBS, job, self._namespace)
        except StatusError as error:
            if not is_already_exists(error):
                raise
        label = f"{selector(self.client_id)},job-name={name}"
        until = self._world.clock.monotonic_ns() + int(START_SECONDS * 1e9)
        said, first_seen = "", 0
        while self._world.clock.monotonic_ns() < until:
            found = await self._client.list(PODS, self._namespace, label_selector=label)
            for pod in found.items:
                if is_running(pod):
                    return name_of(pod)
                if ended := how_it_ended(pod):
                    raise _Ended(ended)
                said = why_not_running(pod)
                first_seen = first_seen or (self._world.clock.monotonic_ns() if said else 0)
                # An image that is not there may be pulled at the second try.
                if said and self._world.clock.monotonic_ns() - first_seen > 10e9:
                    node.given_up = said
                    return ""
            if not found.items and (refused := await self._refused(name)):
                node.given_up = refused
                return ""
            await self._world.clock.sleep(_POLL_SECONDS)
        node.given_up = said or f"its Pod does not run after {START_SECONDS:.0f} s"
        return ""

    async def _refused(self, name: str) -> str:
        """Why a Job has no Pod: its controller says so in an Event alone, or in the Job's conditions."""
        job = await self._client.get(JOBS, name, self._namespace)
        for condition in (job.get("status") or {}).get("conditions") or ():
            if condition.get("type") == "Failed" and condition.get("status") == "True":
                return f"its Job has failed: {condition.get('message')}"
        events = await self._client.request(
            "GET",
            f"/api/v1/namespaces/{self._namespace}/events",
            query=[("fieldSelector", f"involvedObject.name={name},reason=FailedCreate")],
        )
        found = parse_line(events.replace(b"\n", b" ")).get("items") or []
        return f"{found[-1].get('message')}" if found else ""

    async def _listen(self, node: _Node, pod: str) -> None:
        session = Session(self._client, self._namespace, pod, lambda text: self._on_note(f"node {node.name}: {text}"))
        node.announced, node.pings = {}, {}
        if node.attached != pod:  # another process, which counts its lines anew
            node.attached, node.last, node.clock = pod, 0, NodeClock()
        opened = asyncio.Event()
        failure: Exception | None = None
        async with Tasks() as tasks:
            tasks.spawn(self._speak(node, session, opened), name=f"to the agent of {node.name}")
            try:
                async for line in session.lines(opened.set):
                    if line.strip():
                        self._hear(node, parse_line(line))
            except (StatusError, ConnectionLost, BadLine) as error:
                failure = error
            tasks.cancel()
        if failure is not None:
            raise failure

    async def _speak(self, node: _Node, session: Session, opened: asyncio.Event) -> None:
        """Hello, then what changes, and a ping now and then: several at first, so that the clock is known."""
        await opened.wait()
        number = 0
        try:
            await session.say(hello=1, after=node.last)
            next_ping = 0
            while True:
                now = self._world.clock.monotonic_ns()
                if now >= next_ping:
                    number += 1
                    node.pings[number] = now
                    while len(node.pings) > 32:
                        node.pings.pop(next(iter(node.pings)))
                    await session.say(ping=number)
                    next_ping = now + int((0.05 if number < _FIRST_PINGS else _PING_SECONDS) * 1e9)
                await self._tell_changes(node, session)
                try:
                    async with asyncio.timeout(max(0.0, (next_ping - self._world.clock.monotonic_ns()) / 1e9)):
                        await node.changed.wait()
                except TimeoutError:
                    pass
                node.changed.clear()
        except ConnectionLost:
            return  # the other direction has ended, too

    async def _tell_changes(self, node: _Node, session: Session) -> None:
        for uid, ending in list(node.pods.items()):
            if uid not in node.announced:
                node.announced[uid] = False
                await session.say(watch=uid)
            if ending and not node.announced.get(uid):
                node.announced[uid] = True
                await session.say(ending=uid, addresses=self._addresses.get(uid, []))
        for uid in [uid for uid in node.announced if uid not in node.pods]:
            del node.announced[uid]
            await session.say(forget=uid)

    def _hear(self, node: _Node, value: Mapping[str, Any]) -> None:
        if isinstance(seq := value.get("seq"), int):
            node.last = seq
        if isinstance(pong := value.get("pong"), int) and isinstance(at_ns := value.get("at_ns"), int):
            sent = node.pings.pop(pong, None)
            if sent is not None:
                first = node.clock.offset is None
                node.clock.answered(sent, at_ns, self._world.clock.monotonic_ns())
                if first:
                    held, node.held = node.held, []
                    for each in held:
                        self._hand_on(node, each)
        elif isinstance(record := value.get("record"), dict):
            self._hand_on(node, record)
        elif "lost" in value:
            self._on_note(f"the agent of node {node.name} had {value['lost']} lines more than it keeps")
        elif "agent" in value and value.get("cgroups") is None:
            self._on_note(f"the agent of node {node.name} sees no control groups and cannot report anything")

    def _hand_on(self, node: _Node, value: Mapping[str, Any]) -> None:
        clock = self._world.clock
        record = record_of(value, node.clock, self._names, (clock.monotonic_ns(), clock.wall_ns()))
        if record is not None:
            self._on_record(record)
        elif node.clock.offset is None or str(value.get("container")) not in self._names.get(
            str(value.get("pod_uid")), {}
        ):
            node.held = [*node.held[-_HELD + 1 :], value]


_BY_ITSELF = "it ends by itself within a minute, and the cluster removes it"
