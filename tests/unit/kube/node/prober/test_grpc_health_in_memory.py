"""The client of grpc.health.v1.Health against servers in memory, in virtual time: requests, answers, errors."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import pytest

from lastcall.kube.node.interfaces import DialError, RPCError
from lastcall.kube.node.prober.grpc_health import MAX_MESSAGE_BYTES, check_health
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

OK = [("grpc-status", "0")]
FRAME = 16_384
NONSENSE = bytes(9)
"""A frame of HTTP/2 that may not be: data outside of a stream."""


class Server:
    """Both ends of a connection: what the client writes is read at once, and `answer` sends something back."""

    def __init__(self, answer: "Callable[[Server, int], None]") -> None:
        configuration = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(configuration)
        self.h2.initiate_connection()
        self.reader = asyncio.StreamReader()
        self.answer = answer
        self.request: dict[Any, Any] = {}
        self.message = b""
        self.closed = False
        self.hung_up = False
        self._stream = 0
        self._left = b""
        self._trailers: list[tuple[str, str]] | None = None

    def write(self, data: bytes) -> None:
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.request = dict(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                self.message += event.data
            elif isinstance(event, h2.events.StreamEnded):
                self.answer(self, event.stream_id)
        self._continue()
        if self.hung_up:
            self.reader.feed_eof()
        else:
            self.reader.feed_data(self.h2.data_to_send())

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def send(self, stream: int, body: bytes, trailers: list[tuple[str, str]] | None, status: str = "200") -> None:
        """Send headers, the body as the client's window lets it pass, and trailers; None for no trailers."""
        self.h2.send_headers(stream, [(":status", status), ("content-type", "application/grpc")])
        self._stream, self._left, self._trailers = stream, body, trailers
        if trailers is None:
            self._stream = 0
            self.h2.send_data(stream, body, end_stream=True)

    def _continue(self) -> None:
        while self._stream and self._left and (window := self.h2.local_flow_control_window(self._stream)):
            part, self._left = self._left[: min(window, FRAME)], self._left[min(window, FRAME) :]
            self.h2.send_data(self._stream, part)
        if self._stream and not self._left:
            self.h2.send_headers(self._stream, self._trailers or OK, end_stream=True)
            self._stream = 0


@dataclass
class Called:
    """What came of a call: its result or error, the seconds that it took, and how the servers saw it."""

    result: Any = None
    seconds: float = 0.0
    servers: list[Server] = field(default_factory=list)
    dialed: list[float] = field(default_factory=list)

    @property
    def request(self) -> dict[Any, Any]:
        return self.servers[-1].request


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Called]:
    """Call a service on servers in memory. `answers` are those of one connection after the other; None refuses it."""

    def run(*answers: Any, service: str = "", host: str = "10.0.0.1", timeout: float = 5.0) -> Called:
        called = Called()

        async def main(world: World) -> None:
            async def open_connection(*where: Any) -> tuple[asyncio.StreamReader, Server]:
                assert where == (host, 90)
                answer = answers[min(len(called.dialed), len(answers) - 1)]
                called.dialed.append(world.clock.monotonic_ns() / 1e9 - began)
                if answer is None:
                    raise ConnectionRefusedError
                server = Server(answer)
                called.servers.append(server)
                if isinstance(answer, bytes):  # it says this, and no settings
                    server.reader.feed_data(answer)
                    server.write = lambda data: None  # type: ignore[method-assign]
                return server.reader, server

            monkeypatch.setattr(asyncio, "open_connection", open_connection)
            began = world.clock.monotonic_ns() / 1e9
            try:
                called.result = await check_health(world.clock, host, 90, service, timeout, "agent/1")
            except (DialError, RPCError) as error:
                called.result = error
            called.seconds = world.clock.monotonic_ns() / 1e9 - began

        run_virtual(main)
        assert all(each.closed for each in called.servers), "a connection was left open"
        return called

    return run


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def says(body: bytes, trailers: list[tuple[str, str]] | None = None) -> Callable[[Server, int], None]:
    return lambda server, stream: server.send(stream, body, OK if trailers is None else trailers)


@pytest.mark.parametrize(
    ("service", "message"),
    [("", b"\0\0\0\0\0"), ("abc", b"\0\0\0\0\5\n\3abc")],
)
def test_a_request_names_the_service_if_there_is_one(call: Callable[..., Called], service: str, message: bytes) -> None:
    called = call(says(framed(b"\x08\x01")), service=service)
    assert called.result == 1
    assert called.servers[0].message == message


@pytest.mark.parametrize(
    ("host", "authority", "timeout", "text"),
    [("10.0.0.1", "10.0.0.1:90", 1.5, "1500m"), ("fd00::1", "[fd00::1]:90", 0.0001, "1m")],
)
def test_a_request_is_a_grpc_call_with_the_time_that_it_has(
    call: Callable[..., Called], host: str, authority: str, timeout: float, text: str
) -> None:
    """PROTOCOL-HTTP2.md: Request-Headers."""
    assert call(says(framed(b"")), host=host, timeout=timeout).request == {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "te": "trailers",
        "content-type": "application/grpc",
        "user-agent": "agent/1",
        "grpc-timeout": text,
    }


EIGHT, FOUR = b"\x80" * 8, b"\x80" * 4


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"", 0),
        (b"\x08\x02", 2),
        (b"\x08\xac\x02", 300),
        (b"\x08" + b"\xff" * 9 + b"\x01", (1 << 64) - 1),
        (b"\x08\x01\x08\x02", 2),
        (b"\x08\x01\x10\x05", 1),
        (b"\x10\x05\x08\x01", 1),
        (b"\x12\x03abc\x08\x01", 1),
        (b"\x12\x00\x08\x01", 1),
        (b"\x19" + EIGHT + b"\x08\x01", 1),
        (b"\x1d" + FOUR + b"\x08\x01", 1),
        (b"\x88\x01\x05\x08\x01", 1),
        (b"\x0b", None),
        (b"\x08", None),
        (b"\x08\x80", None),
        (b"\x08" + b"\x80" * 10 + b"\x01", None),
    ],
)
def test_the_status_is_field_1_whatever_else_the_message_has(
    call: Callable[..., Called], message: bytes, status: int | None
) -> None:
    """The encoding of protocol buffers; None is what is no message."""
    result = call(says(framed(message))).result
    if status is not None:
        assert result == status
    else:
        assert (result.code, str(result)) == ("Internal", "grpc: error unmarshalling response")


@pytest.mark.parametrize(
    "body",
    [b"", b"\0\0\0\0", b"\1\0\0\0\2\x08\x01", b"\0\0\0\0\3\x08\x01", b"\0\0\1\0\0\x08\x01"],
    ids=["nothing", "a short prefix", "compressed", "a short message", "a very short message"],
)
def test_an_answer_without_a_whole_message_is_an_internal_error(call: Callable[..., Called], body: bytes) -> None:
    result = call(says(body)).result
    assert (result.code, "the answer holds no whole message" in str(result)) == ("Internal", True)


def test_what_follows_the_message_does_not_count(call: Callable[..., Called]) -> None:
    assert call(says(framed(b"\x08\x01") + b"\x08\x05")).result == 1


@pytest.mark.parametrize(
    ("trailers", "code", "text"),
    [
        ([("grpc-status", "1")], "Canceled", ""),
        ([("grpc-status", "5"), ("grpc-message", "no%20%C3%BC")], "NotFound", "no ü"),
        ([("grpc-status", "16")], "Unauthenticated", ""),
        ([("grpc-status", "17")], "Code(17)", ""),
        ([("grpc-status", "-1")], "Code(-1)", ""),
        ([("grpc-status", "many")], "Unknown", "unexpected HTTP status code received from server: 200"),
    ],
)
def test_an_error_has_the_name_of_its_code(
    call: Callable[..., Called], trailers: list[tuple[str, str]], code: str, text: str
) -> None:
    result = call(says(framed(b"\x08\x01"), trailers)).result
    assert isinstance(result, RPCError) and result.code == code
    assert text in str(result)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("200", "Unknown"),
        ("404", "Unimplemented"),
        ("401", "Unauthenticated"),
        ("503", "Unavailable"),
        ("418", "Unknown"),
    ],
)
def test_an_answer_of_another_server_is_named_by_its_http_status(
    call: Callable[..., Called], status: str, code: str
) -> None:
    """grpc-go internal/transport/http_util.go:HTTPStatusConvTab."""
    result = call(lambda server, stream: server.send(stream, b"", None, status)).result
    assert result.code == code
    assert f"unexpected HTTP status code received from server: {status}" in str(result)


@pytest.mark.parametrize("more", [0, 1])
def test_an_answer_may_have_64_kib_and_no_byte_more(call: Callable[..., Called], more: int) -> None:
    filler = MAX_MESSAGE_BYTES - 5 - 2 - 4 + more  # the prefix, the status, and key and length of the filler
    message = b"\x08\x01\x12" + bytes([filler & 0x7F | 0x80, filler >> 7 & 0x7F | 0x80, filler >> 14]) + b"x" * filler
    result = call(says(framed(message))).result
    if more:
        assert result.code == "ResourceExhausted" and "received message larger than max 65536" in str(result)
    else:
        assert result == 1


def test_an_answer_in_pieces_is_put_together(call: Callable[..., Called]) -> None:
    def answer(server: Server, stream: int) -> None:
        server.h2.send_headers(stream, [(":status", "200")])
        for part in (b"\0\0", b"", b"\0\0\2\x08", b"\x01"):
            server.h2.send_data(stream, part)
        server.h2.send_headers(stream, OK, end_stream=True)

    assert call(answer).result == 1


def reset(server: Server, stream: int) -> None:
    server.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)


def refuse(server: Server, stream: int) -> None:
    server.h2.reset_stream(stream, 0)


def goodbye(server: Server, stream: int) -> None:
    server.h2.close_connection()


def hang_up(server: Server, stream: int) -> None:
    server.hung_up = True


def talk_nonsense(server: Server, stream: int) -> None:
    server.reader.feed_data(NONSENSE)


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (reset, "Internal", "stream terminated by RST_STREAM with error code: CANCEL"),
        (refuse, "Internal", "stream terminated by RST_STREAM with error code: NO_ERROR"),
        (goodbye, "Unavailable", "the server closed the connection"),
        (hang_up, "Unavailable", "error reading from server: EOF"),
        (talk_nonsense, "Unavailable", "error reading from server: "),
    ],
)
def test_a_call_that_is_cut_off_says_how(call: Callable[..., Called], answer: Any, code: str, text: str) -> None:
    result = call(answer).result
    assert result.code == code
    assert text in str(result)


def test_a_call_without_an_answer_ends_when_its_time_is_over(call: Callable[..., Called]) -> None:
    called = call(lambda server, stream: None, timeout=2.5)
    assert (called.result.code, called.seconds) == ("DeadlineExceeded", pytest.approx(2.5))
    assert "context deadline exceeded" in str(called.result)


def test_a_refused_connection_is_tried_again_each_second(call: Callable[..., Called]) -> None:
    """grpc.WithBlock: a refused connection is not the end."""
    called = call(None, None, says(framed(b"\x08\x01")))
    assert (called.result, called.dialed) == (1, pytest.approx([0.0, 1.0, 2.0]))
    called = call(None, timeout=2.5)
    assert isinstance(called.result, DialError) and str(called.result) == "context deadline exceeded"
    assert (called.dialed, called.seconds) == (pytest.approx([0.0, 1.0, 2.0]), pytest.approx(2.5))


def test_a_server_that_breaks_http2_is_tried_again_each_second_and_never_called(
    call: Callable[..., Called],
) -> None:
    called = call(NONSENSE, timeout=1.5)
    assert isinstance(called.result, DialError)
    assert called.dialed == pytest.approx([0.0, 1.0])
