"""A client of grpc.health.v1.Health/Check: one unary call over one plain HTTP/2 connection.

The two messages have one field each (HealthCheckRequest.service = 1, HealthCheckResponse.status = 1), so they are read
and written here. Sources: the gRPC protocol over HTTP/2 (PROTOCOL-HTTP2.md), grpc-go's statusFromHTTP2 mapping.
"""

import asyncio
from dataclasses import field
from typing import Any
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from lastcall.kube.api.protobuf.wire import delimited
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.node.interfaces import DialError, RPCError
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

METHOD = "/grpc.health.v1.Health/Check"
RETRY_SECONDS = 1.0
"""Between tries to connect; a connection that is refused is not the end before the time is (grpc WithBlock)."""
MAX_MESSAGE_BYTES = 64 * 1024
_READ_BYTES = 16 * 1024

CODES = (
    "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
    "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable",
    "DataLoss", "Unauthenticated",
)  # fmt: skip
"""Names of gRPC's codes as Go prints them, by number."""
_OF_HTTP = {400: "Internal", 401: "Unauthenticated", 403: "PermissionDenied", 404: "Unimplemented",
            429: "Unavailable", 502: "Unavailable", 503: "Unavailable", 504: "Unavailable"}  # fmt: skip


async def check_health(clock: Clock, host: str, port: int, service: str, timeout: float, user_agent: str) -> int:
    """Return the ServingStatus. `timeout` in seconds, for connection and call together.

    Raises DialError when there was no connection with a server that speaks HTTP/2, RPCError for everything after it.
    """
    call: _Call | None = None
    try:
        async with asyncio.timeout(timeout):
            call = await _connected(clock, host, port, service)
            return await call.run(f"{host}:{port}" if ":" not in host else f"[{host}]:{port}", user_agent, timeout)
    except TimeoutError:
        if call is None:
            raise DialError("context deadline exceeded") from None
        raise RPCError("DeadlineExceeded", "context deadline exceeded") from None
    finally:
        if call is not None:
            call.writer.close()


async def _connected(clock: Clock, host: str, port: int, service: str) -> "_Call":
    """A connection on which the server has sent its settings; tried again and again until cancelled."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError:
            await clock.sleep(RETRY_SECONDS)
            continue
        call = _Call(reader, writer, service)
        try:
            await call.hello()
            return call
        except (OSError, EOFError, h2.exceptions.ProtocolError):
            writer.close()
            await clock.sleep(RETRY_SECONDS)
        except BaseException:
            writer.close()
            raise


@dataclass(slots=True)
class _Call:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    service: str
    connection: h2.connection.H2Connection = field(
        default_factory=lambda: h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        )
    )
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    async def hello(self) -> None:
        """Exchange settings. Raises OSError, EOFError, ProtocolError."""
        self.connection.initiate_connection()
        await self._send()
        while True:
            for event in await self._receive():
                if isinstance(event, h2.events.RemoteSettingsChanged):
                    return

    async def run(self, authority: str, user_agent: str, timeout: float) -> int:
        """One request and its answer. Raises RPCError."""
        try:
            stream = self.connection.get_next_available_stream_id()
            self.connection.send_headers(
                stream,
                [
                    (":method", "POST"),
                    (":scheme", "http"),
                    (":path", METHOD),
                    (":authority", authority),
                    ("te", "trailers"),
                    ("content-type", "application/grpc"),
                    ("user-agent", user_agent),
                    ("grpc-timeout", f"{max(1, int(timeout * 1000))}m"),
                ],
            )
            message = _request(self.service)
            self.connection.send_data(stream, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=True)
            await self._send()
            ended = False
            while not ended:
                for event in await self._receive():
                    ended = ended or self._take(event, stream)
        except (OSError, EOFError, h2.exceptions.ProtocolError) as error:
            raise RPCError("Unavailable", f"error reading from server: {str(error) or 'EOF'}") from None
        return self._answer()

    def _take(self, event: Any, stream: int) -> bool:
        """True when the answer is complete. Raises RPCError."""
        if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
            self.headers.update({str(name): str(value) for name, value in event.headers or ()})
        elif isinstance(event, h2.events.DataReceived):
            self.body += event.data or b""
            self.connection.acknowledge_received_data(event.flow_controlled_length or 0, stream)
            if len(self.body) > MAX_MESSAGE_BYTES:
                raise RPCError("ResourceExhausted", f"grpc: received message larger than max {MAX_MESSAGE_BYTES}")
        elif isinstance(event, h2.events.StreamReset):
            code = h2.errors.ErrorCodes(event.error_code or 0).name
            raise RPCError("Internal", f"stream terminated by RST_STREAM with error code: {code}")
        elif isinstance(event, h2.events.ConnectionTerminated):
            raise RPCError("Unavailable", "the server closed the connection")
        return isinstance(event, h2.events.StreamEnded)

    def _answer(self) -> int:
        """Raises RPCError."""
        number = int_of(self.headers.get("grpc-status"), 32)
        if number is None:
            http = self.headers.get(":status", "")
            code = "Unknown" if http == "200" else _OF_HTTP.get(int_of(http) or 0, "Unknown")
            raise RPCError(code, f"unexpected HTTP status code received from server: {http}")
        if number != 0:
            code = CODES[number] if 0 < number < len(CODES) else f"Code({number})"
            raise RPCError(code, unquote(self.headers.get("grpc-message", "")))
        if len(self.body) < 5 or self.body[0] != 0 or len(self.body) < 5 + int.from_bytes(self.body[1:5], "big"):
            raise RPCError("Internal", "grpc: the answer holds no whole message")
        return _status(self.body[5 : 5 + int.from_bytes(self.body[1:5], "big")])

    async def _send(self) -> None:
        if data := self.connection.data_to_send():
            self.writer.write(data)
            await self.writer.drain()

    async def _receive(self) -> list[Any]:
        data = await self.reader.read(_READ_BYTES)
        if not data:
            raise EOFError("EOF")
        events = list(self.connection.receive_data(data))
        await self._send()
        return events


def _request(service: str) -> bytes:
    return delimited(1, service.encode()) if service else b""


def _status(message: bytes) -> int:
    """Field 1, a varint; 0 when it is absent. Raises RPCError for what is not a message."""
    position, found = 0, 0
    while position < len(message):
        key, position = _read_varint(message, position)
        kind = key & 7
        if kind == 0:
            value, position = _read_varint(message, position)
            found = value if key >> 3 == 1 else found
        elif kind == 2:
            length, position = _read_varint(message, position)
            position += length
        elif kind in (1, 5):
            position += 8 if kind == 1 else 4
        else:
            raise RPCError("Internal", "grpc: error unmarshalling response")
    return found


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        if position >= len(data):
            break
        number |= (data[position] & 0x7F) << shift
        position += 1
        if data[position - 1] < 0x80:
            return number, position
    raise RPCError("Internal", "grpc: error unmarshalling response")
