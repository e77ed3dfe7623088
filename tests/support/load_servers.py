"""Servers on loopback, and what the load generator says of them. WebSocket frames and frames of HTTP/2 by hand: what
is tried here is what libraries do not do."""

import asyncio
import base64
import contextlib
import hashlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from lastcall.traffic.generator import Generator
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Kind, Outcome
from lastcall.world.world import World

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def reset(writer: asyncio.StreamWriter) -> None:
    """RST in the place of FIN."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


class UnreadWriter:
    """A client's end of a connection whose server reads nothing. `full` is set when the client waits."""

    def __init__(self) -> None:
        self.data = b""
        self.written, self.full = asyncio.Event(), asyncio.Event()
        self.transport = self

    def write(self, data: bytes) -> None:
        self.data += data
        self.written.set()

    def get_write_buffer_size(self) -> int:
        return len(self.data)

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Nobody looks."""

    async def drain(self) -> None:
        self.full.set()
        await asyncio.get_running_loop().create_future()


async def outcomes(
    serve: Serve, kind: Kind, *, count: int = 1, rate: float = 50.0, tls: ssl.SSLContext | None = None, **load: Any
) -> list[Outcome]:
    """What becomes of at least `count` of a kind, in the order in which they were planned. `tls` is the server's."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    found: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        found.append(outcome)
        if len(found) >= count:
            generator.stop()

    asked = Load(server.sockets[0].getsockname(), {kind: rate}, **{"timeout": 30.0, **load})
    generator = Generator(World(), asked, report)
    async with asyncio.timeout(60):
        await generator.run()
    server.close()
    return sorted(found, key=lambda each: each.planned)


# -- WebSocket ---------------------------------------------------------------------------------------------------------


UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "


def accepted(key: str) -> bytes:
    """The server's answer to a client's key (RFC 6455 4.2.2)."""
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())


async def upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """The server's part of the handshake; the id of the client."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
    writer.write(UPGRADED + accepted(fields["sec-websocket-key"]) + b"\r\n\r\n")
    return fields["x-request-id"]


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Opcode and payload of a client's frame of less than 126 bytes."""
    first, second = await reader.readexactly(2)
    mask, body = await reader.readexactly(4), await reader.readexactly(second & 0x7F)
    return first & 0x0F, bytes(each ^ mask[index % 4] for index, each in enumerate(body))


def frame(opcode: int, body: bytes) -> bytes:
    return bytes([0x80 | opcode, len(body)]) + body


def goodbye(code: int) -> bytes:
    return frame(8, struct.pack(">H", code))


# -- HTTP/2 ------------------------------------------------------------------------------------------------------------

HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, DATA = 1, 3, 4, 6, 7, 0
END_STREAM, END_HEADERS, ACK = 1, 4, 1
REFUSED_STREAM = 7


def http2_frame(kind: int, stream: int, body: bytes = b"", flags: int = 0) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def answer(stream: int, status: bytes = b"\x88", body: bytes = b"ok\n") -> bytes:
    """200 by default: entry 8 of HPACK's static table."""
    return http2_frame(HEADERS, stream, status, END_HEADERS) + http2_frame(DATA, stream, body, END_STREAM)


def go_away(last_stream: int, code: int = 0) -> bytes:
    return http2_frame(GOAWAY, 0, struct.pack(">II", last_stream, code))


class Http2Peer:
    """The server's end: `requests` yields stream ids and header blocks as they come, settings are acknowledged."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self) -> tuple[int, bytes]:
        while True:
            head = await self._reader.readexactly(9)
            if head.startswith(b"PRI * HTT"):
                await self._reader.readexactly(15)
                self._writer.write(http2_frame(SETTINGS, 0))
                continue
            body = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
            if head[3] == SETTINGS and not head[4] & ACK:
                self._writer.write(http2_frame(SETTINGS, 0, flags=ACK))
            elif head[3] == HEADERS:
                return int.from_bytes(head[5:9], "big"), body
