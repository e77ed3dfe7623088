"""Servers that send without end, and what else the load generator does meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lastcall.traffic.http1 import READ_SIZE, exchange
from lastcall.traffic.stay import Stay
from lastcall.traffic.stream import follow
from lastcall.world.clock import RealClock

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CHUNK = b"1\r\nx\r\n"
READS = 5


class Writer:
    def write(self, data: bytes) -> None:
        """Take it."""


def ask(reader: asyncio.StreamReader) -> Awaitable[object]:
    writer: Any = Writer()
    return exchange(reader, writer, host="a", path="/", request_id="lc-1", close=False, clock=RealClock())


def listen(reader: asyncio.StreamReader) -> Awaitable[object]:
    writer: Any = Writer()
    return follow(reader, writer, host="a", path="/", request_id="lc-1", stay=Stay(60), timeout=60, clock=RealClock())


@pytest.mark.parametrize("client", [ask, listen])
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"])
async def test_an_answer_without_end_leaves_others_their_turn(
    client: Callable[[asyncio.StreamReader], Awaitable[object]], answer: bytes
) -> None:
    reader, turns = asyncio.StreamReader(), 0
    piece = CHUNK if answer else CONTINUE
    reader.feed_data(answer + piece * (READS * READ_SIZE // len(piece)))
    reader.feed_eof()
    reading = asyncio.ensure_future(client(reader))
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert "truncated" in repr(reading.result()) and turns >= READS
