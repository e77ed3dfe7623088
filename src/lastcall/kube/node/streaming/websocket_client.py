"""Exec and attach over WebSocket: channels in the first byte of each message.

| channel | 0 | 1 | 2 | 3 | 4 | 255 (v5) |
|---|---|---|---|---|---|---|
| | stdin | stdout | stderr | error: a Status at the end | resize, JSON | the channel in the next byte is over |

Source: kubelet pkg/cri/streaming/remotecommand/websocket.go, apimachinery pkg/util/httpstream/wsstream/conn.go.
"""

import asyncio
import base64
import binascii
from typing import Any

from aiohttp import WSMsgType, web

from lastcall.kube.node.streaming.remote_command import (
    LINGER,
    StreamOptions,
    encode_status,
    internal_error_status,
    parse_size,
)

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
PROTOCOLS = (V5, V4, "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io")
LARGEST_MESSAGE = 4 << 20
_OUTPUTS = {"stdout": STDOUT, "stderr": STDERR}


def pack(channel: int, data: bytes, *, as_base64: bool) -> bytes:
    """Pack one message; base64 ones have the channel as a digit and go as text."""
    return b"%d%s" % (channel, base64.b64encode(data)) if as_base64 else bytes((channel,)) + data


def unpack(message: bytes, *, as_base64: bool) -> tuple[int, bytes] | None:
    """Unpack a message into (channel, data); None for an invalid frame."""
    if not message:
        return None
    if not as_base64:
        return message[0], message[1:]
    try:
        return message[0] - ord("0"), base64.b64decode(message[1:], validate=True)
    except binascii.Error:
        return None


class Inbox:
    """Hold the client's input: a few messages, then the sender waits."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(2)
        self._discards = False
        self._ended = False

    async def put(self, data: bytes) -> None:
        """Put data into the queue; b"" is the end."""
        if not self._discards and not self._ended:
            self._ended = not data
            await self._queue.put(data)

    async def get(self) -> bytes:
        return await self._queue.get()

    def discard(self) -> None:
        """Drop all data: nobody reads any more."""
        self._discards = True
        while not self._queue.empty():
            self._queue.get_nowait()


class Sizes:
    """The terminal's size: only the newest matters."""

    def __init__(self) -> None:
        self._size: tuple[int, int] | None = None
        self._changed = asyncio.Event()

    def put(self, data: bytes) -> None:
        if (size := parse_size(data)) is not None:
            self._size = size
            self._changed.set()

    @property
    def changed(self) -> bool:
        return self._changed.is_set()

    async def get(self) -> tuple[int, int]:
        await self._changed.wait()
        self._changed.clear()
        assert self._size is not None
        return self._size


class WebSocketClient:
    """`RemoteClient` on a prepared WebSocket. `protocol` "" is channel.k8s.io."""

    def __init__(self, socket: web.WebSocketResponse, protocol: str, options: StreamOptions) -> None:
        self._socket, self._protocol, self._options = socket, protocol, options
        self._base64 = "base64" in protocol
        self._stdin = Inbox()
        self._sizes = Sizes()
        self.activity = 0

    async def run(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                data = message.data.encode("utf-8", "surrogatepass")
            elif message.type is WSMsgType.BINARY:
                data = message.data
            else:
                break
            self.activity += 1
            if (frame := unpack(data, as_base64=self._base64)) is not None:
                await self._received(*frame)

    async def _received(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data and self._options.stdin:
            await self._stdin.put(data)
        elif channel == CLOSE and self._protocol == V5 and data[:1] == bytes((STDIN,)):
            await self._stdin.put(b"")
        elif channel == RESIZE:
            self._sizes.put(data)

    async def connected(self) -> None:
        """Send an empty message: the client knows by it that all is ready."""
        channel = min((_OUTPUTS[name] for name in self._options.outputs), default=ERROR)
        await self._send(channel, b"")

    async def _send(self, channel: int, data: bytes) -> None:
        self.activity += 1
        message = pack(channel, data, as_base64=self._base64)
        if self._base64:
            await self._socket.send_str(message.decode("ascii"))
        else:
            await self._socket.send_bytes(message)

    async def read_stdin(self) -> bytes:
        return await self._stdin.get()

    async def read_size(self) -> tuple[int, int]:
        return await self._sizes.get()

    async def write(self, stream: str, data: bytes) -> None:
        await self._send(_OUTPUTS[stream], data)

    async def end(self, stream: str) -> None:
        """Do nothing: WebSocket clients learn it from the Status."""

    def internal_error(self, text: str) -> dict[str, Any]:
        """Return the Status of a runtime's error. With v5 it is wrapped once more, as a translating API server does."""
        status = internal_error_status(text)
        return internal_error_status(status["message"]) if self._protocol == V5 else status

    async def finish(self, status: dict[str, Any]) -> None:
        self._stdin.discard()
        as_json = self._protocol in (V5, V4, "v4.base64.channel.k8s.io")
        if as_json or status["status"] != "Success":
            await self._send(ERROR, encode_status(status, as_json=as_json))
        await self._socket.close()


async def accept(request: web.BaseRequest, protocol: str) -> web.WebSocketResponse:
    """Answer the handshake."""
    socket = web.WebSocketResponse(
        timeout=LINGER, protocols=(protocol,) if protocol else (), compress=False, max_msg_size=LARGEST_MESSAGE
    )
    await socket.prepare(request)
    return socket
