"""What is read from the API server over a WebSocket: a container's log, a message for each piece.

Source: apimachinery pkg/util/httpstream/wsstream/stream.go (NewDefaultReaderProtocols).
"""

import base64
from collections.abc import AsyncIterator
from contextlib import suppress

from lastcall.world.aiohttp_inside import server as web

BASE64 = "base64.binary.k8s.io"
PROTOCOLS = ("binary.k8s.io", BASE64)
"""Without one of them messages are binary, too."""
LINGER = 5.0
"""Seconds for the client's part of the closing handshake."""


def wants_websocket(request: web.BaseRequest) -> bool:
    upgrades = (word.strip().lower() for word in request.headers.get("Connection", "").split(","))
    return "upgrade" in upgrades and request.headers.get("Upgrade", "").lower() == "websocket"


async def send(request: web.BaseRequest, chunks: AsyncIterator[bytes]) -> web.WebSocketResponse:
    """Answer the handshake, send all of `chunks` and close. A client that goes away ends it."""
    offered = [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    protocol = next((each for each in offered if each in PROTOCOLS), "")
    socket = web.WebSocketResponse(timeout=LINGER, protocols=(protocol,) if protocol else (), compress=False)
    await socket.prepare(request)
    with suppress(ConnectionResetError):
        async for chunk in chunks:
            if protocol == BASE64:
                await socket.send_str(base64.b64encode(chunk).decode())
            else:
                await socket.send_bytes(chunk)
        await socket.close()
    return socket
