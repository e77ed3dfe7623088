"""The load generator against servers on loopback that answer, refuse, break off, and say nothing."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable

import pytest

from lastcall.traffic.connection import Connection, Dialler
from lastcall.traffic.generator import Generator
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import KINDS, Kind, Outcome
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(ANSWER)


async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readline())


def after_the_request(answer: bytes, *, reset: bool = False) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if reset:
            await writer.drain()
            await asyncio.sleep(0.05)  # the answer is read before the reset
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.close()

    return serve


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def load(serve: Serve | None, kind: Kind, *, count: int = 1, timeout: float = 0.3) -> list[Outcome]:
    """What becomes of at least `count` requests."""
    server = await asyncio.start_server(serve or answers, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    if serve is None:
        server.close()
        await server.wait_closed()
    found: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        found.append(outcome)
        if len(found) >= count:
            generator.stop()

    generator = Generator(World(), Load((host, port), {kind: 50.0}, timeout=timeout), report)
    async with asyncio.timeout(60):
        await generator.run()
    server.close()
    return found


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in ("websocket", "http2")])
async def test_a_good_answer_is_not_lost_whatever_the_kind(kind: Kind) -> None:
    found = await load(echoes if kind == "tcp" else answers, kind, count=5)
    assert [each.lost for each in found] == [""] * len(found) and len(found) >= 5
    assert {each.status for each in found} == {0 if kind == "tcp" else 200}
    assert [each.id for each in sorted(found, key=lambda each: each.planned)] == list(range(1, len(found) + 1))


async def test_kept_connections_are_used_again_and_fresh_ones_are_not() -> None:
    kept, fresh = await load(answers, "keep-alive", count=8), await load(answers, "fresh", count=8)
    assert len({each.connection for each in kept}) < len(kept) and max(each.age for each in kept) > 0.01
    assert len({each.connection for each in fresh}) == len(fresh)


LOST = [
    ("nobody listens", None, "refused"),
    ("closed without a byte", after_the_request(b""), "closed before bytes"),
    ("reset without a byte", after_the_request(b"", reset=True), "reset before bytes"),
    ("closed within the answer", after_the_request(ANSWER[:-2]), "truncated"),
    ("closed within the head", after_the_request(b"HTTP/1.1 200 O"), "truncated"),
    ("reset within the answer", after_the_request(ANSWER[:-2], reset=True), "reset after bytes"),
    ("an answer that is none", after_the_request(b"220 mail.example ESMTP\r\n\r\n"), "truncated"),
    ("an error", after_the_request(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), "5xx"),
    ("silence", silent, "timeout"),
]


@pytest.mark.parametrize(("serve", "lost"), [row[1:] for row in LOST], ids=[row[0] for row in LOST])
async def test_what_happened_to_a_lost_request_is_told(serve: Serve | None, lost: str) -> None:
    assert {each.lost for each in await load(serve, "fresh")} == {lost}


async def test_a_connection_that_the_server_closed_while_idle_is_no_loss() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        writer.close()

    found = await load(once, "keep-alive", count=6)
    assert {each.lost for each in found} == {""} and len({each.connection for each in found}) == len(found)


async def test_a_line_without_an_end_is_no_echo() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"x" * 200_000)

    assert {each.lost for each in await load(endless, "tcp", timeout=30.0)} == {"truncated"}


async def test_slow_answers_do_not_slow_the_rate_down() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.5)  # a slow server
        writer.write(ANSWER)

    found = await load(slow, "slow", count=1, timeout=10.0)
    assert len(found) > 10 and {each.lost for each in found} == {""}


async def test_a_kept_connection_that_the_server_closed_is_not_used_even_if_the_loop_has_not_read_it_yet() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = await Dialler(World().clock, None).connect(server.getsockname())
        assert isinstance(connection, Connection)
        accepted, _ = server.accept()
        assert connection.is_good()
        accepted.close()  # on loopback the FIN has arrived when this returns
        assert not connection.reader.at_eof() and not connection.is_good()
        connection.writer.close()


async def test_a_generator_that_was_held_up_says_so_of_its_timeouts() -> None:
    async def stops_the_world(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = b"lc-1\r\n" in await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.1)  # a slow server
        if first:  # and not those that come in a bunch afterwards
            time.sleep(0.9)  # noqa: ASYNC251 (the whole loop stands still, and the generator is in it)
        writer.write(ANSWER)

    found = await load(stops_the_world, "slow", timeout=0.5)
    (first,) = (each for each in found if each.id == 1)
    assert first.lost == "timeout" and not first.measured and first.held_up > 0.5
    usual = await load(silent, "fresh", count=10, timeout=0.3)
    assert {each.lost for each in usual} == {"timeout"} and any(each.measured for each in usual)


async def test_every_request_that_was_begun_has_one_outcome() -> None:
    found: list[Outcome] = []
    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    rates: dict[Kind, float] = {"fresh": 300.0, "keep-alive": 100.0}
    generator = Generator(World(), Load(server.sockets[0].getsockname(), rates), found.append)
    running = asyncio.ensure_future(generator.run())
    await asyncio.sleep(0.2)  # how long the load lasts
    generator.stop()
    await running
    server.close()
    assert sorted(each.id for each in found) == list(range(1, generator.begun + 1)) and generator.begun > 2


def test_an_outcome_travels_as_it_is() -> None:
    outcome = Outcome(1, "fresh", 1.0, 1.1, 1.2, 3, 0.5, 200, "10.244.0.2", "")
    assert Outcome.from_wire(outcome.to_wire()) == outcome
