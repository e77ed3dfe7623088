"""Load from the host, over a port of its loopback that is published as `up --publish` does it.

The client sees such a port take every connection, and reset those that lead nowhere; which Pod a connection led to, or
how it failed to, only the node can say.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from lastcall.kube.api import Object, name_of, namespace_of
from lastcall.kube.cluster import LOOPBACK, PublishedPort, PublishedPorts
from lastcall.traffic import LOST, Lost, Outcome
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.cluster import Carried as CarriedConnection
    from lastcall.kube.cluster import Running

_LATE_SECONDS = 1.0
"""The node's report may arrive so much after the client's own outcome."""


@dataclass(frozen=True, slots=True)
class _Carried:
    at: float
    endpoint: str
    failed: str


@dataclass(slots=True)
class Carried:
    """Collect what the node reported of the connections that it carried, by the client's port."""

    clock: Clock
    _by_port: dict[int, list[_Carried]] = field(default_factory=dict)

    def add(self, carried: "CarriedConnection") -> None:
        found = _Carried(monotonic(self.clock), carried.endpoint, carried.failed)
        self._by_port.setdefault(carried.port, []).append(found)

    def completed(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the Pod's address, and how the connection behind the published port failed."""
        until = outcome.finished + _LATE_SECONDS
        those = [each for each in self._by_port.get(outcome.port, ()) if each.at <= until]
        if not those:
            return outcome
        behind: Lost | None = next((each for each in LOST if each == those[-1].failed), None)
        return replace(outcome, served_by=those[-1].endpoint, behind=behind if behind and outcome.lost else "")


@asynccontextmanager
async def published(
    cluster: "Running", world: World, service: Object, port: Object
) -> AsyncIterator[tuple[tuple[str, int], Carried]]:
    """Yield the address on the loopback, and what the node reports of its connections."""
    carried = Carried(world.clock)
    cluster.on_carried(carried.add)
    wanted = PublishedPort(LOOPBACK, 0, "svc", namespace_of(service), name_of(service), str(port["port"]))
    ports = PublishedPorts((wanted,), node_ports=False, node_ip="", world=world)
    ports.listen()
    try:
        async with Tasks() as tasks:
            tasks.spawn(ports.run(cluster.client, cluster.hand_over, lambda text: None), name="published port")
            host, _, number = ports.facts()[0]["address"].rpartition(":")
            yield (host, int(number)), carried
            tasks.cancel()
    finally:
        ports.close()
