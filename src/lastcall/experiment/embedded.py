"""A cluster of our own as a place for experiments: its rings tell what happens, and it has nothing to put back."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from lastcall.errors import WorldError
from lastcall.experiment.workspace import Workspace
from lastcall.kube.client import Client, ConnectionLost
from lastcall.records.record import Record
from lastcall.records.signal_names import signal_name
from lastcall.world.dataclass import dataclass

LAST_WORDS_SECONDS = 0.3
"""How long the others may still tell what they saw after a process of the cluster has died."""


class Cluster(Protocol):
    """What an experiment needs of a cluster that was started."""

    client: Any  # a lastcall.kube.client.api.Client; the concrete class varies

    async def connect(self) -> None: ...
    async def wait_node_ready(self) -> None: ...
    def on_record(self, callback: Callable[[Record], None], /) -> None: ...
    def on_process_died(self, callback: Callable[[str, int, int | None, int | None], None], /) -> None: ...
    async def drain_records(self, seconds: float, /) -> None: ...
    def last_words(self, role: str, lines: int, /) -> str: ...
    def why_it_hung(self, role: str) -> str: ...


@dataclass(slots=True)
class EmbeddedCluster(Workspace):
    """`start` first."""

    cluster: Cluster

    @property
    def client(self) -> Client:
        found: Client = self.cluster.client
        return found

    async def start(self, on_record: Callable[[Record], None]) -> None:
        """Return when the API server answers and the nodes are Ready. Raises ClusterStartError.

        What dies before that is such an error, which says why; what dies later ends the experiment.
        """
        self.cluster.on_record(on_record)
        await self.cluster.connect()
        await self.cluster.wait_node_ready()
        self.cluster.on_process_died(self._process_died)

    def _process_died(self, role: str, pid: int, exit_code: int | None, number: int | None) -> None:
        """Note the first death. A process that nobody waits for is none, nor is a load generator that is done."""
        if role == "orphan" or (role == "load" and exit_code == 0) or self.death:
            return
        how = f"was killed by {signal_name(number)}" if number else f"exited with {exit_code}"
        how = self.cluster.why_it_hung(role) or how
        words = self.cluster.last_words(role, 1) if exit_code else ""
        self.death = f"the cluster's {role} (pid {pid} inside the cluster) {how}{f': {words}' if words else ''}"
        self.died.set()

    async def error(self, found: Exception) -> Exception:
        """Return why the API server is lost, where it is, and wait for what the others still tell of that."""
        if isinstance(found, ConnectionLost):
            with suppress(TimeoutError):  # the answer breaks off a moment before a death is known
                async with asyncio.timeout(LAST_WORDS_SECONDS):
                    await self.died.wait()
            found = WorldError(self.death or f"the API server cannot be reached: {found}")
        await self.cluster.drain_records(LAST_WORDS_SECONDS)
        return found

    async def restore(self, say: Callable[[str], None]) -> None:
        """Close the client, whatever state the API server is in."""
        client: Client | None = getattr(self.cluster, "client", None)
        if client is not None:
            with suppress(ConnectionLost, OSError):
                await client.close()
