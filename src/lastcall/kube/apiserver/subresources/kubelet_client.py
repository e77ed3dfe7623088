"""The API server as a client of the kubelet: container logs over HTTPS.

Sources: pkg/registry/core/pod/strategy.go:LogLocation, pkg/kubelet/client/kubelet_client.go.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from typing import Protocol
from urllib.parse import quote

from lastcall.kube.api.errors import StatusError, plain_failure, status_failure
from lastcall.kube.api.meta import Object, name_of
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.dataclass import dataclass

CONNECT_TIMEOUT = 10.0
"""Seconds to reach a kubelet."""


@dataclass(frozen=True, slots=True)
class PodLogOptions:
    """`v1.PodLogOptions`. `since_time` is RFC 3339 text; None and "" mean not asked."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    since_time: str = ""
    limit_bytes: int | None = None

    def query(self) -> dict[str, str]:
        """Return the kubelet's query parameters (LogLocation)."""
        query = {name: "true" for name in ("follow", "previous", "timestamps") if getattr(self, name)}
        for name, value in (
            ("tailLines", self.tail_lines),
            ("sinceSeconds", self.since_seconds),
            ("limitBytes", self.limit_bytes),
        ):
            if value is not None:
                query[name] = str(value)
        if self.since_time:
            query["sinceTime"] = self.since_time
        return query


class KubeletLogs(Protocol):
    """Reads a container's log from the node it runs on."""

    def container_logs(
        self, node: Object, namespace: str, pod: str, container: str, options: PodLogOptions
    ) -> AsyncIterator[bytes]:
        """Return the log as it comes; with `follow` it ends when the container does.

        Raises StatusError when the kubelet refuses (400: waiting to start, no previous container) or cannot be reached.
        """
        ...


class KubeletClient:
    """`KubeletLogs` over HTTPS. `ssl_context` trusts the kubelet's CA and holds the API server's client certificate."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self.tls = ssl_context
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)
            self._session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False)
        return self._session

    async def container_logs(
        self, node: Object, namespace: str, pod: str, container: str, options: PodLogOptions
    ) -> AsyncIterator[bytes]:
        host, port = kubelet_address(node)
        path = "/".join(quote(part, safe="") for part in (namespace, pod, container))
        session = self._open()
        try:
            async with session.get(
                f"https://{host}:{port}/containerLogs/{path}", params=options.query(), ssl=self.tls
            ) as response:
                if response.status >= 400:
                    raise _refused(response.status, await response.text())
                async for chunk in response.content.iter_any():
                    yield chunk
        except aiohttp.ClientConnectorError as error:
            raise status_failure(
                500, "InternalError", f"Internal error occurred: cannot reach the kubelet of {name_of(node)}: {error}"
            ) from None
        except aiohttp.ClientError:
            # The kubelet went away in the middle: what was read is what there is.
            return

    async def ask(self, node: Object, path: str) -> bytes:
        """Send a GET for something short. Raises StatusError."""
        host, port = kubelet_address(node)
        session = self._open()
        try:
            timeout = aiohttp.ClientTimeout(total=CONNECT_TIMEOUT)
            async with session.get(f"https://{host}:{port}{path}", ssl=self.tls, timeout=timeout) as response:
                if response.status >= 400:
                    raise _refused(response.status, await response.text())
                return await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise plain_failure(f"cannot reach the kubelet of {name_of(node)}: {error}") from None

    async def connect(self, node: Object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection of its own, for a stream. Raises the StatusError of a kubelet that is not reachable."""
        host, port = kubelet_address(node)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await asyncio.open_connection(host, port, ssl=self.tls)
        except OSError as error:
            words = f"connect: {os.strerror(error.errno) if error.errno else error}".lower()
            words = "i/o timeout" if isinstance(error, TimeoutError) else words
            raise plain_failure(f"error dialing backend: dial tcp {host}:{port}: {words}") from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def kubelet_address(node: Object) -> tuple[str, int]:
    """Return (InternalIP, port) of a node's kubelet. Raises the 500 StatusError of a node without them."""
    status = node.get("status", {})
    port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 10250)
    for address in status.get("addresses") or []:
        if address.get("type") == "InternalIP":
            return address["address"], port
    raise status_failure(
        500,
        "InternalError",
        f"Internal error occurred: no preferred addresses found; known addresses: [] ({name_of(node)})",
    )


def _refused(status: int, text: str) -> StatusError:
    text = text.strip()
    if status == 400:
        return status_failure(400, "BadRequest", text)
    if status == 404:
        details = {"causes": [{"reason": "UnexpectedServerResponse", "message": text}]}
        return status_failure(404, "NotFound", f"the server could not find the requested resource ( {text})", details)
    return status_failure(500, "InternalError", f"Internal error occurred: the kubelet answered {status}: {text}")
