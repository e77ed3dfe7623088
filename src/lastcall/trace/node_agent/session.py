"""One attachment to an agent: what we say goes to its stdin, what it says comes from its stdout.

Source: staging/src/k8s.io/client-go/tools/remotecommand/websocket.go (v4.channel.k8s.io: the first byte of a message is
its channel).
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson

from lastcall.kube.client import ConnectionLost, HTTPClient
from lastcall.trace.node_agent.job import CONTAINER
from lastcall.trace.node_agent.translate import MOST_LINE, BadLine
from lastcall.world.aiohttp_inside.client import aiohttp

PROTOCOL = "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _ERROR = 0, 1, 2, 3


class Session:
    """`lines` yields what the agent says until the connection ends; `say` is for the same time."""

    def __init__(self, client: HTTPClient, namespace: str, pod: str, on_stderr: Callable[[str], None]) -> None:
        self._client, self._on_stderr = client, on_stderr
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod}/attach"
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def say(self, **fields: Any) -> None:
        """Send one line. Raises ConnectionLost."""
        if self._socket is None or self._socket.closed:
            raise ConnectionLost(f"{self._path}: not attached")
        try:
            await self._socket.send_bytes(bytes([_STDIN]) + orjson.dumps(fields) + b"\n")
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"{self._path}: {error}") from error

    async def lines(self, on_open: Callable[[], None]) -> AsyncIterator[bytes]:
        """Yield whole lines. Raises StatusError, ConnectionLost, BadLine."""
        query = [("container", CONTAINER), ("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
        rest = b""
        async with self._client.websocket(self._path, query, (PROTOCOL,)) as socket:
            self._socket = socket
            on_open()
            async for message in socket:
                data = message.data if isinstance(message.data, bytes) else b""
                if not data:
                    continue
                if data[0] == _STDOUT:
                    *whole, rest = (rest + data[1:]).split(b"\n")
                    if len(rest) > MOST_LINE:
                        raise BadLine(f"a line of more than {MOST_LINE} bytes")
                    for line in whole:
                        yield line
                elif data[0] in (_STDERR, _ERROR):
                    self._on_stderr(data[1:].decode("utf-8", "replace")[:2000])
