"""Front of a staying cluster, from the finished process tree to the end: `lastcall up`.

It answers the control socket, keeps the records, logs what happens to the roles and bounds what is logged. A role that
dies is started again by init; only init's own death is the end.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any, Protocol

from lastcall._version import __version__
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.pods import spec as pods
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.cluster.control import server as control_server
from lastcall.kube.cluster.control.node import Cancel, ShutDown
from lastcall.kube.cluster.control.socket import (
    PROTOCOL,
    RECORDS,
    AddNode,
    Fields,
    Logs,
    Node,
    Publish,
    Records,
    RemoveNode,
    Status,
    Stop,
    encode,
    record_message,
)
from lastcall.kube.cluster.directory import FACTS, KUBECONFIG, ClusterDirectory
from lastcall.kube.cluster.errors import ClusterDied, ClusterStartError, ControlError, PortTaken
from lastcall.kube.cluster.health.faults import CaughtFaults
from lastcall.kube.cluster.health.restarts import AGAIN, Deaths, died_of, way_out, where
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.published.front import PublishedPorts
from lastcall.kube.cluster.published.port import parse_published_port
from lastcall.kube.cluster.staying.follower import Follower
from lastcall.kube.cluster.staying.front_log import FrontLog, LogTail, forget_all_but_the_end
from lastcall.kube.cluster.staying.kept_nodes import KeptNodes
from lastcall.kube.cluster.staying.nodes import Machines, NodeChanges, forget_node
from lastcall.records import kinds
from lastcall.records.keep import RecordKeeper
from lastcall.records.quoting import one_line
from lastcall.records.record import Record
from lastcall.records.signal_names import signal_name
from lastcall.world import crash_guard
from lastcall.world.clock import RealClock, now, rfc3339
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, unless

API_SECONDS = 2.0
"""How long `status` waits for the API server, which may be starting again."""
FOLLOW_SECONDS = 0.2
"""Between two looks at a followed log."""
TEND_SECONDS = 30.0
"""Between two looks at how long the logs have become."""


class Cluster(Machines, Protocol):
    """What is needed of `lastcall.kube.cluster.embedded.Running`."""

    @property
    def roles(self) -> tuple[str, ...]: ...
    @property
    def server(self) -> str: ...
    async def connect(self, seconds: float) -> None: ...
    async def wait_node_ready(self, seconds: float) -> None: ...
    def on_record(self, callback: Callable[[Record], None]) -> None: ...
    def on_process_died(self, callback: Callable[[str, int, int | None, int | None], None]) -> None: ...
    def kubeconfig(self) -> str: ...
    def role_logs(self) -> dict[str, int]: ...
    def host_pids(self) -> dict[str, int]: ...
    async def set_link(self, node: str, connected: bool) -> None: ...
    def hand_over(self, accepted: socket.socket, address: str, port: int) -> bool: ...


@dataclass(slots=True)
class Front:
    """`run` once, inside asyncio. `state` is the state directory's path, "" for none."""

    cluster: Cluster
    options: ClusterOptions
    directory: ClusterDirectory
    log: FrontLog
    state: str = ""
    detached: bool = False
    published: PublishedPorts | None = None
    warn: Callable[[str], None] = lambda text: None
    """Warns the process that started the cluster, if it is still there."""
    clock: RealClock = field(default_factory=RealClock)
    keeper: RecordKeeper = field(default_factory=RecordKeeper)
    kept: KeptNodes = field(default_factory=KeptNodes)
    phase: str = "starting"
    since: str = ""
    _nodes: NodeChanges = field(init=False)
    _tasks: Tasks = field(init=False)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _death: str = ""
    _deaths: dict[str, Deaths] = field(default_factory=dict)
    _faults: CaughtFaults = field(default_factory=CaughtFaults)
    _cut_off: list[str] = field(default_factory=list)
    _followers: dict[int, Follower] = field(default_factory=dict)

    def __post_init__(self) -> None:
        declared = self.options.node_capacity
        self._nodes = NodeChanges(self.cluster, self.clock, declared, self.kept, self.log.write, self._write_facts)

    async def run(self, ready: Callable[[Fields], None], timeout: float) -> None:
        """Run until `stop` is asked for. `ready` is called with `facts` when the node is Ready.

        Raises ClusterStartError (also when that takes more than `timeout` seconds), ClusterDied, OSError (a full disk).
        """
        self.since = rfc3339(now(self.clock))
        self.cluster.on_record(self._record)
        self.cluster.on_process_died(self._died)
        listening = control_server.listen(self.directory)
        self._write_facts()
        try:
            await self._live(listening, ready, timeout)
        finally:
            with suppress(ConnectionLost, OSError):
                await self.cluster.client.close()
        if self._death:
            raise ClusterDied(self._death)

    async def _live(self, listening: socket.socket, ready: Callable[[Fields], None], timeout: float) -> None:
        async with Tasks() as tasks:
            self._tasks = tasks
            tasks.spawn(control_server.serve(listening, self, self.log.write), name="control socket")
            tasks.spawn(crash_guard.keep_running("logs", self._tend, self.clock), name="logs")
            failure: Exception | None = None
            try:
                await unless(self._start(timeout), self._stop)
                if not self._stop.is_set():
                    if self.published is not None:
                        published = self.published.run(self.cluster.client, self.cluster.hand_over, self.log.write)
                        tasks.spawn(crash_guard.guarded("published ports", "", published), name="published ports")
                    ready(self.facts())
                    await self._stop.wait()
            except Exception as error:
                failure = error  # said without the task group around it
            finally:
                self.phase = "ending"
                tasks.cancel()
        if failure is not None:
            raise failure

    async def _start(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self.cluster.connect(timeout)
                self.directory.write(KUBECONFIG, self.cluster.kubeconfig())
                for name in sorted(self.kept.removed):  # by a front that was killed before it came to this
                    await forget_node(self.cluster.client, self.clock, name)
                await self.cluster.wait_node_ready(timeout)
        except TimeoutError:
            words = next(filter(None, (self.cluster.last_words(name, 1) for name in self.nodes)), "")
            raise ClusterStartError(
                f"{self._nodes_are} not Ready within {timeout:g} s (--timeout){f': {words}' if words else ''}"
            ) from None
        self.phase = "running"
        self.log.write(f"{self._nodes_are} Ready, the API server is {self.cluster.server}")

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the cluster's processes."""
        return self.cluster.roles

    @property
    def nodes(self) -> list[str]:
        """Return the names of the cluster's nodes."""
        return self.cluster.nodes

    @property
    def _nodes_are(self) -> str:
        return f"{', '.join(self.nodes)} {'is' if len(self.nodes) == 1 else 'are'}"

    @property
    def ended_by_itself(self) -> bool:
        """Return whether init died."""
        return bool(self._death)

    # -- what happens meanwhile --------------------------------------------------------------------------------------

    def _record(self, record: Record) -> None:
        self.keeper.add(record)
        for follower in self._followers.values():
            follower.offer(record)
        if record.kind == kinds.PROCESS_DIED and record.facts_as(kinds.PROCESS_DIED).get("role") in self.roles:
            self._role_died(record)
        elif record.kind == kinds.FAULT_CAUGHT:
            self._faults.add(record)
            fault = record.facts_as(kinds.FAULT_CAUGHT)
            if fault["component"] == crash_guard.STORED_OBJECTS:
                self.warn(one_line(f"{fault['key']}: {str(fault['error']).partition(': ')[2]}"))
        elif record.kind == kinds.PROCESS_RESTARTED:
            restarted = record.facts_as(kinds.PROCESS_RESTARTED)
            role = str(restarted["role"])
            self._deaths.setdefault(role, Deaths()).restarts += 1
            self.log.write(f"{role} runs again (pid {restarted['pid']} inside the cluster)")

    def guards(self) -> crash_guard.installed:
        """Install crash guards for this process: what they catch is in `status` beside that of the roles."""

        def tell(fault: crash_guard.Fault) -> None:
            facts = dict(crash_guard.as_facts(fault, "front"))
            stamps = (self.clock.monotonic_ns(), fault.at_ns)
            self._faults.add(Record("", *stamps, "front", kinds.FAULT_CAUGHT, facts=facts))

        return crash_guard.installed(crash_guard.Faults(tell, self.log.write, self.clock))

    def _role_died(self, record: Record) -> None:
        facts = record.facts_as(kinds.PROCESS_DIED)
        role = str(facts["role"])
        deaths = self._deaths.setdefault(role, Deaths())
        count = deaths.add(facts, rfc3339(now(self.clock)))
        words = self.cluster.last_words(role, 1) if facts.get("exitCode") else ""
        seconds = facts.get("restartsIn")
        then = f"it is started again in {seconds:g} s" if seconds is not None else "it is not started again"
        self.log.write(f"{role} {deaths.last}{f': {words}' if words else ''}; {then}")
        if "hung" in facts:
            self.log.write(where(facts))
        if count >= AGAIN:
            sentences = (died_of(role, {**facts["workingOn"], "deaths": count}), way_out(deaths.alone))
            again = "; ".join(filter(None, sentences))
            self.log.write(again)
            if count.bit_count() == 1:  # twice, four times, eight times …
                self.warn(again)

    def _died(self, role: str, pid: int, exit_code: int | None, number: int | None) -> None:
        """Note a death for good. While the cluster starts `connect` or `wait_node_ready` reports it."""
        if role != "init" or self._death:
            return
        how = f"was killed by {signal_name(number)}" if number else f"exited with {exit_code}"
        self._death = f"the cluster's init {how}, and with it the kernel ended the cluster"
        self.log.write(self._death)
        if self.phase == "running":
            self._stop.set()

    async def _tend(self) -> None:
        while True:
            await self.clock.sleep(TEND_SECONDS)
            self.log.bound()
            for fd in self.cluster.role_logs().values():
                forget_all_but_the_end(fd)

    # -- facts -------------------------------------------------------------------------------------------------------

    def facts(self) -> Fields:
        """Return what does not change: `front.json`, and the greater part of `status`."""
        return {
            "name": self.directory.name,
            "phase": self.phase,
            "since": self.since,
            "pid": os.getpid(),
            "detached": self.detached,
            "server": self.cluster.server,
            "kubeconfig": f"{self.directory.path}/{KUBECONFIG}",
            "kubernetesVersion": self.options.kubernetes_version,
            "state": self.state,
            "nodeCount": len(self.nodes),
            "published": self.published.facts() if self.published is not None else [],
            "directory": self.directory.path,
            "lastcall": __version__,
            "protocol": PROTOCOL,
            "records": RECORDS,
        }

    def _write_facts(self) -> None:
        self.directory.write(FACTS, encode(self.facts()).decode())

    # -- the verbs of the control socket -----------------------------------------------------------------------------

    async def status(self, request: Status) -> AsyncIterator[Fields]:
        yield {"status": {**self.facts(), **await self._from_the_api(), "processes": self._processes()}}

    async def stop(self, request: Stop) -> AsyncIterator[Fields]:
        self.log.write("asked to stop")
        yield {"stopping": True}
        self._stop.set()

    async def records(self, request: Records) -> AsyncIterator[Fields]:
        uid = request.pod_uid or ""
        kept = self.keeper.records(uid or None)  # what comes from here on is the follower's
        follower = Follower(uid)
        if request.follow:
            self._followers[id(follower)] = follower
        try:
            for record in kept:
                yield record_message(record)
            while request.follow:
                yield record_message(await follower.next())
        finally:
            self._followers.pop(id(follower), None)

    async def logs(self, request: Logs) -> AsyncIterator[Fields]:
        wanted = request.role or ""
        fds = {"front": self.log.fd, **self.cluster.role_logs()}
        if wanted and wanted not in fds:
            raise ControlError(f"there is no role {wanted!r}: {', '.join(self.roles)}")
        tails = {role: LogTail(fds[role]) for role in self.roles if role in fds and wanted in ("", role)}
        while True:
            for role, tail in tails.items():
                for line in tail.read():
                    yield {"role": role, "text": line}
            if not request.follow:
                break
            await self.clock.sleep(FOLLOW_SECONDS)
        for role, tail in tails.items():
            for line in tail.rest():
                yield {"role": role, "text": line}

    async def publish(self, request: Publish) -> AsyncIterator[Fields]:
        if self.phase != "running" or self.published is None:
            raise ControlError(f"the cluster is {self.phase}")
        try:
            address = self.published.add(parse_published_port(request.port))
        except (ValueError, PortTaken) as error:
            raise ControlError(str(error)) from error
        self.log.write(f"published {request.port} at {address}")
        yield {"address": address}

    async def node(self, request: Node) -> AsyncIterator[Fields]:
        name, action = request.node, request.action
        if name not in self.nodes:
            raise ControlError(f"there is no node {name!r}: the cluster has {', '.join(self.nodes)}")
        if action not in _NODE_ACTIONS:
            raise ControlError(f"unknown action {action!r}: {', '.join(_NODE_ACTIONS)}")
        asked = ShutDown(periods=_checked_periods(request.periods)) if action == "shutdown" else Cancel()
        self._check_running()
        self.log.write(f"{name} is asked to {_NODE_ACTIONS[action]}")
        if action in ("connect", "disconnect"):
            await self.cluster.set_link(name, action == "connect")
            cut_off = [each for each in self._cut_off if each != name]
            self._cut_off = cut_off if action == "connect" else [*cut_off, name]
            return
        async for text in self.cluster.ask_node(name, asked):
            self.log.write(f"{name}: {text}")
            yield {"text": text}

    async def add_node(self, request: AddNode) -> AsyncIterator[Fields]:
        self._check_running()
        names: list[str] = []
        async for text in self._nodes.followed(self._tasks, partial(self._nodes.add, request, names.append)):
            yield {"text": text}
        yield {"node": names[0]}

    async def remove_node(self, request: RemoveNode) -> AsyncIterator[Fields]:
        self._check_running()
        if request.node in self._cut_off:
            raise ControlError(
                f"{request.node} is cut off, and cannot end its Pods: lastcall node connect {request.node}"
            )
        async for text in self._nodes.followed(self._tasks, partial(self._nodes.remove, request)):
            yield {"text": text}
        for role in [role for role in self._deaths if role not in self.roles]:
            del self._deaths[role]

    def _check_running(self) -> None:
        if self.phase != "running":
            raise ControlError(f"the cluster is {self.phase}")

    async def _from_the_api(self) -> Fields:
        """Return Nodes and Pods as the API server has them; null, and why in `message`, when it does not answer."""
        if self.phase != "running":
            return self._unknown("the cluster is starting")
        client: Client = self.cluster.client
        try:
            async with asyncio.timeout(API_SECONDS):
                nodes = await client.list(NODES)
                listed = await client.list(PODS)
        except (TimeoutError, ConnectionLost, StatusError, OSError) as error:
            return self._unknown(f"the API server does not answer: {str(error) or 'it takes too long'}")
        counts: dict[str, int] = {"total": len(listed.items)}
        for pod in listed.items:
            phase = str((pod.get("status") or {}).get("phase") or "Unknown")
            counts[phase] = counts.get(phase, 0) + 1
        objects = {node["metadata"]["name"]: node for node in nodes.items}
        found = [_node_status(name, objects.get(name)) | self._link(name) for name in self.nodes]
        return {"nodes": found, "pods": counts}

    def _link(self, name: str) -> Fields:
        """Whether `lastcall node disconnect` has cut it off; it stays Ready for a while then."""
        return {"cutOff": True} if name in self._cut_off else {}

    def _unknown(self, message: str) -> Fields:
        return {"nodes": [{"name": name, "ready": None, "message": message} for name in self.nodes], "pods": None}

    def _processes(self) -> list[Fields]:
        pids = {"front": os.getpid(), **self.cluster.host_pids()}
        found = []
        for role in self.roles:
            deaths = self._deaths.get(role, Deaths())
            entry: Fields = {"role": role, "pid": pids.get(role), "restarts": deaths.restarts}
            entry["faults"] = self._faults.facts_of(role)
            if deaths.last:
                entry |= {"lastDeath": deaths.last, "lastDeathAt": deaths.at, "hangs": deaths.hangs}
            if found_again := deaths.again_and_again():
                entry |= {"diesOf": found_again, "servesAloneSeconds": deaths.alone}
            found.append(entry)
        return found


_NODE_ACTIONS = {
    "shutdown": "shut down",
    "cancel": "go on after all",
    "disconnect": "lose its network",
    "connect": "have its network again",
}
"""What may be asked of a node → as the log says it."""


def _node_status(name: str, node: Fields | None) -> Fields:
    if node is None:
        return {"name": name, "ready": None, "message": "its Node object does not exist"}
    ready = pods.get_condition(node.get("status") or {}, "Ready") or {}
    return {"name": name, "ready": ready.get("status") == "True", "message": str(ready.get("message") or "")}


def _checked_periods(periods: Any) -> list[list[int]]:
    """[priority, seconds] of each group. Raises ControlError."""
    try:
        checked = [[priority, seconds] for priority, seconds in periods]
        if not checked or any(type(each) is not int or each > 2**31 for pair in checked for each in pair):
            raise ValueError
    except (TypeError, ValueError):
        raise ControlError(f"periods {periods!r}: a list of [priority, seconds]") from None
    return checked
