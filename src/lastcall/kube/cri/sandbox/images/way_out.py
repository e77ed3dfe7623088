"""What a pull asks of the world outside the cluster. `lastcall.kube.cluster.egress.pair` implements it."""

import socket
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lastcall.kube.cri.api import AuthConfig


class DialError(Exception):
    """No connection; the text is Go's wording (`dial tcp 127.0.0.1:9: connect: connection refused`)."""


class WayOut(Protocol):
    """Connections from the host, and the credentials of the user who started the cluster."""

    async def dial(self, host: str, port: int, *, tls: bool) -> socket.socket:
        """Return a connected, non-blocking socket, through the host's proxy if there is one. Raises DialError."""
        ...

    async def credentials(self, repository: str) -> "AuthConfig | None":
        """Return the credentials for `registry[:port]/path`. Raises RuntimeServiceError."""
        ...
