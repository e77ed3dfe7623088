"""HTTP/2: many requests on few connections, and what a server may do to them."""

import asyncio
import re
from collections.abc import Callable

import pytest
from load_servers import (
    DATA,
    END_HEADERS,
    HEADERS,
    PING,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    Http2Peer,
    Serve,
    UnreadWriter,
    answer,
    go_away,
    http2_frame,
    outcomes,
    reset,
)

from lastcall.traffic.http1 import READ_SIZE
from lastcall.traffic.http2 import Http2Connection, NotBegun
from lastcall.traffic.outcome import Answer, Outcome
from lastcall.world.clock import RealClock

pytestmark = pytest.mark.loopback

Answers = Callable[[asyncio.StreamWriter, int], bool]
"""Answers a stream; True when that was the last one of the connection."""


def server(take: Answers, ids: dict[int, int] | None = None) -> Serve:
    """`ids` gets the id of the first request on each stream: requests may overtake one another before they are sent."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Http2Peer(reader, writer)
        while True:
            stream, block = await peer.request()
            if ids is not None and (name := re.search(rb"lc-(\d+)", block)):
                ids.setdefault(stream, int(name[1]))
            if take(writer, stream):
                return

    return serve


def good(writer: asyncio.StreamWriter, stream: int) -> bool:
    writer.write(http2_frame(PING, 0, b"12345678") + answer(stream))
    return False


async def load(
    take: Answers, *, count: int = 1, connections: int = 1, ids: dict[int, int] | None = None, **more: float
) -> list[Outcome]:
    return await outcomes(server(take, ids), "http2", count=count, http2_connections=connections, **more)


async def test_requests_share_few_connections_and_their_age_grows() -> None:
    found = await load(good, count=20, connections=2)
    assert {(each.lost, each.moved, each.status) for each in found} == {("", "", 200)}
    assert len({each.connection for each in found}) == 2 and found[-1].age > found[0].age


async def test_ids_are_on_the_wire_as_they_are() -> None:
    blocks: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Http2Peer(reader, writer)
        while True:
            stream, block = await peer.request()
            blocks.append(block)
            writer.write(answer(stream))

    found = await outcomes(serve, "http2", count=3, http2_connections=1)
    named = [each for each in found if any(b"lc-%d" % each.id in block for block in blocks)]
    assert len(named) == len(found)


def first_of_each(act: Answers) -> Answers:
    """`act` on the third stream of the first connection; everything else is answered."""
    acted: list[int] = []

    def take(writer: asyncio.StreamWriter, stream: int) -> bool:
        if stream == 5 and not acted:
            acted.append(stream)
            return act(writer, stream)
        return good(writer, stream)

    return take


def hang_up(writer: asyncio.StreamWriter) -> None:
    """A FIN, and no RST though the client may be writing at this moment: its bytes go on being taken for a while."""
    writer.write_eof()
    asyncio.get_running_loop().call_later(1.0, writer.close)


def close(writer: asyncio.StreamWriter, stream: int) -> bool:
    hang_up(writer)
    return True


def rst(writer: asyncio.StreamWriter, stream: int) -> bool:
    reset(writer)
    return True


def half(end: Callable[[asyncio.StreamWriter], None]) -> Answers:
    def act(writer: asyncio.StreamWriter, stream: int) -> bool:
        writer.write(http2_frame(HEADERS, stream, b"\x88", END_HEADERS) + http2_frame(DATA, stream, b"o"))
        asyncio.get_running_loop().call_later(0.1, end, writer)
        return True

    return act


def says(*frames: Callable[[int], bytes], closes: bool = False) -> Answers:
    def act(writer: asyncio.StreamWriter, stream: int) -> bool:
        for each in frames:
            writer.write(each(stream))
        if closes:
            hang_up(writer)
        return closes

    return act


def with_status(value: bytes) -> bytes:
    """A header block with the field `:status` as it is: a literal, its name is entry 8 (RFC 7541 6.2.2)."""
    return b"\x08" + bytes([len(value)]) + value


ENDS = [
    ("closed without an answer", close, "closed before bytes", ""),
    ("reset without an answer", rst, "reset before bytes", ""),
    ("closed within the answer", half(hang_up), "truncated", ""),
    ("reset within the answer", half(reset), "reset after bytes", ""),
    ("the stream is reset", says(lambda n: http2_frame(RST_STREAM, n, b"\0\0\0\2")), "reset before bytes", ""),
    ("the stream is refused", says(lambda n: http2_frame(RST_STREAM, n, bytes([0, 0, 0, REFUSED_STREAM]))), "",
     "retried"),
    ("told to go away before it was begun", says(lambda n: go_away(n - 2), closes=True), "", "retried"),
    ("told to go away after it was begun, and cut", says(go_away, closes=True), "closed before bytes", ""),
    ("told to go away, and answered", says(go_away, answer), "", ""),
    ("told twice, as careful servers do", says(lambda n: go_away(2**31 - 1), answer, go_away), "", ""),
    ("an error", says(lambda n: answer(n, b"\x8e")), "5xx", ""),
    ("a status that is no number", says(lambda n: answer(n, with_status(b"abc"))), "truncated", ""),
    ("a status that is below 100", says(lambda n: answer(n, with_status(b"-5"))), "truncated", ""),
    ("a status in digits of another script", says(lambda n: answer(n, with_status("٢٠٠".encode()))), "truncated", ""),
    ("a status that is no UTF-8", says(lambda n: answer(n, with_status(b"\xff\xfe"))), "truncated", ""),
    ("a field that is no UTF-8", says(lambda n: answer(n, b"\x88\x00\x01x\x01\xff")), "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("act", "lost", "moved"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
async def test_what_becomes_of_a_stream_is_what_clients_see(act: Answers, lost: str, moved: str) -> None:
    ids: dict[int, int] = {}
    found = {each.id: each for each in await load(first_of_each(act), count=8, ids=ids)}
    third = found[ids[5]]
    assert (third.lost, third.moved) == (lost, moved)
    assert not moved or third.status == 200


async def test_after_goaway_the_next_requests_go_to_another_connection() -> None:
    found = await load(first_of_each(says(go_away, answer)), count=8)
    assert len({each.connection for each in found}) == 2 and {each.lost for each in found} == {""}


async def test_control_frames_are_answered_no_faster_than_the_server_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.traffic.http1.MOST_UNSENT_BYTES", 10_000)
    reader, writer = asyncio.StreamReader(), UnreadWriter()
    running = asyncio.ensure_future(Http2Connection(reader, writer, "a", clock=RealClock()).run())  # type: ignore[arg-type]
    reader.feed_data(http2_frame(SETTINGS, 0) + http2_frame(PING, 0, b"12345678") * 40_000)
    await writer.full.wait()
    assert not running.done() and len(writer.data) < 10_000 + 2 * READ_SIZE
    running.cancel()


@pytest.mark.parametrize(
    ("said", "found"),
    [(b"", NotBegun()), (b"HTTP/1.1 400 Bad Request\r\n\r\n", Answer(lost="not HTTP/2"))],
    ids=["a connection that was closed", "a server without HTTP/2"],
)
async def test_a_request_on_a_connection_that_has_ended_is_answered_at_once(
    said: bytes, found: Answer | NotBegun
) -> None:
    reader = asyncio.StreamReader()
    connection = Http2Connection(reader, UnreadWriter(), "a", clock=RealClock())  # type: ignore[arg-type]
    reader.feed_data(said)
    reader.feed_eof()
    await connection.run()
    async with asyncio.timeout(5):
        assert await connection.request("/", "lc-1") == found


async def test_silence_is_a_timeout_on_its_connection() -> None:
    found = await load(says(), count=2, timeout=0.2)
    assert {each.lost for each in found} == {"timeout"} and all(each.connection for each in found)


async def test_a_server_of_http1_is_told_from_one_that_is_silent() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n")
        await reader.read()

    assert {each.lost for each in await outcomes(serve, "http2")} == {"not HTTP/2"}


async def test_a_server_that_is_never_ready_to_go_on_is_retried_once_only() -> None:
    found = await load(says(lambda n: http2_frame(RST_STREAM, n, bytes([0, 0, 0, REFUSED_STREAM]))))
    assert {(each.lost, each.moved) for each in found} == {("closed before bytes", "")}


async def test_nobody_listening_is_a_refusal_for_each() -> None:
    async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...

    from lastcall.traffic.generator import Generator
    from lastcall.traffic.load import Load
    from lastcall.world.world import World

    server = await asyncio.start_server(gone, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    server.close()
    await server.wait_closed()
    found: list[Outcome] = []
    generator = Generator(World(), Load(address, {"http2": 50.0}), found.append)
    asyncio.get_running_loop().call_later(0.2, generator.stop)
    async with asyncio.timeout(30):
        await generator.run()
    assert len(found) > 3 and {each.lost for each in found} == {"refused"}
