"""Connections of an aiohttp client that something else dials."""

import socket
import ssl
from abc import abstractmethod
from typing import Any

import aiohttp
from yarl import URL


class DialledConnector(aiohttp.BaseConnector):
    """`dial` makes each connection; TLS is made over it here, with the context that it answers."""

    @abstractmethod
    async def dial(self, url: URL) -> tuple[socket.socket, ssl.SSLContext | None]:
        """A connected socket for the URL's host and port, and, for https, the context of TLS. Raises OSError."""

    @abstractmethod
    def tls_failed(self, error: ssl.SSLError) -> Exception:
        """What is raised in place of an error of TLS."""

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> Any:
        sock, context = await self.dial(req.url)
        try:
            _, protocol = await self._loop.create_connection(
                self._factory,  # type: ignore[attr-defined,unused-ignore]
                sock=sock,
                ssl=context,
                server_hostname=req.url.host if context is not None else None,
            )
        except ssl.SSLError as error:
            sock.close()
            raise self.tls_failed(error) from None
        except BaseException:
            sock.close()
            raise
        return protocol
