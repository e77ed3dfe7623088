"""What ends an experiment on a cluster of our own from below: a process that dies, an API server that is lost."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from lastcall.errors import WorldError
from lastcall.kube.client import ConnectionLost
from lastcall.records.signal_names import signal_name
from lastcall.world.tasks import unless

LAST_WORDS_SECONDS = 0.3
"""How long the others may still tell what they saw after a process of the cluster has died."""


class Cluster(Protocol):
    """What knows how its processes ended."""

    def last_words(self, role: str, lines: int) -> str: ...
    def why_it_hung(self, role: str) -> str: ...


@dataclass(slots=True)
class Death:
    """`came` is set, and `text` says which process ended and how, once one of the cluster has."""

    cluster: Cluster | None = None
    text: str = ""
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def process_died(self, role: str, pid: int, exit_code: int | None, number: int | None) -> None:
        """Note the first death. A process that nobody waits for is none."""
        if role == "orphan" or self.text or self.cluster is None:
            return
        how = f"was killed by {signal_name(number)}" if number else f"exited with {exit_code}"
        how = self.cluster.why_it_hung(role) or how
        words = self.cluster.last_words(role, 1) if exit_code else ""
        self.text = f"the cluster's {role} (pid {pid} inside the cluster) {how}{f': {words}' if words else ''}"
        self.came.set()

    async def error(self, lost: ConnectionLost) -> WorldError:
        """Return why the API server is lost: the answer breaks off a moment before a death is known."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await self.came.wait()
        return WorldError(self.text or f"the API server cannot be reached: {lost}")

    async def unless(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work`. Raises WorldError as soon as a process has died, or when the API server is lost."""
        try:
            await unless(work, self.came)
        except ConnectionLost as error:
            raise await self.error(error) from error
        if self.text:
            raise WorldError(self.text)
