"""Follows how the Pods of an experiment on an existing cluster end, as `lastcall trace` does."""

import asyncio
from collections.abc import Callable, Collection, Set
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.endings import Ending
from lastcall.experiment.existing.connection import Reached
from lastcall.kube.api import Object
from lastcall.records.record import Record
from lastcall.trace import Follower, OnObject, Scope, Target
from lastcall.trace.node_agent import AgentOptions
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.trace.node_agent import NodeAgents

SYNC_SECONDS = 20.0


@dataclass(slots=True)
class PodEnds:
    """`run` beside the experiment; `synced` says whether Pods are followed. `version` is for the stories: `1.36`."""

    cluster: Reached
    targets: tuple[Target, ...]
    world: World
    version: str = ""
    on_record: Callable[[Record], None] = lambda record: None
    on_object: OnObject = lambda resource, type_, obj: None
    on_ending: Callable[[Ending], None] = lambda ending: None
    on_note: Callable[[str], None] = lambda text: None
    """Hear of what is followed, for a viewer."""
    ended: dict[str, Ending] = field(default_factory=dict)
    """Uid → the story of a Pod whose end is over."""
    asked: AgentOptions | None = None
    """Of agents on the nodes, None for none."""
    follower: Follower = field(init=False)
    _agents: "NodeAgents | None" = None
    _heard: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.follower = Follower(
            self.cluster.client,
            Scope(namespace=self.cluster.namespace, targets=self.targets),
            world=self.world,
            kubernetes_version=self.version,
            on_record=self._record,
            on_note=lambda text: self.on_note(text),
            node_side=self,
            on_object=lambda resource, type_, obj: self.on_object(resource, type_, obj),
        )

        if self.asked is not None:
            # late: only with --node-agent
            from lastcall.trace.node_agent import NodeAgents

            self._agents = NodeAgents(
                self.cluster.client,
                self.asked,
                namespace=self.cluster.namespace,
                on_record=self.follower.add,
                on_note=lambda text: self.on_note(text),
                world=self.world,
            )

    async def run(self) -> None:
        """Return when cancelled, or, where only Pods are named, when the last has ended."""
        try:
            async with Tasks() as tasks:
                if self._agents is not None:
                    self._agents.start(tasks)
                taking = tasks.spawn(self._take_endings(), name="stories")
                await self.follower.run()
                await taking
                tasks.cancel()
        finally:
            if self._agents is not None:
                await self._agents.close()

    async def synced(self) -> bool:
        """Return when the Pods are followed, and agents listen; False where they may not be, or are not in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SYNC_SECONDS):
                await self.follower.synced()
        if self._agents is not None and self.is_followed:
            await self._agents.listening()
        return self.is_followed

    @property
    def is_followed(self) -> bool:
        return self.follower.is_synced and self.follower.failure is None

    async def until_ended(self, uids: Set[str]) -> None:
        """Return when the ends of all these Pods are over."""
        while not uids <= self.ended.keys():
            self._heard.clear()
            await self._heard.wait()

    def stories(self, uids: Collection[str]) -> list[Ending]:
        """Return those of these Pods, also of those whose end is not over."""
        return [each for each in (*self.ended.values(), *self.follower.ongoing()) if each.pod.uid in uids]

    # -- what the follower says ---------------------------------------------------------------------------------------

    def pod(self, pod: Object) -> None:
        """Take a state of a Pod."""
        if self._agents is not None:
            self._agents.pod(pod)

    def gone(self, uid: str) -> None:
        """Tell the agents that the Pod's story is complete."""
        if self._agents is not None:
            self._agents.gone(uid)

    def _record(self, record: Record) -> None:
        self.on_record(record)

    async def _take_endings(self) -> None:
        async for ending in self.follower.endings():
            self.ended[ending.pod.uid] = ending
            self.on_ending(ending)
            self._heard.set()
