"""Serve `trace --serve`: follow until it is asked to end, and hand each story to every receiver.

With a lease only its holder follows. Asked to end, it is no longer ready, reports what is finished, sends what waits,
gives the lease back, and only then stops to answer scrapes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Protocol

from lastcall.endings import Ending
from lastcall.kube.client import Client, FencedClient, LeaderElector
from lastcall.trace.exporting.addresses import Listen
from lastcall.trace.exporting.event_writer import EventWriter
from lastcall.trace.exporting.health import Delivered, Health
from lastcall.trace.exporting.metrics import Metrics
from lastcall.trace.exporting.server import Server
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, unless
from lastcall.world.world import World

FLUSH_SECONDS = 5.0
"""For each way of delivery at the end: below the 30 s that a Pod has by default, with room for the lease."""


class Follows(Protocol):
    """The part of `lastcall.trace.follower.Follower` that is needed."""

    async def run(self) -> None: ...
    def endings(self) -> AsyncIterator[Ending]: ...
    def stop(self) -> None: ...


class Way(Protocol):
    """A way of delivery: takes stories without waiting, `run` hands them over."""

    def ended(self, ending: Ending) -> None: ...
    async def run(self) -> None: ...
    async def flush(self, seconds: float) -> bool: ...
    def delivered(self) -> Delivered: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """`lease` is (namespace, name), None to follow at once. `identity` tells processes apart that want one lease."""

    listen: Listen
    otlp_endpoint: str = ""
    events: bool = False
    lease: tuple[str, str] | None = None
    identity: str = ""
    most_workloads: int = 200


class Serving:
    """`run` returns after `end`, when all is handed over. Raises OSError when it cannot listen, LeadershipLost."""

    def __init__(
        self,
        world: World,
        client: Client,
        asked: Asked,
        follow: Callable[[], Follows],
        health: Callable[[], Health],
        note: Callable[[str], None],
    ) -> None:
        """`follow` makes what follows once it is time to; `health` says how it is."""
        self._world, self._client, self._asked, self._follow, self._note = world, client, asked, follow, note
        self._health = health
        self._elector: LeaderElector | None = None
        if asked.lease is not None:
            namespace, name = asked.lease
            self._elector = LeaderElector(
                world, client, name=name, identity=asked.identity, namespace=namespace, on_leader=self._on_leader
            )
        self._leads = asked.lease is None
        self.metrics = Metrics(world, self.health, most_workloads=asked.most_workloads)
        self._server = Server(self.metrics, self.health)
        self._ending, self._given_up = asyncio.Event(), asyncio.Event()

    def health(self) -> Health:
        return replace(self._health(), leading=self._leads)

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            at = await stack.enter_async_context(self._server.listening(self._asked.listen))
            self._note(f"serves http://{at}/metrics")
            if not at.loopback:
                self._note(f"{at.host} is not loopback: everybody who reaches it can read the metrics")
            if self._elector is None:
                await self._lead()
            else:
                await unless(self._elector.run(self._lead), self._given_up)

    def end(self) -> None:
        """Finish the stories in progress, and return from `run`. Who waits for the lease has nothing to finish."""
        self._ending.set()
        self._server.ending = True
        if not self._leads:
            self._given_up.set()

    def _on_leader(self, holder: str) -> None:
        self._note("holds the lease" if holder == self._asked.identity else f"{holder} holds the lease: waiting for it")

    def _ways(self) -> Sequence[tuple[str, Way]]:
        ways: list[tuple[str, Way]] = []
        if self._asked.otlp_endpoint:
            # late: the extra lastcall[otel], 130 ms of trace --serve without it
            from lastcall.trace.exporting.otlp import SpanSender

            ways.append(("otlp", SpanSender(self._world, self._asked.otlp_endpoint, self._note)))
        if self._asked.events:
            client: Client = self._client
            if self._elector is not None:
                client = FencedClient(client, lambda: self._elector is not None and self._elector.is_leader)
            ways.append(("events", EventWriter(self._world, client, self._note)))
        for name, way in ways:
            self.metrics.deliveries(name, way.delivered)
        return ways

    async def _lead(self) -> None:
        self._leads = True
        ways = self._ways()
        follower = self._follow()
        try:
            async with Tasks() as tasks:
                for name, way in ways:
                    tasks.spawn(way.run(), name=f"export {name}")
                tasks.spawn(follower.run(), name="trace")
                tasks.spawn(self._stop(follower), name="end")
                async for ending in follower.endings():
                    self._hand_over(ending, ways)
                self._server.ending = True
                for name, way in ways:
                    if not await way.flush(FLUSH_SECONDS):
                        left = way.delivered().get("waiting", 0)
                        self._note(f"{name}: {left} could not be exported before the end")
                tasks.cancel()
        finally:
            for _, way in ways:
                way.close()

    async def _stop(self, follower: Follows) -> None:
        await self._ending.wait()
        follower.stop()

    def _hand_over(self, ending: Ending, ways: Sequence[tuple[str, Way]]) -> None:
        """To each of them, whatever the others do with it."""
        key = f"{ending.pod.namespace}/{ending.pod.name}"
        for name, take in (("metrics", self.metrics.ended), *((name, way.ended) for name, way in ways)):
            try:
                take(ending)
            except Exception as error:
                crash_guard.caught(f"export {name}", key, error)
