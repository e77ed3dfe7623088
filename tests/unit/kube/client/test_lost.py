"""Why a connection was lost, in words: of real servers that go, and of what a test cannot do to itself."""

import asyncio
import socket
import ssl
import struct
from typing import Any

import aiohttp
import pytest

from lastcall.kube.client.lost import why_lost

pytestmark = pytest.mark.loopback

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"


def reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


async def asked(answer: bytes, end: Any) -> str:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        end(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with aiohttp.ClientSession() as session:
        try:
            async with asyncio.timeout(20), session.get(f"http://127.0.0.1:{port}/") as response:
                await response.read()
        except (aiohttp.ClientError, OSError) as error:
            return why_lost(error)
        finally:
            server.close()
    return ""


@pytest.mark.parametrize(
    ("answer", "end", "why"),
    [
        (b"", asyncio.StreamWriter.close, "the server closed the connection"),
        (HEAD + b"a", asyncio.StreamWriter.close, "the server ended in the middle of an answer"),
        (b"", reset, "the server reset the connection"),
    ],
)
async def test_a_server_that_goes_is_told_by_what_it_did(answer: bytes, end: Any, why: str) -> None:
    assert await asked(answer, end) == why


async def test_a_port_where_nobody_listens_refuses() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError) as error:
                await session.get(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert why_lost(error.value) == "the server refused the connection"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError(), "no answer in time"),
        (aiohttp.ConnectionTimeoutError(), "no answer in time"),
        (OSError(101, "x"), "Network is unreachable"),
        (OSError(0, "something"), "[Errno 0] something"),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), "WRONG_VERSION_NUMBER"),
        (ValueError(), "ValueError"),
    ],
)
def test_what_else_happened_is_told_as_it_came(error: Exception, why: str) -> None:
    assert why_lost(error) == why
