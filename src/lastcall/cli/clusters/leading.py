"""A component as a process of its own: against any API server, and of several processes only one acts."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from lastcall.api.resources import NAMESPACES
from lastcall.cli.clusters.connecting import Connected, choose, connected
from lastcall.cli.clusters.options import ContextOptions
from lastcall.cli.interrupts import Interrupts
from lastcall.world import walls
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.client.api import Client

Lead = Callable[["World", Connected, "Client"], Awaitable[None]]
"""Given the cluster, and a client that writes only as long as this process is the leader: work until cancelled."""


class Component:
    """`name` is the command's; `lease` that which the component of Kubernetes uses: beside a real one this process
    waits for its end."""

    def __init__(self, name: str, lease: str, lead: Lead) -> None:
        self.name, self._lease, self._lead = name, lease, lead

    def run(self, asked: ContextOptions, *, leader_elect: bool, ended: str) -> int:
        """Run until a signal; the exit status. Raises CommandError."""
        chosen = choose(asked)
        with Interrupts(message=ended) as interrupts:
            try:
                asyncio.run(self._run(chosen, leader_elect, interrupts))
            except asyncio.CancelledError:
                if not interrupts.number:
                    raise
        return 0

    async def _run(self, chosen: Any, leader_elect: bool, interrupts: Interrupts) -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def cancel() -> None:
            loop.call_soon_threadsafe(task.cancel)

        interrupts.on_first = cancel
        interrupts.check()
        walls.stand(walls.Faults(say=self.note))
        try:
            async with connected(chosen, agent=f"lastcall-{self.name}") as cluster:
                await cluster.client.list(NAMESPACES)  # a user without rights is told so, and does not wait forever
                await self._act(cluster, leader_elect)
        finally:
            interrupts.on_first = None

    async def _act(self, cluster: Connected, leader_elect: bool) -> None:
        # late: 375 ms of the command's --help
        from lastcall.client.leaderelection import FencedClient, LeaderElector, LeadershipLost

        world, client = World(), cluster.client
        if not leader_elect:
            await self._lead(world, cluster, client)
            return
        identity = f"{socket.gethostname()}_{world.new_uid()}"
        while True:
            elector = LeaderElector(world, client, name=self._lease, identity=identity, on_leader=self._tell(identity))
            fenced = FencedClient(client, lambda elector=elector: elector.is_leader)  # type: ignore[misc]
            try:
                await elector.run(lambda fenced=fenced: self._lead(world, cluster, fenced))  # type: ignore[misc]
            except LeadershipLost as error:
                self.note(f"{error}: waits for it again")

    def _tell(self, identity: str) -> Callable[[str], None]:
        def tell(holder: str) -> None:
            self.note("is the leader" if holder == identity else f"{holder} is the leader: waits for its end")

        return tell

    def note(self, text: object) -> None:
        click.echo(f"{self.name}[{os.getpid()}]: {text}", err=True)
