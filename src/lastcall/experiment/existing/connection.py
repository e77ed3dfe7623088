"""The cluster that an experiment is made on, or taken from."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from lastcall.contexts import ContextOptions, choose, connected
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.client import ClientConfig, HTTPClient

PATIENCE_SECONDS = 5.0
"""How long a reason that waiting does not change has to last: others change the cluster, too."""
AGENT = "lastcall-experiment"
"""Of requests in an audit log, and the manager of the fields that they set."""


@dataclass(frozen=True, slots=True)
class Reached:
    """`namespace` is what the user asked for, else the context's, else "default"."""

    client: "HTTPClient"
    context: str
    server: str
    namespace: str
    version: str = ""
    """What the API server says of itself: `v1.36.2`."""
    config: "ClientConfig | None" = None
    """What the client was made of; None where its errors are not to be explained."""

    @property
    def minor_version(self) -> str:
        """Return `1.36`, as documents have it; "" if the API server does not say."""
        return ".".join(self.version.removeprefix("v").split(".")[:2])

    @property
    def where(self) -> str:
        return f"context {self.context!r}"


@asynccontextmanager
async def reached(asked: ContextOptions, warn: Callable[[str], None]) -> AsyncIterator[Reached]:
    """Connect for the time of the block. Raises UserError, WorldError, also for what the client raises inside the
    block."""
    chosen = choose(asked)
    async with connected(chosen, agent=AGENT, warn=warn) as cluster:
        yield Reached(cluster.client, chosen.context, chosen.server, chosen.namespace, cluster.version, chosen.config)
