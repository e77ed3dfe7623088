"""Connections of an aiohttp client that something else dials."""

import socket
import ssl
import weakref
from abc import abstractmethod
from contextvars import ContextVar
from typing import Any

from yarl import URL

from lastcall.world.aiohttp_inside.client import aiohttp

_REUSED: ContextVar[bool] = ContextVar("reused", default=False)


class DialledConnector(aiohttp.BaseConnector):
    """`dial` makes each connection; TLS is made over it here, with the context that it answers."""

    @abstractmethod
    async def dial(self, url: URL) -> tuple[socket.socket, ssl.SSLContext | None]:
        """Connect to the URL's host and port; return the socket and, for https, the TLS context. Raises OSError."""

    @abstractmethod
    def tls_failed(self, error: ssl.SSLError) -> Exception:
        """Return the exception to raise instead of a TLS error."""

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> Any:
        sock, context = await self.dial(req.url)
        if context is None and isinstance(req.ssl, ssl.SSLContext):
            context = req.ssl  # of this request alone; connections are kept by it
        try:
            _, protocol = await self._loop.create_connection(
                self._factory,  # type: ignore[attr-defined,unused-ignore]
                sock=sock,
                ssl=context,
                server_hostname=(req.server_hostname or req.url.host) if context is not None else None,
            )
        except ssl.SSLError as error:
            sock.close()
            raise self.tls_failed(error) from None
        except BaseException:
            sock.close()
            raise
        return protocol


class KeptConnections(DialledConnector):
    """Connections are used again, but none on which more came than was asked for: that would be the next's answer.

    A connection is kept for a URL's host and port with a request's `ssl`: one that gives a `server_hostname`, which not
    all releases look at, gives a context of that name's own.
    """

    def __init__(self, seconds: float) -> None:
        """`seconds`: how long an idle one is kept."""
        super().__init__(keepalive_timeout=seconds, limit=0)
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def reused(self) -> bool:
        """Return whether the last request of the running task used a connection that had served another one before."""
        return _REUSED.get()

    async def connect(self, req: Any, traces: Any, timeout: Any) -> Any:
        _REUSED.set(False)
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol not in self._used:
                self._used.add(protocol)
                return connection
            if protocol is not None and not protocol.should_close:
                _REUSED.set(True)
                return connection
            connection.close()
