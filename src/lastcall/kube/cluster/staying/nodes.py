"""Nodes that come to a cluster that stays, and go. In front.

One at a time. What can be undone is undone when it fails, or when the client that asked for it goes away: a node that
does not become Ready leaves again, and a drained one that cannot be emptied takes Pods again. From the end of the drain
on a node goes, no matter who watches. The state directory is updated before: a killed front leaves no half of a node.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any, Protocol

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import is_mirror_pod, is_pod_terminal
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.retries import until_answered
from lastcall.kube.cluster.control.node import ShutDown
from lastcall.kube.cluster.control.socket import AddNode, RemoveNode
from lastcall.kube.cluster.drain.decide import DrainOptions
from lastcall.kube.cluster.drain.run import Drain, Tell
from lastcall.kube.cluster.errors import ControlError
from lastcall.kube.cluster.layout import MOST_NODES, number_of
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.kube.cluster.staying.kept_nodes import KeptNodes
from lastcall.world import crash_guard
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass
from lastcall.world.messages import Message
from lastcall.world.tasks import Tasks

FIRST = "node-1"
_GRACE_SECONDS = 30
"""Of a Pod that does not say how much it has."""
_MORE_SECONDS = 15.0
"""Beyond the grace period of the Pods that end with the node."""


class Machines(Protocol):
    """What is needed of `embedded.Running`."""

    client: Any

    @property
    def nodes(self) -> list[str]: ...
    def check_size(self, node: str, capacity: Mapping[str, str]) -> str: ...
    async def add_node(self, number: int, capacity: Mapping[str, str]) -> None: ...
    async def wait_ready(self, node: str) -> None: ...
    async def remove_node(self, node: str) -> None: ...
    def ask_node(self, node: str, message: Message) -> AsyncIterator[str]: ...
    def last_words(self, role: str, lines: int = 20) -> str: ...


@dataclass(slots=True)
class NodeChanges:
    """`declared` are the sizes that nodes are to have. `changed` is called when there is a node more, or less."""

    cluster: Machines
    clock: Clock
    declared: NodeCapacity
    kept: KeptNodes
    log: Tell
    changed: Callable[[], None]
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)
    _undoable: set["asyncio.Task[Any]"] = field(default_factory=set)
    """The changes under way that end with the client that asked for them."""

    async def add(self, asked: AddNode, named: Tell, tell: Tell) -> None:
        """Add a node; `named` gets its name when it is Ready. Raises ControlError, with nothing of the node left."""
        async with self._one:
            self._certain()
            name = await self._name_of_new(asked.node)
            capacity = {**self.declared.of(name), **(asked.capacity or {})}
            if note := self.cluster.check_size(name, capacity):
                tell(note)
            before = (self.kept.added, self.kept.removed)
            self._keep(lambda: self.kept.add(name, capacity))
            try:
                await self._begin(name, capacity, asked.timeout)
            except Exception:
                self.log(f"{name} is not added")
                await self._end(name)
                with suppress(OSError):
                    self.kept.restore(before)
                raise
            self.changed()
            named(name)
            tell(f"{name} is Ready")

    async def _name_of_new(self, asked: str) -> str:
        """Raises ControlError for a name that a new node cannot have."""
        there = self.cluster.nodes
        if len(there) >= MOST_NODES:
            raise ControlError(f"the cluster has {len(there)} nodes, and more are not possible: remove one first")
        free = (f"node-{number}" for number in range(1, MOST_NODES + 1) if f"node-{number}" not in there)
        name = asked or next(free)
        if number_of(name) is None:
            raise ControlError(f"{name!r} is no name of a node: write node-2 to node-{MOST_NODES}, or leave it out")
        if name in there:
            raise ControlError(f"there is a node {name!r} already: leave the name out, or choose another one")
        try:
            await until_answered(self.clock, lambda: self.cluster.client.get(NODES, name))
        except StatusError as error:
            if not is_not_found(error):
                raise
            return name
        raise ControlError(f"a Node object {name!r} that is not lastcall's exists: kubectl delete node {name}")

    async def _begin(self, name: str, capacity: Mapping[str, str], timeout: float) -> None:
        try:
            await self.cluster.add_node(number_of(name) or 0, capacity)
            async with asyncio.timeout(timeout):
                await self.cluster.wait_ready(name)
        except OSError as error:  # TimeoutError is one
            words = self.cluster.last_words(name, 1)
            why = f"{name} is not Ready within {timeout:g} s (--timeout)" if type(error) is TimeoutError else str(error)
            raise ControlError(f"{why}{f': {words}' if words else ''}; nothing of it is left") from error

    async def remove(self, asked: RemoveNode, tell: Tell) -> None:
        """Remove a node. Raises ControlError; the node then takes Pods again, unless it failed after its drain."""
        async with self._one:
            name, there = asked.node, self.cluster.nodes
            if name not in there:
                raise ControlError(f"there is no node {name!r}: the cluster has {', '.join(there)}")
            if name == FIRST:
                why = "is the last node" if len(there) == 1 else "has the static Pods and carries published ports"
                raise ControlError(f"{name} {why}, and stays: remove another one, or end the cluster (lastcall down)")
            options = DrainOptions(
                asked.grace, asked.timeout, asked.force, asked.ignore_daemonsets, asked.delete_emptydir_data
            )
            drain = Drain(self.cluster.client, self.clock, name, options, tell)
            await drain.run()
            self._certain()
            tell(f"{name} is drained")
            self._keep(lambda: self.kept.remove(name))
            await self._shut_down(drain, asked.grace, tell)
            await self._end(name)
            self.changed()
            tell(f"{name} is gone")

    def _keep(self, change: Callable[[], None]) -> None:
        try:
            change()
        except OSError as error:
            raise ControlError(f"the state directory cannot be written: {error.strerror or error}") from error

    async def _shut_down(self, drain: Drain, grace: int | None, tell: Tell) -> None:
        """As a machine that is switched off: what the drain left ends gracefully. What does not, ends with the node."""
        left = [pod for pod in await drain.pods() if not is_mirror_pod(pod) and not is_pod_terminal(pod)]
        if not left:
            return
        own = (pod["spec"].get("terminationGracePeriodSeconds", _GRACE_SECONDS) for pod in left)
        seconds = max(own) if grace is None else grace
        with suppress(TimeoutError, ControlError):
            async with asyncio.timeout(seconds + _MORE_SECONDS):
                async for text in self.cluster.ask_node(drain.node, ShutDown(periods=[[0, seconds]])):
                    tell(text)

    async def _end(self, name: str) -> None:
        """End what there is of a node, and take its Node object and its Pods away."""
        with suppress(ConnectionLost, StatusError):
            await self.cluster.remove_node(name)
            await forget_node(self.cluster.client, self.clock, name)

    # -- the client ----------------------------------------------------------------------------------------------------

    async def followed(self, tasks: Tasks, work: Callable[[Tell], Coroutine[Any, Any, None]]) -> AsyncIterator[str]:
        """Yield what `work` reports. It goes on without its reader once it cannot be undone. Raises ControlError."""
        said: asyncio.Queue[str | None] = asyncio.Queue()
        failure: list[str] = []

        def tell(text: str) -> None:
            self.log(text)
            said.put_nowait(text)

        async def guarded() -> None:
            try:
                await work(tell)
            except (ControlError, ConnectionLost, StatusError) as error:
                failure.append(str(error))
            except Exception as error:
                crash_guard.caught("nodes", "", error)
                failure.append(crash_guard.text_of(error))
            finally:
                for why in failure:
                    self.log(why)
                said.put_nowait(None)

        task = tasks.spawn(guarded(), name="nodes")
        self._undoable.add(task)
        task.add_done_callback(self._undoable.discard)
        try:
            while (text := await said.get()) is not None:
                yield text
        finally:
            if task in self._undoable:
                task.cancel()
        if failure:
            raise ControlError(failure[0])

    def _certain(self) -> None:
        """Let the change go on from here, even if nobody watches it."""
        task = asyncio.current_task()
        if task is not None:
            self._undoable.discard(task)


async def forget_node(client: Client, clock: Clock, name: str) -> None:
    """Delete the Node object of a node that is no more, and its Pods. Raises ConnectionLost, StatusError."""

    async def gone(work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await until_answered(clock, work)
        except StatusError as error:
            if not is_not_found(error) and error.code != 409:
                raise

    await gone(partial(client.delete, NODES, name))
    found = await until_answered(clock, lambda: client.list(PODS, field_selector=f"spec.nodeName={name}"))
    for pod in found.items:
        where = (name_of(pod), namespace_of(pod))
        await gone(partial(client.delete, PODS, *where, grace_period_seconds=0, uid=uid_of(pod)))
