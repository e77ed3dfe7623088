"""Streams and WebSockets: what a good end is, what a goodbye is, and what was lost."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from load_servers import UPGRADED, Serve, UnreadWriter, accepted, frame, goodbye, outcomes, read_frame, reset, upgrade

from lastcall.traffic.generator import Generator
from lastcall.traffic.http1 import READ_SIZE
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import LOST, LOST_MEANS, MOVED, MOVED_MEANS, Kind, Outcome
from lastcall.traffic.stay import Stay
from lastcall.traffic.websocket import LONGEST_MESSAGE, _Socket, hold
from lastcall.world.clock import RealClock
from lastcall.world.conntrack import Address
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK, LAST = b"c\r\ndata: tick\n\n\r\n", b"0\r\n\r\n"
LENGTH = {"length": 0.4, "message_every": 0.1}


def sends(*parts: bytes, then: str = "close") -> Serve:
    """After the request, one part after the other; then FIN, RST, or nothing until the client leaves."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)  # so that each part comes alone
        if then == "stay":
            await reader.read()
        (reset if then == "reset" else asyncio.StreamWriter.close)(writer)

    return serve


STREAMS = [
    ("the client has enough", sends(HEAD, CHUNK, CHUNK, then="stay"), "", ""),
    ("the server ends it with the last chunk", sends(HEAD, CHUNK, LAST), "", "ended early"),
    ("the last byte that was promised", sends(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", b"ok\n"), "", ""),
    ("only the connection's end tells of an end", sends(b"HTTP/1.0 200 OK\r\n\r\n", b"ok\n"), "", "closed early"),
    ("closed between two chunks", sends(HEAD, CHUNK), "truncated", ""),
    ("closed within a chunk", sends(HEAD, CHUNK[:-4]), "truncated", ""),
    ("closed before the last byte", sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"ok\n"), "truncated", ""),
    ("reset between two chunks", sends(HEAD, CHUNK, then="reset"), "reset after bytes", ""),
    ("reset before the head", sends(then="reset"), "reset before bytes", ""),
    ("closed before the head", sends(), "closed before bytes", ""),
    ("an error", sends(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), "5xx", ""),
]  # fmt: skip


@pytest.mark.parametrize(("serve", "lost", "moved"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
async def test_a_stream_ends_as_it_was_promised_or_not(serve: Serve, lost: str, moved: str) -> None:
    patience = LENGTH if moved == lost == "" and serve is STREAMS[0][1] else LENGTH | {"length": 10.0}
    found = await outcomes(serve, "stream", **patience)
    assert {(each.lost, each.moved) for each in found} == {(lost, moved)}


async def test_a_stream_without_a_head_times_out_and_one_that_says_nothing_does_not() -> None:
    (silent,) = {each.lost for each in await outcomes(sends(then="stay"), "stream", timeout=0.2, **LENGTH)}
    (quiet,) = {each.lost for each in await outcomes(sends(HEAD, then="stay"), "stream", **LENGTH)}
    assert (silent, quiet) == ("timeout", "")


def socket(after: int, last: bytes = b"", *, then: str = "close", echo: bool = True, wait: float = 0.0) -> Serve:
    """A WebSocket that echoes `after` messages, sends `last` and ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await upgrade(reader, writer)
        for _ in range(after):
            _, body = await read_frame(reader)
            if echo:
                writer.write(frame(1, body))
        await asyncio.sleep(wait)  # a slow server
        writer.write(last)
        await writer.drain()
        await asyncio.sleep(0.02)  # the answer is read before the reset
        if then == "stay":
            await reader.read()
        (reset if then == "reset" else asyncio.StreamWriter.close)(writer)

    return serve


WEBSOCKETS = [
    ("going away", socket(1, goodbye(1001)), "", "going away"),
    ("a normal end", socket(1, goodbye(1000)), "", "going away"),
    ("a service restart", socket(1, goodbye(1012)), "", "going away"),
    ("an internal error", socket(1, goodbye(1011)), "closed with an error", ""),
    ("a close frame without a code", socket(1, frame(8, b"")), "closed with an error", ""),
    ("a FIN without a close frame", socket(1), "no close frame", ""),
    ("a reset", socket(1, then="reset"), "reset after bytes", ""),
    ("bytes that are no frame", socket(1, b"\xff\xff\xff"), "closed with an error", ""),
    ("a goodbye with a message that was never echoed", socket(1, goodbye(1001), echo=False, wait=1.5), "unanswered",
     ""),
    ("an answer that is no upgrade", sends(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "not upgraded", ""),
    ("an error", sends(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), "5xx", ""),
    ("closed before the handshake", sends(), "closed before bytes", ""),
    ("closed within the handshake", sends(b"HTTP/1.1 101 Swi"), "truncated", ""),
    ("a handshake with a field that is no ASCII",
     sends(UPGRADED.replace(b"Connection: ", b"Connection: \xff") + b"\r\n\r\n"), "truncated", ""),
    ("reset before the handshake", sends(then="reset"), "reset before bytes", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("serve", "lost", "moved"), [row[1:] for row in WEBSOCKETS], ids=[row[0] for row in WEBSOCKETS]
)
async def test_a_websocket_ends_with_a_goodbye_or_was_lost(serve: Serve, lost: str, moved: str) -> None:
    found = await outcomes(serve, "websocket", **LENGTH)
    assert {(each.lost, each.moved) for each in found} == {(lost, moved)}


async def test_a_websocket_whose_messages_are_never_echoed_times_out() -> None:
    found = await outcomes(socket(9, echo=False, then="stay"), "websocket", timeout=0.3, **LENGTH)
    assert {each.lost for each in found} == {"timeout"}


async def test_a_ping_after_the_clients_own_goodbye_is_no_loss() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await upgrade(reader, writer)
        while (message := await read_frame(reader))[0] == 1:
            writer.write(frame(1, message[1]))
        writer.write(frame(9, b"still there?") + frame(8, message[1]))

    found = await outcomes(serve, "websocket", **LENGTH)
    assert {(each.lost, each.moved, each.status) for each in found} == {("", "", 101)}


def test_a_message_without_an_end_is_not_kept() -> None:
    held = _Socket("lc-1", Stay(5.0), 0.5, 10.0, 0.0, lambda: 0.0)
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", held.handshake("a", "/ws"))
    assert key is not None
    assert held.received(UPGRADED + accepted(key[1].decode()) + b"\r\n\r\n", 0.0) is None
    assert held.received(b"\x81\x7f" + (2**63 - 1).to_bytes(8, "big"), 0.0) is None
    for _ in range(10):
        assert held.received(b"x" * 100_000, 0.0) is None
    assert len(held._text) <= LONGEST_MESSAGE


async def test_pings_are_answered_no_faster_than_the_server_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.traffic.http1.MOST_UNSENT_BYTES", 10_000)
    reader, writer = asyncio.StreamReader(), UnreadWriter()
    held = asyncio.ensure_future(
        hold(
            reader,
            writer,  # type: ignore[arg-type]
            host="a",
            path="/",
            request_id="lc-1",
            stay=Stay(30.0),
            every=30.0,
            timeout=30.0,
            clock=RealClock(),
        )
    )
    await writer.written.wait()
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", writer.data)
    assert key is not None
    reader.feed_data(UPGRADED + accepted(key[1].decode()) + b"\r\n\r\n" + frame(9, b"x" * 125) * 5000)
    await writer.full.wait()
    assert not held.done() and len(writer.data) < 10_000 + 2 * READ_SIZE
    held.cancel()


async def test_a_message_that_crossed_the_servers_goodbye_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.traffic.websocket.CROSSING_SECONDS", 30.0)
    found = await outcomes(socket(1, goodbye(1001), echo=False), "websocket", **LENGTH)
    assert {(each.lost, each.moved, each.messages) for each in found} == {("", "going away", 0)}


async def test_the_first_message_that_was_not_echoed_is_named() -> None:
    (found, *_) = await outcomes(socket(1), "websocket", **LENGTH)
    assert found.messages == 1 and found.unanswered in ("", f"lc-{found.id}.1")
    (found, *_) = await outcomes(socket(1, echo=False), "websocket", **LENGTH)
    assert (found.messages, found.unanswered) == (0, f"lc-{found.id}.0")


@contextlib.asynccontextmanager
async def endless(seen: list[str]) -> AsyncIterator[Address]:
    """A real server that never ends what it began. `seen` gets the messages of its WebSockets."""

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            seen.append(message.data)
            await socket.send_str(message.data)
        return socket

    async def tick(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"data: tick\n\n")
            await asyncio.sleep(0.02)  # what comes slowly, so that it does not fill the client

    app = web.Application()
    app.router.add_get("/ws", echo)
    app.router.add_get("/stream", tick)
    runner = web.AppRunner(app)
    await runner.setup()
    protocol = runner.server
    assert protocol is not None
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        await runner.cleanup()


async def test_a_real_server_echoes_every_message_and_answers_the_clients_goodbye() -> None:
    seen: list[str] = []
    found: list[Outcome] = []
    async with asyncio.timeout(30), endless(seen) as address:
        generator = Generator(World(), Load(address, {"websocket": 20.0}, **LENGTH), found.append)
        asyncio.get_running_loop().call_later(0.2, generator.stop)
        await generator.run()
    assert len(found) >= 2 and {(each.lost, each.moved, each.status) for each in found} == {("", "", 101)}
    assert all(each.messages >= 1 and each.finished - each.sent >= 0.4 for each in found)
    assert sum(each.messages for each in found) == len(seen) and all(re.fullmatch(r"lc-\d+\.\d+", one) for one in seen)


@pytest.mark.parametrize("kind", ["stream", "websocket"])
async def test_the_first_of_several_is_held_until_the_load_is_over_and_then_left_in_good_order(kind: Kind) -> None:
    found: list[Outcome] = []
    async with asyncio.timeout(60), endless([]) as address:
        load = Load(address, {kind: 50.0}, length=0.1, lasting_every=3, message_every=0.05, timeout=30.0)

        def report(outcome: Outcome) -> None:
            found.append(outcome)
            if {2, 3, 5, 6} <= {each.id for each in found} and not over:
                over.extend(each.id for each in found)
                generator.stop()

        over: list[int] = []
        generator = Generator(World(), load, report)
        await generator.run()
    assert not {1, 4} & set(over)
    assert sorted(each.id for each in found) == list(range(1, generator.begun + 1))
    assert {(each.lost, each.moved) for each in found} == {("", "")}


def test_every_class_is_explained() -> None:
    assert list(LOST_MEANS) == list(LOST) and list(MOVED_MEANS) == list(MOVED)
