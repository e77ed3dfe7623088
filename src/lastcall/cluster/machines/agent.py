"""Follows the Nodes of a cluster and keeps this machine's routes to the Pods of all others.

While the API server does not answer nothing changes: what is known goes on working.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from lastcall.api.resources import NODES
from lastcall.client.api import Client
from lastcall.client.informer import Informer
from lastcall.cluster.machines.kernel import Kernel
from lastcall.cluster.machines.rules import Network, network_of
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.api.types.node import Node

LOOK_SECONDS = 10.0
"""Others change routes, too: a link that goes down takes its routes along (flannel: routeCheckRetries)."""
TOGETHER_SECONDS = 0.05
"""Nodes that come together are one change."""


class MachineAgent:
    """`run` until cancelled. `say` hears, once for each, of what cannot be done."""

    def __init__(
        self,
        world: World,
        client: Client,
        kernel: Kernel,
        address: str,
        cluster_cidr: str,
        say: Callable[[str], None],
    ) -> None:
        self._world, self._kernel, self._say = world, kernel, say
        self._address, self._cluster_cidr = address, cluster_cidr
        self._nodes: Informer[Node] = Informer(client, NODES, world=world)
        self._changed = asyncio.Event()
        self._told: set[str] = set()
        self.network = Network()
        """As it was applied last."""
        self._nodes.add_handler(self._look, lambda _, node: self._look(node), self._look)

    def _look(self, node: Node) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Raises OSError when the kernel refuses the whole of it."""
        async with Tasks() as tasks:
            tasks.spawn(self._nodes.run(), name="informer nodes")
            await self._nodes.synced()
            while True:
                self._changed.clear()
                self._apply()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._changed.wait()
                        await self._world.clock.sleep(TOGETHER_SECONDS)

    def _apply(self) -> None:
        self.network = network_of(self._nodes.items(), self._address, self._cluster_cidr)
        problems = {*self.network.refused, *self._kernel.apply(self.network)}
        for text in sorted(problems - self._told):
            self._say(text)
        self._told = problems
