"""Forward ports over an open connection.

Over SPDY (plain, or in WebSocket messages) every TCP connection is a pair of streams, `data` and `error`, with the same
`requestID`. Over WebSocket with the v4 channel protocol the ports stand in the query, and each has one connection on
two channels, each of which begins with the port in two bytes.
Sources: kubelet pkg/cri/streaming/portforward/{httpstream,websocket}.go.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from aiohttp import WSMsgType, web

from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.cri.api import PortForwardStream, RuntimeServiceError
from lastcall.kube.node.streaming.remote_command import (
    IDLE_TIMEOUT,
    STREAM_CREATION_TIMEOUT,
    watch_idleness,
)
from lastcall.kube.node.streaming.websocket_client import Inbox, pack, unpack
from lastcall.kube.streaming.spdy_frames import SpdyError
from lastcall.kube.streaming.spdy_session import SpdySession, SpdyStream
from lastcall.kube.streaming.upgrade import ByteStream
from lastcall.world.clock import Clock
from lastcall.world.tasks import Tasks

SPDY_PROTOCOL = "portforward.k8s.io"
TUNNEL_PROTOCOL = f"SPDY/3.1+{SPDY_PROTOCOL}"
CHANNEL_PROTOCOLS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io")
LAST_WORDS = 1.0
"""Seconds for what the client still sends after the Pod has ended its side of a connection (containerd's)."""

Connect = Callable[[int], Awaitable[PortForwardStream]]
"""Opens a connection to a port; raises RuntimeServiceError."""


def parse_port(text: str) -> int:
    """Parse a port. Raises ValueError in the kubelet's words."""
    port = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1
    if not -1 < port < 1 << 16:
        wrong = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
        raise ValueError(
            f"unable to parse {go_quote(text)} as a port: strconv.ParseUint: parsing {go_quote(text)}: {wrong}"
        )
    if port == 0:
        raise ValueError(f"port {go_quote(text)} must be > 0")
    return port


class Client(Protocol):
    """The client's end of one connection."""

    async def read(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def close_write(self) -> None: ...
    @property
    def was_reset(self) -> bool: ...


async def forward(client: Client, connect: Connect, port: int) -> str:
    """Join a client with a port until both directions are over; return the runtime's error, or ""."""
    try:
        pod = await connect(port)
    except RuntimeServiceError as error:
        return str(error)
    try:
        async with Tasks() as tasks:
            sending = tasks.spawn(_send(client, pod), name="to the Pod")
            while data := await pod.read():
                await client.write(data)
            await client.close_write()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await asyncio.wait((sending,))
            tasks.cancel()
    except* ConnectionError:
        pass  # the client wants no more
    finally:
        await pod.close()
    return ""


async def _send(client: Client, pod: PortForwardStream) -> None:
    while data := await client.read():
        try:
            await pod.write(data)
        except BrokenPipeError:
            return  # what the Pod still has to say is said by the other direction
    if client.was_reset:
        raise ConnectionResetError("the client has reset the connection")
    await pod.close_write()


# -- SPDY --------------------------------------------------------------------------------------------------------------


async def serve_spdy(
    transport: ByteStream, connect: Connect, pod: str, clock: Clock, *, idle_timeout: float = IDLE_TIMEOUT
) -> None:
    """Serve a client's connections until it goes. `pod` is how messages name it."""
    try:
        async with Tasks() as tasks:
            pairs = _Pairs(tasks, connect, pod, clock)
            session = SpdySession(transport, pairs.on_stream)
            tasks.spawn(watch_idleness(lambda: session.activity, clock, idle_timeout), name="idle timeout")
            await session.run()
            tasks.cancel()
    except* (ConnectionError, SpdyError):
        pass  # the client went away
    finally:
        await transport.close()


class _Pairs:
    """Streams that belong together."""

    def __init__(self, tasks: Tasks, connect: Connect, pod: str, clock: Clock) -> None:
        self._tasks, self._connect, self._pod, self._clock = tasks, connect, pod, clock
        self._pairs: dict[str, dict[str, SpdyStream]] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}

    def on_stream(self, stream: SpdyStream) -> None:
        """Raises ValueError, which refuses the stream. Source: httpstream.go:httpStreamReceived, requestID."""
        kind, text = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
        if not text:
            raise ValueError('"port" header is required')
        port = parse_port(text)
        if kind not in ("error", "data"):
            raise ValueError(f"invalid stream type {go_quote(kind)}")
        # Clients from before Kubernetes 1.0 send no request id: their data stream follows the error stream.
        request = stream.headers.get("requestid") or str(stream.id - (2 if kind == "data" else 0))
        pair = self._pairs.get(request)
        if pair is None:
            pair = self._pairs[request] = {kind: stream}
            self._timers[request] = self._tasks.spawn(self._time_out(request), name=f"streams of request {request}")
        elif kind in pair:
            raise ValueError(f"{kind} stream already set")
        else:
            pair[kind] = stream
            del self._pairs[request]
            self._timers.pop(request).cancel()
            self._tasks.spawn(self._forward(pair["data"], pair["error"], port), name=f"port {port}")

    async def _time_out(self, request: str) -> None:
        await self._clock.sleep(STREAM_CREATION_TIMEOUT)
        del self._timers[request]
        for stream in self._pairs.pop(request).values():
            await stream.reset()

    async def _forward(self, data: SpdyStream, error: SpdyStream, port: int) -> None:
        try:
            if text := await forward(data, self._connect, port):
                await error.write(f"error forwarding port {port} to pod {self._pod}, uid : {text}".encode())
        except ConnectionError:
            return
        finally:
            for stream in (data, error):
                await stream.close_write()
                stream.forget()


class WebSocketStream:
    """The bytes of a WebSocket's binary messages, whatever their borders."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while not self._socket.closed:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                break
            if message.data:
                return bytes(message.data)
        return b""

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)

    async def close(self) -> None:
        await self._socket.close()


# -- WebSocket with channels -------------------------------------------------------------------------------------------


async def serve_channels(
    socket: web.WebSocketResponse,
    protocol: str,
    ports: Sequence[int],
    connect: Connect,
    pod: str,
    clock: Clock,
    *,
    idle_timeout: float = IDLE_TIMEOUT,
) -> None:
    """Serve one connection for each port, until all have ended or the client goes."""
    channels = _Channels(socket, protocol, len(ports))
    try:
        async with Tasks() as tasks:
            reader = tasks.spawn(channels.run(), name="port-forward client")
            tasks.spawn(watch_idleness(lambda: channels.activity, clock, idle_timeout), name="idle timeout")
            for index, port in enumerate(ports):
                for channel in (2 * index, 2 * index + 1):
                    await channels.send(channel, port.to_bytes(2, "little"))
            forwards = [
                tasks.spawn(_forward_channel(channels, index, port, connect, pod), name=f"port {port}")
                for index, port in enumerate(ports)
            ]
            for each in forwards:
                await each
            reader.cancel()
            tasks.cancel()
    except* ConnectionError:
        pass  # the client went away
    finally:
        await socket.close()


async def _forward_channel(channels: "_Channels", index: int, port: int, connect: Connect, pod: str) -> None:
    if text := await forward(channels.clients[index], connect, port):
        await channels.send(2 * index + 1, f"error forwarding port {port} to pod {pod}, uid : {text}".encode())


class _Channels:
    def __init__(self, socket: web.WebSocketResponse, protocol: str, count: int) -> None:
        self._socket, self._base64 = socket, "base64" in protocol
        self.clients = [_ChannelClient(self, 2 * index) for index in range(count)]
        self.activity = 0

    async def run(self) -> None:
        """Raises ConnectionResetError when the client has gone."""
        async for message in self._socket:
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                break
            self.activity += 1
            data = message.data if message.type is WSMsgType.BINARY else message.data.encode("utf-8", "surrogatepass")
            frame = unpack(data, as_base64=self._base64)
            if frame is not None and frame[1] and frame[0] in range(0, 2 * len(self.clients), 2):
                await self.clients[frame[0] // 2].inbox.put(frame[1])
        raise ConnectionResetError("the client is gone")

    async def send(self, channel: int, data: bytes) -> None:
        self.activity += 1
        message = pack(channel, data, as_base64=self._base64)
        if self._base64:
            await self._socket.send_str(message.decode("ascii"))
        else:
            await self._socket.send_bytes(message)


class _ChannelClient:
    """One port's data channel. Its protocol has no way to end a direction."""

    was_reset = False

    def __init__(self, channels: _Channels, channel: int) -> None:
        self._channels, self._channel = channels, channel
        self.inbox = Inbox()

    async def read(self) -> bytes:
        return await self.inbox.get()

    async def write(self, data: bytes) -> None:
        await self._channels.send(self._channel, data)

    async def close_write(self) -> None:
        self.inbox.discard()
