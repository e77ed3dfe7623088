"""A component as a process of its own: against any API server, and of several processes only one acts."""

import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lastcall.cli.terminal import note, say_from
from lastcall.contexts import Connected, ContextOptions, choose, connected
from lastcall.errors import Interrupted
from lastcall.kube.api import NAMESPACES
from lastcall.kube.client import Refusals, commands_for
from lastcall.world import crash_guard
from lastcall.world.interrupts import Interrupts
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api import StatusError
    from lastcall.kube.client import Client, Refusals, Right

Fence = Callable[["Client"], "Client"]
"""Makes of a client one that writes only as long as this process is the leader."""
Lead = Callable[["World", Connected, Fence], Awaitable[None]]
"""Given the cluster: work until cancelled, and write through clients behind the fence only."""


class Component:
    """`name` is the command's; `lease` that which the component of Kubernetes uses: beside a real one this process
    waits for its end."""

    def __init__(self, name: str, lease: str, lead: Lead) -> None:
        self.name, self._lease, self._lead = name, lease, lead
        self._refusals: Refusals | None = None

    def run(self, asked: ContextOptions, *, leader_elect: bool, ended: str) -> int:
        """Run until a signal; the exit status. Raises LastcallError."""
        chosen = choose(asked)
        with Interrupts(message=ended) as interrupts, suppress(Interrupted):
            interrupts.run(self._run(chosen, leader_elect))
        return 0

    async def _run(self, chosen: Any, leader_elect: bool) -> None:
        crash_guard.install(crash_guard.Faults(say=self.note))
        async with connected(chosen, agent=f"lastcall-{self.name}", warn=note, on_refused=self.refused) as cluster:
            await cluster.client.list(NAMESPACES)  # a user without permission gets an error, and does not wait forever
            await self._act(cluster, leader_elect)

    async def _act(self, cluster: Connected, leader_elect: bool) -> None:
        # late: 375 ms of the command's --help
        from lastcall.kube.client import FencedClient, LeaderElector, LeadershipLost

        world, client = World(), cluster.client
        if not leader_elect:
            await self._lead(world, cluster, lambda client: client)
            return
        identity = f"{socket.gethostname()}_{world.new_uid()}"
        while True:
            elector = LeaderElector(world, client, name=self._lease, identity=identity, on_leader=self._tell(identity))

            def fence(client: "Client", elector: LeaderElector = elector) -> "Client":
                return FencedClient(client, lambda: elector.is_leader)

            try:
                await elector.run(lambda fence=fence: self._lead(world, cluster, fence))  # type: ignore[misc]
            except LeadershipLost as error:
                self.note(f"{error}: waiting for the lease again")

    def _tell(self, identity: str) -> Callable[[str], None]:
        def tell(holder: str) -> None:
            self.note("is the leader" if holder == identity else f"{holder} is the leader: waiting for it to end")

        return tell

    def refused(self, error: "StatusError") -> None:
        """Report the missing permission if the API server refuses a request of any client of this process."""
        if self._refusals is None:
            self._refusals = Refusals(World(), self._tell_missing)
        self._refusals.note(error)

    def _tell_missing(self, right: "Right", count: int) -> None:
        if count > 1:
            self.note(f"missing permission of {right.user}: {right.words}: {count} requests refused so far")
            return
        fix = "".join(f"\n  {command}" for command in commands_for([right]))
        self.note(
            f"missing permission of {right.user}: {right.words}. lastcall retries what needs it."
            + (f" fix, as an administrator:{fix}" if fix else "")
        )

    def note(self, text: object) -> None:
        say_from(f"{self.name}[{os.getpid()}]", str(text))
