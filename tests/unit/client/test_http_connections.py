"""What becomes of HTTPClient's connections: used again, given up, written to and read from at the other side's pace."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from lastcall.api.resources import NODES
from lastcall.client.api import ConnectionLost
from lastcall.client.http import HTTPClient
from lastcall.client.kubeconfig import make_ssl_context

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def served(serve: Serve, certificate: tuple[Path, Path] | None = None) -> AsyncIterator[HTTPClient]:
    """A client of a server that gives each connection to `serve`; with a certificate by TLS."""
    open_: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    theirs = ours = None
    if certificate is not None:
        theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        theirs.load_cert_chain(*certificate)
        ours = make_ssl_context(ca_pem=certificate[0].read_bytes())
    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=theirs)
    port = server.sockets[0].getsockname()[1]
    client = HTTPClient(f"{'https' if ours else 'http'}://127.0.0.1:{port}", ssl_context=ours)
    try:
        async with asyncio.timeout(60):
            yield client
    finally:
        await client.close()
        server.close()
        for writer in open_:
            writer.close()


async def request(reader: asyncio.StreamReader) -> str:
    """The next request's method; its body is read."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = dict(line.split(": ", 1) for line in head.strip().split("\r\n")[1:])
    await reader.readexactly(int(fields.get("Content-Length", 0)))
    return head.split(" ", 1)[0]


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("PUT", True), ("DELETE", True), ("POST", False)])
async def test_what_may_be_done_twice_is_sent_again_when_a_used_connection_ends_without_an_answer(
    method: str, again: bool
) -> None:
    connections: list[list[str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(methods := [])
        while True:
            methods.append(await request(reader))
            if len(connections) == 1 and len(methods) == 2:
                return
            writer.write(OK)

    async with served(serve) as client:
        await client.get(NODES, "n")
        body = None if method == "GET" else {}
        if again:
            assert await client.request(method, "/api/v1/nodes", body=body) == b"{}"
        else:
            with pytest.raises(ConnectionLost, match="closed the connection"):
                await client.request(method, "/api/v1/nodes", body=body)
    assert connections == [["GET", method], *([[method]] if again else [])]


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    ended = asyncio.Event()
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await request(reader)
        writer.write(OK)
        await writer.drain()
        writer.close()
        ended.set()

    async with served(serve) as client:
        for expected in (1, 2):
            ended.clear()
            await client.request("POST", "/api/v1/nodes", body={})
            await ended.wait()
            for _ in range(10_000):
                if not client._connections:
                    break
                await asyncio.sleep(0.001)  # the end of the connection is on its way
            assert (count, client._connections) == (expected, {})


async def test_a_request_that_is_cancelled_gives_its_connection_up_and_others_go_on() -> None:
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await request(reader) == "DELETE":
            asked.set()
            assert await reader.read() == b"", "the client hangs up"
            return
        writer.write(OK)

    async with served(serve) as client:
        waiting = asyncio.ensure_future(client.delete(NODES, "n"))
        await asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not client._connections
        assert await client.get(NODES, "n") == {}


@pytest.mark.parametrize("tls", [True, False])
async def test_a_large_body_is_sent_as_fast_as_the_server_reads_it(certificate: tuple[Path, Path], tls: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        await request(reader)
        writer.write(OK)

    async with served(serve, certificate if tls else None) as client:
        assert await client.create(NODES, {"data": "x" * (16 << 20)}) == {}


@pytest.mark.parametrize("tls", [True, False])
async def test_whoever_streams_waits_for_a_slow_reader(certificate: tuple[Path, Path], tls: bool) -> None:
    sent, total = 0, 64 << 20

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"x" * (1 << 16)
        while sent < total:
            writer.write(b"10000\r\n%b\r\n" % piece)
            await writer.drain()
            sent += len(piece)
        writer.write(b"0\r\n\r\n")

    async with served(serve, certificate if tls else None) as client:
        log = client.pod_log("default", "web")
        received = len(await anext(log))
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.2)
        assert sent < total, "the rest is still with the server"
        async for piece in log:
            received += len(piece)
        assert received == total


async def test_closing_the_client_ends_what_it_waits_for() -> None:
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        asked.set()
        await reader.read()

    async with served(serve) as client:
        waiting = asyncio.ensure_future(client.get(NODES, "n"))
        await asked.wait()
        await client.close()
        with pytest.raises(ConnectionLost):
            await waiting


def test_a_token_with_a_line_feed_is_refused() -> None:
    with pytest.raises(ValueError, match="Authorization: a control character"):
        HTTPClient("https://h", ssl_context=ssl.create_default_context(), token="secret\nX-Other: 1")


async def test_a_path_that_is_not_quoted_is_refused() -> None:
    client = HTTPClient("http://127.0.0.1:1", ssl_context=None)
    with pytest.raises(ValueError, match="has to be quoted"):
        await client.request("GET", "/api/v1/pods HTTP/1.1\r\nX: ")
